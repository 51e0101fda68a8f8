"""The whole program and its cache: what another user, another run or a machine in trouble finds there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_compiler import TEMPLATES, FakeCompiler, install, is_alive, wait_until
from fake_wheels import LIBRARIES, entries, wheel_name, write_wheel
from places import ROOT

NOBODY = 65534
CONFIG = (
    "schema: code-size-config/1\nmodels: ['suite/*']\ntargets: [llvm-cpu-x86_64,"
    " vmvx]\n"
)
BINDINGS = f"{LIBRARIES}/_mlir.cpython-{sys.version_info.major}{sys.version_info.minor}-x86_64-linux-gnu.so"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@dataclass(frozen=True)
class Room:
    """A folder that other users may enter, with a suite, a wheel of a fake compiler, and the program."""

    folder: Path

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def wheel(
        self, rules: Sequence[dict[str, str]] = (), bindings: str | None = None
    ) -> FakeCompiler:
        fake = install(self.folder / "fake", rules, templates=TEMPLATES)
        files = entries(fake)
        if bindings is not None:
            files |= {BINDINGS: b"\x7fELF", "iree/compiler/ir.py": bindings.encode()}
        write_wheel(self.folder / wheel_name(), files)
        return fake

    def command(self, *options: str) -> list[str]:
        wheel = str(self.folder / wheel_name())
        arguments = [
            "--compiler",
            wheel,
            "--config",
            "c.yml",
            "--cache",
            str(self.cache),
            "--out",
            "head.json",
            *options,
        ]
        return [sys.executable, "-m", "bot", "measure", *arguments]

    def environment(self, temporary: Path | None = None) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(temporary or self.folder / "tmp"),
        }

    def run(
        self, *options: str, umask: int = -1, temporary: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options),
            cwd=self.folder,
            env=self.environment(temporary),
            umask=umask,
            capture_output=True,
            text=True,
        )

    def rows(self) -> dict[str, Any]:
        cells = json.loads((self.folder / "head.json").read_text())["cells"]
        return {f"{cell['model']} {cell['target']}": cell for cell in cells}


@pytest.fixture
def room() -> Iterator[Room]:
    with tempfile.TemporaryDirectory(prefix="shared-cache-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for place in ("suite", "tmp"):
            (folder / place).mkdir()
        (folder / "suite" / "alpha.mlir").write_text("// model alpha\n")
        (folder / "c.yml").write_text(CONFIG)
        yield Room(folder)


@contextmanager
def disk(directory: Path, options: str) -> Iterator[Path]:
    directory.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not allowed")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


# Another user


@needs_root
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_another_user_archives_the_cache_of_a_run_whatever_its_umask(
    room: Room, umask: int
) -> None:
    room.wheel(bindings="class Context: pass\n")
    ran = room.run(umask=umask)
    assert ran.returncode == 0, ran.stderr
    paths = list(room.cache.rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_dir()} == {0o755}
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_file()} == {
        0o644,
        0o755,
    }
    tar = ["tar", "--create", "--file=-", f"--directory={room.folder}", "cache"]
    archived = subprocess.run(
        tar, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True
    )
    assert (archived.returncode, archived.stderr) == (0, b"")
    listed = subprocess.run(
        ["tar", "--list"], input=archived.stdout, capture_output=True
    ).stdout.decode()
    for part in ("toolchains/", "iree-compile", "cells/", ".files.json", "digests/"):
        assert part in listed, listed


# A cache that can only be read


@needs_root
def test_a_read_only_cache_is_used_and_said_to_be_one(room: Room) -> None:
    room.wheel()
    with disk(room.cache, "size=64m"):
        assert room.run().returncode == 0
        before = sorted(path for path in room.cache.rglob("*"))
        (room.folder / "suite" / "beta.mlir").write_text("// model beta\n")
        subprocess.run(["mount", "-o", "remount,ro", str(room.cache)], check=True)
        ran = room.run()
        assert ran.returncode == 0, ran.stderr
        message = f"the cache {room.cache} is read-only: new builds are not kept"
        assert ran.stderr.count(message) == 1
        assert {row["status"] for row in room.rows().values()} == {"ok"} and len(
            room.rows()
        ) == 4
        assert sorted(path for path in room.cache.rglob("*")) == before


@needs_root
def test_a_read_only_cache_without_the_compiler_says_so(room: Room) -> None:
    room.wheel()
    with disk(room.cache, "size=64m,ro"):
        ran = room.run()
    assert ran.returncode == 2
    [line] = ran.stderr.splitlines()
    assert (
        line.startswith("code-size-bot: ")
        and "Read-only file system" in line
        and str(room.cache) in line
    )


# A machine in trouble


@needs_root
def test_a_full_place_for_temporary_files_is_no_failure_of_a_model(room: Room) -> None:
    fake = room.wheel()
    with disk(room.folder / "tmp", "size=3m") as tmp:
        assert room.run("--jobs", "1").returncode == 0
        shutil.rmtree(room.cache / "cells")
        (tmp / "filler").write_bytes(bytes((2 << 20) + (512 << 10)))
        ran = room.run("--jobs", "1")
    assert ran.returncode == 2 and fake.compiles
    line = ran.stderr.splitlines()[-1]
    assert (
        line
        == f"code-size-bot: {room.folder / 'tmp'}: the disk has no space for temporary"
        " files: No space left on device (free some space there, or set TMPDIR to"
        " another directory)"
    )
    assert not (room.cache / "cells").exists()


def test_a_place_for_temporary_files_that_is_not_there(room: Room) -> None:
    room.wheel()
    ran = room.run(temporary=room.folder / "nowhere")
    assert ran.returncode == 0  # Python takes the next place that there is


@pytest.mark.parametrize(
    ("says", "is_tried_again"),
    [
        ("error: Too many open files", True),
        ("Resource temporarily unavailable", True),
        ("error while loading shared libraries: libIREECompiler.so", True),
        ("LLVM ERROR: out of memory", False),
        ("std::bad_alloc", False),
    ],
)
def test_what_the_machine_refused_is_tried_again_and_one_that_asks_for_far_too_much_crashed(
    room: Room, says: str, is_tried_again: bool
) -> None:
    fake = room.wheel([{"do": f"say 1 {says}", "kind": "direct", "argv": "=vmvx"}])
    compiles = []
    for _ in range(2):
        assert room.run().returncode in (0, 2)
        message = room.rows()["alpha vmvx"]["failure"]["message"]
        assert (
            message.startswith("on this machine: " if is_tried_again else says)
            and says in message
        )
        compiles.append(fake.compiles)
    assert (compiles[1] > compiles[0]) is is_tried_again


# What depends on this machine's Python


def test_a_reader_that_dies_is_asked_again_in_the_next_run(room: Room) -> None:
    fake = room.wheel(
        bindings=(
            "class Context:\n    def __init__(self):\n        import os\n       "
            " os.abort()\n"
        )
    )
    assert room.run().returncode == 0
    row = room.rows()["alpha vmvx"]
    assert (
        row["status"] == "ok"
        and "on this machine: the IR reader ended" in row["reasons"]["dispatch_regions"]
    )
    first = fake.compiles
    assert room.run().returncode == 0
    assert fake.compiles == 2 * first


def test_a_cell_that_needs_no_reader_is_kept_without_one(room: Room) -> None:
    fake = room.wheel()
    assert room.run().returncode == 0
    first = fake.compiles
    assert room.run().returncode == 0 and fake.compiles == first


# A run that was killed


def test_what_a_killed_run_left_is_swept_by_the_next_and_its_compilers_are_gone(
    room: Room,
) -> None:
    fake = room.wheel([{"do": "hang", "kind": "direct"}])
    killed = subprocess.Popen(
        room.command(),
        cwd=room.folder,
        env=room.environment(),
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(lambda: len(fake.pids) >= 2, 30)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert wait_until(lambda: not any(map(is_alive, fake.pids)))
    [leftover] = (room.folder / "tmp").glob("code-size-bot-run-*")
    room.wheel()
    assert room.run().returncode == 0
    assert leftover.exists()  # so young, it might not have been locked yet
    os.utime(leftover, (0, 0))
    assert room.run().returncode == 0
    assert list((room.folder / "tmp").iterdir()) == []


def test_a_living_runs_files_and_other_peoples_are_left_alone(room: Room) -> None:
    fake = room.wheel([{"do": "hang", "kind": "direct"}])
    living = subprocess.Popen(
        room.command(),
        cwd=room.folder,
        env=room.environment(),
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(lambda: len(fake.pids) >= 2, 30)
    temporary = room.folder / "tmp"
    [used] = temporary.glob("code-size-bot-run-*")
    (temporary / "code-size-other").mkdir()
    (temporary / "code-size-bot-link").symlink_to(room.folder / "suite")
    for path in (used, temporary / "code-size-other", room.folder / "suite"):
        os.utime(path, (0, 0))
    expected = set(temporary.iterdir())
    assert (
        subprocess.run(
            [sys.executable, "-m", "bot", "plan", "--config", "c.yml", "--shards", "1"],
            cwd=room.folder,
            env=room.environment(),
            capture_output=True,
        ).returncode
        == 0
    )
    assert set(temporary.iterdir()) == expected and list(
        (room.folder / "suite").iterdir()
    )
    living.send_signal(signal.SIGTERM)
    assert living.wait() == 130


@needs_root
def test_another_users_files_are_left_alone(room: Room) -> None:
    leftover = room.folder / "tmp" / "code-size-bot-run-other"
    leftover.mkdir()
    os.chown(leftover, NOBODY, NOBODY)
    os.utime(leftover, (0, 0))
    room.wheel()
    assert room.run().returncode == 0 and leftover.exists()


# A limit


def test_a_run_over_its_limit_keeps_what_it_used(room: Room) -> None:
    fake = room.wheel()
    (room.folder / "suite" / "beta.mlir").write_text("// model beta\n")
    assert room.run().returncode == 0
    for path in (room.cache / "cells").rglob("*.json"):
        os.utime(path, (0, 0))
    ran = room.run("--model", "alpha", "--cache-limit", "1KiB")
    assert (
        ran.returncode == 0
        and "the cache was above its limit of 1.0 KiB: removed 2 entries of "
        in ran.stderr
    )
    before = fake.compiles
    assert room.run("--model", "alpha").returncode == 0 and fake.compiles == before
    assert room.run("--model", "beta").returncode == 0 and fake.compiles > before
