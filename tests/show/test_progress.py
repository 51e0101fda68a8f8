"""bot.show.progress: what is told of long work, and that it never counts more than there is."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

from bot.core.snapshot import Cell, Failure
from bot.show.progress import MeasureProgress

GOOD = Cell("bert", "vmvx", "ok")
BAD = Cell("gpt2", "vmvx", "failed", failure=Failure("compile", "refused"))


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def progress(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, terminal: bool = False
) -> MeasureProgress:
    """One that says a line for every cell where there is no terminal."""
    monkeypatch.setattr("bot.show.progress._LINE_EVERY_SECONDS", -1.0)
    return MeasureProgress(Console(file=out, force_terminal=terminal, width=120))


def counted(out: io.StringIO) -> list[tuple[int, int]]:
    return [
        (int(done), int(total))
        for done, total in re.findall(r"(\d+)/(\d+) builds", out.getvalue())
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_measured_again_counts_once(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    with progress(out, monkeypatch, terminal=terminal) as reporter:
        reporter.plan(3, 1, 2.0)
        for cell in (BAD, GOOD, BAD, BAD):
            reporter.started("again")
            reporter.measured("head", cell, 1.0)
            reporter.ended("again")
        reporter.spent({}, 2)
    last = re.findall(r"\d+/\d+ builds, \d+ running(?:, \d+ failed)?", out.getvalue())[
        -1
    ]
    assert (
        max(counted(out)) == (3, 3)
        and last.startswith("3/3 builds, ")
        and last.endswith(", 1 failed")
    )


def test_a_new_plan_begins_to_count_anew(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress(out, monkeypatch) as reporter:
        for _ in range(2):
            reporter.plan(2, 0, 2.0)
            reporter.measured("base", BAD, 1.0)
            reporter.measured("head", GOOD, 1.0)
    assert counted(out) == [(1, 2), (2, 2)] * 2 and "2 failed" not in out.getvalue()


def test_each_plan_says_its_own_time(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("bot.show.progress.time.monotonic", lambda: now)
    with progress(out, monkeypatch) as reporter:
        for seconds in (10, 20):
            reporter.plan(1, 0, 1.0)
            now += seconds
            reporter.spent({"compile": 10_000}, 2)
    assert re.findall(r"compiled: .*", out.getvalue()) == [
        "compiled: 10.0 CPU s in 10.0 s, 50% of 2 threads",
        "compiled: 10.0 CPU s in 20.0 s, 25% of 2 threads",
    ]


def test_nothing_is_counted_before_there_is_a_plan(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress(out, monkeypatch) as reporter:
        reporter.measured("head", GOOD, 1.0)
    assert counted(out) == []


def test_threads_never_count_beyond_the_plan(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress(out, monkeypatch) as reporter, ThreadPoolExecutor(4) as pool:
        reporter.plan(50, 10, 40.0)
        list(pool.map(lambda _: reporter.measured("head", GOOD, 1.0), range(200)))
    counts = counted(out)
    assert counts == [(done, 50) for done in range(11, 51)]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_later_stage_is_named_and_has_its_own_count(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    with progress(out, monkeypatch, terminal=terminal) as reporter:
        reporter.plan(2, 2, 0.0)
        reporter.stage("compiling again", 3, "compile")
        for name in "abc":
            reporter.started(name)
            reporter.measured("head", GOOD, 1.0)
            reporter.ended(name)
        reporter.stage("tracing", 1, "dispatch")
        reporter.started("trace d")
        reporter.ended("trace d")
    text = out.getvalue()
    assert "compiling again: 3 compiles" in text and "tracing: 1 dispatch" in text
    assert re.findall(r"tracing: (\d+)/1 dispatch", text)[-1] == "1"
    if not terminal:  # a bar is drawn from time to time, a line each time
        assert re.findall(r"compiling again: (\d+)/3 compiles", text) == ["1", "2", "3"]
