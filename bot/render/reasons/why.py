"""Why cells changed, in the details that fold: dispatches, notes, differences, components, families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import UNATTRIBUTED, ComponentDelta, DispatchDelta, Explanation
from bot.core.values.program import Family
from bot.core.values.snapshot import CellKey
from bot.render.reasons.cause_lines import NOTE_CHARS, alarming, by_cause, cause_words, said
from bot.render.text.escape import clean, clip
from bot.render.text.filters import plural
from bot.render.text.phrase import Phrase, code, phrase
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.view.facts import NAME_LIMIT, Facts
from bot.render.view.text_tables import Row, Table, dispatch_sides, name_cell, number_cell

DIFF_CHARS = 200
_NAME_CHARS, _PLACE_CHARS = 42, 36  # wider tables than these scroll sideways in a comment
_NOTES = 4
_DIFFS = 2
_COMPONENTS = 8


@dataclass(frozen=True, slots=True)
class Diff:
    """The smallest differing piece of one dispatch.

    Attributes:
        text: a unified diff, its first lines.
        more_lines: how many were left out.
    """

    name: str
    text: str
    more_lines: int


@dataclass(frozen=True, slots=True)
class WhyCell:
    """The story of one changed cell.

    Attributes:
        model, target: names; the target's is the short one.
        cause: in one or two words.
        said: cause, phase and why as a sentence.
        falls: the change of the artifact by cause, in words; may be empty.
        notes: what differs in the dispatches.
        rest: how many entry points did not change, in words; may be empty.
    """

    model: str
    target: str
    cause: str
    said: Phrase
    falls: str
    dispatches: Table
    notes: Listing[Phrase]
    rest: str
    diffs: tuple[Diff, ...]
    components: Table
    families: Listing[Phrase]


def rest(explanation: Explanation) -> str:
    """The dispatches that there is nothing to tell of, in a sentence; empty where there are none."""
    same, moved = explanation.unchanged, explanation.rebased
    told = [f"{plural(same, 'other dispatch')} did not change"] if same else []
    told += [f"{plural(moved, 'other dispatch')} {_HAVE[moved == 1]} {_REBASED}"] if moved else []
    doubt = ", as far as short digests tell" if told and explanation.short_digests else ""
    return f"{'; '.join(told)}{doubt}." if told else ""


_HAVE = ("have", "has")
_REBASED = "the same numbers, and what the program binds there differs"


def whys(facts: Facts, limits: Limits) -> Listing[WhyCell]:
    """The changed cells that it is known of why, the alarming first; models take turns."""
    explained = facts.report.explanations
    keys = list(dict.fromkeys([*alarming(facts), *(d.key for d in facts.report.deltas if d.key in explained)]))
    shown = fair_in_order(keys, lambda key: key.model, limits.whys)
    return listing((_why_cell(facts, key, limits) for key in shown), len(keys), "explained cell")


def _why_cell(facts: Facts, key: CellKey, limits: Limits) -> WhyCell:
    explanation, delta = facts.report.explanations[key], facts.deltas[key]
    return WhyCell(
        clip(key.model, NAME_LIMIT),
        facts.short[key.target],
        cause_words(explanation.cause),
        said(explanation),
        by_cause(explanation),
        _dispatch_table(explanation, limits.dispatches),
        _notes(explanation, min(_NOTES, limits.dispatches)),
        rest(explanation),
        tuple(diffs(explanation.dispatches, limits.diff_lines))[:_DIFFS],
        _component_table(explanation.components, min(_COMPONENTS, limits.dispatches)),
        _family_lines(delta, limits.dispatches),
    )


def _dispatch_table(explanation: Explanation, most: int) -> Table:
    """Without a column for the cause where all have the cell's."""
    dispatches = explanation.dispatches
    mixed = any(delta.cause != explanation.cause for delta in dispatches)
    headers = ("dispatch", *(("cause",) if mixed else ()), "component", "code", "stack")
    rows = (_dispatch_row(delta, mixed) for delta in dispatches[:most])
    return Table(headers, listing(rows, len(dispatches), "dispatch"), numbers_from=len(headers) - 2, small=True)


