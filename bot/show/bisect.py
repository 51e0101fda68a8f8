"""A bisection as blocks: each look, what was found and why."""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.bisecting import Bisection, Candidate
from bot.show.blocks import Block, Code, List, Sentence, listed, section, strong
from bot.show.escape import clean
from bot.show.filters import amount, change, plural, sides, signed

_REASON_CHARACTERS = 200


def candidate_words(look: Candidate, unit: str) -> str:
    """`3.12.0: 83,990 B, bad`."""
    parts = [
        " or ".join(amount(value, unit) for value in look.values),
        look.judged,
        look.reason,
    ]
    return (
        f"{clean(look.name)}:"
        f" {', '.join(clean(part, _REASON_CHARACTERS) for part in parts if part)}"
    )


def bisect_blocks(result: Bisection, unit: str) -> Iterator[Block]:
    """Each look, what was found, why, and what shows it; `unit`: of the metric."""
    yield Sentence(
        f"{result.metric} of {clean(result.model)} on {clean(result.target)}; bad means"
        f" {result.rule}"
    )
    yield List(listed(candidate_words(look, unit) for look in result.looks))
    first_bad, last_good = clean(result.first_bad), clean(result.last_good)
    looks = (
        f"({len(result.looks)} of {plural(result.candidates, 'candidate')} measured)"
    )
    if result.could_be:
        yield Sentence(
            (
                strong(
                    "the first bad candidate is one of:"
                    f" {', '.join(map(clean, result.could_be))} {looks}"
                ),
            )
        )
        unclear = f"{first_bad} is bad, and the others have no clear value"
        yield Sentence(f"{unclear}; the last good candidate is {last_good}")
    else:
        yield Sentence((strong(f"first bad: {first_bad} {looks}"),))
        yield Sentence(f"last good: {last_good}, the candidate before it")
    good, bad = (
        result.candidate(name).values for name in (result.last_good, result.first_bad)
    )
    whole = signed(result.looks[-1].values[0] - result.looks[0].values[0], unit)
    yield Sentence(
        f"{sides(good[0], bad[0], unit)}: {change(good[0], bad[0], unit)} of {whole}"
        " from GOOD to BAD"
    )
    why = f"{result.cause or 'unknown'}{f': {clean(result.why)}' if result.why else ''}"
    known = result.cause or result.why
    yield Sentence(
        "cause:"
        f" {why if known else f'unknown; the state of the build is {result.state}'}"
    )
    yield from (Sentence(f"note: {clean(note)}") for note in result.notes)
    yield section("Shown by", *(Code(clean(command)) for command in result.commands))
