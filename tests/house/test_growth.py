"""What the tests say about speed: the two ways to say it tell linear from quadratic, and nobody reads a clock."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from growth import LINEAR, cpu_growth
from places import TESTS

# The helper, and waiting for something that must come.
MAY_READ_A_CLOCK = {"growth.py", "fake_compiler.py", "iree_compile.py"}
CLOCKS = {
    f"{name}{suffix}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time")
    for suffix in ("", "_ns")
}


@pytest.mark.parametrize(("pattern", "is_linear"), [("a*b", False), ("a", True)])
def test_cpu_time_tells_linear_from_quadratic(pattern: str, is_linear: bool) -> None:
    compiled = re.compile(pattern)
    # What is quadratic takes three seconds for five tries.
    tries = 5 if is_linear else 2
    growth = cpu_growth(lambda size: "a" * size, compiled.findall, 2_000, tries)
    assert (growth < LINEAR) is is_linear


def clocks_read(tree: ast.AST) -> Iterator[int]:
    """The lines at which a clock is read, and asserts in which the time of day is."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.alias(name=name) if name in CLOCKS:
                yield node.lineno
            case ast.Assert() if "time.time(" in ast.unparse(node):
                yield node.lineno


def test_no_test_reads_a_clock() -> None:
    places = list[str]()
    for path in TESTS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # most files name no clock at all, and parsing is slow
        is_suspect = any(name in text for name in (*CLOCKS, "time.time"))
        if is_suspect and path.name not in MAY_READ_A_CLOCK:
            places += [f"{path.name}:{line}" for line in clocks_read(ast.parse(text))]
    assert places == [], "count steps, or compare n with 8n: see growth.py"
