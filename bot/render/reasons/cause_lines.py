"""Which cells are told of, and what: a line of cause and place for every alarm, and the stories that fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.rules.quiet import is_standing
from bot.core.values.explanation import Explanation
from bot.core.values.snapshot import CellKey
from bot.render.text.escape import clean, clip
from bot.render.text.phrase import Phrase, code, joined, phrase
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.view.facts import NAME_LIMIT, Facts, cells_phrase
from bot.render.view.story import SHORT_NOTE, Room, Story, by_cause, dispatch_line, reason, story


@dataclass(frozen=True, slots=True)
class CauseLine:
    """Why some cells of one model are alarming.

    Attributes:
        said: cells, cause, component, and the worst cell's reason.
        detail: of the worst cell, what its code moved by cause, and its largest dispatch; may be empty.
    """

    said: Phrase
    detail: Phrase


@dataclass(frozen=True, slots=True)
class WhyCell:
    """The story of one changed cell; the target's name is the short one."""

    model: str
    target: str
    story: Story


def causes(facts: Facts, limits: Limits) -> Listing[CauseLine]:
    """A line for the alarming cells of one model of which the same is told, worst first."""
    groups: dict[tuple[str | None, ...], list[CellKey]] = {}
    for key in _alarming(facts):
        told = facts.report.explanations[key]
        groups.setdefault((key.model, told.cause, told.why, told.component), []).append(key)
    shown = fair_in_order(list(groups.values()), lambda keys: keys[0].model, limits.causes)
    return listing((_line(facts, keys, limits) for keys in shown), len(groups), "cause")


def whys(facts: Facts, limits: Limits) -> Listing[WhyCell]:
    """The changed cells that it is known of why, the alarming first; models take turns."""
    explained, most = facts.report.explanations, limits.dispatches
    keys = list(dict.fromkeys([*_alarming(facts), *(d.key for d in facts.report.deltas if d.key in explained)]))
    room = Room(most, min(8, most), min(4, most), 2, limits.diff_lines)
    shown = []
    for key in fair_in_order(keys, lambda key: key.model, limits.whys):
        head = facts.deltas[key].head
        told = story(explained[key], head.families if head else (), room)
        shown.append(WhyCell(clip(key.model, NAME_LIMIT), facts.short[key.target], told))
    return listing(shown, len(keys), "explained cell")


def _alarming(facts: Facts) -> list[CellKey]:
    """Cells that are worse than the rules allow or newly broken, where it is known why."""
    found = [finding.key for finding in facts.report.verdict.findings if not is_standing(finding)]
    found += [delta.key for delta in facts.states["newly-broken"]]
    return [key for key in dict.fromkeys(found) if key in facts.report.explanations]


def _line(facts: Facts, keys: Sequence[CellKey], limits: Limits) -> CauseLine:
    worst = facts.report.explanations[keys[0]]
    details = joined(_details(worst), "; ")
    if len(keys) > 1 and details:
        details = phrase("on ", code(facts.short[keys[0].target]), ": ", details)
    return CauseLine(phrase(cells_phrase(facts, sorted(keys), min(12, limits.names)), ": ", reason(worst)), details)


def _details(explanation: Explanation) -> Iterator[Phrase]:
    """The artifact's change by cause, and the dispatch whose code changed most, with what differs in it."""
    if told := by_cause(explanation):
        yield phrase(f"by cause: {told}")
    delta = explanation.dispatches[0] if explanation.dispatches else None
    sizes = [row.code_bytes if row else 0 for row in (delta.base, delta.head)] if delta else []
    if delta is not None and None not in sizes and sizes[0] != sizes[1]:
        line, note = dispatch_line(delta), clean(delta.note, SHORT_NOTE)
        known = delta.cause == explanation.cause == "codegen" or note == clean(explanation.why, SHORT_NOTE)
        more = f": {note}" if note and not known else ""
        yield phrase("largest: ", code(clip(line.name, NAME_LIMIT)), f" {line.numbers['code'].text}{more}")
