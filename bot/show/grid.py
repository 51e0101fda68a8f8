"""The grid model × target: the state of every cell at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bot.core.delta import CellDelta
from bot.core.snapshot import CellKey
from bot.show.addresses import cell_address
from bot.show.blocks import (
    Block,
    Limits,
    Listing,
    Sentence,
    Span,
    Table,
    code,
    joined,
    kind_of,
    listed,
    listing,
    more_of,
    name_cell,
    phrase,
)
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import grid_relative, relative

# Symbol and meaning, in the order of the legend; a state has its own words.
_LEGEND: Mapping[str, tuple[str, str]] = {
    "newly-broken": ("💥", ""),
    "fail": ("❌", "fails the check"),
    "accepted": ("☑️", "accepted"),
    "warn": ("⚠️", "warning"),
    "other": ("ᵒ", "by another metric than code size"),
    "number": ("±1.2", "change of the code size in percent"),
    "open": ("↕", "non-deterministic: the sizes of both sides overlap"),
    "bytes": ("≠", "changed, with the same artifact size"),
    "fixed": ("🟢", ""),
    "new": ("🆕", ""),
    "removed": ("➖", ""),
    "broken": ("🚫", ""),
    "unmeasured": ("·", ""),
    "identical": ("=", "bit-identical"),
    "same": ("≈", "all metrics equal, bytes not compared"),
}
_NAME_LIMIT = 40
_SEVERITY = (
    "newly-broken",
    "removed",
    "broken",
    "changed",
    "fixed",
    "new",
    "unmeasured",
    "same",
)


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell."""

    marks: tuple[str, ...]  # keys of the legend, in order
    text: str  # symbols and number, nothing else
    level: str  # `fail`, `warn` or empty
    words: str = ""  # what the marks mean
    symbols: str = ""  # the text without numbers
    address: str = ""  # of the cell on the page; empty where there is no such cell


GridRow = tuple[str, tuple[GridCell, ...]]  # A model, and its cells


class Grid(NamedTuple):
    """Models by targets, a symbol or a number for each build."""

    # headers and rows of one table, or of several where the targets are too many for
    # one
    blocks: tuple[tuple[tuple[str, ...], tuple[GridRow, ...]], ...]
    models: Listing[str]  # how many models are drawn, of how many
    legend: tuple[
        tuple[str, str], ...
    ]  # symbol and meaning of the symbols that are used
    names: tuple[
        tuple[str, str], ...
    ]  # short and full name of the targets whose names were shortened
    settled: bool  # nothing to see: all cells drawn are the same on both sides


def build_grid(facts: Facts, limits: Limits) -> Grid:
    """Draw the grid: targets that were measured nowhere have no column, and the worst models are drawn first."""
    drawn = sorted(facts.measured_targets)
    deltas = [
        delta
        for delta in facts.report.deltas
        if delta.key.target in facts.measured_targets
    ]
    worst: dict[str, int] = {}
    for delta in deltas:
        place = _SEVERITY.index(delta.state) + (
            0 if facts.level(delta.key) else len(_SEVERITY)
        )
        worst[delta.key.model] = min(place, worst.get(delta.key.model, place))
    models = sorted(
        sorted(worst, key=lambda model: (worst[model], model))[: limits.grid_models]
    )
    rows = [
        (clip(m, _NAME_LIMIT), tuple(grid_cell(facts, CellKey(m, t)) for t in drawn))
        for m in models
    ]
    marks = {mark for _, cells in rows for cell in cells for mark in cell.marks}
    names = tuple(
        (facts.short[t], clip(t, NAME_LIMIT))
        for t in drawn
        if facts.short[t] != clip(t, NAME_LIMIT)
    )
    return Grid(
        blocks=tuple(
            cut_columns(
                [facts.short[target] for target in drawn], rows, limits.grid_width
            )
        ),
        models=listing(models, len(worst), "model"),
        legend=tuple(
            (symbol, _meaning(facts, mark))
            for mark, (symbol, _) in _LEGEND.items()
            if mark in marks
        ),
        names=names,
        settled=all(delta.state == "same" for delta in deltas),
    )


def _meaning(facts: Facts, mark: str) -> str:
    return _LEGEND[mark][1] or facts.state_words[mark]


def grid_cell(facts: Facts, key: CellKey) -> GridCell:
    """What the grid has of one cell."""
    delta = facts.deltas.get(key)
    if delta is None:
        return GridCell((), "", "")
    marks = tuple(_marks(facts, delta))
    sizes = delta.metrics["artifact_bytes"].sides
    text = "".join(
        grid_relative(*sizes) if mark == "number" else _LEGEND[mark][0]
        for mark in marks
    )
    words = (
        f"code size {relative(*sizes)}" if mark == "number" else _meaning(facts, mark)
        for mark in marks
    )
    symbols = "".join(_LEGEND[mark][0] for mark in marks if mark != "number")
    return GridCell(
        marks=marks,
        text=text,
        level=facts.level(key),
        words=", ".join(words),
        symbols=symbols,
        address=cell_address(key),
    )


def _marks(facts: Facts, delta: CellDelta) -> Iterator[str]:
    level = facts.mark(delta.key)
    if level and (delta.state != "newly-broken" or level == "accepted"):
        yield level
        worst = facts.worst(delta.key)
        if worst is not None and worst.metric not in (None, "artifact_bytes"):
            yield "other"
    if delta.state == "changed":
        artifact = delta.metrics["artifact_bytes"]
        yield (
            "open"
            if artifact.is_open
            else "number"
            if artifact.change and artifact.ratio is not None
            else "bytes"
        )
    elif delta.state == "same":
        yield "identical" if delta.identical else "same"
    else:
        yield delta.state


def cut_columns(
    headers: Sequence[str], rows: Sequence[GridRow], width: int
) -> Iterator[tuple[tuple[str, ...], tuple[GridRow, ...]]]:
    """Cut the columns into tables of at most `width` small characters, with room for borders and padding."""
    first = 6 + max((len(model) for model, _ in rows), default=0) * 5 // 4
    starts, used = [0], first
    for index, header in enumerate(headers):
        cost = 5 + max(len(header), *(len(cells[index].text) for _, cells in rows), 0)
        if index > starts[-1] and used + cost > width:
            starts.append(index)
            used = first
        used += cost
    for start, end in zip(starts, [*starts[1:], len(headers)], strict=True):
        if headers:
            yield (
                tuple(headers[start:end]),
                tuple((model, cells[start:end]) for model, cells in rows),
            )


def grid_tables(grid: Grid) -> Iterator[Block]:
    """The blocks of the grid: its tables, the legend, and how many models have no room."""
    for headers, rows in grid.blocks:
        cells = [
            (
                name_cell(model),
                *(
                    phrase(
                        Span(
                            one.text,
                            kind_of(one.level),
                            one.address if one.level else "",
                        )
                    )
                    for one in row
                ),
            )
            for model, row in rows
        ]
        yield Table(("model", *headers), listed(cells, "model"), small=True)
    legend = " · ".join(f"{symbol} {meaning}" for symbol, meaning in grid.legend)
    names = joined(
        [phrase(code(short), " is ", code(full)) for short, full in grid.names], ", "
    )
    yield Sentence(
        phrase(legend, *(phrase(". Short names: ", names) if names else ())), small=True
    )
    yield more_of(grid.models)
