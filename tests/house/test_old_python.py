"""A Python that is too old is told so in one line: by `python -m bot`, and by make before it makes anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from places import ROOT

LINE = "Python 3.10 or newer is needed, this is 3.9.2"
OLD = "import sys; sys.version_info = (3, 9, 2, 'final', 0)"
FAKE = f"""#!/bin/sh
case "$1" in
  -c) exec {sys.executable} -c "{OLD}; exec(sys.argv[1])" "$2";;
  *) echo "it went on: $*" >&2; exit 9;;
esac
"""


def test_the_program_says_it_before_it_imports_anything_of_its_own() -> None:
    expression = "sorted(name for name in sys.modules if name.split('.')[0] == 'bot')"
    watched = (
        f"{OLD}; import runpy, atexit; atexit.register(lambda: print({expression}))"
    )
    script = f"{watched}; runpy.run_module('bot', run_name='__main__')"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr, ran.stdout) == (2, f"{LINE}\n", "['bot']\n")


def test_an_old_python_can_read_the_file_that_says_it() -> None:
    for name in ("__init__.py", "__main__.py"):
        compile((ROOT / "bot" / name).read_text(encoding="utf-8"), name, "exec")
        assert not re.search(
            r"\bf\"|:=|->|__future__|\bmatch\b",
            (ROOT / "bot" / name).read_text(encoding="utf-8"),
        )


def test_make_says_it_before_it_makes_anything(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text(FAKE, encoding="utf-8")
    fake.chmod(0o755)
    venv = tmp_path / "venv"
    environment = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    argv = ["make", "--no-print-directory", "test", f"VENV={venv}"]
    ran = subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    messages = [line for line in ran.stderr.splitlines() if not line.startswith("make")]
    assert (ran.returncode, ran.stdout) == (2, "")
    assert messages == [f"{LINE} (name another one: make PYTHON=python3.13)"]
    assert not venv.exists()


def test_all_of_them_ask_for_the_python_that_the_package_needs() -> None:
    (needed,) = re.findall(
        r'requires-python = ">=(\d+)\.(\d+)"',
        (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
    )
    for name in ("Makefile", "bot/__main__.py", "bot/cli/doctor.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert re.findall(r"version_info [<>]=? \((\d+), (\d+)\)", text) == [needed], (
            name
        )
