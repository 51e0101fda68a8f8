"""A compiler that leaves a program behind: it does not outlive the run."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL, Stage
from fake_compiler import TEMPLATES, FakeCompiler, install, install_native, wait_until
from fake_github import FakeGitHub
from fake_wheels import LIBRARIES, PYTHON, entries, wheel_name, write_wheel
from github_runner import REPOSITORY, Runner, push_event

CONFIG = (
    "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [llvm-cpu-x86_64, vmvx]\n"
)
LEAVE = '''
import fcntl, os, signal, time
def leave(home, how):
    """A program that is in no group and no session of the compiler's, and whose parent has ended."""
    ready, done = os.pipe()
    if os.fork():
        os.close(done)
        os.read(ready, 1)
        os.close(ready)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(home + "/pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    lock = os.open(home + "/pids", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)  # until the last one ends that has it from here
    if how == "other-user":
        os.setuid(65534)
    os.write(done, b".")
    for fd in (0, 1, 2, ready, done):
        os.close(fd)
    end = time.monotonic() + 100
    while time.monotonic() < end:
        if how == "runs-away" and os.fork():
            os._exit(0)
        time.sleep(0 if how == "runs-away" else 0.01)
'''


@dataclass(frozen=True)
class Left:
    """A directory with a model, a compiler that leaves a program behind, and what became of that."""

    home: Path

    def compiler(
        self,
        behaviour: str = "waits",
        rules: Sequence[dict[str, str]] = (),
        name: str = "fake",
    ) -> FakeCompiler:
        fake = install(self.home / name, rules, templates=TEMPLATES)
        install_native(self.home / name / "bin" / "iree-compile", fake)
        shebang, _, body = fake.binary.read_text().partition("\n")
        fake.binary.write_text(f"{shebang}\n{self.leave(behaviour)}\n{body}")
        return fake

    def leave(self, behaviour: str) -> str:
        """The lines of Python that leave a program behind."""
        (self.home / "left").mkdir(exist_ok=True)
        return f"{LEAVE}\nleave({str(self.home / 'left')!r}, {behaviour!r})\n"

    def start(
        self, *command: str, under: Sequence[str] = (), config: str = CONFIG
    ) -> subprocess.Popen[str]:
        (self.home / "alpha.mlir").write_text(MODEL.format("alpha"))
        (self.home / "c.yml").write_text(config)
        argv = [
            *under,
            sys.executable,
            "-m",
            "bot",
            *command,
            "--config",
            "c.yml",
            "--cache",
            "cache",
        ]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        return subprocess.Popen(
            argv, cwd=self.home, env=environment, stderr=subprocess.PIPE, text=True
        )

    def run(self, *command: str, **options: Any) -> tuple[int, str]:
        started = self.start(*command, **options)
        _, printed = started.communicate(timeout=120)
        return started.returncode, printed

    def require_gone(self) -> None:
        """At the moment at which the run ends, not some time after it."""
        with (self.home / "left" / "pids").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.fixture
def left_programs(tmp_path: Path) -> Left:
    return Left(tmp_path)


MEASURE = ("measure", "--compiler", "fake/bin/iree-compile", "--out", "head.json")
COMMANDS: Mapping[str, Sequence[str]] = {
    "measure": MEASURE,
    "compare": (
        "compare",
        "--base",
        "fake/bin/iree-compile",
        "--head",
        "other/bin/iree-compile",
    ),
    "fold": ("fold", "--compiler", "fake/bin/iree-compile"),
    "lab": (
        "lab",
        "aggressive-fusion",
        "--compiler",
        "fake/bin/iree-compile",
        "--no-run",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_compiler_left_behind_ends_with_it(
    left_programs: Left, command: str
) -> None:
    left_programs.compiler()
    left_programs.compiler(name="other", rules=[{"do": "grow"}])
    code, printed = left_programs.run(*COMMANDS[command])
    # fold and lab find nothing in what this compiler makes
    assert code in (
        0,
        1,
        5,
    ), printed
    left_programs.require_gone()


def test_on_github_it_ends_with_the_job_that_measures(tmp_path: Path) -> None:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        place = Left(tmp_path)
        place.compiler(name="one")
        sha = stage.main(baseline={"store": "data-branch"})
        runner = Runner(tmp_path, hub, stage.origin, tmp_path / "cache")
        ran = runner.job(
            "push",
            push_event(sha),
            sha=sha,
            ref="refs/heads/main",
            run_id=7,
            command="measure",
        )
    assert ran.code == 0, ran.log
    place.require_gone()


def test_what_its_bindings_left_behind_ends_with_their_worker(
    left_programs: Left,
) -> None:
    files = entries(install(left_programs.home / "fake", templates=TEMPLATES))
    library = (
        f"{LIBRARIES}/_mlir.cpython-{PYTHON.removeprefix('cp')}-x86_64-linux-gnu.so"
    )
    files |= {
        library: b"\x7fELF",
        "iree/compiler/ir.py": left_programs.leave("waits").encode(),
    }
    write_wheel(left_programs.home / wheel_name(), files)
    code, printed = left_programs.run(
        "measure", "--compiler", wheel_name(), "--out", "head.json"
    )
    assert code == 0, printed
    left_programs.require_gone()


def test_what_a_compiler_that_hangs_left_behind_ends_at_its_time_limit(
    left_programs: Left,
) -> None:
    left_programs.compiler(rules=[{"do": "hang", "kind": "direct"}])
    code, printed = left_programs.run(*MEASURE, config=f"{CONFIG}timeout_seconds: 1\n")
    assert code == 5 and "not finished after 1 s" in printed, printed
    left_programs.require_gone()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_compiler_left_behind_ends_with_an_interrupted_run(
    left_programs: Left, number: int
) -> None:
    fake = left_programs.compiler(rules=[{"do": "hang", "kind": "direct"}])
    started = left_programs.start(*MEASURE)
    assert wait_until(lambda: fake.pids, 30)
    started.send_signal(number)
    _, printed = started.communicate(timeout=60)
    assert started.returncode == 130, printed
    left_programs.require_gone()


def test_one_that_starts_itself_anew_without_end_is_caught_up_with(
    left_programs: Left,
) -> None:
    left_programs.compiler("runs-away")
    code, printed = left_programs.run(*MEASURE)
    assert code == 0, printed
    left_programs.require_gone()


@pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv"
)
def test_what_cannot_be_ended_fails_the_run_in_a_clear_line(
    left_programs: Left,
) -> None:
    """The program has become another user's, whose programs this one may not end."""
    left_programs.compiler("other-user")
    code, printed = left_programs.run(
        *MEASURE, under=["setpriv", "--bounding-set", "-kill", "--inh-caps", "-all"]
    )
    # nothing was started beside it
    [pid] = (left_programs.home / "left" / "pids").read_text().split()
    os.kill(int(pid), signal.SIGKILL)
    assert code == 5, printed
    line = (
        f"(process {pid}): a compiler started this process, and the bot cannot end it"
        " (do not run this compiler"
    )
    assert (
        printed.splitlines()[-1].startswith("code-size-bot: ")
        and line in printed.splitlines()[-1]
    )
    assert not (left_programs.home / "head.json").exists()
