"""bot.system.worker: real children that answer, die, hang or read nothing, and that none is left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from deaf_family import DEAF_FAMILY, PYTHON, was_killed
from fake_compiler import wait_until

from bot.errors import Interrupted
from bot.system.cancel import Cancel
from bot.system.worker import Worker

LONG_LINE = "x" * 1_000_000
"""More than a pipe holds."""


def test_an_answer_in_pieces_and_one_that_is_long() -> None:
    code = (
        "import sys, time\nfor line in sys.stdin:\n"
        "    sys.stdout.write('x'); sys.stdout.flush(); time.sleep(0.05)\n"
        "    sys.stdout.write('y' * 300000 + '\\nrest\\n'); sys.stdout.flush()"
    )
    worker = Worker([*PYTHON, code])
    assert worker.ask("q", Cancel()) == "x" + "y" * 300_000
    assert worker.ask(None, Cancel()) == "rest"
    worker.close()


@pytest.mark.parametrize(
    ("code", "answers"),
    [
        (
            "import sys; print('hello', flush=True); sys.stdin.readline(); sys.exit(1)",
            ["hello", None, None],
        ),
        ("import sys; sys.stdout.write('{\"regions\": 1'); sys.stdout.flush()", [None]),
        (
            (
                "import sys; sys.stdout.buffer.write(b'\\xff\\x00\\n');"
                " sys.stdout.flush(); sys.stdin.read()"
            ),
            ["\ufffd\x00"],
        ),
        ("import os; print('GITHUB_TOKEN' in os.environ, flush=True)", ["False"]),
        (
            "import sys; sys.stderr.write('x' * 1000000); print('done', flush=True)",
            ["done"],
        ),
    ],
    ids=[
        "dies",
        "half an answer",
        "garbage is handed on",
        "no token",
        "a flood of errors",
    ],
)
def test_workers_of_all_kinds(
    monkeypatch: pytest.MonkeyPatch, code: str, answers: list[str | None]
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
    worker = Worker([*PYTHON, code])
    assert [
        worker.ask("q" if number else None, Cancel())
        for number, _ in enumerate(answers)
    ] == answers
    worker.close()


def deaf_worker(folder: Path) -> Worker:
    """Return a worker that sleeps; the numbers of its family are in the file `pids`."""
    worker = Worker([*PYTHON, DEAF_FAMILY, str(folder / "pids"), "90"])
    assert wait_until((folder / "pids").exists)
    return worker


def test_a_worker_that_hangs_is_ended(tmp_path: Path) -> None:
    worker = deaf_worker(tmp_path)
    assert worker.ask("q", Cancel(), timeout_seconds=0.2) is None
    assert was_killed(tmp_path / "pids")
    assert worker.ask("q", Cancel()) is None
    worker.close()


def test_a_line_longer_than_a_pipe_is_answered() -> None:
    code = "import sys\nfor line in sys.stdin: print(len(line), flush=True)"
    worker = Worker([*PYTHON, code])
    assert worker.ask(LONG_LINE, Cancel()) == "1000001"
    assert worker.ask("short", Cancel()) == "6"
    worker.close()


def test_a_worker_that_does_not_read_is_ended(tmp_path: Path) -> None:
    worker = deaf_worker(tmp_path)
    assert worker.ask(LONG_LINE, Cancel(), timeout_seconds=0.2) is None
    assert was_killed(tmp_path / "pids")
    assert worker.ask(LONG_LINE, Cancel()) is None
    worker.close()


def test_cancel_ends_a_request_that_nobody_reads(tmp_path: Path) -> None:
    worker = deaf_worker(tmp_path)
    cancel = Cancel()
    timer = threading.Timer(0.2, cancel.set)
    timer.start()
    with pytest.raises(Interrupted):
        worker.ask(LONG_LINE, cancel, timeout_seconds=600)
    timer.join()
    worker.close()
    assert was_killed(tmp_path / "pids")


# What the kernel tells of a child is never below its parent's peak; /proc has the
# child's own.
ENDLESS = """
import sys
from bot.system.cancel import Cancel
from bot.system.worker import Worker
one = Worker([sys.executable, "-IS", "-c", "import os\\nwhile True: os.write(1, b'x' * 65536)"])
answer = one.ask(None, Cancel())
peak_kib = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(answer, int(peak_kib) < 600 << 10)
"""


def test_an_answer_without_end_is_none_and_does_not_fill_the_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "None True\n"


def test_close_ends_a_busy_worker_and_may_be_called_twice(tmp_path: Path) -> None:
    worker = deaf_worker(tmp_path)
    worker.close()
    worker.close()
    assert was_killed(tmp_path / "pids")
