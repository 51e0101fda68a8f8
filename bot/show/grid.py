"""The grid model × target: the state of every cell at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.core.delta import CellDelta
from bot.core.snapshot import CellKey
from bot.show.blocks import Limits, Listing, listing
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT, Facts, cell_address
from bot.show.filters import grid_relative, relative

# In the order of the legend.
_LEGEND: Mapping[str, tuple[str, str]] = {
    "newly-broken": ("💥", "newly broken"),
    "fail": ("❌", "over the limit"),
    "accepted": ("☑️", "over the limit, accepted"),
    "warn": ("⚠️", "to look at"),
    "device": ("ᵈ", "by device code"),
    "executables": ("ᵉ", "by executables or entry points"),
    "stack": ("ˢ", "by stack"),
    "constants": ("ᶜ", "by constants or VM bytecode"),
    "other": ("ᵒ", "by another metric than the artifact"),
    "number": ("±1.2", "change of the artifact in percent"),
    "open": ("↕", "open: sizes overlap, as the compiler does not repeat itself"),
    "bytes": ("≠", "changed, artifact as large as before"),
    "fixed": ("🟢", "compiles now"),
    "new": ("🆕", "new"),
    "removed": ("➖", "removed"),
    "broken": ("🚫", "broken on both sides"),
    "unmeasured": ("·", "not measured"),
    "identical": ("=", "bit-identical"),
    "same": ("≈", "all metrics equal, bytes not compared"),
}
_NAME_LIMIT = 40
_FEW = 120
_SEVERITY = ("newly-broken", "removed", "broken", "changed", "fixed", "new", "unmeasured", "same")


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell.

    Attributes:
        marks: keys of the legend, in order.
        text: symbols and number, nothing else.
        level: `fail`, `warn` or empty.
        state: the cell's state; empty where there is no such cell.
        words: what the marks mean.
        symbols: the text without numbers.
        address: of the cell on the page; empty where there is no such cell.
    """

    marks: tuple[str, ...]
    text: str
    level: str
    state: str
    words: str = ""
    symbols: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class GridRow:
    """One model."""

    model: str
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A table that is not too wide: some of the targets, all of the rows."""

    headers: tuple[str, ...]
    rows: tuple[GridRow, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid.

    Attributes:
        blocks: one, unless the targets are too many for one table.
        models: how many models are drawn, of how many.
        legend: symbol and meaning of the symbols that are used.
        names: short and full name of the targets whose names were shortened.
        settled: nothing to see: all cells drawn are the same on both sides.
        few: True where so few cells are drawn that each can be a link.
    """

    blocks: tuple[Block, ...]
    models: Listing[str]
    legend: tuple[tuple[str, str], ...]
    names: tuple[tuple[str, str], ...]
    settled: bool
    few: bool


def build_grid(facts: Facts, limits: Limits) -> Grid:
    """Draw the grid: targets that were measured nowhere have no column, and the worst models are drawn first."""
    drawn = sorted(facts.measured_targets)
    deltas = [delta for delta in facts.report.deltas if delta.key.target in facts.measured_targets]
    every = sorted({delta.key.model for delta in deltas})
    models = _models(facts, deltas, limits.grid_models)
    rows = [GridRow(clip(m, _NAME_LIMIT), tuple(grid_cell(facts, CellKey(m, t)) for t in drawn)) for m in models]
    marks = {mark for row in rows for cell in row.cells for mark in cell.marks}
    names = tuple((facts.short[t], clip(t, NAME_LIMIT)) for t in drawn if facts.short[t] != clip(t, NAME_LIMIT))
    return Grid(
        blocks=tuple(blocks([facts.short[target] for target in drawn], rows, limits.grid_width)),
        models=listing(models, len(every), "model"),
        legend=tuple(entry for key, entry in _LEGEND.items() if key in marks),
        names=names,
        settled=all(delta.state == "same" for delta in deltas),
        few=len(rows) * len(drawn) <= _FEW,
    )


def _models(facts: Facts, deltas: Sequence[CellDelta], limit: int) -> list[str]:
    """The models to draw, by name; where they are too many, those with something to see come first."""
    worst: dict[str, int] = {}
    for delta in deltas:
        place = _SEVERITY.index(delta.state) + (0 if facts.level(delta.key) else len(_SEVERITY))
        worst[delta.key.model] = min(place, worst.get(delta.key.model, place))
    return sorted(sorted(worst, key=lambda model: (worst[model], model))[:limit])


def grid_cell(facts: Facts, key: CellKey) -> GridCell:
    """What the grid has of one cell."""
    delta = facts.deltas.get(key)
    if delta is None:
        return GridCell((), "", "", "")
    marks = tuple(_marks(facts, delta))
    sizes = delta.metrics["artifact_bytes"].sides
    text = "".join(grid_relative(*sizes) if mark == "number" else _LEGEND[mark][0] for mark in marks)
    words = ", ".join(f"artifact {relative(*sizes)}" if mark == "number" else _LEGEND[mark][1] for mark in marks)
    symbols = "".join(_LEGEND[mark][0] for mark in marks if mark != "number")
    return GridCell(marks, text, facts.level(key), delta.state, words, symbols, cell_address(key))


def _marks(facts: Facts, delta: CellDelta) -> Iterator[str]:
    level = facts.mark(delta.key)
    if level and (delta.state != "newly-broken" or level == "accepted"):
        yield level
        yield from _by(facts, delta)
    if delta.state == "changed":
        artifact = delta.metrics["artifact_bytes"]
        yield "open" if artifact.is_open else "number" if artifact.change and artifact.ratio is not None else "bytes"
    elif delta.state == "same":
        yield "identical" if delta.identical else "same"
    else:
        yield delta.state


def _by(facts: Facts, delta: CellDelta) -> Iterator[str]:
    """Which metric the mark is for, where it is not the artifact."""
    worst = facts.worst(delta.key)
    if worst is not None and worst.metric not in (None, "artifact_bytes"):
        yield worst.quantity.mark


def blocks(headers: Sequence[str], rows: Sequence[GridRow], width: int) -> Iterator[Block]:
    """Cut the columns into tables of at most `width` small characters, with room for borders and padding."""
    first = 6 + max((len(row.model) for row in rows), default=0) * 5 // 4
    start, used = 0, first
    for index, header in enumerate(headers):
        cost = 5 + max(len(header), *(len(row.cells[index].text) for row in rows), 0)
        if index > start and used + cost > width:
            yield _block(headers, rows, start, index)
            start, used = index, first
        used += cost
    if headers:
        yield _block(headers, rows, start, len(headers))


def _block(headers: Sequence[str], rows: Sequence[GridRow], start: int, end: int) -> Block:
    return Block(tuple(headers[start:end]), tuple(GridRow(row.model, row.cells[start:end]) for row in rows))
