"""Root causes in words: what changed, how much of all that is, and the same for each target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice

from bot.core.values.explanation import UNATTRIBUTED
from bot.core.values.root_cause import Example, RootCause
from bot.render.text.escape import clean, clip
from bot.render.text.filters import UNKNOWN, amount, plural, sides, signed
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Limits, Listing, listing
from bot.render.view.facts import NAME_LIMIT, Facts
from bot.render.view.story import SHORT_NOTE, cause_words

_WHAT = 240
_NAMES = 3
_ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class RootLine:
    """One root cause.

    Attributes:
        said: cause, what changed, and how much over all cells.
        detail: each target's part where there are several, and the largest delta.
    """

    said: Phrase
    detail: Phrase


def roots(facts: Facts, limits: Limits) -> Listing[RootLine]:
    """The root causes with most bytes: those that hold nine tenths of them, or as many as there is room for."""
    found = facts.report.root_causes
    sums = accumulate(root.share or 0 for root in found)
    holding = next((count for count, share in enumerate(sums, 1) if share >= _ENOUGH), len(found))
    lines = (RootLine(_said(facts, root), joined(_details(facts, root), "; ")) for root in found)
    return listing(islice(lines, min(limits.causes, holding)), len(found), "root cause")


def held(facts: Facts, shown: Listing[RootLine]) -> str:
    """`4 of 9 hold 93 % of all bytes that moved`; empty where all are shown, or nothing moved."""
    shares = [root.share for root in facts.report.root_causes[: len(shown.items)] if root.share is not None]
    if not shown.more or not shares:
        return ""
    return f"{len(shown.items)} of {shown.total} hold {sum(shares) * 100:.0f} % of all bytes that moved"


def _said(facts: Facts, root: RootCause) -> Phrase:
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


def _details(facts: Facts, root: RootCause) -> Iterator[Phrase]:
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
