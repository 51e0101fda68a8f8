"""Why a cell changed, in the words that all views use: causes, dispatches, passes, components, families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bot.core.explanation import (
    CAUSE_WORDS,
    UNATTRIBUTED,
    ComponentDelta,
    DispatchDelta,
    Explanation,
)
from bot.core.metrics import METRICS
from bot.core.program import Family
from bot.core.program_proof import EXPERIMENT_WORDS
from bot.show.blocks import (
    ABSENT,
    Listing,
    Phrase,
    code,
    joined,
    listing,
    phrase,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import amount, plural, sides, signed

_NAME, _NOTE, _WHY, _DIFF_LINE = 120, 400, 240, 200
_PARTS, _OPERATIONS = 6, 1
NUMBERS = (
    ("sites", "dispatch sites", "count"),
    ("code_bytes", "code", "bytes"),
    *(
        (metric.of_entry, metric.label, metric.unit)
        for metric in METRICS
        if metric.of_entry
    ),
)
"""The numbers of an entry point: field, label and unit."""
_FIRST_COMPILES = (
    "the build is non-deterministic, but sizes and counts are the same each time: "
    "cause and parts come from one compile of each side"
)


class Number(NamedTuple):
    """A number on both sides: in words, whether a side knows it, and whether it differs."""

    text: str
    known: bool
    differs: bool


class DispatchLine(NamedTuple):
    """One dispatch that is not the same on both sides."""

    name: str
    cause: str
    component: str
    note: str
    # what the compiler's pass did to it, where that was traced and the note does not
    # say it
    passed: str
    matched: str
    numbers: Mapping[str, Number]  # with all labels of NUMBERS


def cause_words(cause: str | None) -> str:
    """A cause in words; `cause not known` for None."""
    if cause is None:
        return "cause not known"
    return CAUSE_WORDS.get(cause) or clip(clean(cause), 24).replace("dedup-", "dedup ")


def why_words(explanation: Explanation) -> Phrase:
    """``**strategy** in `encoder`: other tile sizes; the sides first differ in configuration``.

    And of which compiles all this is, where the compiler does not repeat itself.
    """
    component = explanation.component
    place = (
        code(clean(component, NAME_LIMIT))
        if component and component != UNATTRIBUTED
        else None
    )
    why = clip(clean(explanation.why).rstrip(".: "), _WHY)
    cause, reason_text = (
        strong(cause_words(explanation.cause)),
        f": {why}" if why else "",
    )
    where = (
        phrase(" in " if explanation.cause else "; most changed in ", place)
        if place
        else ()
    )
    reason = (
        phrase(cause, where, reason_text)
        if explanation.cause
        else phrase(cause, reason_text, where)
    )
    first = clip(clean(explanation.phase), 40) if explanation.phase else ""
    differ = f"; the sides first differ in {first}" if first else ""
    return phrase(
        reason, differ, f"; {_FIRST_COMPILES}" if explanation.first_compiles else ""
    )


def rest(explanation: Explanation) -> str:
    """The dispatches that there is nothing to tell of, in a sentence.

    Empty where there are none.
    """
    same, moved = explanation.unchanged, explanation.rebased
    parts = [f"{plural(same, 'other dispatch')} did not change"] if same else []
    if moved:
        note = "the same numbers, but the program binds other buffers"
        parts.append(
            f"{plural(moved, 'other dispatch')} {'has' if moved == 1 else 'have'}"
            f" {note}"
        )
    return f"{'; '.join(parts)}." if parts else ""


def waterfall(
    explanation: Explanation,
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Cause, change of the artifact by it, and its parts that are no dispatch's code.

    The largest first, then all.
    """
    for cause, size in sorted(
        explanation.waterfall.items(), key=lambda entry: -abs(entry[1])
    ):
        parts = [
            (clean(part.what), signed(part.change_bytes))
            for part in explanation.parts
            if part.cause == cause
        ]
        yield cause_words(cause), signed(size), parts
    if explanation.waterfall:
        yield "all", signed(sum(explanation.waterfall.values())), []


