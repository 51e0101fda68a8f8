"""Put into words why a build changed; all views use these words.

They are about causes, dispatches, passes, components and families.
"""

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
from bot.core.metrics import METRICS, code_words
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

_NAME = 120
_NOTE = 400
_WHY = 240
_DIFF_LINE = 200
_PARTS = 6
_OPERATIONS = 1
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
    """A number on both sides: its text, whether it is known, and whether it differs."""

    text: str
    known: bool
    differs: bool


class DispatchLine(NamedTuple):
    """One dispatch that is not the same on both sides."""

    name: str
    cause: str
    component: str
    note: str
    # the compiler's pass that changed it, if it was traced and the note does not name
    # it
    passed: str
    matched: str
    numbers: Mapping[str, Number]  # with all labels of NUMBERS


def cause_words(cause: str | None) -> str:
    """Return a cause in words; `cause not known` for None."""
    if cause is None:
        return "cause not known"
    return CAUSE_WORDS.get(cause) or clip(clean(cause), 24).replace("dedup-", "dedup ")


def why_words(explanation: Explanation) -> Phrase:
    """Return the cause of a build's change, its place, its reason and its phase.

    An example is ``**strategy** in `encoder`: other tile sizes; the sides first differ
    in configuration``. For a non-deterministic build the text adds which compiles this
    is about.
    """
    component = explanation.component
    place: Phrase = ()
    if component and component != UNATTRIBUTED:
        place = phrase(code(clean(component, NAME_LIMIT)))
    reason = clip(clean(explanation.why).rstrip(".: "), _WHY)
    if reason:
        reason = f": {reason}"
    text = phrase(strong(cause_words(explanation.cause)))
    if explanation.cause:
        if place:
            text = phrase(text, " in ", place)
        text = phrase(text, reason)
    else:
        text = phrase(text, reason)
        if place:
            text = phrase(text, "; most changed in ", place)
    first = clip(clean(explanation.phase or ""), 40)
    if first:
        text = phrase(text, f"; the sides first differ in {first}")
    if explanation.first_compiles:
        text = phrase(text, f"; {_FIRST_COMPILES}")
    return text


def rest(explanation: Explanation) -> str:
    """Return a sentence about the dispatches without a difference of their own.

    It is empty if there are none.
    """
    same = explanation.unchanged
    moved = explanation.rebased
    parts = []
    if same:
        parts.append(f"{plural(same, 'other dispatch')} did not change")
    if moved:
        verb = "has" if moved == 1 else "have"
        note = "the same numbers, but the program binds other buffers"
        parts.append(f"{plural(moved, 'other dispatch')} {verb} {note}")
    if not parts:
        return ""
    return f"{'; '.join(parts)}."


