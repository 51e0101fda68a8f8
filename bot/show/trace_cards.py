"""The passes of the dispatches that changed most: a table where their difference changes, and a picture of all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from bot.core.delta import CellDelta
from bot.core.explanation import Explanation, code_change
from bot.core.parting import parting, texts_around
from bot.core.snapshot import CellKey
from bot.core.trace import IrAround, Parting, operation_words
from bot.show.escape import clean, clip
from bot.show.facts import Facts
from bot.show.filters import percent
from bot.show.ir_around import around_texts
from bot.show.table_rows import Addressed

TRACES, TRACE_ROWS = 40, 120
"""The most dispatches of a page whose passes are shown, those whose code changed most, and passes of each."""
_NAME, _PASS, _OPERATIONS, _NAMED = 120, 64, 160, 3
_SMALLER = "printed for the largest dispatch of each cause alone"
_LEVELS = {"mlir": "MLIR", "llvm": "LLVM IR", "machine": "machine code"}

Traced = tuple[CellKey, str]
"""A cell and the name of a dispatch of it."""


@dataclass(frozen=True, slots=True)
class TraceCard:
    """One dispatch through the passes of both compilers.

    Attributes:
        name: of the dispatch.
        parts_at, most_at: the pass after which the sides part, and the one that takes them apart by most if another.
        rows: pass, level, operations on both sides, how far apart they are, and what differs.
        picture: what each pass has, parted by `|`: its name, the operations on both sides, and how it is marked; one
            without a name stands between levels.
        alike, far: how many passes leave the difference as it was, and how many are too far from the one that parts
            the sides.
        around: the IR before and after it on both sides, titles and texts; none where `no_ir` says why.
    """

    name: str
    parts_at: str
    most_at: str
    rows: tuple[Addressed, ...]
    picture: Mapping[str, str]
    alike: int
    far: int
    around: tuple[tuple[str, str], ...]
    no_ir: str


def largest_traced(facts: Facts) -> frozenset[Traced]:
    """Those with a pass, by how much their code changed."""
    sizes = sorted(
        (-abs(code_change(one) or 0), key, one.name)
        for key, told in facts.report.explanations.items()
        for one in told.dispatches
        if one.passed
    )
    return frozenset((key, name) for _, key, name in sizes[:TRACES])


def trace_cards(delta: CellDelta, explanation: Explanation, chosen: Collection[Traced]) -> Iterator[TraceCard]:
    """Of the chosen dispatches of a cell, in the order in which it tells of them."""
    for one in explanation.dispatches:
        if (delta.key, one.name) in chosen and delta.base and delta.head and one.base and one.head:
            traces = delta.base.traces.get(one.base.name), delta.head.traces.get(one.head.name)
            apart = parting(*traces)
            if (place := apart.named(one.cause)) is not None:
                yield _card(clip(one.name, _NAME), apart, texts_around(apart, place, *traces))


def _card(name: str, apart: Parting, around: tuple[IrAround, ...]) -> TraceCard:
    at, most = apart.at or 0, apart.most or 0
    begin = max(0, min(at - TRACE_ROWS // 3, len(apart.rows) - TRACE_ROWS))
    places = range(begin, min(begin + TRACE_ROWS, len(apart.rows)))
    marks = {most: "takes them apart by most", at: "the sides part"}
    rows = tuple(_row(apart, place, marks.get(place, "")) for place in apart.shown if place in places)
    parts_at, most_at = (_name(apart.rows[place].name) for place in (at, most))
    most_at = "" if most == at else most_at
    return TraceCard(
        name,
        parts_at,
        most_at,
        rows,
        _picture(apart, places, marks),
        len(places) - len(rows),
        len(apart.rows) - len(places),
        tuple(around_texts(around)) if any(one.before for one in around) else (),
        clean(around[0].why) if around else _SMALLER,
    )


def _row(apart: Parting, place: int, mark: str) -> Addressed:
    row = apart.rows[place]
    base, head = ("–" if state is None else f"{state.total:,}" for state in (row.base, row.head))
    name = f"{_name(row.name)} ◀ {mark}" if mark else _name(row.name)
    what = clip(clean(operation_words(row.apart, _NAMED)), _OPERATIONS)
    texts = (
        name,
        _LEVELS.get(row.level, ""),
        base,
        head,
        percent(row.share).removeprefix("+") if row.share else "0 %",
        what,
    )
    return Addressed("", texts, css="parts" if mark else "")


def _picture(apart: Parting, places: range, marks: Mapping[int, str]) -> Mapping[str, str]:
    """A side on which a pass changes nothing is as it was after the one before."""
    lines: list[tuple[str, int | None, int | None, str]] = []
    level, base, head = "", None, None
    for place in places:
        row = apart.rows[place]
        if level not in ("", row.level):
            base = head = None
            lines.append(("", None, None, ""))
        level, base, head = row.level, row.base.total if row.base else base, row.head.total if row.head else head
        lines.append((_name(row.name), base, head, marks.get(place, "")))
    columns = zip(*lines, strict=True)
    texts = ("|".join("" if value is None else str(value).replace("|", "/") for value in column) for column in columns)
    return dict(zip(("passes", "base", "head", "marks"), texts, strict=True))


def _name(name: str) -> str:
    return clip(clean(name), _PASS)
