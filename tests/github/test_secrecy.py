"""The token and the programs that are started: whatever they look through, they do not find it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from action_stage import Stage
from fake_github import FakeGitHub
from github_runner import REPOSITORY, Runner, push_event

_LOOK = """
from pathlib import Path
found = []
for file in Path("/proc").glob("[0-9]*/environ"):
    try:
        text = file.read_bytes()
    except OSError:
        continue
    if SECRET in text:
        found.append(str(file))
with open(TOLD, "a") as told:
    told.write(f"found: {found}\\n")
"""
SECRETS = {
    "INPUT_GITHUB-TOKEN": "ghs_sesame",
    "ACTIONS_RUNTIME_TOKEN": "sesame.runtime",
    "MY_APP_PRIVATE_KEY": "sesame key",
    "PIP_INDEX_URL": "https://me:sesame@example.org/simple",
    "aws_secret_access": "sesame",
    "CREDENTIALS": "",
    "PLAIN": "ghs_plain",
    "EMPTY": "",
}
_HIDE = """
import json, os, sys
from bot.github.runner import hide_secrets
hide_secrets()
hide_secrets()
from bot.system.processes import Cancel, run
def shown(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode()
    except OSError as error:
        return error.strerror
own = shown("/proc/self/environ")
child = run(["cat", f"/proc/{os.getpid()}/environ"], cancel=Cancel()).output
childs = run(["cat", "/proc/self/environ"], cancel=Cancel()).output
print(json.dumps([own, child, os.environ["INPUT_GITHUB-TOKEN"], childs]))
"""


def hidden() -> list[str]:
    """What a process that hides its secrets and its child read of its environment, and the child of its own."""
    environment = {**os.environ, **SECRETS, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-c", _HIDE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_neither_a_process_nor_its_child_finds_a_secret_in_its_environment() -> None:
    own, child, kept, childs = hidden()
    assert "sesame" not in own + child + childs
    assert kept == SECRETS["INPUT_GITHUB-TOKEN"], "Python has its own copy"
    assert "PLAIN=ghs_plain\0" in own and "INPUT_GITHUB-TOKEN=\0" in own


_WITHOUT_TRACING = """
import ctypes, os, subprocess
from bot.github.runner import hide_secrets
def read_by_a_child():
    return subprocess.run(["cat", f"/proc/{os.getpid()}/environ"], capture_output=True).returncode == 0
print(read_by_a_child(), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
hide_secrets()
print(read_by_a_child(), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_the_process_is_closed_to_a_root_that_may_not_trace_as_in_a_container() -> None:
    """Docker's default root has none of these capabilities."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    limited = ["setpriv", "--bounding-set", "-sys_ptrace,-perfmon,-sys_admin", sys.executable, "-c", _WITHOUT_TRACING]
    done = subprocess.run(limited, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["True 1", "False 0"], done.stderr


def test_a_compiler_that_looks_through_all_environments_does_not_find_the_token(tmp_path: Path) -> None:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        fake, told = stage.compiler("one"), tmp_path / "told"
        shebang, _, rest = fake.binary.read_text().partition("\n")
        look = _LOOK.replace("SECRET", repr(stage.token.encode())).replace("TOLD", repr(str(told)))
        fake.binary.write_text(f"{shebang}\n{look}\n{rest}")
        sha = stage.main()
        runner = Runner(tmp_path, hub, stage.origin, tmp_path / "cache")
        ran = runner.run("push", push_event(sha), sha=sha, ref="refs/heads/main", token=stage.token, run_id=7)
    assert ran.code == 0, ran.log
    assert told.read_text().splitlines() and set(told.read_text().splitlines()) == {"found: []"}
