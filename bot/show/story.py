"""The story of one cell as values: what changed in it, where and why, in the words that every place says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from bot.core.explanation import UNATTRIBUTED, ComponentDelta, DispatchDelta, Explanation
from bot.core.metrics import METRICS, code_words
from bot.core.program import Family
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import amount, plural, sides, signed
from bot.show.phrase import Phrase, code, joined, phrase, strong
from bot.show.selection import Listing, listing
from bot.show.text_tables import ABSENT

SHORT_NOTE = 160
"""The most characters of a note beside other words."""
_NAME, _SHORT_NAME, _NOTE, _WHY, _DIFF_LINE = 120, 42, 400, 240, 200
_EVERY = 1_000_000
_PARTS = 6
_OPERATIONS = 3
NUMBERS = (
    ("sites", "dispatch sites", "count"),
    ("code_bytes", "code", "bytes"),
    *((metric.of_entry, metric.label, metric.unit) for metric in METRICS if metric.of_entry),
)
"""The numbers of an entry point: field, label and unit."""


@dataclass(frozen=True, slots=True)
class Room:
    """The most of everything that a place shows of one story.

    Attributes:
        rows: dispatches and families.
        notes: what differs, told apart from the dispatches.
        members, varying, varying_chars: names of a family, and what keeps them apart.
    """

    rows: int = _EVERY
    components: int = _EVERY
    notes: int = 0
    diffs: int = 0
    diff_lines: int = 0
    members: int = 2
    varying: int = 3
    varying_chars: int = 120


@dataclass(frozen=True, slots=True)
class Number:
    """A number on both sides: in words, whether a side knows it, and whether it differs."""

    text: str
    known: bool
    differs: bool


@dataclass(frozen=True, slots=True)
class DispatchLine:
    """One dispatch that is not the same on both sides.

    Attributes:
        passed: what the compiler's pass did to it, where that was traced and the note does not say it.
        numbers: with all labels of NUMBERS.
    """

    name: str
    cause: str
    component: str
    note: str
    passed: str
    matched: str
    numbers: Mapping[str, Number]


@dataclass(frozen=True, slots=True)
class ComponentLine:
    """One component of the model: both sides of its dispatch sites, code and stack frame, in words."""

    name: str
    sites: str
    code: str
    stack: str


@dataclass(frozen=True, slots=True)
class Fall:
    """The change of the artifact by one cause, and its parts that are no dispatch's code: what, and change."""

    cause: str
    change: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """The first lines of a unified diff: the smallest differing piece of one dispatch."""

    name: str
    text: str
    more_lines: int


@dataclass(frozen=True, slots=True)
class Story:
    """Why one cell changed, as far as there is room for it.

    Attributes:
        cause: in one or two words.
        code: what the code of a dispatch is called on the cell's target.
        said: cause, place, phase and why as a sentence without its full stop.
        rest: how many entry points did not change, in words; may be empty.
        falls: the change of the artifact by cause, the largest first, and their sum.
        by_cause: the same in words, where there are two.
        mixed: True where some dispatch has another cause than the cell.
        notes: what differs, with the dispatches that it is true of.
        components: those that moved.
        families: what deduplication left behind.
    """

    cause: str
    code: str
    said: Phrase
    rest: str
    falls: Listing[Fall]
    by_cause: str
    dispatches: Listing[DispatchLine]
    mixed: bool
    notes: Listing[Phrase]
    diffs: tuple[Diff, ...]
    components: Listing[ComponentLine]
    families: Listing[Phrase]


def story(explanation: Explanation, families: Sequence[Family], room: Room, backend: str) -> Story:
    """Everything there is to say of one explained cell; `backend`: of its target, empty where that is not known."""
    dispatches, moved = explanation.dispatches, explanation.components
    return Story(
        cause_words(explanation.cause),
        code_words("code", backend),
        said(explanation),
        rest(explanation),
        listing(_falls(explanation), len(explanation.waterfall), "cause"),
        by_cause(explanation),
        listing(map(dispatch_line, dispatches[: room.rows]), len(dispatches), "dispatch"),
        any(delta.cause != explanation.cause for delta in dispatches),
        _notes(explanation, room.notes),
        tuple(islice(_diffs(dispatches, room.diff_lines), room.diffs)),
        listing(map(component_line, moved[: room.components]), len(moved), "moved component"),
        family_lines(families, room),
    )


