"""The rules of the thresholds, and the cells and metrics that they match."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Literal

from bot.core.delta import STATES
from bot.core.findings import Level, Status
from bot.core.metrics import METRIC_IDS, Metric, Unit
from bot.core.planned import covers
from bot.core.record import Small
from bot.core.snapshot import CellKey

Dimension = Literal["own", "bytes", "ms"]
"""`own`: a number without a unit is in the unit of the metric it is compared with."""
DEFAULT_STATES: Mapping[str, Status] = {
    **dict.fromkeys(STATES, "pass"),
    "newly-broken": "fail",
    "removed": "warn",
    "unmeasured": "warn",
}
UNIT_STEPS: dict[tuple[Dimension, Unit], int] = {
    ("bytes", "bytes"): 1,
    ("bytes", "KiB"): 1024,
    ("ms", "ms"): 1,
}
UNIT_SUFFIXES: dict[Unit, str] = {
    "count": "",
    "bytes": " B",
    "ms": " ms",
    "KiB": " KiB",
}


class Amount(Small, frozen=True):
    """A whole number of steps of its dimension, and how the configuration wrote it."""

    value: int
    dimension: Dimension
    text: str

    def steps(self, unit: Unit) -> int:
        """Return the amount in a metric's unit.

        Raises ValueError (one line for the user) if it does not fit.
        """
        if self.dimension == "own":
            return self.value
        scale = UNIT_STEPS.get((self.dimension, unit))
        if scale is None:
            noun = "count" if unit == "count" else f"number of {unit}"
            raise ValueError(f"{self.text!r} is not a {noun}")
        if self.value % scale:
            raise ValueError(f"{self.text!r} is not a whole number of {unit}")
        return self.value // scale


class Ratio(Small, frozen=True):
    """A share of the base (1/2 is 50 %), and how the configuration wrote it."""

    value: Fraction
    text: str


class LevelSpec(Small, frozen=True):
    """One level of a rule; what is None is not asked for."""

    absolute: Amount | None = None
    relative: Ratio | None = None
    limit: Amount | None = None

    @property
    def change_text(self) -> str:
        """Return the allowed change, as the configuration wrote it: `4KiB and 1.5%`."""
        amounts = (self.absolute, self.relative)
        return " and ".join(amount.text for amount in amounts if amount is not None)


class Rule(Small, frozen=True):
    """One rule: which cells and metrics it decides, and its levels."""

    name: str
    # metrics, models, targets: globs; the rule matches if one glob of each matches
    metrics: tuple[str, ...]
    models: tuple[str, ...] = ("*",)
    targets: tuple[str, ...] = ("*",)
    warn: LevelSpec | None = None
    fail: LevelSpec | None = None
    line: int | None = None  # line of the configuration at which it stands

    def levels(self) -> tuple[tuple[Level, LevelSpec], ...]:
        """Return the levels given, worst first."""
        levels: tuple[tuple[Level, LevelSpec | None], ...] = (
            ("fail", self.fail),
            ("warn", self.warn),
        )
        given = []
        for level, spec in levels:
            if spec is not None:
                given.append((level, spec))
        return tuple(given)

    def matches_cell(self, key: CellKey) -> bool:
        """Return whether the rule is about this cell."""
        return any_match(self.models, key.model) and any_match(self.targets, key.target)


def any_match(globs: Collection[str], name: str) -> bool:
    """Return whether one of the globs matches the whole name."""
    return "*" in globs or any(fnmatchcase(name, glob) for glob in globs)


def own_rules(rules: Sequence[Rule], metric: Metric) -> list[Rule]:
    """Return the rules for a declared metric, the one that it names first.

    Rules whose amounts are of other units are left out.
    """
    named = list[Rule]()
    matching = list[Rule]()
    for rule in rules:
        if misfit(rule, metric):
            continue
        if rule.name == metric.rule:
            named.append(rule)
        elif any_match(rule.metrics, metric.id):
            matching.append(rule)
    return named + matching


def misfit(rule: Rule, metric: Metric) -> str:
    """Return why a rule cannot judge the metric: its amount has another unit.

    It is empty if the rule can judge the metric.
    """
    try:
        for _, spec in rule.levels():
            for amount in filter(None, (spec.absolute, spec.limit)):
                amount.steps(metric.unit)
    except ValueError as error:
        return str(error)
    return ""


def metrics_of(rule: Rule, ids: Iterable[str] = METRIC_IDS) -> tuple[str, ...]:
    """Return the metric ids that the rule's globs match; `ids`: all that there are."""
    return tuple(id_ for id_ in ids if any_match(rule.metrics, id_))


def is_catch_all(rule: Rule) -> bool:
    """Return whether the rule matches every metric of every cell, whatever its name."""
    all_globs = (rule.metrics, rule.models, rule.targets)
    return all(_cover(globs, ("*",)) for globs in all_globs)


def hiding(
    above: Iterable[Rule], rule: Rule, ids: Iterable[str] = METRIC_IDS
) -> Rule | None:
    """Return the first rule above that decides all that this rule matches.

    Return None if `covers` proves it of no rule.
    """
    metrics = metrics_of(rule, ids)
    for earlier in above:
        matches_all = all(any_match(earlier.metrics, metric) for metric in metrics)
        if (
            matches_all
            and _cover(earlier.models, rule.models)
            and _cover(earlier.targets, rule.targets)
        ):
            return earlier
    return None


def _cover(wide: Iterable[str], narrow: Iterable[str]) -> bool:
    """Return whether each of the narrow globs is covered by one of the wide ones."""

    def is_covered(glob: str) -> bool:
        return any(covers(cover, glob) for cover in wide)

    return all(map(is_covered, narrow))
