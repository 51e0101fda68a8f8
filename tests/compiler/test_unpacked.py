"""An unpacked compiler of the cache is used only as it was unpacked, and only if its wheel is one that is allowed."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install
from fake_wheels import DIST_INFO, LIBRARIES, entries, wheel_name, write_wheel
from links_page import LinksPage, serving
from prepared_program import bot

CONFIG = "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx]\n"
BINDINGS = {
    "iree/compiler/__init__.py": b"",
    "iree/compiler/ir.py": b"class Context: pass\n",
}
LIST = ".files.json"


@dataclass(frozen=True)
class Place:
    """A folder with a model, a cache, and a page that offers the wheel of one release."""

    home: Path
    page: LinksPage

    def measure(self, *arguments: str, code: int = 0) -> str:
        """Measure one build; what the program said."""
        argv = (
            "measure",
            "--compiler",
            "3.13.0",
            "--out",
            "head.json",
            "--cache",
            "cache",
            *arguments,
        )
        return self.run(*argv, code=code)

    def run(self, *argv: str, code: int = 0) -> str:
        env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.page.url}
        done = bot(*argv, cwd=self.home, codes=(code,), env=env)
        return done.stdout + done.stderr

    @property
    def root(self) -> Path:
        [root] = (self.home / "cache" / "toolchains").iterdir()
        return root

    @property
    def binary(self) -> Path:
        return self.root / LIBRARIES / "iree-compile"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    fake = install(tmp_path / "fake", templates=TEMPLATES)
    write_wheel(tmp_path / "dist" / wheel_name(), entries(fake) | BINDINGS)
    (tmp_path / "a.mlir").write_text("// model a\n")
    (tmp_path / "code-size.yml").write_text(CONFIG)
    with serving(tmp_path / "dist") as page:
        yield Place(tmp_path, page)


def appended(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"!")


def overlong(path: Path) -> None:
    """A line that Python's `csv` refuses."""
    path.write_bytes(b"a" * 200_000)


def torn(path: Path) -> None:
    """A line with too few fields."""
    path.write_bytes(b"iree/compiler/__init__.py,sha256=\n")


def flipped(path: Path) -> None:
    """Another byte, the same size."""
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def linked(path: Path) -> None:
    """The same bytes, behind a link that can change them later."""
    copy = path.parents[5] / "copy"
    shutil.move(path, copy)
    path.symlink_to(copy)


CHANGES: dict[str, tuple[Callable[[Place], object], str]] = {
    "compiler": (
        lambda unpacked: appended(unpacked.binary),
        f"{LIBRARIES}/iree-compile was changed",
    ),
    "same size": (
        lambda unpacked: flipped(unpacked.root / LIBRARIES / "libIREECompiler.so"),
        f"{LIBRARIES}/libIREECompiler.so was changed",
    ),
    "bindings": (
        lambda unpacked: flipped(unpacked.root / "iree/compiler/ir.py"),
        "iree/compiler/ir.py was changed",
    ),
    "added": (
        lambda unpacked: (unpacked.root / "iree/compiler/sitecustomize.py").touch(),
        "sitecustomize.py was added",
    ),
    "module": (
        lambda unpacked: (unpacked.root / "iree/compiler/ir.pyc").touch(),
        "iree/compiler/ir.pyc was added",
    ),
    "removed": (
        lambda unpacked: (unpacked.root / LIBRARIES / "iree-lld").unlink(),
        f"{LIBRARIES}/iree-lld is missing",
    ),
    "link": (
        lambda unpacked: linked(unpacked.root / LIBRARIES / "iree-lld"),
        f"{LIBRARIES}/iree-lld was changed",
    ),
    "added link": (
        lambda unpacked: (unpacked.root / "iree/x").symlink_to("/etc"),
        "iree/x was added",
    ),
    "no list": (
        lambda unpacked: (unpacked.root / LIST).write_text("[]"),
        f"{LIST} is not a list of files",
    ),
}