def _dispatch_row(delta: DispatchDelta, mixed: bool) -> Row:
    cause = (phrase(cause_words(delta.cause)),) if mixed else ()
    numbers = (phrase(dispatch_sides(delta, field, "bytes")) for field in ("code_bytes", "stack_bytes"))
    return (name_cell(clip(delta.name, _NAME_CHARS)), *cause, _component(delta.component, _PLACE_CHARS), *numbers)


def _notes(explanation: Explanation, most: int) -> Listing[Phrase]:
    """What differs, each note once with the dispatches that it is true of; not what the cell's `why` said already."""
    groups: dict[str, list[DispatchDelta]] = {}
    for delta in explanation.dispatches:
        if (note := clip(clean(delta.note), NOTE_CHARS)) and note != clip(clean(explanation.why), NOTE_CHARS):
            groups.setdefault(note, []).append(delta)
    shown = list(groups.items())[:most]
    return listing((_note(note, deltas) for note, deltas in shown), len(groups), "note")


def _note(note: str, deltas: Sequence[DispatchDelta]) -> Phrase:
    name = code(clip(deltas[0].name, _NAME_CHARS))
    more = f" and {plural(len(deltas) - 1, 'other dispatch')}" if len(deltas) > 1 else ""
    return phrase(name, more, f": {note}")


def diffs(dispatches: Sequence[DispatchDelta], most_lines: int) -> Iterator[Diff]:
    """The diffs that there are, each text once; none where there is room for no line."""
    seen: set[tuple[str, ...]] = set()
    for delta in dispatches:
        if most_lines and delta.diff and delta.diff not in seen:
            seen.add(delta.diff)
            lines = [clip(line.replace("\n", " "), DIFF_CHARS) for line in delta.diff[:most_lines]]
            yield Diff(clip(delta.name, NAME_LIMIT), "\n".join(lines), max(0, len(delta.diff) - most_lines))


_AMOUNTS = (("dispatch_sites", "count"), ("code_bytes", "bytes"), ("stack_bytes", "bytes"))


def _component_table(components: Sequence[ComponentDelta], most: int) -> Table:
    headers = ("component", "dispatch sites", "code, base → head", "stack, base → head")
    rows = [(_component(delta.name, NAME_LIMIT), *map(phrase, component_amounts(delta))) for delta in components[:most]]
    return Table(headers, listing(rows, len(components), "moved component"))


def _component(name: str, most: int) -> Phrase:
    return phrase(UNATTRIBUTED) if name == UNATTRIBUTED else name_cell(clip(name, most))


def component_amounts(delta: ComponentDelta) -> tuple[str, ...]:
    """Dispatch sites, code and stack of a component on both sides."""
    from_to = ((delta.base.get(what), delta.head.get(what), unit) for what, unit in _AMOUNTS)
    return tuple("".join(span.text for span in number_cell(*values)) for values in from_to)


def _family_lines(delta: CellDelta, most: int) -> Listing[Phrase]:
    families = delta.head.families if delta.head else ()
    return listing((family_line(family) for family in families[:most]), len(families), "family")


def family_line(family: Family) -> Phrase:
    """``constants keep 6 executables apart (`a`, `b`, …): `arith.constant i32: 3, 5` ``; or that they are identical."""
    names = [code(clip(name, 48)) for name in family.members[:2]]
    members = phrase(*(part for name in names for part in (", ", name)))[1:]
    more = ", …" if len(family.members) > 2 else ""
    return phrase(_kept_apart(family), " (", members, more, ")", *_what_varies(family))


def _kept_apart(family: Family) -> str:
    count = plural(len(family.members), "executable")
    if family.identical:
        return f"{count} have identical functions"
    return f"{clip(clean(family.kind), 24).replace('-', ' ')} keep {count} apart"


def _what_varies(family: Family) -> tuple[str | Phrase, ...]:
    varying = () if family.identical else family.varying[:3]
    lines = [code(clip(clean(line), 120)) for line in varying]
    what = phrase(*(part for line in lines for part in ("; ", line)))[1:]
    return (": ", what) if what else ()
