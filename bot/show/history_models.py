"""Draw a section for each model of a history, in which each build is folded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from bot.core.delta import value_of
from bot.core.history import Move
from bot.core.snapshot import Cell, CellKey
from bot.show.addresses import cell_address, segment
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Row,
    Sentence,
    Span,
    Table,
    code,
    listed,
    phrase,
)
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import UNKNOWN, amount, plural, relative, sides
from bot.show.folded_shares import folded_words
from bot.show.history_facts import HistoryFacts
from bot.show.history_words import (
    ARTIFACT,
    change_words,
    gap_words,
    metric_label,
    reason_words,
    varying_words,
)

_OVER = "over-stack-limit"
_REFUSED = "above the compiler's stack limit, measured with the limit lifted"
_WHY = 400
_COMMAND = 4_000
# A build's table has a row for each of so many releases. With more releases, those in
# which nothing changed have no row.
_ALL_ROWS = 30


def model_sections(facts: HistoryFacts, models: Collection[str]) -> Iterator[Block]:
    """Yield a section for each model, in which each build is folded."""
    if len(models) < len(facts.models):
        scope = (
            f"Of {plural(len(facts.models), 'model')} this page shows the"
            f" {len(models):,} whose artifacts changed most"
        )
        yield Sentence(f"{scope}; history.json and the totals have all models.")
    for model in models:
        cells = tuple(_build_fold(facts, key) for key in facts.models[model])
        yield Fold(
            phrase(code(clip(model, NAME_LIMIT))),
            cells,
            is_open=True,
            address=segment(model),
        )


def shown_places(facts: HistoryFacts, key: CellKey) -> list[int]:
    """Return the places of the releases that have a row in a build's table."""
    cells = facts.rows[key]
    metrics = facts.metrics_of(key)
    if len(cells) <= _ALL_ROWS:
        return [*range(len(cells))]
    last = len(cells) - 1
    places = []
    state_before: tuple[object, ...] = ()
    for place, cell in enumerate(cells):
        values = [value_of(cell, metric) for metric in metrics]
        state = (cell.status, cell.reason, *values)
        if place in (0, last) or state != state_before:
            places.append(place)
        state_before = state
    return places


def _build_fold(facts: HistoryFacts, key: CellKey) -> Fold:
    """Return the fold of a build, with a row for each release.

    Where there are many releases, those in which nothing changed have no row.
    """
    metrics = facts.metrics_of(key)
    cells = facts.rows[key]
    address = cell_address(key)
    points = facts.points(key)
    rows = [_release(facts, metrics, *points[row]) for row in shown_places(facts, key)]
    hidden = len(points) - len(rows)
    quiet = ""
    if hidden:
        verb = "has" if hidden == 1 else "have"
        quiet = f"{plural(hidden, 'release')} in which nothing changed {verb} no row."
    command = ""
    for cell in cells:
        command = cell.command or command
    if len(command) > _COMMAND:
        command = ""
    largest_move = facts.moved_most(key)
    caption = phrase(
        code(clip(key.model, NAME_LIMIT)), " on ", code(clip(key.target, NAME_LIMIT))
    )
    headers = ["release", *map(metric_label, metrics)]
    if facts.folded(key) != UNKNOWN:
        headers.append("regions folded")
    headers.append("why it changed")
    return Fold(
        phrase(
            code(key.target),
            f" {_ends(cells)}",
            Span(f" · changed most in {largest_move}" if largest_move else "", "small"),
        ),
        (
            Sentence((Span("Address of this build", to=address),), small=True),
            Table(
                tuple(headers),
                listed(rows, "release"),
                caption=caption,
                sentences=len(headers) - 1,
            ),
            Sentence(quiet, small=True),
            Code(command),
        ),
        address=address,
    )


def _ends(cells: Sequence[Cell]) -> str:
    """Return `47,704 → 64,920 B (+36.1 %)`, of the first and last measured release."""
    sizes = []
    for cell in cells:
        size = value_of(cell, ARTIFACT)
        if size is not None:
            sizes.append(size)
    if not sizes:
        return "no artifact in any release"
    gaps = sum(not cell.measured for cell in cells)
    text = sides(sizes[0], sizes[-1])
    if sizes[0] != sizes[-1]:
        text += f" ({relative(sizes[0], sizes[-1])})"
    if gaps:
        text += f", {gaps} of {len(cells)} without an artifact"
    return text


def _release(
    facts: HistoryFacts,
    metrics: Sequence[str],
    name: str,
    cell: Cell,
    move: Move | None,
) -> Row:
    """Return the row of a release: values, their changes, and why they changed.

    The row of a gap has only its reason.
    """
    if not cell.measured:
        return (phrase(name), phrase(gap_words(cell)))
    values = []
    for metric in metrics:
        moved = ""
        if move is not None and metric in move.changes:
            moved = change_words(move.changes[metric], cell.value(metric))
        values.append(
            phrase(amount(value_of(cell, metric), "count"), Span(moved, "small"))
        )
    reasons = (
        *facts.why(name, move),
        _REFUSED if cell.status == _OVER else "",
        varying_words(cell),
    )
    if facts.folded(cell.key) != UNKNOWN:
        values.append(phrase(folded_words(cell)))
    return (
        phrase(name),
        *values,
        phrase(clip(reason_words(reasons), _WHY)),
    )
