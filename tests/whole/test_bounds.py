"""The whole program and a compiler that writes without measure, or does not answer.

And a cache without room.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL
from fake_compiler import TEMPLATES, FakeCompiler, install, install_native
from places import ROOT
from small_disk import small_disk

CONFIG = (
    "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [llvm-cpu-x86_64, vmvx]\n"
)
# The program, and last its own peak in KiB: what the kernel tells of a child is never
# below its parent's peak.
BOT = """
import sys
from bot.cli.main import main
code = main(sys.argv[1:])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""


@dataclass(frozen=True)
class Ran:
    """A finished `measure`."""

    code: int
    said: str
    peak_kib: int
    cells: dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A directory with a model and a compiler."""

    home: Path

    def compiler(self, *rules: dict[str, str]) -> FakeCompiler:
        fake = install(self.home / "fake", rules, templates=TEMPLATES)
        install_native(self.home / "fake" / "bin" / "iree-compile", fake)
        return fake

    def measure(self, *options: str, config: str = CONFIG) -> Ran:
        (self.home / "alpha.mlir").write_text(MODEL.format("alpha"))
        (self.home / "c.yml").write_text(config)
        out = self.home / "head.json"
        out.unlink(missing_ok=True)
        argv = [
            sys.executable,
            "-c",
            BOT,
            "measure",
            "--compiler",
            "fake/bin/iree-compile",
            "--config",
            "c.yml",
        ]
        argv += ["--out", out.name, "--jobs", "1", *(options or ("--cache", "cache"))]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        bot = subprocess.run(
            argv, cwd=self.home, env=environment, capture_output=True, text=True
        )
        rows = json.loads(out.read_text())["cells"] if out.exists() else []
        cells = {cell["target"]: cell for cell in rows}
        return Ran(bot.returncode, bot.stderr, int(bot.stdout.splitlines()[-1]), cells)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


LIMIT = 1 << 30
TABLE = 1 << 26
TOO_LONG: Sequence[tuple[str, int, str, int]] = (
    ("out.vmfb", 10**10, "the artifact", LIMIT),
    ("statistics.json", 2 << 30, "the file of the statistics", TABLE),
    ("stack-usage.txt", 2 << 30, "the file of the stack usage", TABLE),
    ("phases/module.7.stream.mlir", 10**10, "the IR of the phase 7.stream", LIMIT),
    ("tmp/main_dispatch_0-1f3ebc.o", 10**10, "an object file", LIMIT),
)


@pytest.mark.parametrize(("file", "size_bytes", "output_name", "most_bytes"), TOO_LONG)
def test_what_a_compiler_writes_is_not_read_beyond_a_limit(
    place: Place, file: str, size_bytes: int, output_name: str, most_bytes: int
) -> None:
    place.compiler(
        {
            "do": f"huge {size_bytes} {file}",
            "kind": "direct",
            "argv": "backends=llvm-cpu",
        }
    )
    ran = place.measure()
    message = f"{output_name} has {size_bytes:,} bytes, and the limit is {most_bytes:,}"
    assert ran.code == 0, ran.said
    row = ran.cells["llvm-cpu-x86_64"]
    assert (row["status"], row["failure"]["stage"], row["failure"]["message"]) == (
        "failed",
        "read",
        message,
    )
    assert (
        ran.said.count(message) == 1
        and f"failed: alpha on llvm-cpu-x86_64: {message}" in ran.said
    )
    assert ran.cells["vmvx"]["status"] == "ok"
    assert ran.peak_kib < 400 << 10


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_what_is_no_file_is_not_waited_for(place: Place, kind: str) -> None:
    fake = place.compiler()
    make = {
        "fifo": "os.mkfifo('stack-usage.txt')",
        "directory": "os.mkdir('stack-usage.txt')",
    }[kind]
    text = fake.binary.read_text().replace(
        "from iree_compile import main", "import iree_compile\nimport os"
    )
    text = text.replace("sys.exit(main(", "code = iree_compile.main(").replace(
        "sys.argv[1:]))", "sys.argv[1:])"
    )
    removal = (
        "if os.path.exists('stack-usage.txt') and 'out.vmfb' in sys.argv:\n   "
        " os.remove('stack-usage.txt')"
    )
    fake.binary.write_text(f"{text}{removal}\n    {make}\nsys.exit(code)\n")
    ran = place.measure()
    assert (
        ran.cells["vmvx"]["failure"]["message"]
        == "the file of the stack usage is not a regular file"
    )


LEFT = {
    "removed": (
        "shutil.rmtree(os.getcwd())",
        "the compiler removed the folder that it worked in",
    ),
    "name": (
        "open(b'tmp/b\\xff.o', 'w').close()",
        r"b\xff.o has a name that is not UTF-8",
    ),
    "deep": ("[os.mkdir('d') or os.chdir('d') for _ in range(3000)]", ""),
}


@pytest.mark.parametrize("kind", LEFT)
def test_what_a_compiler_does_to_its_folder_fails_its_own_build_at_most(
    place: Place, kind: str
) -> None:
    fake = place.compiler()
    action, reason = LEFT[kind]
    text = fake.binary.read_text().replace(
        "from iree_compile import main", "import iree_compile\nimport os, shutil"
    )
    text = text.replace("sys.exit(main(", "code = iree_compile.main(").replace(
        "sys.argv[1:]))", "sys.argv[1:])"
    )
    chosen = (
        "if 'out.vmfb' in sys.argv and '--iree-hal-target-backends=vmvx' in sys.argv:"
    )
    fake.binary.write_text(f"{text}{chosen}\n    {action}\nsys.exit(code)\n")
    ran = place.measure()
    assert ran.code == 0, ran.said
    row = ran.cells["vmvx"]
    assert (row["status"], row["failure"] and row["failure"]["message"]) == (
        ("failed", reason) if reason else ("ok", None)
    )
    assert ran.cells["llvm-cpu-x86_64"]["status"] == "ok"


# A compiler that does not answer


def test_a_question_takes_no_longer_than_a_compile_may(place: Place) -> None:
    place.compiler({"do": "hang", "kind": "options"})
    ran = place.measure(config=f"{CONFIG}timeout_seconds: 1\n")
    assert (ran.code, ran.said.splitlines()[-1]) == (
        4,
        (
            "code-size-bot: iree-compile: cannot compile a trivial module: not finished"
            " after 1 s"
        ),
    )


def test_a_compiler_that_does_not_tell_its_version(place: Place) -> None:
    fake = place.compiler()
    fake.binary.write_text("import time\ntime.sleep(600)\n")
    ran = place.measure(config=f"{CONFIG}timeout_seconds: 1\n")
    assert ran.code == 4
    assert ran.said.splitlines()[-1].endswith(
        "fake/bin/iree-compile: does not answer --version within 1 s"
    )


# A cache without room


def test_a_cache_without_room_is_done_without_and_said_so_once(place: Place) -> None:
    fake = place.compiler()
    with small_disk(place.home / "disk") as disk:
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError as error:
                assert error.strerror == "No space left on device"
        ran = place.measure("--cache", str(disk))
        assert ran.code == 0, ran.said
        assert {cell["status"] for cell in ran.cells.values()} == {"ok"} and len(
            ran.cells
        ) == 2
        line = (
            f"the cache {disk} has no space left (No space left on device): the run"
            " continued without it"
        )
        assert (
            ran.said.splitlines().count(line) == 1
            and ran.said.count("No space left") == 1
        )
        first = fake.compiles
        filler.unlink()
        for _ in range(2):
            again = place.measure("--cache", str(disk))
            assert (
                again.code == 0
                and len(again.cells) == 2
                and "no room" not in again.said
            )
        assert fake.compiles == 2 * first
