"""Owns which groups of a program are worth folding: what compiles, and of that what makes the artifact smaller.

What is exact is only the artifact of the groups that are kept in the end; the sizes of dispatches decide what to try.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.compiler.folding import Group, Groups
from bot.core.folds.fold_values import FOLD_KINDS, LeftFamily
from bot.core.values.snapshot import Cell
from bot.measurement.folds.attempts import NOTHING, Attempt
from bot.readers.dispatches import UNSPEAKABLE

Try = Callable[[Sequence[Group]], Attempt]
_MOST_HALVES = 4
"""A group that fails is halved; what fails of fewer executables is left."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a search.

    Attributes:
        attempt: with the groups that are kept; one with none where nothing is.
        left: groups that are not, and why.
    """

    attempt: Attempt
    left: tuple[LeftFamily, ...]


def search(found: Groups, attempt: Try, banned: Collection[Group] = ()) -> Kept:
    """The groups that make the artifact smaller, of those that compile; `attempt` compiles and measures."""
    kinds = kinds_of(found)
    tried: list[Attempt] = [attempt(NOTHING)]
    left: list[LeftFamily] = []
    for level in FOLD_KINDS:
        asked = [group for group in found.groups[level] if group not in banned]
        if asked and not any(sorted(asked) == sorted(one.groups) for one in tried):
            working, failed = compiling(asked, attempt)
            left += [LeftFamily(level, group, why) for group, why in failed.items()]
            tried.append(working)
    chosen, without_gain = choose(found, tried, kinds)
    best = _smallest([attempt(chosen), *tried])
    return Kept(best, (*_news(left, best), *_unfolded(found, best, tried, without_gain, left, banned)))


def kinds_of(found: Groups) -> Mapping[Group, str]:
    """Group → the strictest level that has it."""
    return {group: level for level in reversed(FOLD_KINDS) for group in found.groups[level]}


def compiling(groups: Sequence[Group], attempt: Try) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with as many of the groups as compile together, and why the others do not."""
    tried = attempt(groups)
    if tried.cell.measured:
        return tried, {one.members: one.why for one in tried.left}
    why = tried.cell.failure.first_line if tried.cell.failure else tried.cell.status
    if len(groups) == 1:
        return _halved(groups[0], attempt, why)
    culprits = _named(groups, tried)
    first = [group for group in groups if group not in culprits] if culprits else list(groups[: len(groups) // 2])
    second = [group for group in groups if group not in first]
    parts = [compiling(part, attempt) for part in (first, second) if part]
    failed = {group: reason for _, reasons in parts for group, reason in reasons.items()}
    return _together([part for part, _ in parts], attempt, failed)


def _together(parts: Sequence[Attempt], attempt: Try, failed: dict[Group, str]) -> tuple[Attempt, dict[Group, str]]:
    """The groups of all parts; where they compile apart only, those of the first."""
    whole = attempt([group for part in parts for group in part.groups])
    if whole.cell.measured:
        return whole, failed
    reason = whole.cell.failure.first_line if whole.cell.failure else whole.cell.status
    lost = {group: f"beside the other groups: {reason}" for part in parts[1:] for group in part.groups}
    return parts[0], {**failed, **lost}


def _halved(group: Group, attempt: Try, why: str) -> tuple[Attempt, dict[Group, str]]:
    """The two halves of a group that fails; none of it where they are too small, or fail as well."""
    if len(group) < _MOST_HALVES:
        return attempt(NOTHING), {group: why}
    halves = [group[: len(group) // 2], group[len(group) // 2 :]]
    working, failed = compiling(halves, attempt) if attempt(halves[:1]).cell.measured else (attempt(NOTHING), {})
    return working, failed or ({} if working.groups else {group: why})


def _named(groups: Sequence[Group], tried: Attempt) -> list[Group]:
    """Groups whose first member the compiler's message names; none where it names all."""
    message = tried.cell.failure.message if tried.cell.failure else ""
    named = [group for group in groups if f"{group[0]}_" in message]
    return named if len(named) < len(groups) else []


def choose(
    found: Groups, tried: Sequence[Attempt], kinds: Mapping[Group, str]
) -> tuple[list[Group], dict[Group, str]]:
    """Of each set of executables that could become one, the attempt that makes their code smallest; and what gained
    nothing.

    Args:
        tried: the first with nothing folded.
    """
    widest = _disjoint([group for one in tried for group in one.groups])
    sizes = [_sizes(one.cell) for one in tried]
    chosen: list[Group] = []
    without: dict[Group, str] = {}
    for members in widest:
        entries = [found.entries[name] for name in members]
        amounts = [_amount(size, entries) for size in sizes]
        known = [(amount, at) for at, amount in enumerate(amounts) if amount is not None]
        best = min(known)[1] if known else len(tried) - 1
        chosen += [group for group in tried[best].groups if set(group) <= set(members)]
        if best == 0:
            after = min((amount for amount, at in known if at), default=None)
            without[members] = f"it saves nothing: {amounts[0]:,} B of code apart, {after:,} B as one"
    return chosen, without


def _disjoint(groups: Sequence[Group]) -> list[Group]:
    """The groups that no other holds: levels are one inside of the other."""
    wide = sorted(dict.fromkeys(groups), key=len, reverse=True)
    found: list[Group] = []
    taken: set[str] = set()
    for group in wide:
        if taken.isdisjoint(group):
            found.append(group)
            taken.update(group)
    return found


def _sizes(cell: Cell) -> dict[str, int | None]:
    """Entry point, as any target spells it → bytes of its executable where it has one of its own, else of its code."""
    return {
        _spelled(row.name): row.code_bytes if row.executable_bytes is None else row.executable_bytes
        for row in cell.dispatches
    }


def _amount(sizes: Mapping[str, int | None], entries: Sequence[str]) -> int | None:
    """Bytes of those entry points that are left; None where one is not known, or none is found."""
    found = [sizes[name] for name in map(_spelled, entries) if name in sizes]
    known = [size for size in found if size is not None]
    return sum(known) if found and len(known) == len(found) else None


def _spelled(name: str) -> str:
    return UNSPEAKABLE.sub("_", name)


def _smallest(tried: Sequence[Attempt]) -> Attempt:
    """The smallest artifact; of several the one with most folded."""
    measured = [one for one in tried if one.artifact_bytes is not None]
    return min(measured or tried[-1:], key=lambda one: (one.artifact_bytes or 0, -sum(map(len, one.groups))))


def _news(left: Sequence[LeftFamily], best: Attempt) -> list[LeftFamily]:
    """What failed at one level, unless all of it was folded at another."""
    folded = {name for group in best.groups for name in group}
    return [one for one in left if not folded.issuperset(one.members)]


def _unfolded(
    found: Groups,
    best: Attempt,
    tried: Sequence[Attempt],
    without_gain: Mapping[Group, str],
    failed: Sequence[LeftFamily],
    banned: Collection[Group],
) -> list[LeftFamily]:
    """Groups of which no part is folded and nothing was said yet."""
    kinds = kinds_of(found)
    told = {name for one in failed for name in one.members} | {name for group in best.groups for name in group}
    larger = f"the artifact gets no smaller than {tried[0].artifact_bytes or 0:,} B"
    return [
        LeftFamily(kinds[group], group, without_gain.get(group, larger))
        for group in _disjoint([group for one in tried for group in one.groups])
        if group not in banned and told.isdisjoint(group)
    ]
