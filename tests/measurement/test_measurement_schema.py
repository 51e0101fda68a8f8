"""A cell in the cache was measured by code that is still the same: whoever changes that code raises the schema."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator

import pytest
from places import ROOT
from test_architecture import IMPORTS, SOURCES, TREES, within

from bot.compiler.caches.cell_cache import MEASUREMENT_SCHEMA, MEASUREMENT_SOURCES
from bot.compiler.tools.probe import MEASURING_OPTIONS
from bot.core.values.planned import COMMON_FLAGS, LIFTED_LIMIT_FLAG

FLAGS = (COMMON_FLAGS, LIFTED_LIMIT_FLAG, MEASURING_OPTIONS)
STARTS = (
    *("bot.measurement.cell", "bot.measurement.tracing.one_dispatch"),
    *("bot.compiler.compiling", "bot.compiler.diagnostics", "bot.insight.facts.describing"),
)
FOLLOWED = ("bot.insight",)
"""Of what the modules above import, these rooms decide too what a cell says; `bot.readers` does as a whole."""

WRITING = ("bot.readers.fold_worker", "bot.readers.shape_worker")
"""What they make of a program is another program, and has cells of its own."""


def module_of(wanted: str) -> str:
    """The module in which an imported name is."""
    while wanted and wanted not in SOURCES:
        wanted = wanted.rpartition(".")[0]
    return wanted


def deciding() -> list[str]:
    """The modules that decide what a measurement says."""
    found = {name for name in SOURCES if within(name, "bot.readers") and not within(name, *WRITING)}
    todo = list(STARTS)
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += [module for each in IMPORTS[name] if within(module := module_of(each), *FOLLOWED)]
    return sorted(found)


def said(node: ast.AST) -> Iterator[str]:
    """A tree as text that only its meaning changes: no places, comments, docstrings, or fields that are empty."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
            if each is None or is_text:
                continue
            yield f"{name}="
            yield from said(each) if isinstance(each, ast.AST) else [repr(each)]
    yield ";"


def digest(schema: str) -> str:
    """Of the sources and the schema: a digest can only be right for one schema."""
    parts = [schema, repr(FLAGS), *("".join((name, *said(TREES[name]))) for name in deciding())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def test_the_schema_is_raised_when_the_code_that_measures_changes() -> None:
    number = int(MEASUREMENT_SCHEMA.rpartition("/")[2])
    raised = f"code-size-cell/{number + 1}"
    assert digest(MEASUREMENT_SCHEMA) == MEASUREMENT_SOURCES, (
        f'measuring changed: in bot/compiler/caches/cell_cache.py set MEASUREMENT_SCHEMA = "{raised}" and '
        f'MEASUREMENT_SOURCES = "{digest(raised)}"'
    )


def test_what_decides() -> None:
    expected = {
        "bot.measurement.cell",
        "bot.readers.ir_worker.ir_worker",
        "bot.readers.formats.elf",
        "bot.insight.families.families",
        "bot.insight.facts.tokens",
    }
    assert expected <= set(deciding())
    assert not {"bot.compiler.tools.wheels", "bot.insight.causes.phases", "bot.render.view.view"} & set(deciding())


SOURCE = 'def f(a: int) -> str:\n    return f"{a!r:>4}" "x"\n'


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ('"""Says more."""\n\n\ndef f(\n    a: int,\n) -> str:\n    # why\n    return (f"{a!r:>4}x")\n', True),
        ('def f(a: int) -> str:\n    """Does."""\n    return f"{a!r:>4}x"\n', True),
        (SOURCE.replace("4", "5"), False),
        (SOURCE.replace('"x"', '"y"'), False),
        (SOURCE.replace("!r", "!s"), False),
        (f"A = 1\n{SOURCE}", False),
    ],
)
def test_only_what_is_said_counts(source: str, same: bool) -> None:
    assert (list(said(ast.parse(source))) == list(said(ast.parse(SOURCE)))) is same


def test_both_are_written_so_that_the_line_can_be_pasted() -> None:
    text = (ROOT / "bot" / "compiler" / "caches" / "cell_cache.py").read_text(encoding="utf-8")
    assert len(re.findall(r'^MEASUREMENT_(?:SCHEMA = "code-size-cell/\d+"|SOURCES = "[0-9a-f]{64}")$', text, re.M)) == 2