def cause_words(cause: str | None) -> str:
    """A cause in words; `cause not known` for None."""
    return (
        "cause not known" if cause is None else _CAUSES.get(cause) or clip(clean(cause), 24).replace("dedup-", "dedup ")
    )


_CAUSES = {"container": "rest of the executables", "host": "host program", "packaging": "tables of the artifact"}
"""What is no code of a dispatch, by what it is."""


def reason(explanation: Explanation) -> Phrase:
    """``**strategy** in `encoder`: other tile sizes``."""
    component = explanation.component
    place = code(clean(component, NAME_LIMIT)) if component and component != UNATTRIBUTED else None
    why = clip(clean(explanation.why).rstrip(".: "), _WHY)
    cause, told = strong(cause_words(explanation.cause)), f": {why}" if why else ""
    if explanation.cause is None:
        return phrase(cause, told, *("; most moved in ", place) if place else ())
    return phrase(cause, *(" in ", place) if place else (), told)


def said(explanation: Explanation) -> Phrase:
    """The same, and the first phase: ``**strategy** in `encoder`: …; the sides first differ in configuration``.

    And of which compiles all this is, where the compiler does not repeat itself.
    """
    first = clip(clean(explanation.phase), 40) if explanation.phase else ""
    differ = f"; the sides first differ in {first}" if first else ""
    return phrase(reason(explanation), differ, f"; {_FIRST_COMPILES}" if explanation.first_compiles else "")


_FIRST_COMPILES = (
    "the compiler does not repeat itself here, with the same sizes and counts each time: "
    "cause and parts are those of one compile of each side"
)


def rest(explanation: Explanation) -> str:
    """The dispatches that there is nothing to tell of, in a sentence; empty where there are none."""
    same, moved = explanation.unchanged, explanation.rebased
    told = [f"{plural(same, 'other dispatch')} did not change"] if same else []
    if moved:
        have = "has" if moved == 1 else "have"
        what = "the same numbers, and what the program binds there differs"
        told.append(f"{plural(moved, 'other dispatch')} {have} {what}")
    doubt = ", as far as short digests tell" if told and explanation.short_digests else ""
    return f"{'; '.join(told)}{doubt}." if told else ""


def _falls(explanation: Explanation) -> Iterator[Fall]:
    for cause, size in sorted(explanation.waterfall.items(), key=lambda found: -abs(found[1])):
        parts = ((clean(p.what), signed(p.change_bytes)) for p in explanation.parts if p.cause == cause)
        yield Fall(cause_words(cause), signed(size), tuple(parts))
    if explanation.waterfall:
        yield Fall("all", signed(sum(explanation.waterfall.values())), ())


def by_cause(explanation: Explanation) -> str:
    """The same in words: `strategy +57,000 B, VM bytecode +12 B`; empty where there are fewer than two causes.

    Bytes that no dispatch's code explains are named by the part of the artifact that they are in.
    """
    told: dict[str, int] = {}
    for cause, size in explanation.waterfall.items():
        parts = {clean(part.what): part.change_bytes for part in explanation.parts if part.cause == cause}
        told |= parts if sum(parts.values()) == size else {cause_words(cause): size}
    ordered = sorted(told.items(), key=lambda found: -abs(found[1]))
    more = f" and {len(ordered) - _PARTS} more" if len(ordered) > _PARTS else ""
    return ", ".join(f"{name} {signed(size)}" for name, size in ordered[:_PARTS]) + more if len(ordered) > 1 else ""


