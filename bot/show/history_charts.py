"""Collect the values that the charts on a history's page draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from bot.core.history import History, Move
from bot.core.history_totals import TRACKED
from bot.core.json_text import canonical
from bot.core.metrics import METRIC_BY_ID
from bot.core.planned import short_names
from bot.core.snapshot import Cell, CellKey
from bot.show.addresses import cell_address, segment
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.history_facts import HistoryFacts
from bot.show.history_models import shown_places
from bot.show.history_words import (
    ARTIFACT,
    gap_words,
    metric_label,
    reason_words,
    shown_name,
    varying_words,
)

_CHART_WHY = 240  # characters of the text that a point shows
_CELL_BYTES = 1_300  # bytes on the page of a build without rows
_ROW_BYTES = 420  # bytes on the page of a row
_CELLS_BYTES = 4_200_000  # the room on the page for all builds


def chart_data(
    facts: HistoryFacts, charted: Mapping[str, Sequence[dict[str, Any]]]
) -> str:
    """Return releases, metrics, and the values of each target for each chart, as JSON.

    Nothing in it can end a script element.
    """
    backends = facts.history.study.targets
    short = short_names(
        facts.targets, {name: backends.get(name, "") for name in facts.targets}
    )
    metrics = []
    for metric in TRACKED:
        unit = METRIC_BY_ID[metric].unit
        metrics.append({"id": metric, "label": metric_label(metric), "unit": unit})
    targets = []
    totals = []
    for target in facts.targets:
        short_name = clean(clip(short[target], NAME_LIMIT), 24)
        targets.append({"name": shown_name(target), "short": short_name})
        if target in facts.totals:
            totals.append(_chart_total(facts, target))
    models = []
    for model, series in charted.items():
        models.append(
            {"name": shown_name(model), "address": segment(model), "series": series}
        )
    data = {
        "releases": [shown_name(name) for name in facts.names],
        "marks": _compiler_marks(facts.history),
        "metrics": metrics,
        "targets": targets,
        "total": totals,
        "models": models,
    }
    return canonical(data).decode().replace("<", "\\u003c").replace("&", "\\u0026")


def _compiler_marks(history: History) -> list[dict[str, Any]]:
    """Return the releases at which another compiler begins, and which one it is."""
    marks = list[dict[str, Any]]()
    before = ""
    for place, release in enumerate(history.study.variants):
        if release.compiler and release.compiler.digest not in ("", before):
            text = release.spec
            if release.compiler.version.startswith(release.name):
                text = ""
            marks.append({"at": place, "text": clean(text, 24)})
            before = release.compiler.digest
    return marks


def _chart_total(facts: HistoryFacts, target: str) -> dict[str, Any]:
    by_name = {total.compiler: total.metrics for total in facts.totals[target]}
    values = {}
    for metric in TRACKED:
        row = [by_name.get(name, {}).get(metric) for name in facts.names]
        if any(value is not None for value in row):
            values[metric] = _runs(row)
    return {"target": facts.targets.index(target), "values": values}


def charted_models(facts: HistoryFacts) -> Mapping[str, Sequence[dict[str, Any]]]:
    """Return the chart lines of each model, in the order of the models.

    Where there is no room for all models, they are those whose artifacts changed most.
    """
    charts = dict[str, list[dict[str, Any]]]()
    room = _CELLS_BYTES
    moved = {model: _total_change(facts, model) for model in facts.models}
    for model in sorted(moved, key=lambda name: -moved[name]):
        lines = [_chart_cell(facts, key) for key in facts.models[model]]
        rows = sum(len(shown_places(facts, key)) for key in facts.models[model])
        room -= len(lines) * _CELL_BYTES
        room -= rows * _ROW_BYTES
        room -= len(canonical({"lines": lines}))
        if room < 0 and charts:
            break
        charts[model] = lines
    return {model: charts[model] for model in moved if model in charts}


def _total_change(facts: HistoryFacts, model: str) -> int:
    """Return by how many bytes the artifacts of a model's builds grew and shrank."""
    total_bytes = 0
    for key in facts.models[model]:
        for _, _, move in facts.moved(key):
            total_bytes += abs(move.changes[ARTIFACT])
    return total_bytes


def _chart_cell(facts: HistoryFacts, key: CellKey) -> dict[str, Any]:
    """Return the values of a build, and the text that each point shows.

    The text is why the build changed, or why there is no value.
    """
    cells = facts.rows[key]
    values = {}
    for metric in facts.metrics_of(key):
        row = [cell.value(metric) if cell.measured else None for cell in cells]
        values[metric] = _runs(row)
    texts = []
    for point in facts.points(key):
        texts.append(clip(_point_text(facts, *point), _CHART_WHY))
    return {
        "target": facts.targets.index(key.target),
        "address": cell_address(key),
        "values": values,
        "told": _runs(texts),
    }


def _point_text(facts: HistoryFacts, name: str, cell: Cell, move: Move | None) -> str:
    if not cell.measured:
        return gap_words(cell)
    return reason_words((*facts.why(name, move), varying_words(cell)))


def _runs(values: Iterable[object]) -> list[object]:
    """Return the number and the value of each run of equal values, in one list.

    It is short, as most numbers stay as they are for many releases.
    """
    runs = list[object]()
    for value, run in groupby(values):
        runs += [len(list(run)), value]
    return runs
