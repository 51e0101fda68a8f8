"""Cells by hand for the tests of matching and causes: a row is one executable, its sites and what the back end made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from replacing import replace

from bot.core.program import Family, Program, Site, Source
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.explain.matching import Match, index_both, match_sides


def whole(word: str) -> str:
    """A digest that begins with the word."""
    return word.ljust(16, "-")


KEY = CellKey("bert", "llvm-cpu-x86_64")
PHASES = {"input": whole("i"), "global-optimization": whole("g")}


@dataclass(frozen=True)
class Row:
    """An executable: `places` has the component of each of its sites."""

    source: str
    structure: str = ""
    kind: str = "matmul"
    places: tuple[str | None, ...] = ("encoder.0",)
    code: str | None = "c"
    code_bytes: int | None = 100
    strategy: str | None = "Tiling | [8, 0]"
    stack_bytes: int | None = 16
    words: str = "8x16_f32"


def made(
    *rows: Row,
    first: int = 0,
    phases: Mapping[str, str] = PHASES,
    artifact: str = "a",
    families: Sequence[Family] = (),
) -> Cell:
    """A cell with a program; its ordinals start at `first`."""
    executables = [f"main_dispatch_{first + number}" for number in range(len(rows))]
    names = [
        f"{e}_{row.kind}_{row.words}" for e, row in zip(executables, rows, strict=True)
    ]
    dispatches = [
        _dispatch(e, n, row) for e, n, row in zip(executables, names, rows, strict=True)
    ]
    sources = [
        Source(e, whole(row.source), whole(row.structure or row.source))
        for e, row in zip(executables, rows, strict=True)
    ]
    sites = [
        Site(n, place)
        for n, row in zip(names, rows, strict=True)
        for place in row.places
    ]
    program = Program(dict(phases), tuple(sources), tuple(sites))
    return Cell(
        KEY.model,
        KEY.target,
        "ok",
        {},
        tuple(dispatches),
        artifact_digest=artifact * 64,
        program=program,
        families=tuple(families),
    )


def _dispatch(executable: str, name: str, row: Row) -> Dispatch:
    measured: dict[str, Any] = {
        "sites": len(row.places),
        "code_bytes": row.code_bytes,
        "stack_bytes": row.stack_bytes,
    }
    return Dispatch(
        executable,
        name,
        row.kind,
        **measured,
        code=row.code and whole(row.code),
        strategy=row.strategy,
    )


def ordinal(dispatch: Dispatch | None) -> str | None:
    """Of its executable, as text; None where a side has none."""
    return (
        None if dispatch is None else dispatch.executable.removeprefix("main_dispatch_")
    )


def without_program(cell: Cell, reason: str = "") -> Cell:
    """The same as measured where the IR could not be read."""
    return replace(cell, program=None, reasons={"program": reason} if reason else {})


letters = st.sampled_from("abc")
rows = st.builds(
    Row,
    source=st.sampled_from(
        [f"{structure}{value}" for structure in "pq" for value in "xyz"]
    ),
    kind=st.sampled_from(["matmul", "conv"]),
    places=st.lists(
        st.none() | st.sampled_from(["e.0", "e.1"]), min_size=1, max_size=3
    ).map(tuple),
    code=st.none() | letters,
    code_bytes=st.none() | st.integers(1, 3),
    strategy=st.none() | letters,
    stack_bytes=st.none() | st.integers(0, 2),
    words=st.sampled_from(["8_f32", "4_i8"]),
).map(lambda row: replace(row, structure=row.source[0]))


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    """A random cell of up to 8 executables, few digests so that many are equal.

    Sometimes without its IR.
    """
    phases = {
        phase: whole(draw(letters)) for phase in PHASES if draw(st.integers(0, 7))
    }
    drawn = draw(st.lists(rows, max_size=8))
    cell = made(
        *drawn, first=draw(st.integers(0, 9)), phases=phases, artifact=draw(letters)
    )
    return cell if draw(st.integers(0, 5)) else without_program(cell)


def match(base: Cell, head: Cell) -> tuple[Match, ...]:
    """The matches of two cells."""
    return match_sides(*index_both(base, head))
