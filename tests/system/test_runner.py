"""bot.system.processes: real children, how they end, what they cost, and that none is left behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from deaf_family import DEAF_FAMILY, PYTHON, was_killed
from fake_compiler import is_alive, wait_until

from bot.errors import Interrupted
from bot.system import guard
from bot.system.cancel import Cancel
from bot.system.environment import scrubbed_environment
from bot.system.memory_layout import LAYOUTS, fixed_addresses, placed
from bot.system.pipes import LIMIT_BYTES, whole_lines
from bot.system.processes import Outcome, run


def python(
    code: str, *arguments: str, timeout_seconds: float = 60, stdin: Path | None = None
) -> Outcome:
    return run(
        [*PYTHON, code, *arguments],
        cancel=Cancel(),
        timeout_seconds=timeout_seconds,
        stdin=stdin,
    )


def shell(
    command: str, *, timeout_seconds: float = 60, cancel: Cancel | None = None
) -> Outcome:
    return run(
        ["sh", "-c", command],
        cancel=cancel or Cancel(),
        timeout_seconds=timeout_seconds,
    )


# How a program ends


def test_how_a_program_ends_and_what_it_says() -> None:
    for code in (0, 1, 134, 255):
        outcome = shell(f"exit {code}")
        assert (outcome.exit_code, outcome.signal, outcome.timed_out, outcome.ok) == (
            code,
            None,
            False,
            code == 0,
        )
    for name in ("SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM"):
        outcome = shell(f"ulimit -c 0; kill -{name.removeprefix('SIG')} $$")
        assert (outcome.exit_code, outcome.signal, outcome.timed_out, outcome.ok) == (
            None,
            name,
            False,
            False,
        )
    assert (
        shell(f"kill -{signal.SIGRTMIN + 3} $$").signal
        == f"signal {signal.SIGRTMIN + 3}"
    )
    assert shell("echo one; echo two >&2; echo three").output == "one\ntwo\nthree\n"
    assert shell(r"printf 'a\377b'").output == "a\ufffdb"


def test_what_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(["./no-such-program"], cancel=Cancel())
    file = tmp_path / "data"
    file.write_bytes(b"\x00\x01\x02")
    with pytest.raises(PermissionError):
        run([str(file)], cancel=Cancel())
    file.chmod(0o755)
    with pytest.raises(OSError, match="Exec format error"):
        run([str(file)], cancel=Cancel())


# What a program sees


def test_a_program_sees_its_input_its_place_and_nothing_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("GITHUB_TOKEN", "ghs_secret"),
        ("HTTPS_PROXY", "http://user:secret@proxy"),
    ):
        monkeypatch.setenv(name, value)
    outcome = run(["env"], cancel=Cancel(), environment={"TMPDIR": "/somewhere"})
    assert "secret" not in outcome.output
    names = {line.partition("=")[0] for line in outcome.output.splitlines()}
    assert (
        {"PATH", "LC_ALL", "TMPDIR"}
        <= names
        <= {*scrubbed_environment(), "TMPDIR", "PWD", "SHLVL", "_"}
    )
    (tmp_path / "model.mlir").write_bytes(b"module {}\n" * 100_000)
    read = "import sys; print(len(sys.stdin.buffer.read()))"
    assert (
        python(read, stdin=tmp_path / "model.mlir").output == "1000000\n"
        and python(read).output == "0\n"
    )
    assert (
        run(["pwd", "-P"], cancel=Cancel(), cwd=tmp_path).output
        == f"{tmp_path.resolve()}\n"
    )
    assert (
        python("import os; print(os.getpid() == os.getpgid(0) == os.getsid(0))").output
        == "True\n"
    )


# Time


def test_a_timeout_kills_the_process_group_and_nothing_waits_for_an_orphan_with_the_pipe(
    tmp_path: Path,
) -> None:
    outcome = python(DEAF_FAMILY, str(tmp_path / "late"), "90", timeout_seconds=0.6)
    assert (
        outcome.timed_out
        and outcome.exit_code is None
        and not outcome.ok
        and was_killed(tmp_path / "late")
    )
    outcome = python(DEAF_FAMILY, str(tmp_path / "stray"), "0")
    assert outcome.ok and not outcome.timed_out and was_killed(tmp_path / "stray")
    code = (
        "import os, sys, time; os.close(1); os.close(2); time.sleep(0.4);"
        " os.mkdir(sys.argv[1]); os._exit(3)"
    )
    outcome = python(code, str(tmp_path / "done"))
    assert outcome.exit_code == 3 and (tmp_path / "done").exists(), (
        "it closed its output and went on"
    )


def test_words_before_a_timeout_are_kept_also_where_the_output_is_closed_or_a_file(
    tmp_path: Path,
) -> None:
    outcome = shell("echo almost; exec >&- 2>&-; sleep 600", timeout_seconds=0.3)
    assert outcome.timed_out and outcome.output == "almost\n"
    outcome = run(
        ["sleep", "60"], cancel=Cancel(), stdout=tmp_path / "out", timeout_seconds=0.2
    )
    assert (outcome.timed_out, outcome.output) == (True, "")
    outcome = run(
        ["sh", "-c", "head -c 300000 /dev/zero; echo told >&2"],
        cancel=Cancel(),
        stdout=tmp_path / "out",
    )
    assert (outcome.ok, outcome.output, (tmp_path / "out").stat().st_size) == (
        True,
        "told\n",
        300_000,
    )


def test_cancel_ends_a_program(tmp_path: Path) -> None:
    cancel = Cancel()
    raised = []

    def work() -> None:
        try:
            run([*PYTHON, DEAF_FAMILY, str(tmp_path / "pids"), "90"], cancel=cancel)
        except Interrupted as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert wait_until((tmp_path / "pids").exists)
    cancel.set()
    thread.join()
    assert [error.exit_code for error in raised] == [130] and was_killed(
        tmp_path / "pids"
    )
    with pytest.raises(Interrupted):
        shell("sleep 600", cancel=cancel)


def test_a_run_ends_its_own_orphans_and_not_those_of_a_parallel_run(
    tmp_path: Path,
) -> None:
    """The first program waits for a file that its orphan writes only after the second has ended."""
    answer = (
        f"(touch {tmp_path}/ready; until [ -e {tmp_path}/go ]; do sleep 0.01; done;"
        f" touch {tmp_path}/answer) &"
    )
    wait = (
        f"(({answer}) &) ; until [ -e {tmp_path}/answer ]; do sleep 0.01; done; sleep"
        f" 600 & echo $! > {tmp_path}/pids"
    )
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(shell(wait)))
    thread.start()
    assert wait_until((tmp_path / "ready").exists)
    assert shell("exit 3").exit_code == 3
    (tmp_path / "go").touch()
    thread.join()
    assert outcomes[0].ok and was_killed(tmp_path / "pids")


# Much output


# In a process of its own: the peak of the tests' process may be above the flood already.
FLOOD = """
import sys
from bot.system.cancel import Cancel
from bot.system.processes import run
code = "import sys\\nfor _ in range(100): sys.stdout.buffer.write(b'x' * (1 << 20))\\nsys.exit(7)"
outcome = run([sys.executable, "-IS", "-c", code], cancel=Cancel())
peak_kib = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(outcome.exit_code, outcome.output == "x" * len(outcome.output), len(outcome.output), int(peak_kib) < 80 << 10)
"""


def test_a_flood_is_cut_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FLOOD], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"7 True {LIMIT_BYTES} True\n"
    assert LIMIT_BYTES == 65536


# Costs


def test_cpu_time_is_that_of_the_program_and_of_children_that_it_waited_for() -> None:
    code = (
        "import time\nwhile time.process_time() < 0.3: pass\nprint(time.process_time())"
    )
    outcome = shell(
        f"{sys.executable} -IS -c '{code}'; {sys.executable} -IS -c '{code}'"
    )
    own_ms = sum(map(float, outcome.output.split())) * 1000
    assert own_ms <= outcome.cpu_ms + 10 and outcome.cpu_ms <= 2 * own_ms


def test_peak_memory_is_that_of_the_program() -> None:
    # exec hands down the caller's peak, so that only what is above it can be told
    wanted_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + 100 * 1024
    peak_rss_kib = python(f"b'x' * {wanted_kib * 1024}").peak_rss_kib
    assert (
        peak_rss_kib is not None and wanted_kib < peak_rss_kib < wanted_kib + 30 * 1024
    )


# When this process is killed

KILLED = """
import sys, threading, time
from pathlib import Path
from bot.system import guard
from bot.system.cancel import Cancel
from bot.system.processes import run
from bot.system.worker import Worker
family = [sys.executable, "-IS", "-c", sys.argv[1]]
thread = threading.Thread(target=run, args=([*family, sys.argv[2], "600"],), kwargs={"cancel": Cancel()})
thread.start()
worker = Worker([*family, sys.argv[3], "600"])
while not (Path(sys.argv[2]).exists() and Path(sys.argv[3]).exists()):
    time.sleep(0.01)
