"""bot.compiler.toolchain: unpacking, hostile archives, and fetching from a folder of wheels."""

from __future__ import annotations

import os
import subprocess
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from fake_compiler import FakeCompiler, install
from fake_wheels import HERE, LIBRARIES, entries, wheel_name, write_wheel
from small_disk import small_disk

from bot.compiler.toolchain import fetch_release, only_fitting, release_home, unpack
from bot.errors import BotError, CompilerUnavailable, OutputError
from bot.system.processes import Cancel


@pytest.fixture
def fake(tmp_path: Path) -> FakeCompiler:
    return install(tmp_path / "fake")


@pytest.fixture
def wheel(tmp_path: Path, fake: FakeCompiler) -> Path:
    return write_wheel(tmp_path / "dist" / wheel_name(), entries(fake))


def leftovers(cache: Path) -> list[str]:
    toolchains = cache / "toolchains"
    return [path.name for path in toolchains.iterdir()] if toolchains.exists() else []


def never_said(line: str) -> None:
    raise AssertionError(line)


# Unpacking


def test_a_wheel_is_unpacked_once(tmp_path: Path, wheel: Path, fake: FakeCompiler) -> None:
    root = unpack(wheel, tmp_path / "cache")
    binary = root / LIBRARIES / "iree-compile"
    assert "IREE compiler version" in subprocess.run([binary, "--version"], capture_output=True, text=True).stdout
    assert os.access(root / LIBRARIES / "iree-lld", os.X_OK)
    assert {name: (root / name).read_bytes() for name in entries(fake)} == entries(fake)
    before = binary.stat().st_ino
    assert unpack(wheel, tmp_path / "cache") == root
    assert binary.stat().st_ino == before and leftovers(tmp_path / "cache") == [root.name]


def test_other_bytes_are_another_compiler_and_half_of_one_is_unpacked_again(
    tmp_path: Path, wheel: Path, fake: FakeCompiler
) -> None:
    root = unpack(wheel, tmp_path / "cache")
    for path in root.iterdir():
        if path.is_file():
            path.unlink()
    (root / LIBRARIES / "libIREECompiler.so").write_bytes(b"half")
    assert unpack(wheel, tmp_path / "cache") == root
    assert (root / LIBRARIES / "libIREECompiler.so").read_bytes() != b"half"
    assert leftovers(tmp_path / "cache") == [root.name]
    write_wheel(wheel, entries(fake, b"\x7fELF rebuilt"))
    second = unpack(wheel, tmp_path / "cache")
    assert second != root and (second / LIBRARIES / "libIREECompiler.so").read_bytes() == b"\x7fELF rebuilt"


