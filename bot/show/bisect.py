"""Draw a bisection: each measured candidate, what was found, and why."""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.bisecting import Bisection, Candidate
from bot.show.blocks import Block, Code, List, Sentence, listed, section, strong
from bot.show.escape import clean
from bot.show.filters import amount, change, plural, sides, signed

_REASON_CHARACTERS = 200


def candidate_words(look: Candidate, unit: str) -> str:
    """Return `3.12.0: 83,990 B, bad`."""
    values = " or ".join(amount(value, unit) for value in look.values)
    parts = []
    for part in (values, look.judged, look.reason):
        if part:
            parts.append(clean(part, _REASON_CHARACTERS))
    return f"{clean(look.name)}: {', '.join(parts)}"


def bisect_blocks(result: Bisection, unit: str) -> Iterator[Block]:
    """Yield each measured candidate, the result, its cause, and the commands.

    `unit`: the unit of the metric.
    """
    yield Sentence(
        f"{result.metric} of {clean(result.model)} on {clean(result.target)}; bad means"
        f" {result.rule}"
    )
    yield List(listed(candidate_words(look, unit) for look in result.looks))
    yield from _found(result)
    good = result.candidate(result.last_good).values[0]
    bad = result.candidate(result.first_bad).values[0]
    whole = signed(result.looks[-1].values[0] - result.looks[0].values[0], unit)
    yield Sentence(
        f"{sides(good, bad, unit)}: {change(good, bad, unit)} of {whole}"
        " from GOOD to BAD"
    )
    yield Sentence(f"cause: {_cause(result)}")
    for note in result.notes:
        yield Sentence(f"note: {clean(note)}")
    yield section("Shown by", *(Code(clean(command)) for command in result.commands))


def _found(result: Bisection) -> Iterator[Block]:
    """Yield the first bad candidate, or those that it can be, and the last good one."""
    first_bad = clean(result.first_bad)
    last_good = clean(result.last_good)
    measured = [look for look in result.looks if look.values]
    looks = f"({len(measured)} of {plural(result.candidates, 'candidate')} measured)"
    if not result.could_be:
        yield Sentence((strong(f"first bad: {first_bad} {looks}"),))
        yield Sentence(f"last good: {last_good}, the candidate before it")
        return
    names = ", ".join(map(clean, result.could_be))
    yield Sentence((strong(f"the first bad candidate is one of: {names} {looks}"),))
    unclear = f"{first_bad} is bad, and the others have no clear value"
    yield Sentence(f"{unclear}; the last good candidate is {last_good}")


def _cause(result: Bisection) -> str:
    cause = result.cause or "unknown"
    if result.why:
        return f"{cause}: {clean(result.why)}"
    if result.cause:
        return cause
    return f"unknown; the state of the build is {result.state}"