def waterfall(
    explanation: Explanation,
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield each cause, its change of the artifact, and its parts without dispatches.

    The largest change comes first, and the sum last.
    """
    sizes = explanation.waterfall.items()
    for cause, size in sorted(sizes, key=lambda entry: -abs(entry[1])):
        parts = []
        for part in explanation.parts:
            if part.cause == cause:
                parts.append((clean(part.what), signed(part.change_bytes)))
        yield cause_words(cause), signed(size), parts
    if explanation.waterfall:
        yield "all", signed(sum(explanation.waterfall.values())), []


def by_cause(explanation: Explanation) -> str:
    """Return the bytes of each cause: `strategy +57,000 B, VM bytecode +12 B`.

    Bytes that no dispatch's code explains are named by the part of the artifact that
    they are in. Empty if there are fewer than two causes.
    """
    sizes: dict[str, int] = {}
    for cause, size in explanation.waterfall.items():
        parts = {}
        for part in explanation.parts:
            if part.cause == cause:
                parts[clean(part.what)] = part.change_bytes
        if sum(parts.values()) == size:
            sizes |= parts
        else:
            sizes[cause_words(cause)] = size
    if len(sizes) < 2:
        return ""
    ordered = sorted(sizes.items(), key=lambda entry: -abs(entry[1]))
    text = ", ".join(f"{name} {signed(size)}" for name, size in ordered[:_PARTS])
    if len(ordered) > _PARTS:
        text = f"{text} and {len(ordered) - _PARTS} more"
    return text


def dispatch_line(delta: DispatchDelta) -> DispatchLine:
    """Return the texts of one dispatch; a side without it has `–`: `– → 9,999 B`."""
    numbers = {}
    for field, label, unit in NUMBERS:
        base = getattr(delta.base, field, None)
        head = getattr(delta.head, field, None)
        if delta.base is None:
            text = f"{ABSENT} → {amount(head, unit)}"
        elif delta.head is None:
            text = f"{amount(base, unit)} → {ABSENT}"
        else:
            text = sides(base, head, unit)
        is_known = base is not None or head is not None
        numbers[label] = Number(text, is_known, base != head)
    return DispatchLine(
        name=clean(delta.name, _NAME),
        cause=cause_words(delta.cause),
        component=clean(delta.component, _NAME),
        note=clean(delta.note, _NOTE),
        passed=passed_words(delta),
        matched=clean(delta.matched, 60).replace("-", " "),
        numbers=numbers,
    )


def passed_words(delta: DispatchDelta) -> str:
    """Return the change that the named pass made.

    An example is `after iree-llvmcpu-peel: 57 operations more (scf.for +9 and 12
    more)`.
    """
    if delta.passed is None or delta.passed.name in delta.note:
        return ""
    printed_for = ""
    if delta.passed.printed_for:
        printed_for = f" (printed for {delta.passed.printed_for})"
    text = f"after {delta.passed.name}{printed_for}: {delta.passed.words(_OPERATIONS)}"
    experiment = EXPERIMENT_WORDS.get(delta.passed.experiment, "")
    if experiment:
        text = f"{text}, {experiment}"
    return clean(text, _NOTE)


def diffs(
    dispatches: Sequence[DispatchDelta], limit: int, most_lines: int
) -> Iterator[tuple[str, str, int]]:
    """Yield the smallest differing piece of each dispatch, each text once.

    A piece has the dispatch's name, its first lines, and the number of further lines.
    """
    if not most_lines:
        return
    first: dict[tuple[str, ...], str] = {}
    for delta in dispatches:
        if delta.diff:
            first.setdefault(delta.diff, delta.name)
    for diff, name in [*first.items()][:limit]:
        lines = []
        for line in diff[:most_lines]:
            lines.append(clip(line.replace("\n", " "), _DIFF_LINE))
        yield clean(name, NAME_LIMIT), "\n".join(lines), max(0, len(diff) - most_lines)


def component_row(delta: ComponentDelta) -> tuple[str, str, str, str]:
    """Return a component's row: its name, dispatch sites, code and stack frame.

    Each number has both sides.
    """

    def both_sides(label: str, unit: str) -> str:
        return sides(delta.base.get(label), delta.head.get(label), unit)

    return (
        clean(delta.name, _NAME),
        both_sides("dispatch_sites", "count"),
        both_sides("code_bytes", "bytes"),
        both_sides("stack_bytes", "bytes"),
    )


def component_headers(code_label: str) -> tuple[str, ...]:
    """Return the headers of a table whose rows are `component_row`'s."""
    return (
        "component",
        "dispatch sites",
        f"{code_label}, base → head",
        "stack frame, base → head",
    )


def number_label(label: str, backend: str) -> str:
    """Return the label of a number; that of the code depends on the backend."""
    if label == "code":
        return code_words(label, backend)
    return label


def family_lines(
    families: Sequence[Family], limit: int | None = None, *, roomy: bool = False
) -> Listing[Phrase]:
    """Return the families that deduplication left behind, one line each.

    A line is like ``constants keep 6 executables apart (`a`, `b`, …): `arith.constant
    i32: 3, 5` ``. Or it says that the executables are identical. `roomy`: with all that
    keeps the executables apart.
    """
    members = 2
    varying = 3
    characters = 120
    if roomy:
        members = 12
        varying = 12
        characters = 400
    lines = []
    for family in families[:limit]:
        count = plural(len(family.members), "executable")
        kind = clean(family.kind, 24).replace("-", " ")
        names = joined(
            [(code(clean(name, 48)),) for name in family.members[:members]], ", "
        )
        if len(family.members) > members:
            names = phrase(names, ", …")
        if family.identical:
            about = f"{count} have identical functions"
            differences: Phrase = ()
        else:
            verb = "keep" if kind.endswith("s") else "keeps"
            about = f"{kind} {verb} {count} apart"
            texts = family.varying[:varying]
            differences = joined(
                [(code(clean(text, characters)),) for text in texts], "; "
            )
        line = phrase(about, " (", names, ")")
        if differences:
            line = phrase(line, ": ", differences)
        lines.append(line)
    return listing(lines, len(families), "family")
