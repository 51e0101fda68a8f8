"""A project whose compiler is a command: its configuration, the bot on it, and what the bot wrote."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import needs
import prepared_program
import pytest
import yaml

LIBRARY = """
static int twice(int x) { return 2 * x; }
int area(int a, int b) { volatile char room[%d]; room[0] = a; return twice(a) * b + room[0]; }
int sum(const int *v, int n) { int s = 0; for (int i = 0; i < n; i++) s += v[i]; return s; }
"""
CC = ["{side}", "-c", "-fstack-usage", "{model}", "-o", "{out}/code.o"]


def write(home: Path, run: list[str], models: dict[str, str], **compiler: Any) -> Path:
    """A configuration of two commands for these models."""
    for name, text in models.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    sides = {"base": "cc -Os", "head": "cc -O0"} | compiler
    config = {
        "schema": "code-size-config/1",
        "compiler": {"kind": "command", "run": run, "artifacts": ["*.o"], **sides},
        "models": sorted(models),
        "targets": {"here": {}},
        "timeout_seconds": 4,
    }
    (home / "code-size.yml").write_text(yaml.safe_dump(config))
    return home / "code-size.yml"


def bot(home: Path, *arguments: str, code: int = 0) -> str:
    """Run the bot in the project, with a cache of its own; return what it printed."""
    argv = (*arguments, "--cache", str(home / "cache"))
    done = prepared_program.bot(*argv, cwd=home, codes=(code,))
    return done.stdout + done.stderr


def report(home: Path, out: str = "out") -> dict[str, Any]:
    """Return the report that the bot wrote."""
    return json.loads((home / out / "report.json").read_text())  # type: ignore[no-any-return]


def cells(home: Path, side: str = "head", out: str = "out") -> dict[str, Any]:
    """Return model → its row in a side's snapshot."""
    return {
        cell["model"]: cell
        for cell in json.loads((home / out / f"{side}.json").read_text())["cells"]
    }


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    """Skip the tests of a module where there is no C compiler."""
    if subprocess.run(["cc", "--version"], capture_output=True, check=False).returncode:
        needs.missing("no C compiler")