def by_cause(explanation: Explanation) -> str:
    """The bytes of each cause: `strategy +57,000 B, VM bytecode +12 B`.

    Empty where there are fewer than two causes.

    Bytes that no dispatch's code explains are named by the part of the artifact that
    they are in.
    """
    sizes: dict[str, int] = {}
    for cause, size in explanation.waterfall.items():
        parts = {
            clean(part.what): part.change_bytes
            for part in explanation.parts
            if part.cause == cause
        }
        sizes |= parts if sum(parts.values()) == size else {cause_words(cause): size}
    ordered = sorted(sizes.items(), key=lambda entry: -abs(entry[1]))
    overflow = f" and {len(ordered) - _PARTS} more" if len(ordered) > _PARTS else ""
    return (
        ", ".join(f"{name} {signed(size)}" for name, size in ordered[:_PARTS])
        + overflow
        if len(ordered) > 1
        else ""
    )


def dispatch_line(delta: DispatchDelta) -> DispatchLine:
    """What there is to say of one dispatch; a side without it has `–`: `– → 9,999 B`."""
    numbers = {}
    for field, label, unit in NUMBERS:
        base, head = getattr(delta.base, field, None), getattr(delta.head, field, None)
        if delta.base is None:
            text = f"{ABSENT} → {amount(head, unit)}"
        else:
            text = (
                f"{amount(base, unit)} → {ABSENT}"
                if delta.head is None
                else sides(base, head, unit)
            )
        numbers[label] = Number(
            text, base is not None or head is not None, base != head
        )
    names = (
        clean(delta.name, _NAME),
        cause_words(delta.cause),
        clean(delta.component, _NAME),
    )
    matched = clean(delta.matched, 60).replace("-", " ")
    return DispatchLine(
        *names, clean(delta.note, _NOTE), passed_words(delta), matched, numbers
    )


def passed_words(delta: DispatchDelta) -> str:
    """`after iree-llvmcpu-peel: 57 operations more (scf.for +9 and 12 more)`."""
    if delta.passed is None or delta.passed.name in delta.note:
        return ""
    printed_for = (
        f" (printed for {delta.passed.printed_for})" if delta.passed.printed_for else ""
    )
    text = f"after {delta.passed.name}{printed_for}: {delta.passed.words(_OPERATIONS)}"
    experiment = EXPERIMENT_WORDS.get(delta.passed.experiment, "")
    return clean(f"{text}, {experiment}" if experiment else text, _NOTE)


def diffs(
    dispatches: Sequence[DispatchDelta], limit: int, most_lines: int
) -> Iterator[tuple[str, str, int]]:
    """The smallest differing pieces of dispatches, each text once: name, first lines, and how many more there are."""
    first: dict[tuple[str, ...], str] = {}
    for delta in dispatches if most_lines else ():
        first.setdefault(delta.diff, delta.name)
    for diff, name in [(diff, name) for diff, name in first.items() if diff][:limit]:
        lines = [
            clip(line.replace("\n", " "), _DIFF_LINE) for line in diff[:most_lines]
        ]
        yield clean(name, NAME_LIMIT), "\n".join(lines), max(0, len(diff) - most_lines)


def component_row(delta: ComponentDelta) -> tuple[str, str, str, str]:
    """The cells of a component's row: its name, and both sides of its dispatch sites, code and stack frame."""
    amounts = (
        ("dispatch_sites", "count"),
        ("code_bytes", "bytes"),
        ("stack_bytes", "bytes"),
    )
    sites, size, stack = (
        sides(delta.base.get(label), delta.head.get(label), unit)
        for label, unit in amounts
    )
    return clean(delta.name, _NAME), sites, size, stack


def family_lines(
    families: Sequence[Family], limit: int | None = None, *, roomy: bool = False
) -> Listing[Phrase]:
    """What deduplication left behind, a line each.

    `roomy`: with all that keeps the executables apart.

    ``constants keep 6 executables apart (`a`, `b`, …): `arith.constant i32: 3, 5` ``;
    or that they are identical.
    """
    members, varying, characters = (12, 12, 400) if roomy else (2, 3, 120)
    lines = []
    for family in families[:limit]:
        count, kind = (
            plural(len(family.members), "executable"),
            clean(family.kind, 24).replace("-", " "),
        )
        separation = f"{kind} {'keep' if kind.endswith('s') else 'keeps'} {count} apart"
        names = joined(
            [(code(clean(name, 48)),) for name in family.members[:members]], ", "
        )
        texts = () if family.identical else family.varying[:varying]
        texts_shown = joined([(code(clean(line, characters)),) for line in texts], "; ")
        about = f"{count} have identical functions" if family.identical else separation
        ellipsis = ", …" if len(family.members) > members else ""
        lines.append(
            phrase(
                about,
                " (",
                names,
                ellipsis,
                ")",
                ": " if texts_shown else "",
                texts_shown,
            )
        )
    return listing(lines, len(families), "family")