def dispatch_line(delta: DispatchDelta) -> DispatchLine:
    """What there is to say of one dispatch."""
    names = (clean(delta.name, _NAME), cause_words(delta.cause), clean(delta.component, _NAME))
    numbers = {label: _number(delta, field, unit) for field, label, unit in NUMBERS}
    return DispatchLine(
        *names, clean(delta.note, _NOTE), _passed(delta), clean(delta.matched, 60).replace("-", " "), numbers
    )


def _passed(delta: DispatchDelta) -> str:
    """`after iree-llvmcpu-peel: 57 operations more (scf.for +9 and 12 more)`."""
    if delta.passed is None or delta.passed.name in delta.note:
        return ""
    return clean(f"after {delta.passed.name}: {delta.passed.words(_OPERATIONS)}", _NOTE)


def _number(delta: DispatchDelta, field: str, unit: str) -> Number:
    """`1,200 → 9,999 B`; `– → 9,999 B` where base has no such dispatch."""
    left, right = getattr(delta.base, field, None), getattr(delta.head, field, None)
    if delta.base is None:
        text = f"{ABSENT} → {amount(right, unit)}"
    else:
        text = f"{amount(left, unit)} → {ABSENT}" if delta.head is None else sides(left, right, unit)
    return Number(text, left is not None or right is not None, left != right)


def _notes(explanation: Explanation, most: int) -> Listing[Phrase]:
    """What differs, each note once with the dispatches that it is true of; not what the cell's `why` said already."""
    groups: dict[str, list[DispatchDelta]] = {}
    for delta in explanation.dispatches if most else ():
        if (note := clean(delta.note, SHORT_NOTE)) and note != clean(explanation.why, SHORT_NOTE):
            groups.setdefault(note, []).append(delta)
    told = []
    for note, (first, *others) in islice(groups.items(), most):
        more = f" and {plural(len(others), 'other dispatch')}" if others else ""
        passed = _passed(first)
        alone = "the first " if passed and others else ""
        name = code(clean(first.name, _SHORT_NAME))
        told.append(phrase(name, more, f": {note}", f"; {alone}{passed}" if passed else ""))
    return listing(told, len(groups), "note")


def _diffs(dispatches: Sequence[DispatchDelta], most_lines: int) -> Iterator[Diff]:
    """The diffs that there are, each text once; none where there is room for no line."""
    first: dict[tuple[str, ...], str] = {}
    for delta in dispatches if most_lines else ():
        first.setdefault(delta.diff, delta.name)
    for diff, name in first.items():
        if diff:
            lines = [clip(line.replace("\n", " "), _DIFF_LINE) for line in diff[:most_lines]]
            yield Diff(clean(name, NAME_LIMIT), "\n".join(lines), max(0, len(diff) - most_lines))


def component_line(delta: ComponentDelta) -> ComponentLine:
    """What there is to say of one component."""
    amounts = (("dispatch_sites", "count"), ("code_bytes", "bytes"), ("stack_bytes", "bytes"))
    return ComponentLine(
        clean(delta.name, _NAME), *(sides(delta.base.get(what), delta.head.get(what), unit) for what, unit in amounts)
    )


def family_lines(families: Sequence[Family], room: Room) -> Listing[Phrase]:
    """What deduplication left behind."""
    return listing((family_line(family, room) for family in families[: room.rows]), len(families), "family")


def family_line(family: Family, room: Room) -> Phrase:
    """``constants keep 6 executables apart (`a`, `b`, …): `arith.constant i32: 3, 5` ``; or that they are identical."""
    count, kind = plural(len(family.members), "executable"), clean(family.kind, 24).replace("-", " ")
    apart = f"{kind} {'keep' if kind.endswith('s') else 'keeps'} {count} apart"
    names = joined([(code(clean(name, 48)),) for name in family.members[: room.members]], ", ")
    more = ", …" if len(family.members) > room.members else ""
    lines = () if family.identical else family.varying[: room.varying]
    varying = joined([(code(clean(line, room.varying_chars)),) for line in lines], "; ")
    about = f"{count} have identical functions" if family.identical else apart
    return phrase(about, " (", names, more, ")", ": " if varying else "", varying)
