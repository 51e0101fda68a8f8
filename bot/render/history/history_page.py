"""A history as a page: tables that say everything, and charts for those whose browser draws them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from bot.core.history.history_values import TRACKED, History, Point
from bot.core.values.snapshot import CellKey
from bot.render.history.chart_data import chart_data
from bot.render.history.history_facts import (
    GAP,
    OVER,
    REFUSED,
    HistoryFacts,
    address,
    change_text,
    gap_reason,
    label,
    since_words,
    value_text,
    varies,
)
from bot.render.history.history_view import (
    HistoryRoom,
    HistoryView,
    headline,
    history_view,
)
from bot.render.html.scripts import data_element
from bot.render.html.skeleton import skeleton
from bot.render.text.environment import drawn, load
from bot.render.text.escape import clean, clip
from bot.render.text.filters import amount, relative, sides
from bot.render.text.phrase import Phrase, plain

TEMPLATE = "history.html.j2"
SCRIPT, STYLE = "history/history.js", "history/history.css"
_ROOM = HistoryRoom(releases=16, cells=0, reasons=0, steps=1_000, causes=3, metrics=())
_WHY, _COMMAND = 400, 4_000
_ALL_ROWS = 30
"""So many releases have a row each in a cell's table; of more, those in which nothing moved have none."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """One release of one cell.

    Attributes:
        values: each with its change, which may be empty, in the order of the metrics.
        gap: why there is no value; empty where there is one.
        why: what moved it, and what else is to be said.
    """

    release: str
    values: tuple[tuple[str, str], ...]
    gap: str
    why: str


@dataclass(frozen=True, slots=True)
class PageCell:
    """One cell, opened.

    Attributes:
        address: what stands behind `#`.
        said: first and last value of the artifact, with the change.
        most: where the artifact moved most.
        hidden: how many releases without a move have no row.
    """

    address: str
    target: str
    said: str
    most: str
    headers: tuple[str, ...]
    rows: tuple[PageRow, ...]
    hidden: int
    command: str


@dataclass(frozen=True, slots=True)
class PageModel:
    """One model with its cells."""

    name: str
    address: str
    cells: tuple[PageCell, ...]


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """What the template draws."""

    title: str
    headline: Phrase
    view: HistoryView
    models: tuple[PageModel, ...]
    releases: tuple[tuple[str, str, str, str], ...]
    data: Markup


def history_pieces(history: History, templates_dir: Path | None = None) -> Iterator[str]:
    """A self-contained HTML page, piece by piece.

    Args:
        templates_dir: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    frame = skeleton(templates_dir, styles=(STYLE,), scripts=(SCRIPT,), charts=True)
    yield from drawn(load(TEMPLATE, templates_dir), skeleton=frame, page=history_page(history))


def history_page(history: History) -> HistoryPage:
    """The history as values to lay out."""
    facts, view = HistoryFacts(history), history_view(history, _ROOM)
    return HistoryPage(
        title=plain(headline(facts)).partition(":")[0],
        headline=headline(facts),
        view=view,
        models=tuple(_model(facts, model) for model in facts.models),
        releases=tuple(_release(facts, at) for at in range(len(facts.names))),
        data=data_element("page:history", chart_data(facts)),
    )


def _release(facts: HistoryFacts, at: int) -> tuple[str, str, str, str]:
    release = facts.history.releases[at]
    words = (release.name, release.version or GAP, release.revision[:12] or GAP, (release.sha or GAP)[:12])
    return words[0], words[1], words[2], words[3]


def _model(facts: HistoryFacts, model: str) -> PageModel:
    return PageModel(model, address(model), tuple(_cell(facts, key) for key in facts.models[model]))


def _cell(facts: HistoryFacts, key: CellKey) -> PageCell:
    metrics, points = facts.metrics_of(key), facts.rows[key]
    rows = [_row(facts, metrics, points, at) for at in range(len(points))]
    kept = [row for at, row in enumerate(rows) if len(rows) <= _ALL_ROWS or _is_news(points, at)]
    command = next((point.command for point in reversed(points) if point.command), "")
    return PageCell(
        address=address(key.model, key.target),
        target=key.target,
        said=_ends(points),
        most=_most(facts, key),
        headers=tuple(map(label, metrics)),
        rows=tuple(kept),
        hidden=len(rows) - len(kept),
        command=command if len(command) <= _COMMAND else "",
    )


def _most(facts: HistoryFacts, key: CellKey) -> str:
    moves = facts.moves.get(key, {}).get(TRACKED[0])
    return facts.told(TRACKED[0], moves.largest) if moves else ""


def _ends(points: tuple[Point, ...]) -> str:
    """`47,704 → 64,920 B (+36.1 %)`, of the first and the last release that measured it."""
    known = [size for point in points if (size := point.value("artifact_bytes")) is not None]
    if not known:
        return "no artifact in any release"
    gaps = sum(not point.measured for point in points)
    told = f", {gaps} of {len(points)} without an artifact" if gaps else ""
    if known[0] == known[-1]:
        return f"{amount(known[0])}{told}"
    return f"{sides(known[0], known[-1])} ({relative(known[0], known[-1])}){told}"


def _is_news(points: tuple[Point, ...], at: int) -> bool:
    """True for the ends, for what moved, and where a gap begins or ends."""
    if at in (0, len(points) - 1) or points[at].move is not None:
        return True
    return points[at].status != points[at - 1].status or points[at].reason != points[at - 1].reason


def _row(facts: HistoryFacts, metrics: tuple[str, ...], points: tuple[Point, ...], at: int) -> PageRow:
    point = points[at]
    if not point.measured:
        return PageRow(point.compiler, (), gap_reason(point), "")
    values = tuple((value_text(metric, point.value(metric)), _changed(point, metric)) for metric in metrics)
    return PageRow(point.compiler, values, "", _why(facts, point))


def _changed(point: Point, metric: str) -> str:
    if point.move is None or metric not in point.move.changes:
        return ""
    before = (point.metrics.get(metric) or 0) - point.move.changes[metric]
    return change_text(metric, point.move.change(metric), before)


def _why(facts: HistoryFacts, point: Point) -> str:
    told = []
    if point.move:
        since = since_words(facts.names, point.compiler, point.move.since).strip(" ()")
        told = [since, ": ".join(filter(None, (point.move.cause, point.move.why)))]
    if point.status == OVER:
        told.append(REFUSED)
    return clip("; ".join(clean(one) for one in (*told, varies(point)) if one), _WHY)
