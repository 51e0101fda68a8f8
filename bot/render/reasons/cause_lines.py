"""A line of cause and place for every alarm: what a reviewer reads first, and often all that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.rules.quiet import is_standing
from bot.core.values.explanation import UNATTRIBUTED, DispatchDelta, Explanation
from bot.core.values.snapshot import CellKey
from bot.render.text.escape import clean, clip
from bot.render.text.filters import signed
from bot.render.text.phrase import Phrase, code, phrase, strong
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.view.facts import NAME_LIMIT, Facts, cells_phrase
from bot.render.view.text_tables import dispatch_sides

WHY_CHARS = 240
NOTE_CHARS = 160
_CAUSES = {
    "input": "input",
    "fusion": "fusion",
    "dedup-lost": "dedup lost",
    "dedup-won": "dedup won",
    "strategy": "strategy",
    "codegen": "codegen",
    "container": "container",
    "host": "host",
    "packaging": "packaging",
    "mixed": "mixed",
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
    """A line for the alarming cells of one model of which the same is told, worst first."""
    groups: dict[tuple[str | None, ...], list[CellKey]] = {}
    for key in alarming(facts):
        told = facts.report.explanations[key]
        groups.setdefault((key.model, told.cause, told.why, told.component), []).append(key)
    shown = fair_in_order(list(groups.values()), lambda keys: keys[0].model, limits.causes)
    return listing((_line(facts, keys, limits) for keys in shown), len(groups), "cause")


def alarming(facts: Facts) -> list[CellKey]:
    """Cells that are worse than the rules allow or newly broken, where it is known why."""
    found = [finding.key for finding in facts.report.verdict.findings if not is_standing(finding)]
    found += [delta.key for delta in facts.states["newly-broken"]]
    return [key for key in dict.fromkeys(found) if key in facts.report.explanations]


def _line(facts: Facts, keys: Sequence[CellKey], limits: Limits) -> CauseLine:
    worst, target = facts.report.explanations[keys[0]], code(facts.short[keys[0].target])
    details = _joined([*_by_cause(worst), *_largest(worst)])
    if len(keys) > 1 and details:
        details = phrase("on ", target, ": ", details)
    cells = cells_phrase(facts, sorted(keys), min(12, limits.names))
    return CauseLine(phrase(cells, ": ", _said(worst)), details)


def _joined(parts: Sequence[Phrase]) -> Phrase:
    return phrase(*(piece for part in parts for piece in ("; ", part)))[1:]


def said(explanation: Explanation) -> Phrase:
    """``**strategy** in `encoder`: other tile sizes; the sides first differ in configuration``."""
    first = clip(clean(explanation.phase), 40) if explanation.phase else ""
    return phrase(_said(explanation), f"; the sides first differ in {first}" if first else "")


def _said(explanation: Explanation) -> Phrase:
    """Cause, place and why."""
    component = explanation.component
    place = code(clip(component, NAME_LIMIT)) if component and component != UNATTRIBUTED else ()
    why = clip(clean(explanation.why).rstrip(".: "), WHY_CHARS)
    if explanation.cause is None:
        moved = phrase("; most moved in ", place) if place else ()
        return phrase(strong(cause_words(None)), f": {why}" if why else "", moved)
    where = phrase(" in ", place) if place else ()
    return phrase(strong(cause_words(explanation.cause)), where, f": {why}" if why else "")


def by_cause(explanation: Explanation) -> str:
    """The waterfall in words, largest first: `strategy +57,000 B, host +12 B`; empty where it has fewer than two."""
    moved = sorted(explanation.waterfall.items(), key=lambda found: -abs(found[1]))
    return ", ".join(f"{cause_words(cause)} {signed(size)}" for cause, size in moved) if len(moved) > 1 else ""


def _by_cause(explanation: Explanation) -> Iterator[Phrase]:
    if told := by_cause(explanation):
        yield phrase(f"by cause: {told}")


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
