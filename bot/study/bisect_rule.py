"""Read the metric and the limit of a bisection: which values are bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.config.units import parse_amount
from bot.core.bisecting import judged
from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.near import near_or_known
from bot.errors import UsageError
from bot.show.filters import amount


def metric_of(name: str, metrics_of_command: Mapping[str, Metric]) -> Metric:
    """Return the metric with an id.

    `metrics_of_command`: the metrics that the configuration declares.

    Raises:
        UsageError: no metric has the id, or the metric varies from run to run.
    """
    metrics = {**METRIC_BY_ID, **metrics_of_command}
    if name not in metrics:
        raise UsageError(
            f"no metric is called {name!r}",
            where="--metric",
            hint=near_or_known(name, tuple(metrics)),
        )
    if not metrics[name].exact:
        problem = f"{name} varies from run to run: it cannot separate good from bad"
        raise UsageError(problem, where="--metric", hint="name another metric")
    return metrics[name]


def limit_of(metric: Metric, text: str | None) -> int | None:
    """Return the limit of the command line, if any, in the metric's unit.

    Raises:
        UsageError: the text is not an amount of that unit.
    """
    if text is None:
        return None
    try:
        return parse_amount(text).steps(metric.unit)
    except ValueError as error:
        raise UsageError(
            str(error), where="--limit", hint=f"{metric.id} is in {metric.unit}"
        ) from None


def rule_of(
    metric: Metric, limit: int | None, good: Sequence[int], bad: Sequence[int]
) -> tuple[int, str]:
    """Return the largest good value, and the words for a bad one.

    `good`, `bad`: all values of the two ends; `limit`: None for half way between them.

    Raises:
        UsageError: by this limit, GOOD is not good, or BAD is not bad.
    """
    position = ""
    if limit is None:
        position = ", halfway from GOOD to BAD"
        limit = (max(good) + min(bad)) // 2
    rule = f"more than {amount(limit, metric.unit)}{position}"
    ends = judged(good, limit), judged(bad, limit)
    figures = f"GOOD has {_amounts(good, metric)}, BAD {_amounts(bad, metric)}"
    if ends == ("bad", "good") or max(bad) < min(good):
        raise UsageError(
            f"GOOD and BAD are swapped: {figures}",
            hint="lower is better: name the side with the lower value first",
        )
    if list(good) == list(bad) and ends[0] == ends[1]:
        raise UsageError(
            f"{metric.id} is the same at both ends: {figures}",
            hint="name two ends with different values",
        )
    for place, result, expected in zip(
        ("GOOD", "BAD"), ends, ("good", "bad"), strict=True
    ):
        if result != expected:
            raise UsageError(
                f"{place} is not {expected}: {figures}, and bad means {rule}",
                hint="name another end or limit",
            )
    return limit, rule


def _amounts(values: Sequence[int], metric: Metric) -> str:
    """Return the values of one end, with their unit."""
    return " or ".join(amount(value, metric.unit) for value in values)
