"""A replay of thresholds on a terminal: totals, each step with its alarms, and what each rule would have said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bot.core.policy import Finding, VerdictStatus
from bot.core.thresholds import ReplayStep, RuleCount, SmallestLevel
from bot.show.escape import clean
from bot.show.filters import amount, plural

_ALARMS_AT_ONCE = 8
_WORDS: Mapping[VerdictStatus, str] = {
    "fail": "would have failed",
    "warn": "warned",
    "pass": "passed",
    "unknown": "had nothing to judge",
}


def replay_lines(
    steps: Sequence[ReplayStep],
    gaps: Sequence[str],
    counts: Sequence[RuleCount],
    least: Sequence[SmallestLevel],
    most: int | None,
) -> Iterator[str]:
    """The whole replay, as lines without markup.

    Args:
        gaps: sides that could not be had.
        most: the alarms that are wanted, None where nobody said.
    """
    totals = Counter(step.status for step in steps)
    told = ", ".join(f"{totals[status]} {words}" for status, words in _WORDS.items() if totals[status])
    yield f"{plural(len(steps), 'step')}: {told}"
    if gaps:
        names = ", ".join(map(clean, gaps))
        yield f"not measured: {names}; what follows is held against what was measured before"
    for step in steps:
        yield from _step(step)
    if counts:
        yield "by rule:"
    for one in counts:
        yield f"  {clean(one.rule)}: {one.level} in {plural(one.steps, 'step')}, {plural(one.cells, 'alarm')}"
    if most is not None:
        yield f"smallest levels that alarm in {plural(most, 'step')} at most:"
        yield from (f"  {_least(one)}" for one in least)
        if not least:
            yield "  no rule alarms more often"


def _step(step: ReplayStep) -> Iterator[str]:
    across = f", across {', '.join(map(clean, step.gaps))}" if step.gaps else ""
    yield f"{clean(step.base)} → {clean(step.head)}{across}: {step.status}"
    yield from (f"  {_alarm(one, step)}" for one in step.alarms[:_ALARMS_AT_ONCE])
    if len(step.alarms) > _ALARMS_AT_ONCE:
        yield f"  and {len(step.alarms) - _ALARMS_AT_ONCE} more"
    if step.unmeasured:
        more = len(step.unmeasured) - _ALARMS_AT_ONCE
        told = ", ".join(map(str, step.unmeasured[:_ALARMS_AT_ONCE])) + (f" and {more} more" if more > 0 else "")
        yield f"  not measured: {clean(told)}"


def _alarm(one: Finding, step: ReplayStep) -> str:
    what = f"{one.metric} of {one.key}" if one.metric else str(one.key)
    since = f" (since {step.since[one.key]})" if one.key in step.since else ""
    return clean(f"{one.level}: {one.rule} ({one.limit}): {what}: {one.actual}{since}", 240)


def _least(one: SmallestLevel) -> str:
    key = "absolute" if one.kind == "change" else "limit"
    return f"{clean(one.rule)}: {one.level}: {{{key}: {_written(one)}}} in place of {plural(one.now, 'step')}"


def _written(one: SmallestLevel) -> str:
    """As a configuration has it: without thousands separators."""
    return amount(one.least, one.unit).replace(",", "").replace(" ", "")
