"""Root causes in words: what changed, how much of all that is, and the same for each target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from bot.core.values.explanation import UNATTRIBUTED
from bot.core.values.root_cause import RootCause, Tally
from bot.render.text.escape import clean, clip
from bot.render.text.filters import UNKNOWN, amount, plural, sides, signed
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Limits, Listing, listing
from bot.render.view.facts import NAME_LIMIT, Facts
from bot.render.view.story import SHORT_NOTE, cause_words

WHAT_CHARS = 240
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
    shown = found[: min(limits.causes, _holding(found))]
    return listing((root_line(facts, root) for root in shown), len(found), "root cause")


def _holding(found: Sequence[RootCause]) -> int:
    """How many of the first ones hold _ENOUGH of all bytes; all where nothing moved."""
    sums = accumulate(root.share or 0 for root in found)
    return next((count for count, share in enumerate(sums, 1) if share >= _ENOUGH), len(found))


def held(facts: Facts, shown: Listing[RootLine]) -> str:
    """`4 of 9 hold 93 % of all bytes that moved`; empty where all are shown, or nothing moved."""
    shares = [root.share for root in facts.report.root_causes[: len(shown.items)] if root.share is not None]
    if not shown.more or not shares:
        return ""
    return f"{len(shown.items)} of {shown.total} hold {sum(shares) * 100:.0f} % of all bytes that moved"


def root_line(facts: Facts, root: RootCause) -> RootLine:
    """One root cause as sentences."""
    largest = phrase("largest: ", _example(facts, root)) if root.total.deltas > 1 or root.example.dispatch else ()
    detail = joined([part for part in (_by_target(facts, root), largest) if part], "; ")
    return RootLine(_said(facts, root), detail)


def _said(facts: Facts, root: RootCause) -> Phrase:
    what = clip(clean(root.what), WHAT_CHARS)
    share = "" if root.share is None else f", {root.share * 100:.0f} % of all bytes that moved"
    return phrase(
        strong(cause_words(root.cause)), f": {what}. ", _amount(root.total), share, ", in ", _where(facts, root)
    )


def _amount(tally: Tally) -> str:
    """The net change, and where some of it cancels out the sum of all amounts."""
    gross = f" net, {amount(tally.absolute_bytes)} in all" if abs(tally.net_bytes) != tally.absolute_bytes else ""
    return signed(tally.net_bytes) + gross


def _where(facts: Facts, root: RootCause) -> Phrase:
    counted = plural(root.dispatches, "dispatch") + " of " if root.dispatches else ""
    models = _named((clip(model, NAME_LIMIT) for model in root.models), len(root.models), "model")
    targets = _named((facts.short[target] for target in root.targets), len(root.targets), "target")
    return phrase(counted, models, " on ", targets)


def _named(names: Iterable[str], count: int, noun: str) -> Phrase:
    return phrase(plural(count, noun)) if count > _NAMES else joined([(code(name),) for name in names], ", ")


def _by_target(facts: Facts, root: RootCause) -> Phrase:
    if len(root.by_target) < 2:
        return ()
    ordered = sorted(root.by_target.items(), key=lambda found: -found[1].absolute_bytes)
    parts = (
        phrase(code(facts.short[target]), f" {signed(tally.net_bytes)} in {tally.deltas:,}")
        for target, tally in ordered
    )
    return joined(parts, ", ")


def _example(facts: Facts, root: RootCause) -> Phrase:
    one = root.example
    place = phrase(" in ", code(clip(one.component, NAME_LIMIT))) if one.component not in ("", UNATTRIBUTED) else ()
    cell = phrase(" of ", code(clip(one.key.model, NAME_LIMIT)), " on ", code(facts.short[one.key.target]))
    if not one.dispatch:
        return phrase(signed(one.change_bytes), cell)
    size = sides(one.base_bytes, one.head_bytes) if one.base_bytes != one.head_bytes else signed(one.change_bytes)
    note = clip(clean(one.note), SHORT_NOTE)
    shown = size if UNKNOWN not in size else signed(one.change_bytes)
    return phrase(code(clip(one.dispatch, NAME_LIMIT)), place, cell, f" {shown}", f" ({note})" if note else "")
