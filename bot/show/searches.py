"""What looks at one variant after the other, as blocks: a bisection, and a replay of thresholds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bot.core.bisecting import Bisection, Candidate
from bot.core.policy import VerdictStatus
from bot.core.thresholds import ReplayStep, RuleCount, SmallestLevel
from bot.show.blocks import Block, Code, List, Sentence, listed, section, strong
from bot.show.escape import clean
from bot.show.filters import amount, change, plural, sides, signed

_REASON_CHARACTERS, _ALARMS_AT_ONCE = 200, 8
_WORDS: Mapping[VerdictStatus, str] = {
    "fail": "would have failed",
    "warn": "warned",
    "pass": "passed",
    "unknown": "had nothing to judge",
}


def candidate_words(look: Candidate, unit: str) -> str:
    """`3.12.0: 83,990 B, bad`."""
    parts = [" or ".join(amount(value, unit) for value in look.values), look.judged, look.reason]
    return f"{clean(look.name)}: {', '.join(clean(part, _REASON_CHARACTERS) for part in parts if part)}"


def moved_words(one: Candidate, other: Candidate, unit: str) -> str:
    """`−9,376 B from 3.11.0 to 3.13.0`, of the lowest values."""
    return f"{signed(other.values[0] - one.values[0], unit)} from {one.name} to {other.name}"


def bisect_blocks(result: Bisection, unit: str) -> Iterator[Block]:
    """Each look, what was found, why, and what shows it; `unit`: of the metric."""
    yield Sentence(f"{result.metric} of {clean(result.model)} on {clean(result.target)}; bad is {result.rule}")
    yield List(listed(candidate_words(look, unit) for look in result.looks))
    first_bad, last_good = clean(result.first_bad), clean(result.last_good)
    looks = f"({len(result.looks)} of {plural(result.candidates, 'candidate')} looked at)"
    if result.could_be:
        yield Sentence((strong(f"the first bad one is one of: {', '.join(map(clean, result.could_be))} {looks}"),))
        unclear = f"of these {first_bad} is bad, and the others have no clear value"
        yield Sentence(f"{unclear}; {last_good} is the last that is good")
    else:
        yield Sentence((strong(f"first bad: {first_bad} {looks}"),))
        yield Sentence(f"the one before, {last_good}, is good")
    good, bad = (result.candidate(name).values for name in (result.last_good, result.first_bad))
    whole = signed(result.looks[-1].values[0] - result.looks[0].values[0], unit)
    yield Sentence(f"{sides(good[0], bad[0], unit)}: {change(good[0], bad[0], unit)} of {whole} from GOOD to BAD")
    why = f"{result.cause or 'not known'}{f': {clean(result.why)}' if result.why else ''}"
    known = result.cause or result.why
    yield Sentence(f"cause: {why if known else f'not known; the state of the build is {result.state}'}")
    roots = (f"{root.cause or 'unknown'}: {clean(root.what)}: {signed(root.bytes)}" for root in result.root_causes)
    yield List(listed(roots))
    yield from (Sentence(f"note: {clean(note)}") for note in result.notes)
    yield section("Shown by", *(Code(clean(command)) for command in result.commands))


def replay_blocks(
    steps: Sequence[ReplayStep],
    gaps: Sequence[str],
    counts: Sequence[RuleCount],
    least: Sequence[SmallestLevel],
    most: int | None,
) -> Iterator[Block]:
    """The whole replay.

    `gaps`: sides that could not be had; `most`: the alarms that are wanted, None where nobody said.
    """
    totals = Counter(step.status for step in steps)
    words = ", ".join(f"{totals[status]} {words}" for status, words in _WORDS.items() if totals[status])
    yield Sentence((strong(f"{plural(len(steps), 'step')}: {words}"),))
    names = ", ".join(map(clean, gaps))
    yield Sentence(f"not measured: {names}; what follows is held against what was measured before" if gaps else "")
    for step in steps:
        across = f", across {', '.join(map(clean, step.gaps))}" if step.gaps else ""
        yield Sentence(f"{clean(step.base)} → {clean(step.head)}{across}: {step.status}")
        lines = []
        for one in step.alarms[:_ALARMS_AT_ONCE]:
            what = f"{one.metric} of {one.key}" if one.metric else str(one.key)
            since = f" (since {step.since[one.key]})" if one.key in step.since else ""
            lines.append(clean(f"{one.level}: {one.rule} ({one.limit}): {what}: {one.actual}{since}", 240))
        more = len(step.alarms) - _ALARMS_AT_ONCE
        lines += [f"and {more} more"] if more > 0 else []
        more = len(step.unmeasured) - _ALARMS_AT_ONCE
        unmeasured = ", ".join(map(str, step.unmeasured[:_ALARMS_AT_ONCE])) + (f" and {more} more" if more > 0 else "")
        lines += [f"not measured: {clean(unmeasured)}"] if step.unmeasured else []
        yield List(listed(lines))
    rules = (
        f"{clean(one.rule)}: {one.level} in {plural(one.steps, 'step')}, {plural(one.cells, 'alarm')}" for one in counts
    )
    yield section("By rule", List(listed(rules)))
    if most is not None:
        lines = []
        for smallest in least:  # as a configuration has it: without thousands separators
            key, size = "absolute" if smallest.kind == "change" else "limit", amount(smallest.least, smallest.unit)
            level = f"{smallest.level}: {{{key}: {size.replace(',', '').replace(' ', '')}}}"
            lines.append(f"{clean(smallest.rule)}: {level} in place of {plural(smallest.now, 'step')}")
        found = List(listed(lines or ["no rule alarms more often"]))
        yield section(f"Smallest levels that alarm in {plural(most, 'step')} at most", found)
