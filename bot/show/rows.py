"""Rows of tables: one metric of one cell, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.core.metrics import Metric
from bot.core.policy import Finding
from bot.core.record import Value
from bot.core.snapshot import CellKey
from bot.show.escape import clip
from bot.show.facts import MARKS, NAME_LIMIT, Facts, cell_address, mark_of, rule_key
from bot.show.filters import superscript

_RULE_LIMIT = 80
_ACTUAL_LIMIT = 160


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of one cell on both sides.

    Attributes:
        target: the short name.
        metric: what the metric is called there; empty where the state of the cell is meant.
        mark: symbol of the finding, with the number of the rule's footnote; empty without one.
        note: that number.
        level: `fail`, `warn` or empty.
        rule, limit: of the finding: the rule's name, and what is too much.
        actual: the finding's own words.
        address: of the cell on the page.
    """

    model: str
    target: str
    metric: str
    unit: str
    base: Value
    head: Value
    mark: str = ""
    note: int = 0
    level: str = ""
    rule: str = ""
    limit: str = ""
    actual: str = ""
    address: str = ""


def metric_row(
    facts: Facts, key: CellKey, metric: Metric, values: tuple[Value, Value], finding: Finding | None
) -> MetricRow:
    """A row; `values` are base and head."""
    names = (clip(key.model, NAME_LIMIT), facts.short[key.target], facts.label(metric, key), metric.unit)
    return MetricRow(*names, *values, **_said(facts, finding), address=cell_address(key))


def _said(facts: Facts, finding: Finding | None) -> dict[str, Any]:
    if finding is None:
        return {}
    number = facts.rules[rule_key(finding)]
    return {
        "mark": MARKS[mark_of(finding)] + superscript(number),
        "note": number,
        "level": "" if finding.weight == "pass" else finding.weight,
        "rule": clip(finding.rule, _RULE_LIMIT),
        "limit": clip(rule_words(finding), _RULE_LIMIT),
        "actual": clip(finding.actual, _ACTUAL_LIMIT),
    }


def rule_words(finding: Finding) -> str:
    """What is too much: `more than 4KiB and more than 5%, both`; other kinds as the configuration has them."""
    if finding.kind != "change":
        return finding.limit
    amounts = [f"more than {amount}" for amount in finding.limit.split(" and ")]
    return f"{' and '.join(amounts)}{', both' if len(amounts) > 1 else ''}"


def finding_row(facts: Facts, finding: Finding) -> MetricRow:
    """A finding as a row; one about the state of a cell has no metric and no values."""
    if finding.metric is not None:
        return metric_row(facts, finding.key, finding.quantity, finding.sides, finding)
    names = (clip(finding.key.model, NAME_LIMIT), facts.short.get(finding.key.target, finding.key.target))
    address = cell_address(finding.key)
    return MetricRow(*names, "", "count", None, None, **_said(facts, finding), address=address)
