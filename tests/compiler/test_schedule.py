"""bot.compiler.schedule: the order of tasks, how many run at once, and what an error does to the others."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


def task(cost: float, name: str, work: Callable[[], Iterable[Task]] = tuple) -> Task:
    return Task(cost, name, work)


def meet(barrier: threading.Barrier) -> list[Task]:
    barrier.wait()
    return []


def nap() -> list[Task]:
    time.sleep(0.005)
    return []


def run(tasks: Iterable[Task], jobs: int = 1, interrupt: Callable[[], None] = never) -> Log:
    log = Log()
    run_all(tasks, jobs, interrupt, log)
    assert not log.running
    return log


def test_nothing_to_do() -> None:
    assert run([], jobs=4).events == []


def test_longest_first_and_names_break_ties() -> None:
    tasks = [task(1, "d"), task(3, "b"), task(float("inf"), "z"), task(3, "a"), task(2, "c")]
    assert run(tasks).order == ["z", "a", "b", "c", "d"]


def test_equal_tasks_need_no_order() -> None:
    assert run([task(1, "same"), task(1, "same")]).order == ["same", "same"]


def test_follow_ups_take_their_place_in_the_order() -> None:
    more = [task(5, "long"), task(1, "short")]
    log = run([task(9, "first", lambda: more), task(3, "middle")])
    assert log.order == ["first", "long", "middle", "short"]


def test_follow_ups_may_come_from_a_generator() -> None:
    assert run([task(1, "a", lambda: (task(1, name) for name in "bc"))]).order == ["a", "b", "c"]


def test_idle_threads_wait_for_follow_ups() -> None:
    meeting = threading.Barrier(3, timeout=5)

    def spread() -> list[Task]:
        time.sleep(0.05)
        return [task(1, f"child {i}", lambda: meet(meeting)) for i in range(3)]

    assert run([task(1, "parent", spread)], jobs=3).most == 3


@pytest.mark.parametrize("jobs", [0, 1, 2, 5])
def test_never_more_than_jobs_at_once(jobs: int) -> None:
    log = run([task(1, str(i), nap) for i in range(12)], jobs=jobs)
    assert 1 <= log.most <= max(1, jobs)
    assert len(log.order) == 12


def test_all_cores_are_used() -> None:
    meeting = threading.Barrier(4, timeout=5)
    assert run([task(1, str(i), lambda: meet(meeting)) for i in range(4)], jobs=4).most == 4


def test_the_first_error_is_raised_when_all_have_stopped() -> None:
    log, others_ended = Log(), []

    def slow() -> list[Task]:
        time.sleep(0.2)
        others_ended.append(True)
        return [task(9, "never")]

    def fail() -> list[Task]:
        time.sleep(0.05)
        raise OutputError("disk full")

    with pytest.raises(OutputError, match="disk full"):
        run_all([task(9, "slow", slow), task(8, "fail", fail), task(1, "late")], 2, never, log)
    assert others_ended == [True]
    assert not log.running
    assert log.order == ["slow", "fail"]


def test_of_two_errors_the_first_counts() -> None:
    def fail(seconds: float, what: str) -> list[Task]:
        time.sleep(seconds)
        raise OutputError(what)

    tasks = [task(1, "a", lambda: fail(0.15, "second")), task(1, "b", lambda: fail(0.02, "first"))]
    with pytest.raises(OutputError, match="first"):
        run_all(tasks, 2, never, Log())


def test_an_error_wakes_those_who_wait() -> None:
    def fail() -> list[Task]:
        time.sleep(0.1)
        raise OutputError("gone")

    with pytest.raises(OutputError):
        run_all([task(1, "only", fail)], 8, never, Log())


def test_an_error_in_a_generator_of_follow_ups() -> None:
    def follow() -> Iterable[Task]:
        yield task(1, "one")
        raise OutputError("half way")

    with pytest.raises(OutputError, match="half way"):
        run_all([task(1, "a", follow)], 2, never, Log())


def test_a_watcher_that_fails_ends_the_run() -> None:
    class Broken(Log):
        def started(self, _name: str) -> None:
            raise OSError("terminal gone")

    with pytest.raises(OSError, match="terminal gone"):
        run_all([task(1, "a"), task(1, "b")], 2, never, Broken())


def test_an_interruption_calls_interrupt_and_waits() -> None:
    log, stop, ended = Log(), threading.Event(), []

    def patient() -> list[Task]:
        if len(log.running) == 2:
            _thread.interrupt_main()
        assert stop.wait(10)
        time.sleep(0.05)
        ended.append(True)
        return [task(9, "never")]

    with pytest.raises(KeyboardInterrupt):
        run_all([task(1, "a", patient), task(1, "b", patient), task(0, "late")], 2, stop.set, log)
    assert ended == [True, True]
    assert not log.running
    assert sorted(log.order) == ["a", "b"]


def test_ctrl_c_on_a_real_program() -> None:
    code = (
        "import os, signal, threading, time\n"
        "from bot.system.processes import Cancel, run\n"
        "from bot.compiler.schedule import Task, run_all\n"
        "from bot.errors import Interrupted\n"
        "class Quiet:\n"
        "    def started(self, name): os.write(1, f'{name}\\n'.encode())\n"
        "    def ended(self, name): os.write(1, f'ended {name}\\n'.encode())\n"
        "cancel = Cancel()\n"
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "def work(): run(['sleep', '600'], cancel=cancel); return []\n"
        "try: run_all([Task(1, 'a', work), Task(1, 'b', work)], 2, cancel.set, Quiet())\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    root = ROOT
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, cwd=root)
    assert done.stderr == ""
    assert Counter(done.stdout.splitlines()) == Counter(["a", "b", "ended a", "ended b", "interrupted"])


Tree = tuple[float, "list[Tree]"]
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.tuples(st.floats(0, 9), st.just([])), lambda inner: st.tuples(st.floats(0, 9), st.lists(inner, max_size=4))
)


def planted(trees: list[Tree], prefix: str, ran: list[str]) -> list[Task]:
    def work(children: list[Tree], name: str) -> list[Task]:
        ran.append(name)
        return planted(children, name, ran)

    named = [(f"{prefix}.{i}", cost, children) for i, (cost, children) in enumerate(trees)]
    return [task(cost, name, partial(work, children, name)) for name, cost, children in named]


def names(trees: list[Tree], prefix: str = "") -> list[str]:
    found = []
    for i, (_, children) in enumerate(trees):
        found += [f"{prefix}.{i}", *names(children, f"{prefix}.{i}")]
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(TREES, max_size=4), st.integers(1, 4))
def test_every_task_runs_exactly_once(trees: list[Tree], jobs: int) -> None:
    ran: list[str] = []
    log = run(planted(trees, "", ran), jobs)
    assert sorted(ran) == sorted(names(trees)) == sorted(log.order)
    assert log.most <= jobs


@settings(max_examples=40, deadline=None)
@given(st.lists(TREES, min_size=1, max_size=4), st.integers(1, 4), st.data())
def test_an_error_anywhere_comes_out(trees: list[Tree], jobs: int, data: st.DataObject) -> None:
    bad = data.draw(st.sampled_from(names(trees)))

    class Ran(list[str]):
        def append(self, name: str) -> None:
            super().append(name)
            if name == bad:
                raise OutputError(name)

    ran, log = Ran(), Log()
    with pytest.raises(OutputError, match=bad):
        run_all(planted(trees, "", ran), jobs, never, log)
    assert max(Counter(ran).values()) == 1
    assert not log.running
