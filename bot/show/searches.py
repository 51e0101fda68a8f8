"""A bisection on a terminal: each look, what was found, why, and what shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bot.core.bisecting import Bisection, Candidate
from bot.core.policy import VerdictStatus
from bot.core.thresholds import ReplayStep, RuleCount, SmallestLevel
from bot.show.escape import clean
from bot.show.filters import amount, change, plural, sides, signed

_REASON_CHARACTERS = 200


def candidate_words(look: Candidate, unit: str) -> str:
    """`3.12.0: 83,990 B, bad`."""
    told = [" or ".join(amount(value, unit) for value in look.values), look.judged, look.reason]
    return f"{clean(look.name)}: {', '.join(clean(part, _REASON_CHARACTERS) for part in told if part)}"


def moved_words(one: Candidate, other: Candidate, unit: str) -> str:
    """`−9,376 B from 3.11.0 to 3.13.0`, of the lowest values."""
    return f"{signed(other.values[0] - one.values[0], unit)} from {one.name} to {other.name}"


def bisect_lines(told: Bisection, unit: str) -> Iterator[str]:
    """What was found, as lines without markup; `unit`: of the metric."""
    yield f"{told.metric} of {clean(told.model)} on {clean(told.target)}; bad is {told.rule}"
    yield from (f"  {candidate_words(look, unit)}" for look in told.looks)
    yield ""
    yield from _answer(told)
    good, bad = (told.candidate(name).values for name in (told.last_good, told.first_bad))
    whole = told.looks[-1].values[0] - told.looks[0].values[0]
    yield f"{sides(good[0], bad[0], unit)}: {change(good[0], bad[0], unit)} of {signed(whole, unit)} from GOOD to BAD"
    yield from _why(told)
    yield from (f"note: {clean(note)}" for note in told.notes)
    yield "shown by:"
    yield from (f"  {clean(command)}" for command in told.commands)


def _answer(told: Bisection) -> Iterator[str]:
    between = plural(told.candidates, "candidate")
    if told.could_be:
        names = ", ".join(map(clean, told.could_be))
        yield f"the first bad one is one of: {names} ({len(told.looks)} of {between} looked at)"
        bad, good = clean(told.first_bad), clean(told.last_good)
        yield f"of these {bad} is bad, and the others have no clear value; {good} is the last that is good"
    else:
        yield f"first bad: {clean(told.first_bad)} ({len(told.looks)} of {between} looked at)"
        yield f"the one before, {clean(told.last_good)}, is good"


def _why(told: Bisection) -> Iterator[str]:
    if told.cause or told.why:
        yield f"cause: {told.cause or 'not known'}{f': {clean(told.why)}' if told.why else ''}"
    else:
        yield f"cause: not known; the cell's state is {told.state}"
    yield from (f"  {root.cause or 'unknown'}: {clean(root.what)}: {signed(root.bytes)}" for root in told.root_causes)


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

    `gaps`: sides that could not be had; `most`: the alarms that are wanted, None where nobody said.
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
        for smallest in least:  # as a configuration has it: without thousands separators
            key, size = "absolute" if smallest.kind == "change" else "limit", amount(smallest.least, smallest.unit)
            level = f"{smallest.level}: {{{key}: {size.replace(',', '').replace(' ', '')}}}"
            yield f"  {clean(smallest.rule)}: {level} in place of {plural(smallest.now, 'step')}"
        if not least:
            yield "  no rule alarms more often"


def _step(step: ReplayStep) -> Iterator[str]:
    across = f", across {', '.join(map(clean, step.gaps))}" if step.gaps else ""
    yield f"{clean(step.base)} → {clean(step.head)}{across}: {step.status}"
    for one in step.alarms[:_ALARMS_AT_ONCE]:
        what = f"{one.metric} of {one.key}" if one.metric else str(one.key)
        since = f" (since {step.since[one.key]})" if one.key in step.since else ""
        yield f"  {clean(f'{one.level}: {one.rule} ({one.limit}): {what}: {one.actual}{since}', 240)}"
    if len(step.alarms) > _ALARMS_AT_ONCE:
        yield f"  and {len(step.alarms) - _ALARMS_AT_ONCE} more"
    if step.unmeasured:
        more = len(step.unmeasured) - _ALARMS_AT_ONCE
        told = ", ".join(map(str, step.unmeasured[:_ALARMS_AT_ONCE])) + (f" and {more} more" if more > 0 else "")
        yield f"  not measured: {clean(told)}"