print(guard.GUARD.process.pid, flush=True)
thread.join()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_and_their_children_die_with_a_program_that_is_killed(
    tmp_path: Path, number: int
) -> None:
    files = [tmp_path / "program", tmp_path / "worker"]
    argv = [sys.executable, "-c", KILLED, DEAF_FAMILY, *map(str, files)]
    killed = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    guard_pid = int(killed.stdout.readline())
    pids = [int(pid) for file in files for pid in file.read_text().split()]
    assert len(pids) == 4 and all(map(is_alive, [guard_pid, *pids]))
    killed.send_signal(number)
    killed.wait()
    assert wait_until(lambda: not any(map(is_alive, [guard_pid, *pids])))
    killed.stdout.close()


def test_a_guard_that_was_ended_is_replaced() -> None:
    shell("true")
    first = guard.GUARD.process
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(first.pid))
    child = guard.GUARD.begin(
        lambda: subprocess.Popen(["sleep", "600"], start_new_session=True)
    )
    try:
        second = guard.GUARD.process
        assert second is not None and second is not first and is_alive(second.pid)
    finally:
        guard.GUARD.end(child)
    shell("true")
    assert guard.GUARD.process is second and guard.GUARD.alive == set()


def test_a_line_that_the_limit_cut_off_is_no_line() -> None:
    lines = "error: one\n" * (LIMIT_BYTES // 11 + 1)
    assert set(whole_lines(lines[:LIMIT_BYTES]).splitlines()) == {"error: one"}
    assert whole_lines("error: one\nerror: tw") == "error: one\nerror: tw"
    assert whole_lines("x" * LIMIT_BYTES) == "x" * LIMIT_BYTES


# The same command finds its memory at the same addresses, or at others on purpose

MAPS = [sys.executable, "-IS", "-c", "print(open('/proc/self/maps').read())"]


def libraries(layout: int | None) -> str:
    """Where the C library of a child lies."""
    printed = run(MAPS, cancel=Cancel(), layout=layout).output
    return next(
        line.split("-")[0]
        for line in printed.splitlines()
        if "libc.so" in line or "libc-" in line
    )


@pytest.fixture
def fixed() -> None:
    with fixed_addresses() as is_fixed:
        if not is_fixed:
            pytest.skip("the kernel does not allow fixed addresses here")


@pytest.mark.usefixtures("fixed")
def test_every_layout_has_addresses_of_its_own_and_repeats_them() -> None:
    addresses = [{libraries(layout) for _ in range(2)} for layout in range(LAYOUTS)]
    assert all(len(repeated) == 1 for repeated in addresses)
    assert len(set.union(*addresses)) == LAYOUTS


@pytest.mark.usefixtures("fixed")
def test_without_a_layout_addresses_stay_random() -> None:
    libraries(0)
    assert len({libraries(None) for _ in range(4)}) > 1


@pytest.mark.usefixtures("fixed")
def test_a_layout_changes_nothing_but_where_memory_lies(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-IS",
        "-c",
        "import sys; print(sys.argv[1:]); sys.exit(7)",
        "a b",
        "*",
    ]
    plain, moved = (
        run(argv, cancel=Cancel(), layout=layout, cwd=tmp_path) for layout in (0, 1)
    )
    assert (
        (plain.output, plain.exit_code)
        == (moved.output, moved.exit_code)
        == ("['a b', '*']\n", 7)
    )
    assert placed(argv, 0) == argv
