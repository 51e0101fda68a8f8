"""What a command does to its working folder: one failed build at most, and nobody's next run is affected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT

from bot.system.confined import has_namespaces

NOBODY = 65534
OBJECT = b"cc -c -x c /dev/null -o out/code.o\n"
NESTED = b"""python3 -c "
import os
os.chdir('%s')
for _ in range(%d):
    os.mkdir('d'); os.chdir('d')
open('left', 'w').close()
"
"""
SCRIPTS = {
    "deep": OBJECT + NESTED % (b".", 990),
    "deeper-out": OBJECT + NESTED % (b"out", 3000),
    "long-path": (
        OBJECT
        + b"cd tmp; for i in $(seq 30); do d=$(printf '%0200d' $i); mkdir $d; cd $d;"
        b" done\n"
    ),
    "artifact-name": OBJECT + b"cp out/code.o out/b\xff.o\n",
    "stage-name": OBJECT + b"echo text > out/b\xff.ir\n",
    "stack-name": OBJECT + b"echo text > out/b\xff.su\n",
    "other-name": b"echo text > out/b\xff.txt\n",
    "removed": OBJECT + b'rm -rf "$PWD"/* "$PWD"\n',
    "removed-out": OBJECT + b"rm -rf out\n",
    "locked": (
        OBJECT + b"mkdir -p tmp/a/b; echo > tmp/a/b/c; chmod 000 tmp/a/b tmp/a tmp .\n"
    ),
    "locked-out": (
        OBJECT + b"mkdir out/a; mv out/code.o out/a; chmod 000 out/a/code.o out/a out\n"
    ),
    "good": OBJECT,
}
TOO_DEEP = "folders are nested more than 100 levels deep"
NOT_UTF8 = r"b\xff.{} has a name that is not UTF-8"
FAILED = {
    "deep": TOO_DEEP,
    "deeper-out": TOO_DEEP,
    "long-path": "the path of a folder is too long for the system",
    "artifact-name": NOT_UTF8.format("o"),
    "stage-name": NOT_UTF8.format("ir"),
    "stack-name": NOT_UTF8.format("su"),
    "other-name": r"wrote no file that is *.o, but b\xff.txt",
    "removed-out": "wrote no file that is *.o, but nothing",
}
"""The scripts whose build fails, and with which reason. `removed` fails, too: its reason depends on the machine."""
PROGRAM = """
import sys
from pathlib import Path
import bot.system.confined as confined
confined.PLACE = Path(sys.argv[1])
if sys.argv[2] == "without":
    confined.has_namespaces = lambda: False
from bot.cli.main import main
sys.exit(main(sys.argv[3:]))
"""


@dataclass(frozen=True)
class Machine:
    """A folder that stands for a machine: each run has its path of compiles and its temporary files there."""

    home: Path
    namespaces: str  # `with` or `without`

    @property
    def temporary(self) -> Path:
        return self.home / "temporary"

    def run(self, *names: str, user: int | None = None) -> dict[str, Any]:
        """Measure these models; model → row of the snapshot.

        `user`: as another user than this one.
        """
        folder = Path(tempfile.mkdtemp(dir=self.home))
        folder.chmod(0o777)
        arguments = [
            "measure",
            "--compiler",
            "sh",
            "--config",
            str(self.home / "code-size.yml"),
            "--jobs",
            "1",
        ]
        arguments += [f"--model={name}" for name in names]
        argv = [
            sys.executable,
            "-c",
            PROGRAM,
            str(self.home / "shared" / "cell"),
            self.namespaces,
            *arguments,
        ]
        done = subprocess.run(
            [*argv, "--cache", "cache", "--out", "head.json"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary)},
            capture_output=True,
            text=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        assert done.returncode == 0, done.stderr
        cells = json.loads((folder / "head.json").read_text())["cells"]
        return {cell["model"]: cell for cell in cells}


@pytest.fixture(params=["with", "without"])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    if request.param == "with" and not has_namespaces():
        pytest.skip("this machine allows no namespaces")
    with tempfile.TemporaryDirectory(prefix="hostile-folders-") as name:
        home = Path(name)
        home.chmod(0o755)
        for folder in ("models", "shared", "temporary"):
            (home / folder).mkdir()
            (home / folder).chmod(0o777)
        home.chmod(0o777)
        for model, script in SCRIPTS.items():
            (home / "models" / f"{model}.sh").write_bytes(script)
        config = {
            "schema": "code-size-config/1",
            "compiler": {
                "kind": "command",
                "run": ["sh", "{model}"],
                "artifacts": ["*.o"],
                "stages": ["ir"],
                "base": "x",
                "head": "x",
            },
            "models": ["models/*.sh"],
            "targets": {"here": {}},
        }
        (home / "code-size.yml").write_text(yaml.safe_dump(config))
        yield Machine(home, request.param)


@cache
def can_run_as(user: int) -> bool:
    """True where this user may become another one, who can read this checkout and its Python."""
    if os.geteuid() != 0:
        return False
    argv = [sys.executable, "-c", "import bot.cli.main"]
    try:
        done = subprocess.run(
            argv,
            cwd=ROOT,
            user=user,
            group=user,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
    except PermissionError:
        return False
    return done.returncode == 0


def users() -> list[int | None]:
    """This user, and as root another one, whom file modes concern."""
    return [None, NOBODY] if can_run_as(NOBODY) else [None]


@pytest.mark.parametrize("user", users())
def test_each_hostile_command_is_one_failed_build_and_leaves_nothing(
    machine: Machine, user: int | None
) -> None:
    rows = machine.run(user=user)
    assert rows.keys() == SCRIPTS.keys()
    for name, reason in FAILED.items():
        assert (rows[name]["status"], rows[name]["failure"]["message"]) == (
            "failed",
            reason,
        ), name
    assert (
        rows["removed"]["status"] == "failed" and rows["removed"]["failure"]["message"]
    )
    size_bytes = rows["good"]["metrics"]["artifact_bytes"]
    for name in ("locked", "locked-out", "good"):
        assert (rows[name]["status"], rows[name]["metrics"]["artifact_bytes"]) == (
            "ok",
            size_bytes,
        ), name
    assert list(machine.temporary.iterdir()) == []


@pytest.mark.skipif(
    not can_run_as(NOBODY), reason="needs root, and a checkout that others can read"
)
def test_after_hostile_commands_of_one_user_another_user_can_measure(
    machine: Machine,
) -> None:
    for user in (NOBODY, NOBODY - 1, None):
        assert (
            machine.run("locked", "removed", "deep", "good", user=user)["good"][
                "status"
            ]
            == "ok"
        )


@pytest.mark.parametrize("user", users())
def test_what_a_killed_run_left_does_not_end_the_next_run(
    machine: Machine, user: int | None
) -> None:
    leftover = machine.temporary / "code-size-bot-run-killed" / "cell"
    script = f"""
import os
os.makedirs({str(leftover)!r})
os.chdir({str(leftover)!r})
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
os.mkdir({str(leftover / "locked")!r}, 0o000)
os.utime({str(leftover.parent)!r}, (0, 0))
"""
    groups = None if user is None else list[int]()
    subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        user=user,
        group=user,
        extra_groups=groups,
    )
    assert machine.run("good", user=user)["good"]["status"] == "ok"
    assert list(machine.temporary.iterdir()) == []
