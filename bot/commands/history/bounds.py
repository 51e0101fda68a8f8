"""What a bisection calls bad: from the words of the command line and the values of both ends to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from bot.config.configuration import Config
from bot.config.units import parse_amount, parse_ratio
from bot.core.history.bisecting import Bisection, Bound, half_way
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, Metric
from bot.core.selecting import near_or_known
from bot.errors import NoVerdict, UsageError
from bot.render.text.filters import amount


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """What is looked for.

    Attributes:
        good, bad: SPECs; with `stored`, commits.
        limit, change: what is bad, as it was written: a value above it, or more growth since GOOD than it.
        among: what lies between, in order; () where that can be found out.
        stored: True for the stored baselines of the configuration.
    """

    metric: str
    good: str
    bad: str
    limit: str | None = None
    change: str | None = None
    among: tuple[str, ...] = ()
    stored: bool = False


def metric_of(name: str) -> Metric:
    """The metric of that id; raises UsageError."""
    if name not in METRIC_BY_ID:
        raise UsageError(f"no metric is called {name!r}", where="--metric", hint=near_or_known(name, METRIC_IDS))
    return METRIC_BY_ID[name]


def end_values(place: str, name: str, found: tuple[tuple[int, ...], str]) -> tuple[int, ...]:
    """The values of an end (`place`: GOOD or BAD); raises NoVerdict where it has none."""
    values, reason = found
    if not values:
        raise NoVerdict(f"{place} has no value: {reason[:200]}", where=name, hint="name another one")
    return values


def bound_of(
    options: BisectOptions, metric: Metric, ends: tuple[Sequence[int], Sequence[int]], config: Config
) -> tuple[Bound, str]:
    """What is bad, as a bound and in words; raises UsageError where GOOD is not good by it, or BAD not bad.

    `ends`: all values of GOOD, and of BAD.
    """
    good, bad = ends
    limit, words = _limit(options, metric, good, bad)
    bound = Bound(limit, _band(metric, config))
    judged = bound.judged(good), bound.judged(bad)
    said = f"GOOD has {values_text(good, metric)}, BAD {values_text(bad, metric)}"
    if judged == ("bad", "good") or max(bad) < min(good):
        raise UsageError(f"GOOD and BAD are swapped: {said}", hint="lower is better: name the lower one first")
    if list(good) == list(bad) and judged[0] == judged[1]:
        raise UsageError(f"{metric.id} is the same at both ends: {said}", hint="name two between which it moved")
    for place, told, wanted in zip(("GOOD", "BAD"), judged, ("good", "bad"), strict=True):
        if told != wanted:
            raise UsageError(f"{place} is not {wanted}: {said}, and bad is {words}", hint="name another end or limit")
    return bound, words


def _limit(options: BisectOptions, metric: Metric, good: Sequence[int], bad: Sequence[int]) -> tuple[int, str]:
    if options.limit is not None:
        limit = _steps("--limit", options.limit, metric)
        return limit, f"more than {amount(limit, metric.unit)}"
    if options.change is not None:
        grown = max(good) + _growth(options.change, metric, max(good))
        return grown, f"more than {amount(grown, metric.unit)}, GOOD and {options.change}"
    half = half_way(max(good), min(bad))
    return half, f"more than {amount(half, metric.unit)}, half way from GOOD to BAD"


def _steps(option: str, text: str, metric: Metric) -> int:
    try:
        return parse_amount(text).steps(metric.unit)
    except ValueError as error:
        raise UsageError(str(error), where=option, hint=f"{metric.id} is in {metric.unit}") from None


def _growth(text: str, metric: Metric, good: int) -> int:
    if not text.endswith("%"):
        return _steps("--change", text, metric)
    try:
        return int(parse_ratio(text).value * good)
    except ValueError as error:
        raise UsageError(str(error), where="--change") from None


def _band(metric: Metric, config: Config) -> Fraction:
    if metric.exact:
        return Fraction(0)
    if metric.id not in config.noise:
        hint = "give its noise band in the configuration: code-size-bot calibrate measures it"
        raise UsageError(f"{metric.id} varies from run to run", where="--metric", hint=hint)
    return config.noise[metric.id].value


def values_text(values: Sequence[int], metric: Metric) -> str:
    """`50,438 B`, or all of them where the compiler does not repeat itself."""
    return " or ".join(amount(value, metric.unit) for value in values)


def require_one(bisection: Bisection) -> None:
    """Raise NoVerdict, once all is told, where more than one may be the first bad one."""
    if bisection.could_be:
        what = f"{len(bisection.could_be)} candidates may be the first bad one"
        raise NoVerdict(
            what, where=f"{bisection.could_be[0]} to {bisection.could_be[-1]}", hint="the others have no clear value"
        )
