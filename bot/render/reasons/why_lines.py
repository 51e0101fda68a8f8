"""What is said of why: root causes and a line for every alarm under the headline, and the stories that fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from bot.core.rules.quiet import is_standing
from bot.core.values.explanation import UNATTRIBUTED, Explanation
from bot.core.values.root_cause import Example, RootCause
from bot.core.values.snapshot import CellKey
from bot.render.text.escape import clean, clip
from bot.render.text.filters import UNKNOWN, amount, plural, sides, signed
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.view.facts import NAME_LIMIT, Facts, cells_phrase
from bot.render.view.story import SHORT_NOTE, Room, Story, by_cause, cause_words, dispatch_line, reason, story
from bot.render.view.text_tables import Line

_WHAT = 240
_NAMES = 3
_ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class WhyCell:
    """The story of one changed cell; the target's name is the short one."""

    model: str
    target: str
    story: Story


def roots(facts: Facts, limits: Limits) -> Listing[Line]:
    """The root causes with most bytes: those that hold nine tenths of them, or as many as there is room for.

    The detail is each target's part where there are several, and the largest delta.
    """
    found = facts.report.root_causes
    sums = accumulate(root.share or 0 for root in found)
    holding = next((count for count, share in enumerate(sums, 1) if share >= _ENOUGH), len(found))
    lines = (Line(_root_said(facts, root), joined(_root_details(facts, root), "; ")) for root in found)
    return listing(islice(lines, min(limits.causes, holding)), len(found), "root cause")


def held(facts: Facts, shown: Listing[Line]) -> str:
    """`4 of 9 hold 93 % of all bytes that moved`; empty where all are shown, or nothing moved."""
    shares = [root.share for root in facts.report.root_causes[: len(shown.items)] if root.share is not None]
    if not shown.more or not shares:
        return ""
    return f"{len(shown.items)} of {shown.total} hold {sum(shares) * 100:.0f} % of all bytes that moved"


def _root_said(facts: Facts, root: RootCause) -> Phrase:
    """Cause and what; the net change, and where some of it cancels out the sum of all amounts; how much that is."""
    net, absolute = root.total.net_bytes, root.total.absolute_bytes
    gross = f" net, {amount(absolute)} in all" if abs(net) != absolute else ""
    share = "" if root.share is None else f", {root.share * 100:.0f} % of all bytes that moved"
    counted = f"{plural(root.dispatches, 'dispatch')} of " if root.dispatches else ""
    models = _named((clip(model, NAME_LIMIT) for model in root.models), len(root.models), "model")
    targets = _named((facts.short[target] for target in root.targets), len(root.targets), "target")
    what = f": {clean(root.what, _WHAT)}. {signed(net)}{gross}{share}, in {counted}"
    return phrase(strong(cause_words(root.cause)), what, models, " on ", targets)


def _named(names: Iterable[str], count: int, noun: str) -> Phrase:
    return phrase(plural(count, noun)) if count > _NAMES else joined([(code(name),) for name in names], ", ")


def _root_details(facts: Facts, root: RootCause) -> Iterator[Phrase]:
    ordered = sorted(root.by_target.items(), key=lambda found: -found[1].absolute_bytes)
    if len(ordered) > 1:
        told = ((code(facts.short[name]), f" {signed(sum_.net_bytes)} in {sum_.deltas:,}") for name, sum_ in ordered)
        yield joined((phrase(*words) for words in told), ", ")
    if root.total.deltas > 1 or root.example.dispatch:
        yield phrase("largest: ", _example(facts, root.example))


def _example(facts: Facts, one: Example) -> Phrase:
    place = phrase(" in ", code(clip(one.component, NAME_LIMIT))) if one.component not in ("", UNATTRIBUTED) else ()
    cell = phrase(" of ", code(clip(one.key.model, NAME_LIMIT)), " on ", code(facts.short[one.key.target]))
    if not one.dispatch:
        return phrase(signed(one.change_bytes), cell)
    size, note = sides(one.base_bytes, one.head_bytes), clean(one.note, SHORT_NOTE)
    shown = signed(one.change_bytes) if UNKNOWN in size or one.base_bytes == one.head_bytes else size
    return phrase(code(clip(one.dispatch, NAME_LIMIT)), place, cell, f" {shown}", f" ({note})" if note else "")


def causes(facts: Facts, limits: Limits) -> Listing[Line]:
    """A line for the alarming cells of one model of which the same is told, worst first.

    Its detail is of the worst cell: what its code moved by cause, and its largest dispatch.
    """
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


def _line(facts: Facts, keys: Sequence[CellKey], limits: Limits) -> Line:
    worst = facts.report.explanations[keys[0]]
    details = joined(_details(worst), "; ")
    if len(keys) > 1 and details:
        details = phrase("on ", code(facts.short[keys[0].target]), ": ", details)
    return Line(phrase(cells_phrase(facts, sorted(keys), min(12, limits.names)), ": ", reason(worst)), details)


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
