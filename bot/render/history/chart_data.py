"""What the charts of a page are drawn from, as JSON that a script element can hold."""

from __future__ import annotations

from typing import Any

from bot.core.codec.json_text import canonical
from bot.core.history.history_values import TRACKED, HistoryTotal, Point, Release
from bot.core.metrics import METRIC_BY_ID
from bot.render.history.history_facts import HistoryFacts, address, gap_reason, label, since_words, varies
from bot.render.text.escape import clean, clip
from bot.render.view.facts import NAME_LIMIT

_WHY = 240
ALL = "all targets"


def chart_data(facts: HistoryFacts) -> str:
    """Releases, metrics, and for each chart the values of each target; nothing in it can end the element."""
    plain = {
        "releases": [clean(name, NAME_LIMIT) for name in facts.names],
        "marks": _marks(facts.history.releases),
        "metrics": [{"id": id_, "label": label(id_), "unit": METRIC_BY_ID[id_].unit} for id_ in TRACKED],
        "targets": [{"name": clean(name, NAME_LIMIT), "short": clean(facts.short[name], 24)} for name in facts.targets],
        "total": [_total(facts, target) for target in facts.targets if target in facts.totals],
        "models": [_model(facts, model) for model in facts.models],
    }
    return canonical(plain).decode().replace("<", "\\u003c").replace("&", "\\u0026")


def _marks(releases: tuple[Release, ...]) -> list[dict[str, Any]]:
    """Where another compiler begins, and what it is where the name does not say that."""
    marks, before = [], ""
    for release in releases:
        if release.digest and release.digest != before:
            text = "" if release.version.startswith(release.name) else release.spec
            marks.append({"at": release.order, "text": clean(text, 24)})
            before = release.digest
    return marks


def _total(facts: HistoryFacts, target: str) -> dict[str, Any]:
    by_name = {total.compiler: total for total in facts.totals[target]}
    rows = [by_name.get(name) for name in facts.names]
    cells = next(iter(by_name.values())).cells if by_name else {}
    values = {id_: [_of(row, id_) for row in rows] for id_ in TRACKED if cells.get(id_)}
    return {"target": facts.targets.index(target), "values": values, "cells": {id_: cells[id_] for id_ in values}}


def _of(total: HistoryTotal | None, metric: str) -> int | None:
    return total.metrics.get(metric) if total else None


def _model(facts: HistoryFacts, model: str) -> dict[str, Any]:
    rows = [(key, facts.rows[key]) for key in facts.models[model]]
    series = [
        {
            "target": facts.targets.index(key.target),
            "address": address(key.model, key.target),
            "values": {id_: [point.metrics.get(id_) for point in points] for id_ in facts.metrics_of(key)},
            "told": [_told(facts, point) for point in points],
        }
        for key, points in rows
    ]
    return {"name": clean(model, NAME_LIMIT), "address": address(model), "series": series}


def _told(facts: HistoryFacts, point: Point) -> str:
    """What is said of a point when it is pointed at: why it moved, or why there is none."""
    if not point.measured:
        return clip(gap_reason(point), _WHY)
    if point.move is None:
        return clip(varies(point), _WHY)
    since = since_words(facts.names, point.compiler, point.move.since).strip(" ()")
    why = ": ".join(filter(None, (point.move.cause, point.move.why)))
    return clip("; ".join(clean(one) for one in (since, why, varies(point)) if one), _WHY)
