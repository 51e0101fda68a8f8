"""A line of cause and place for every alarm: what a reviewer reads first, and often all that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.explanation import UNATTRIBUTED, DispatchDelta, Explanation
from bot.core.quiet import is_standing
from bot.core.snapshot import CellKey
from bot.render.escape import clean, clip
from bot.render.facts import NAME_LIMIT, Facts, cells_phrase
from bot.render.filters import signed
from bot.render.phrase import Phrase, code, phrase, strong
from bot.render.selection import Limits, Listing, fair_in_order, listing
from bot.render.tables import dispatch_sides

WHY_CHARS = 240
NOTE_CHARS = 160
_PLACES = 2
_CAUSES = {
    "input": "input",
    "fusion": "fusion",
    "dedup-lost": "dedup lost",
    "dedup-won": "dedup won",
    "strategy": "strategy",
    "codegen": "codegen",
    "packaging": "packaging",
}


@dataclass(frozen=True, slots=True)
class CauseLine:
    """Why some cells of one model are alarming.

    Attributes:
        said: cells, cause, component, and the worst cell's reason.
        detail: of the worst cell, what its code moved by cause, and its largest dispatch; may be empty.
    """

    said: Phrase
    detail: Phrase


def cause_words(cause: str | None) -> str:
    """A cause in words; `cause not known` for None."""
    return "cause not known" if cause is None else _CAUSES.get(cause, clip(clean(cause), 24))


def causes(facts: Facts, limits: Limits) -> Listing[CauseLine]:
    """A line for the alarming cells of one model that have the same cause, worst first; without one, the same words."""
    groups: dict[tuple[str, str], list[CellKey]] = {}
    for key in alarming(facts):
        told = facts.report.explanations[key]
        groups.setdefault((key.model, told.cause or told.why), []).append(key)
    shown = fair_in_order(list(groups.values()), lambda keys: keys[0].model, limits.causes)
    return listing((_line(facts, keys, limits) for keys in shown), len(groups), "cause")


def alarming(facts: Facts) -> list[CellKey]:
    """Cells that are worse than the rules allow or newly broken, where it is known why."""
    found = [finding.key for finding in facts.report.verdict.findings if not is_standing(finding)]
    found += [delta.key for delta in facts.states["newly-broken"]]
    return [key for key in dict.fromkeys(found) if key in facts.report.explanations]


def _line(facts: Facts, keys: Sequence[CellKey], limits: Limits) -> CauseLine:
    told = [facts.report.explanations[key] for key in keys]
    worst, target = told[0], code(facts.short[keys[0].target])
    alike = len({explanation.why for explanation in told}) == 1
    details = _joined([*_by_cause(worst), *_largest(worst)])
    if len(keys) > 1 and (details or not alike):
        details = phrase("on ", target, ": " if details else "", details)
    places = list(dict.fromkeys(explanation.component for explanation in told))
    cells = cells_phrase(facts, sorted(keys), min(12, limits.names))
    return CauseLine(phrase(cells, ": ", _said(worst, places, "")), details)


def _joined(parts: Sequence[Phrase]) -> Phrase:
    return phrase(*(piece for part in parts for piece in ("; ", part)))[1:]


def said(explanation: Explanation) -> Phrase:
    """Cause, place, phase and why: ``**strategy** in `encoder`, first seen in configuration: other tile sizes``."""
    seen = f", first seen in {clip(clean(explanation.phase), 40)}" if explanation.phase else ""
    return _said(explanation, [explanation.component], seen)


def _said(explanation: Explanation, places: Sequence[str | None], seen: str) -> Phrase:
    place = _place(places)
    why = clip(clean(explanation.why).rstrip(".: "), WHY_CHARS)
    if explanation.cause is None:
        moved = phrase("; most moved", place) if place else ()
        return phrase(strong(cause_words(None)), f": {why}" if why else "", moved)
    return phrase(strong(cause_words(explanation.cause)), place, seen, f": {why}" if why else "")


def _place(places: Sequence[str | None]) -> Phrase:
    known = [code(clip(place, NAME_LIMIT)) for place in places if place and place != UNATTRIBUTED]
    shown = [part for name in known[:_PLACES] for part in (", ", name)]
    return phrase(" in ", *shown[1:], ", …" if len(known) > _PLACES else "") if known else ()


def _by_cause(explanation: Explanation) -> Iterator[Phrase]:
    """Where dispatches changed for several causes, the code of each: `code by cause: strategy +57,000 B, …`."""
    sums: dict[str | None, int] = {}
    for delta in explanation.dispatches:
        sums[delta.cause] = sums.get(delta.cause, 0) + _code_change(delta)
    moved = sorted(((cause, size) for cause, size in sums.items() if size), key=lambda found: -abs(found[1]))
    if len(moved) > 1:
        yield phrase("code by cause: " + ", ".join(f"{cause_words(cause)} {signed(size)}" for cause, size in moved))


def _largest(explanation: Explanation) -> Iterator[Phrase]:
    """The dispatch whose code changed most, with what differs in it."""
    delta = explanation.dispatches[0] if explanation.dispatches else None
    if delta is not None and _code_change(delta):
        note = clip(clean(delta.note), NOTE_CHARS)
        told = delta.cause == explanation.cause == "codegen" or note == clip(clean(explanation.why), NOTE_CHARS)
        more = f": {note}" if note and not told else ""
        sizes = dispatch_sides(delta, "code_bytes", "bytes")
        yield phrase("largest: ", code(clip(delta.name, NAME_LIMIT)), f" {sizes}{more}")


def _code_change(delta: DispatchDelta) -> int:
    base, head = (row.code_bytes if row else 0 for row in (delta.base, delta.head))
    return 0 if base is None or head is None else head - base
