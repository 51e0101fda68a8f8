"""Find the groups of a program that are worth folding.

Such groups compile, make the program smaller, and do not make it too slow. Nothing here
compiles or runs: the caller gives functions for attempts and prices. Only the artifact
of the groups that are kept in the end is exact. The sizes of dispatches decide what to
try.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from bot.compiler.diagnostics import reason
from bot.core.reading import UNSPEAKABLE
from bot.core.runs import Price
from bot.fold.attempts import Attempt
from bot.fold.audit import FOLD_KINDS, LeftFamily
from bot.fold.rewriting import Group, Groups
from bot.running.runner import within

NOTHING: tuple[Group, ...] = ()
# A group with fewer executables is not divided into halves
_FEWEST_TO_HALVE = 4

TryGroups = Callable[[Sequence[Group]], Attempt]


class Searched(NamedTuple):
    """The result of a search: what it kept, and why it left other groups."""

    attempt: Attempt  # with the groups that are kept, if any
    left: tuple[LeftFamily, ...]  # the groups that are not kept, with reasons


def search(
    groups: Groups, try_groups: TryGroups, banned: Collection[Group] = ()
) -> Searched:
    """Return the groups that compile and make the artifact smaller.

    `try_groups` compiles and measures.
    """
    tried = [try_groups(NOTHING)]
    whys: dict[Group, str] = {}
    levels = [permitted(groups.groups[level], banned) for level in FOLD_KINDS]
    for level in levels:
        if not level or _is_tried(level, tried):
            continue
        working, failed = compiling(level, try_groups)
        whys = {**failed, **whys}
        tried.append(working)
    best, without = gaining(choices(groups, tried), try_groups, groups.elements)
    folded = set[str]().union(*best.groups)
    whys = {**without, **whys}
    for group in [*whys]:
        if folded.issuperset(group):
            del whys[group]
    spoken = folded.union(*whys)
    for group in chain.from_iterable(levels):
        if spoken.isdisjoint(group):
            whys[group] = "another way to fold the same executables saves more"
    return Searched(
        best, tuple(left(groups, group, reason) for group, reason in whys.items())
    )


def _is_tried(level: Sequence[Group], tried: Sequence[Attempt]) -> bool:
    """Return whether one of the attempts folds exactly these groups."""
    ordered = sorted(level)
    return any(ordered == sorted(attempt.groups) for attempt in tried)


def kind_of(groups: Groups, group: Group) -> str | None:
    """Return the strictest level at which executables can be folded, or None.

    The executables may be a part of a group.
    """
    for level in FOLD_KINDS:
        if any(set(group) <= set(whole) for whole in groups.groups[level]):
            return level
    return None


def left(groups: Groups, group: Group, reason: str) -> LeftFamily:
    """Return a group that is not folded as a family with its reason.

    Its kind is the strictest level at which it could be folded.
    """
    return LeftFamily(kind_of(groups, group) or FOLD_KINDS[-1], group, reason)


def permitted(groups: Sequence[Group], banned: Collection[Group]) -> list[Group]:
    """Return the groups without the executables of the banned groups.

    A group with fewer than two executables left is dropped.
    """
    result = []
    for group in groups:
        bad: set[str] = set()
        for banned_group in banned:
            if set(banned_group) <= set(group):
                bad.update(banned_group)
        fitting = tuple(name for name in group if name not in bad)
        if len(fitting) > 1:
            result.append(fitting)
    return result


def compiling(
    groups: Sequence[Group], try_groups: TryGroups
) -> tuple[Attempt, dict[Group, str]]:
    """Fold as many of the groups as compile together.

    Returns that attempt, and why the other groups are not in it.
    """
    tried = try_groups(groups)
    if tried.cell.measured:
        refused = {family.members: family.why for family in tried.left}
        if not refused:
            return tried, refused
        return try_groups([group for group in groups if group not in refused]), refused
    if len(groups) == 1:
        return _compiling_halves(groups[0], reason_of(tried), try_groups)
    middle = len(groups) // 2
    first, first_failed = compiling(groups[:middle], try_groups)
    second, second_failed = compiling(groups[middle:], try_groups)
    failed = {**first_failed, **second_failed}
    whole = try_groups([*first.groups, *second.groups])
    if whole.cell.measured:
        return whole, failed
    # Where they compile apart only, those of the first are left.
    why_lost = f"together with the other groups: {reason_of(whole)}"
    return first, {**failed, **dict.fromkeys(second.groups, why_lost)}


def _compiling_halves(
    group: Group, reason: str, try_groups: TryGroups
) -> tuple[Attempt, dict[Group, str]]:
    """Fold the two halves of a group that fails for this reason.

    The second half is tried only if the first one compiles. The whole group is left out
    if it is too small to divide, or if its first half fails.
    """
    if len(group) < _FEWEST_TO_HALVE:
        return try_groups(NOTHING), {group: reason}
    middle = len(group) // 2
    parts = [group[:middle], group[middle:]]
    failed: dict[Group, str] = {}
    if try_groups(parts[:1]).cell.measured:
        working, failed = compiling(parts, try_groups)
    else:
        working = try_groups(NOTHING)
    if not failed and not working.groups:
        failed = {group: reason}
    return working, failed


def reason_of(failed: Attempt) -> str:
    """Return why an attempt does not compile, without the place.

    Cells with the same reason are reported together.
    """
    failure = failed.cell.failure
    if failure is None:
        return failed.cell.status
    return reason(failure.message)


class Choice(NamedTuple):
    """Executables that can be folded, and the ways to do it, smallest code first."""

    members: Group
    apart_bytes: int | None  # of their code as they are; None where it is not known
    left_share: float | None  # of that, with the first way
    ways: tuple[tuple[Group, ...], ...]


def choices(groups: Groups, tried: Sequence[Attempt]) -> list[Choice]:
    """Return the groups that compile, with what the attempts say of them.

    Groups that share an executable are one choice.

    `tried`: the attempts; the first has nothing folded.
    """
    sizes = [_entry_bytes(attempt) for attempt in tried]
    result = []
    for names in _joined(tried):
        members = tuple(name for name in groups.entries if name in names)
        entries = [UNSPEAKABLE.sub("_", groups.entries[name]) for name in members]
        ways = dict[tuple[Group, ...], int | None]()
        for size, attempt in zip(sizes, tried, strict=True):
            groups_inside = []
            for group in attempt.groups:
                if set(group) <= set(members):
                    groups_inside.append(group)
            inside = tuple(groups_inside)
            # of those entry points that are left
            entry_sizes = [size[name] for name in entries if name in size]
            ways.setdefault(inside, _total(entry_sizes))
        apart_bytes = ways.pop(())
        ordered = sorted(ways, key=lambda way: (ways[way] is None, ways[way] or 0))
        least_bytes = ways[ordered[0]]
        share = None
        if least_bytes is not None and apart_bytes:
            share = least_bytes / apart_bytes
        result.append(
            Choice(
                members=members,
                apart_bytes=apart_bytes,
                left_share=share,
                ways=tuple(ordered),
            )
        )
    return result


def _entry_bytes(attempt: Attempt) -> dict[str, int | None]:
    """Return the bytes of each entry point, as any target spells its name.

    They are the bytes of its executable, if it has one of its own, else of its
    code.
    """
    sizes: dict[str, int | None] = {}
    for row in attempt.cell.dispatches:
        size = row.executable_bytes
        if size is None:
            size = row.code_bytes
        sizes[UNSPEAKABLE.sub("_", row.name)] = size
    return sizes


def _joined(tried: Sequence[Attempt]) -> list[set[str]]:
    """Return the executables of all groups; groups that share one are joined.

    A group of one level contains those of stricter levels. Halves are disjoint.
    """
    joined: list[set[str]] = []
    for attempt in tried:
        for group in attempt.groups:
            touching = []
            disjoint = []
            for names in joined:
                if names.isdisjoint(group):
                    disjoint.append(names)
                else:
                    touching.append(names)
            joined = disjoint
            joined.append(set(group).union(*touching))
    return joined


def _total(sizes: Sequence[int | None]) -> int | None:
    """Return the sum of sizes; None if one is unknown, or if there are none."""
    known_sizes = [size for size in sizes if size is not None]
    if not sizes or len(known_sizes) < len(sizes):
        return None
    return sum(known_sizes)


def gaining(
    choices: Sequence[Choice], try_groups: TryGroups, elements: Mapping[str, int]
) -> tuple[Attempt, dict[Group, str]]:
    """Fold in the ways that make the artifact smaller.

    Choices with less than half of their code left are clear, and are folded at
    once, if that makes the artifact smaller. Each other choice is compiled beside
    the groups that are kept by then. If it does not gain as a whole, its small and
    its large executables are tried apart.

    Returns that attempt, and why each of the other choices is not in it.

    `elements`: executable → the number of elements of its largest tensor.
    """
    clear = list[tuple[str, ...]]()
    doubtful = []
    for choice in choices:
        if choice.left_share is not None and choice.left_share < 0.5:
            clear += choice.ways[0]
        else:
            doubtful.append(choice)
    best = try_groups(clear)
    plain = try_groups(NOTHING)
    if not is_smaller(best, plain):
        best = plain
        doubtful = list(choices)
    without: dict[Group, str] = {}
    for choice in sorted(doubtful, key=_largest_first):
        before = best
        reason = "folding this group saves no code"
        if choice.left_share is None or choice.left_share < 1:
            best, reason = _with_best_way(choice, best, try_groups)
        if best is before:
            best = _with_halves(choice, best, try_groups, elements)
        if best is before:
            without[choice.members] = reason
    return best, without


def _largest_first(choice: Choice) -> tuple[bool, int, Group]:
    """Return a key that sorts choices by their code, unknown sizes last."""
    return choice.apart_bytes is None, -(choice.apart_bytes or 0), choice.members


def _with_best_way(
    choice: Choice, best: Attempt, try_groups: TryGroups
) -> tuple[Attempt, str]:
    """Fold a choice beside the kept groups, in the way with the smallest artifact.

    If no way is smaller, returns the best attempt as it was, and the reason.
    """
    tried = [try_groups([*best.groups, *way]) for way in choice.ways]
    sizes = []
    for folded in tried:
        if folded.artifact_bytes is not None:
            sizes.append(folded.artifact_bytes)
    if not sizes:
        return best, "this group does not compile together with the others"
    reason = "this group does not make the artifact smaller"
    for folded in tried:
        if folded.artifact_bytes == min(sizes) and is_smaller(folded, best):
            return folded, reason
    return best, reason


def _with_halves(
    choice: Choice, best: Attempt, try_groups: TryGroups, elements: Mapping[str, int]
) -> Attempt:
    """Fold the halves of a choice that make the artifact smaller still."""
    for half in halves(choice.members, elements):
        folded = try_groups([*best.groups, half])
        if is_smaller(folded, best):
            best = folded
    return best


def is_smaller(attempt: Attempt, other_attempt: Attempt) -> bool:
    """Return whether its artifact is smaller; False if one of the two has none."""
    size = attempt.artifact_bytes
    other_size = other_attempt.artifact_bytes
    return size is not None and other_size is not None and size < other_size


def halves(group: Group, elements: Mapping[str, int]) -> list[Group]:
    """Return a group's small and its large executables, in the program's order.

    Empty for a group with too few executables.
    """
    if len(group) < _FEWEST_TO_HALVE:
        return []
    by_size = sorted(group, key=lambda name: (elements.get(name, 0), group.index(name)))
    small = set(by_size[: len(group) // 2])
    small_names = []
    large_names = []
    for name in group:
        if name in small:
            small_names.append(name)
        else:
            large_names.append(name)
    return [tuple(small_names), tuple(large_names)]


def affordable(
    best: Attempt,
    try_groups: TryGroups,
    price: Callable[[Attempt], Price | str],
    max_slowdown: float,
) -> tuple[Attempt, dict[Group, str], Price | str]:
    """Keep the groups that are worth their price together.

    The group that costs most alone is dropped first. If the price of all groups
    together is not known at first, all are kept.

    Returns their attempt, why each of the others is dropped, and the price.
    """
    whole = price(best)
    alone_prices: dict[Group, Price | str] = {}
    whys: dict[Group, str] = {}
    if isinstance(whole, str):
        return best, {}, whole
    while isinstance(whole, str) or not within(whole, max_slowdown):
        alone_prices = alone_prices or {
            group: price(try_groups([group])) for group in best.groups
        }
        ratios = {group: _ratio_of(alone_prices[group]) for group in best.groups}
        dearest = max(best.groups, key=lambda group: (ratios[group], group))
        whys[dearest] = _dear(alone_prices[dearest], max_slowdown)
        best = try_groups([group for group in best.groups if group != dearest])
        if not best.groups:
            return best, whys, "no remaining group is worth its slowdown"
        whole = price(best)
    return best, whys, whole


def _ratio_of(price: Price | str) -> float:
    """Return how much slower a group makes its program; infinite if that is unknown."""
    if isinstance(price, Price):
        return price.ratio
    return math.inf


def _dear(alone_price: Price | str, max_slowdown: float) -> str:
    if isinstance(alone_price, str):
        return f"its slowdown is unknown: {alone_price}"
    is_within = within(alone_price, max_slowdown)
    if is_within:
        return "alone it is worth its slowdown, but not together with the other groups"
    verb = "it is"
    if is_within is None:
        verb = "it may be"
    return f"{verb} slower by more than {max_slowdown:.1%}"
