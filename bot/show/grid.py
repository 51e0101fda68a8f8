"""Draw the grid model × target: the state of every build at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bot.core.delta import CellDelta
from bot.core.snapshot import CellKey
from bot.show.addresses import cell_address
from bot.show.blocks import (
    Block,
    Listing,
    Phrase,
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
    """One build in the grid."""

    marks: tuple[str, ...]  # keys of the legend, in order
    text: str  # symbols and number, nothing else
    level: str  # `fail`, `warn` or empty
    words: str = ""  # what the marks mean
    symbols: str = ""  # the text without numbers
    address: str = ""  # of the build on the page; empty if there is no such build


GridRow = tuple[str, tuple[GridCell, ...]]  # A model, and its cells


class Grid(NamedTuple):
    """Models by targets, a symbol or a number for each build."""

    # headers and rows of one table, or of several if the targets are too many for one
    blocks: tuple[tuple[tuple[str, ...], tuple[GridRow, ...]], ...]
    models: Listing[str]  # how many models are drawn, of how many
    # symbol and meaning of the symbols that are used
    legend: tuple[tuple[str, str], ...]
    # short and full name of the targets whose names were shortened
    names: tuple[tuple[str, str], ...]


def build_grid(facts: Facts, width: int, count: int) -> Grid:
    """Return the grid of the worst `count` models, in tables of at most `width`.

    Targets without a measured build have no column.
    """
    targets = sorted(facts.measured_targets)
    deltas = []
    for delta in facts.report.deltas:
        if delta.key.target in facts.measured_targets:
            deltas.append(delta)
    ranks = _model_ranks(facts, deltas)
    worst_models = sorted(ranks, key=lambda model: (ranks[model], model))
    models = sorted(worst_models[:count])
    rows: list[GridRow] = []
    for model in models:
        cells = tuple(grid_cell(facts, CellKey(model, target)) for target in targets)
        rows.append((clip(model, _NAME_LIMIT), cells))
    headers = [facts.short[target] for target in targets]
    names = []
    for target, short in zip(targets, headers, strict=True):
        full_name = clip(target, NAME_LIMIT)
        if short != full_name:
            names.append((short, full_name))
    return Grid(
        blocks=tuple(cut_columns(headers, rows, width)),
        models=listing(models, len(ranks), "model"),
        legend=tuple(_legend(facts, rows)),
        names=tuple(names),
    )


def _model_ranks(facts: Facts, deltas: Sequence[CellDelta]) -> dict[str, int]:
    """Return model → rank of its worst build: those with a finding come first."""
    ranks: dict[str, int] = {}
    for delta in deltas:
        rank = _SEVERITY.index(delta.state)
        if not facts.level(delta.key):
            rank += len(_SEVERITY)
        model = delta.key.model
        ranks[model] = min(rank, ranks.get(model, rank))
    return ranks


def _legend(facts: Facts, rows: Sequence[GridRow]) -> Iterator[tuple[str, str]]:
    """Yield symbol and meaning of the symbols in the rows."""
    used = set[str]()
    for _, cells in rows:
        for cell in cells:
            used.update(cell.marks)
    for mark, (symbol, _) in _LEGEND.items():
        if mark in used:
            yield symbol, _meaning(facts, mark)


def _meaning(facts: Facts, mark: str) -> str:
    return _LEGEND[mark][1] or facts.state_words[mark]


def grid_cell(facts: Facts, key: CellKey) -> GridCell:
    """Return the marks of one build; empty if the report does not have it."""
    delta = facts.deltas.get(key)
    if delta is None:
        return GridCell((), "", "")
    base, head = delta.metrics["artifact_bytes"].sides
    marks = tuple(_marks(facts, delta))
    text = ""
    symbols = ""
    meanings = []
    for mark in marks:
        if mark == "number":
            text += grid_relative(base, head)
            meanings.append(f"code size {relative(base, head)}")
        else:
            symbol = _LEGEND[mark][0]
            text += symbol
            symbols += symbol
            meanings.append(_meaning(facts, mark))
    return GridCell(
        marks=marks,
        text=text,
        level=facts.level(key),
        words=", ".join(meanings),
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
        yield _size_mark(delta)
    elif delta.state == "same":
        yield "identical" if delta.identical else "same"
    else:
        yield delta.state


def _size_mark(delta: CellDelta) -> str:
    """Return the mark of a changed build: by its size, if that changed."""
    artifact = delta.metrics["artifact_bytes"]
    if artifact.is_open:
        return "open"
    if artifact.change and artifact.ratio is not None:
        return "number"
    return "bytes"


def cut_columns(
    headers: Sequence[str], rows: Sequence[GridRow], width: int
) -> Iterator[tuple[tuple[str, ...], tuple[GridRow, ...]]]:
    """Yield tables of at most `width` small characters, with borders and padding."""
    names_width = 6 + max((len(model) for model, _ in rows), default=0) * 5 // 4
    starts = [0]
    used = names_width
    for index, header in enumerate(headers):
        cost = 5 + max(len(header), *(len(cells[index].text) for _, cells in rows), 0)
        if index > starts[-1] and used + cost > width:
            starts.append(index)
            used = names_width
        used += cost
    if not headers:
        return
    for start, end in zip(starts, [*starts[1:], len(headers)], strict=True):
        table_rows = tuple((model, cells[start:end]) for model, cells in rows)
        yield tuple(headers[start:end]), table_rows


def grid_blocks(facts: Facts, width: int, count: int) -> Iterator[Block]:
    """Yield the tables of the grid, the legend, and how many models have no room."""
    grid = build_grid(facts, width, count)
    for headers, rows in grid.blocks:
        table_rows = []
        for model, cells in rows:
            table_rows.append((name_cell(model), *map(_cell_phrase, cells)))
        yield Table(("model", *headers), listed(table_rows, "model"), small=True)
    legend = " · ".join(f"{symbol} {meaning}" for symbol, meaning in grid.legend)
    name_phrases = []
    for short, full in grid.names:
        name_phrases.append(phrase(code(short), " is ", code(full)))
    names = joined(name_phrases, ", ")
    if names:
        names = phrase(". Short names: ", names)
    yield Sentence(phrase(legend, names), small=True)
    yield more_of(grid.models)


def _cell_phrase(cell: GridCell) -> Phrase:
    """Return the text of a build, which is a link if a rule of it is broken."""
    address = cell.address if cell.level else ""
    return phrase(Span(cell.text, kind_of(cell.level), address))