QUICK = ("compiler", "added", "no list")
"""One of each kind of change; the others are slow tests."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in CHANGES
    ],
)
def test_a_compiler_that_was_changed_in_the_cache_is_fetched_again(
    place: Place, name: str
) -> None:
    change, reason = CHANGES[name]
    assert "fetching iree-base-compiler==3.13.0" in place.measure()
    snapshot = (place.home / "head.json").read_bytes()
    change(place)
    printed = place.measure()
    assert (
        f"{reason}; it is fetched again" in printed
        and "fetching iree-base-compiler==3.13.0" in printed
    )
    assert (place.home / "head.json").read_bytes() == snapshot
    before = len(place.page.asked)
    assert "fetch" not in place.measure() and len(place.page.asked) == before, (
        "intact: no network is needed"
    )


def test_byte_code_in_the_cache_is_neither_run_nor_a_change(place: Place) -> None:
    place.measure()
    source = place.root / "iree/compiler/__pycache__/ir.cpython-311.pyc"
    source.parent.mkdir()
    source.write_bytes(b"of an older version of this program")
    assert "fetch" not in place.measure()


def test_a_cache_of_an_older_version_is_compared_with_the_record_of_the_wheel(
    place: Place,
) -> None:
    fake_files = entries(install(place.home / "fake", templates=TEMPLATES)) | BINDINGS
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in fake_files.items()
        if not name.endswith("/RECORD")
    ]
    record = f"{DIST_INFO}/RECORD"
    fake_files[record] = "".join([*rows, f"{record},,\n"]).encode()
    write_wheel(place.home / "dist" / wheel_name(), fake_files)
    place.measure()
    (place.root / LIST).unlink()
    assert "fetch" not in place.measure() and (place.root / LIST).is_file()
    (place.root / LIST).unlink()
    flipped(place.binary)
    assert "iree-compile was changed; it is fetched again" in place.measure()
    damages: tuple[Callable[[Path], None], ...] = (Path.unlink, overlong, torn)
    for damage in damages:
        (place.root / LIST).unlink()
        damage(place.root / record)
        assert "it has no list of its files; it is fetched again" in place.measure()


# Digests in a requirements file.


def pinned(place: Place, digest: str) -> None:
    text = CONFIG + "compiler: {requirements: pins.txt}\n"
    (place.home / "code-size.yml").write_text(text)
    (place.home / "pins.txt").write_text(
        f"iree-base-compiler==3.13.0 \\\n    --hash={digest}\n"
    )


def test_a_wheel_with_another_digest_than_the_requirements_file_allows_is_not_used(
    place: Place,
) -> None:
    wheel = place.home / "dist" / wheel_name()
    other_digest = f"sha256:{'0' * 64}"
    pinned(place, other_digest)
    reason = "which no --hash of the requirements file allows"
    assert reason in place.run("compare", "--cache", "cache", code=4)
    assert not list((place.home / "cache").rglob("iree-compile"))
    for algorithm in ("sha256", "sha512"):
        pinned(
            place,
            f"{algorithm}:{hashlib.new(algorithm, wheel.read_bytes()).hexdigest()}",
        )
        place.run("compare", "--cache", "cache")
        assert (
            json.loads((place.home / "out" / "head.json").read_text())["cells"][0][
                "status"
            ]
            == "ok"
        )
    assert place.run("compare", "--cache", "cache").count("fetch") == 0, (
        "the digest of a cached wheel is known"
    )
    pinned(place, other_digest)
    printed = place.run("compare", "--cache", "cache", code=4)
    assert (
        "--hash does not allow the digest of its wheel" in printed and reason in printed
    )


def test_an_intact_compiler_needs_no_network(place: Place) -> None:
    place.measure()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    bot(
        *("measure", "--compiler", "3.13.0", "--out", "head.json", "--cache", "cache"),
        cwd=place.home,
        codes=(0,),
        env={
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": nowhere,
            "https_proxy": nowhere,
            "http_proxy": nowhere,
        },
    )
