"""Hypothesis draws the same examples in every run, so that a red test is red for everyone."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from ir_child import Child, find_compiler_root

settings.register_profile("repeatable", derandomize=True, max_examples=60, deadline=None)
settings.load_profile("repeatable")

# Started in the background, a shell leaves SIGINT ignored, and every child inherits that: Ctrl-C could not be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = frozenset({"whole", "folding"})
"""Folders whose files take minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: begun last, one of them keeps one processor busy while the others have nothing left to do."""
    items.sort(key=lambda item: item.path.parent.name not in LONG)


@pytest.fixture(scope="module")
def compiler_root() -> Path:
    """A real compiler's wheel, unpacked."""
    root = find_compiler_root()
    if root is None:
        pytest.skip("no compiler with Python bindings; name one in CODE_SIZE_TEST_COMPILER")
    return root


@pytest.fixture(scope="module")
def worker(compiler_root: Path) -> Iterator[Child]:
    """The worker under that compiler's bindings."""
    child = Child(compiler_root)
    yield child
    assert child.end() == 0
