"""Select the tests of `make test`, share fixtures, and list the reasons for skipped tests."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import needs
import pytest
from hypothesis import settings
from ir_child import Child, find_compiler_root
from real_compilers import session_cache

from bot.compiler.toolchain import resolve
from bot.running.runner import Runtime, installed
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The same examples in every run, so that a red test is red for everyone.
settings.register_profile(
    "repeatable", derandomize=True, max_examples=60, deadline=None
)
settings.load_profile("repeatable")

# The tests start the program hundreds of times: byte code is kept as Python usually keeps
# it, so that its modules and the tests are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What a shell says of its window and its colours would decide how the output that tests
# read is drawn.
for setting in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(setting, None)

# Started in the background, a shell leaves SIGINT ignored, and every child inherits
# that: Ctrl-C could not be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup leaves SIGHUP ignored in the same way, and the program then ignores it as well.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

SLOW = frozenset({"browser", "folding", "running", "whole"})
"""Folders whose tests are all slow, except those marked `quick`."""
LONGEST = (
    "test_pull_request_story.py",
    "test_known_causes.py",
    "test_recipes.py",
    "test_help.py",
    "test_pasted.py",
    "test_end_to_end.py",
    "test_trace.py",
    "test_lab.py",
    "test_documented_commands.py",
    "test_slow_machine.py",
    "test_page.py",
    "test_auditing.py",
)
"""The files with the longest slow tests: they begin first."""


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are processors: many tests wait for servers or programs."""
    return len(os.sched_getaffinity(0)) + 1


def begins(item: pytest.Item) -> tuple[bool, int]:
    """Return the place of a test among all: a long file that begins last keeps one processor busy."""
    place = len(LONGEST)
    if item.path.name in LONGEST:
        place = LONGEST.index(item.path.name)
    return item.get_closest_marker("slow") is None, place


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow before `-m` selects, and put it first."""
    for item in items:
        if item.path.parent.name in SLOW and not item.get_closest_marker("quick"):
            item.add_marker("slow")
    items.sort(key=begins)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say each reason for which tests were left out once, with their number."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(
            f"not run: {reason} ({count} {'test' if count == 1 else 'tests'})"
        )


@pytest.fixture(scope="module")
def compiler_root() -> Path:
    """A real compiler's wheel, unpacked; fetched where there is none."""
    root = find_compiler_root()
    if root is None:
        resolve("3.13.0", default_cache(), Cancel(), print)
        root = find_compiler_root()
    return root or needs.missing(
        "no compiler with bindings for this Python; name one in CODE_SIZE_TEST_COMPILER"
    )


@pytest.fixture(scope="module")
def worker(compiler_root: Path) -> Iterator[Child]:
    """The worker under that compiler's bindings."""
    child = Child(compiler_root)
    yield child
    assert child.end() == 0


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cell cache of the session, for tests in which a build may come from another test."""
    return session_cache(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    """Return IREE's runtime, which runs artifacts."""
    return installed() or needs.missing("the extra run is not installed")


@pytest.fixture(scope="module")
def short_runs() -> Iterator[None]:
    """Timed processes that end soon, for tests in which no time matters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bot.running.runner._SHORTEST_SECONDS", 0.02)
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser for all tests of a file."""
    from browser import chromium  # only who opens pages has one

    with chromium() as running:
        yield running
