"""bot.compiler.schedule: the order of tasks, how many run at once, and what an error does to the others."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from places import ROOT

from bot.compiler.schedule import Task, run_all
from bot.errors import OutputError


class Log:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.events: list[tuple[str, str]] = []
        self.running: list[str] = []
        self.most = 0

    def started(self, name: str) -> None:
        with self._lock:
            self.events.append(("started", name))
            self.running.append(name)
            self.most = max(self.most, len(self.running))

    def ended(self, name: str) -> None:
        with self._lock:
            self.events.append(("ended", name))
            self.running.remove(name)  # raises where it never began

    @property
    def order(self) -> list[str]:
        return [name for event, name in self.events if event == "started"]


def never() -> None:
    raise AssertionError("nothing was interrupted")


def task(cost: float, name: str, work: Callable[[], object] = tuple) -> Task:
    return Task(cost, name, work)


def run(
    tasks: Iterable[Task], jobs: int = 1, interrupt: Callable[[], None] = never
) -> Log:
    log = Log()
    run_all(tasks, jobs, interrupt, log)
    assert not log.running
    return log


def test_longest_first_names_break_ties_and_equal_ones_need_no_order() -> None:
    tasks = [
        task(1, "d"),
        task(3, "b"),
        task(float("inf"), "z"),
        task(3, "a"),
        task(2, "c"),
        task(0, "e"),
        task(0, "e"),
    ]
    assert (
        run(tasks).order == ["z", "a", "b", "c", "d", "e", "e"]
        and run([], jobs=4).events == []
    )


@pytest.mark.parametrize("jobs", [0, 1, 2, 5])
def test_never_more_than_jobs_at_once_and_all_cores_are_used(jobs: int) -> None:
    meeting = threading.Barrier(max(1, jobs), timeout=5)
    log = run(
        [task(1, str(i), meeting.wait) for i in range(2 * max(1, jobs))], jobs=jobs
    )
    assert log.most == max(1, jobs)


def test_the_first_error_is_raised_when_all_have_stopped() -> None:
    log = Log()
    others_ended = []

    def slow() -> None:
        time.sleep(0.2)
        others_ended.append(True)

    def fail() -> None:
        time.sleep(0.05)
        raise OutputError("disk full")

    with pytest.raises(OutputError, match="disk full"):
        run_all(
            [task(9, "slow", slow), task(8, "fail", fail), task(1, "late")],
            2,
            never,
            log,
        )
    assert others_ended == [True]
    assert not log.running
    assert log.order == ["slow", "fail"]


def test_a_watcher_that_fails_ends_the_run() -> None:
    class Broken(Log):
        def started(self, _name: str) -> None:
            raise OSError("terminal gone")

    with pytest.raises(OSError, match="terminal gone"):
        run_all([task(1, "a"), task(1, "b")], 2, never, Broken())


@pytest.mark.parametrize("both_interrupt", [False, True])
def test_an_interruption_calls_interrupt_and_waits(both_interrupt: bool) -> None:
    """One of two, or two that come as close together as two threads can send them."""
    log = Log()
    stop = threading.Event()
    ended = []
    both_run = threading.Barrier(2)

    def patient() -> None:
        if both_run.wait(10) == 0 or both_interrupt:
            _thread.interrupt_main()
        assert stop.wait(10)
        time.sleep(0.05)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_all(
            [task(1, "a", patient), task(1, "b", patient), task(0, "late")],
            2,
            stop.set,
            log,
        )
    assert ended == [True, True]
    assert not log.running
    assert sorted(log.order) == ["a", "b"]


def test_ctrl_c_on_a_real_program() -> None:
    code = (
        "import os, signal, threading, time\nfrom bot.system.cancel import Cancel\n"
        "from bot.system.processes import run\nfrom bot.compiler.schedule import Task, run_all\nfrom bot.errors import"
        " Interrupted\nclass Quiet:\n    def started(self, name): os.write(1,"
        " f'{name}\\n'.encode())\n    def ended(self, name): os.write(1, f'ended"
        " {name}\\n'.encode())\ncancel = Cancel()\nthreading.Timer(0.3, lambda:"
        " os.kill(os.getpid(), signal.SIGINT)).start()\ndef work(): run(['sleep',"
        " '600'], cancel=cancel)\ntry: run_all([Task(1, 'a', work), Task(1, 'b',"
        " work)], 2, cancel.set, Quiet())\nexcept KeyboardInterrupt:"
        " print('interrupted')\n"
    )
    root = ROOT
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=20,
        cwd=root,
    )
    assert done.stderr == ""
    assert Counter(done.stdout.splitlines()) == Counter(
        ["a", "b", "ended a", "ended b", "interrupted"]
    )