def test_two_runs_unpack_at_once(tmp_path: Path, wheel: Path) -> None:
    roots: list[Path] = []
    threads = [threading.Thread(target=lambda: roots.append(unpack(wheel, tmp_path / "cache"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(roots) == 6 and len(set(roots)) == 1
    assert leftovers(tmp_path / "cache") == [roots[0].name]


def test_a_wheel_that_was_cut(tmp_path: Path, wheel: Path) -> None:
    whole, cache = wheel.read_bytes(), tmp_path / "cache"
    for size in (*range(0, len(whole), 5), *range(len(whole) - 40, len(whole))):
        wheel.write_bytes(whole[:size])
        with pytest.raises(CompilerUnavailable, match="is no wheel"):
            unpack(wheel, cache)
    assert leftovers(cache) == []


def test_a_wheel_with_a_flipped_byte_is_whole_or_refused(tmp_path: Path, wheel: Path) -> None:
    whole, refused = wheel.read_bytes(), 0
    for offset in range(0, len(whole), 11):
        cache = tmp_path / f"cache-{offset}"
        wheel.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x41]) + whole[offset + 1 :])
        try:
            unpack(wheel, cache)
        except BotError:
            refused += 1
            assert leftovers(cache) == []
    assert refused > len(whole) / 44


def test_a_wheel_without_a_compiler(tmp_path: Path, fake: FakeCompiler) -> None:
    files = {name: data for name, data in entries(fake).items() if not name.endswith("iree-compile")}
    with pytest.raises(CompilerUnavailable, match=r"\.whl: holds no iree/compiler/_mlir_libs/iree-compile"):
        unpack(write_wheel(tmp_path / wheel_name(), files), tmp_path / "cache")
    assert leftovers(tmp_path / "cache") == []


def test_a_file_where_a_directory_should_be(tmp_path: Path, fake: FakeCompiler) -> None:
    files = {"iree": b"a file", **entries(fake)}
    with pytest.raises(OutputError, match="cannot be unpacked"):
        unpack(write_wheel(tmp_path / wheel_name(), files), tmp_path / "cache")
    assert leftovers(tmp_path / "cache") == []


@pytest.mark.parametrize("name", ["../../evil", "/tmp/code-size-evil", "iree/../../../evil", "..\\evil", "link"])
def test_nothing_is_written_outside_and_a_link_is_no_way_out(tmp_path: Path, fake: FakeCompiler, name: str) -> None:
    wheel, outside = tmp_path / wheel_name(), tmp_path / "outside"
    outside.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        link = zipfile.ZipInfo("iree/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(outside))
        for path, data in {name: b"evil", **entries(fake)}.items():
            archive.writestr(path, data)
    root = unpack(wheel, tmp_path / "cache")
    assert [path for path in tmp_path.rglob("*evil*") if not path.is_relative_to(root)] == []
    assert not Path("/tmp/code-size-evil").exists() and not (root / "iree" / "link").is_symlink()


def test_a_full_disk(tmp_path: Path, fake: FakeCompiler) -> None:
    wheel = write_wheel(tmp_path / wheel_name(), entries(fake, bytes(1 << 20)))
    with small_disk(tmp_path / "disk") as disk:
        with pytest.raises(OutputError, match="No space left on device"):
            unpack(wheel, disk)
        assert leftovers(disk) == []


def test_a_file_in_place_of_the_cache(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "cache").write_text("mine")
    with pytest.raises(OutputError, match="cannot be written"):
        unpack(wheel, tmp_path / "cache")


# Which wheel


def test_a_wheel_is_for_this_machine_and_named_as_one(tmp_path: Path, fake: FakeCompiler) -> None:
    said = dict.fromkeys(
        ("win_amd64", "macosx_13_0_universal2", "manylinux_2_28_s390x"), "is a wheel for another platform"
    )
    names = {wheel_name(platform=platform): line for platform, line in said.items()}
    for name, line in {**names, "compiler.whl": "is not named as a wheel is"}.items():
        with pytest.raises(CompilerUnavailable, match=line):
            unpack(write_wheel(tmp_path / name, entries(fake)), tmp_path / "cache")
    several = wheel_name(python="cp39", platform=f"win_amd64.{HERE}")
    assert unpack(write_wheel(tmp_path / several, entries(fake)), tmp_path / "cache").is_dir()


def touched(directory: Path, *names: str) -> list[Path]:
    for name in names:
        (directory / name).touch()
    return [directory / name for name in names]


def test_of_several_wheels_the_one_that_fits(tmp_path: Path) -> None:
    names = (wheel_name(), wheel_name(python="cp39"), wheel_name(platform="win_amd64"), wheel_name("3.12.0"))
    one, old, foreign, other = touched(tmp_path, *names)
    assert only_fitting([one, old, foreign], tmp_path) == one and only_fitting([old, foreign], tmp_path) == old
    with pytest.raises(CompilerUnavailable, match=r"several wheels fit this machine: .*3\.12\.0.*3\.13\.0") as raised:
        only_fitting([other, one], tmp_path)
    assert raised.value.hint == "name one wheel"
    with pytest.raises(CompilerUnavailable, match=r"no wheel is for this platform: .*win_amd64"):
        only_fitting([foreign], tmp_path)


# Releases


def test_a_release_from_a_folder_of_wheels(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    said: list[str] = []
    root = fetch_release("3.13.0", tmp_path / "cache", Cancel(), said.append)
    assert said == ["fetching iree-base-compiler==3.13.0"]
    assert (root / LIBRARIES / "iree-compile").is_file()
    assert fetch_release("3.13.0", tmp_path / "cache", Cancel(), never_said) == root
    with pytest.raises(CompilerUnavailable, match=r"==3\.9\.9: no such release .*\(newest: 3\.13\.0\)"):
        fetch_release("3.9.9", tmp_path / "cache", Cancel(), said.append)
    assert leftovers(tmp_path / "cache") == [root.name]


@pytest.mark.parametrize(
    ("what", "other"),
    [("soabi", "cpython-312-x86_64-linux-gnu"), ("soabi", "cpython-311-x86_64-linux-musl"), ("machine", "riscv64")],
)
def test_what_another_python_or_machine_fetched_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, other: str
) -> None:
    homes = [release_home("3.13.0", tmp_path)]
    if what == "soabi":
        monkeypatch.setattr("sysconfig.get_config_var", {"SOABI": other}.get)
    else:
        monkeypatch.setattr("platform.machine", lambda: other)
    homes.append(release_home("3.13.0", tmp_path))
    assert len({*homes, release_home("3.12.0", tmp_path)}) == 3


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy"])
def test_pip_is_told_of_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "index.invalid")
    with HTTPServer(("127.0.0.1", 0), Proxy) as server:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(CompilerUnavailable, match="could not be fetched"):
            fetch_release("3.13.0", tmp_path / "cache", Cancel(), lambda _: None)
        server.shutdown()
    assert asked == ["http://index.invalid/simple/iree-base-compiler/"]
