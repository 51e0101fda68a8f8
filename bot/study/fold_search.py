"""Which groups of a program are worth folding: what compiles, of that what makes it smaller and not too slow.

Nothing here compiles or runs: attempts and prices are asked of what the caller gives.
What is exact is only the artifact of the groups that are kept in the end; the sizes of
dispatches decide what to try.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from bot.compiler.diagnostics import reason
from bot.core.fold import FOLD_KINDS, LeftFamily, Price
from bot.readers.assemble import UNSPEAKABLE
from bot.running.runner import within
from bot.study.fold_attempts import Attempt
from bot.study.rewriting import Group, Groups

NOTHING: tuple[Group, ...] = ()
_MOST_HALVES = (
    4  # A group that fails is halved; what fails of fewer executables is left
)

Try = Callable[[Sequence[Group]], Attempt]


class Searched(NamedTuple):
    """What is left of a search."""

    attempt: Attempt  # with the groups that are kept; one with none where nothing is
    left: tuple[LeftFamily, ...]  # groups that are not, and why


def search(groups: Groups, attempt: Try, banned: Collection[Group] = ()) -> Searched:
    """The groups that make the artifact smaller, of those that compile.

    `attempt` compiles and measures.
    """
    tried, whys = [attempt(NOTHING)], dict[Group, str]()
    levels = [permitted(groups.groups[level], banned) for level in FOLD_KINDS]
    for level in levels:
        if level and not any(
            sorted(level) == sorted(attempt.groups) for attempt in tried
        ):
            working, failed = compiling(level, attempt)
            whys = {**failed, **whys}
            tried.append(working)
    best, without = gaining(choices(groups, tried), attempt, groups.elements)
    folded = {name for group in best.groups for name in group}
    whys = {
        group: reason
        for group, reason in {**without, **whys}.items()
        if not folded.issuperset(group)
    }
    spoken = folded.union(*whys)
    for group in chain.from_iterable(levels):
        if spoken.isdisjoint(group):
            whys[group] = "another way to fold the same executables saves more"
    return Searched(
        best, tuple(left(groups, group, reason) for group, reason in whys.items())
    )


def kind_of(groups: Groups, group: Group) -> str | None:
    """The strictest level at which these executables, which may be a part of a group, are one.

    None where at none.
    """
    for level in FOLD_KINDS:
        if any(set(group) <= set(whole) for whole in groups.groups[level]):
            return level
    return None


def left(groups: Groups, group: Group, reason: str) -> LeftFamily:
    """A group that is not folded, with the reason and the strictest level at which it could be."""
    return LeftFamily(kind_of(groups, group) or FOLD_KINDS[-1], group, reason)


def permitted(groups: Sequence[Group], banned: Collection[Group]) -> list[Group]:
    """The groups without the executables of banned ones that they hold, as far as two and more are left."""
    result = []
    for group in groups:
        bad = {
            name
            for banned_group in banned
            if set(banned_group) <= set(group)
            for name in banned_group
        }
        fitting = tuple(name for name in group if name not in bad)
        if len(fitting) > 1:
            result.append(fitting)
    return result


def compiling(
    groups: Sequence[Group], attempt: Try
) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with as many of the groups as compile together, and why the others do not."""
    tried = attempt(groups)
    if tried.cell.measured:
        refused = {attempt.members: attempt.why for attempt in tried.left}
        return (
            attempt([group for group in groups if group not in refused])
            if refused
            else tried
        ), refused
    reason = reason_of(tried)
    if len(groups) == 1:
        # the two halves of a group that fails; none of it where they are too small, or
        # fail as well
        group = groups[0]
        if len(group) < _MOST_HALVES:
            return attempt(NOTHING), {group: reason}
        halves = [group[: len(group) // 2], group[len(group) // 2 :]]
        working, failed = (
            compiling(halves, attempt)
            if attempt(halves[:1]).cell.measured
            else (attempt(NOTHING), {})
        )
        return working, failed or ({} if working.groups else {group: reason})
    middle = len(groups) // 2
    parts = [compiling(part, attempt) for part in (groups[:middle], groups[middle:])]
    failed = {
        group: reason for _, reasons in parts for group, reason in reasons.items()
    }
    whole = attempt([group for part, _ in parts for group in part.groups])
    if whole.cell.measured:
        return whole, failed
    # Where they compile apart only, those of the first are left.
    lost = {
        group: f"together with the other groups: {reason_of(whole)}"
        for group in parts[1][0].groups
    }
    return parts[0][0], {**failed, **lost}


def reason_of(failed: Attempt) -> str:
    """Why it does not compile, without the place: cells of one reason are told together."""
    failure = failed.cell.failure
    return reason(failure.message) if failure else failed.cell.status


class Choice(NamedTuple):
    """Executables that could be one, and the ways to fold them, that with the smallest code first."""

    members: Group
    apart_bytes: int | None  # of their code as they are; None where it is not known
    left_share: float | None  # of that, with the first way
    ways: tuple[tuple[Group, ...], ...]


def choices(groups: Groups, tried: Sequence[Attempt]) -> list[Choice]:
    """Groups that compile, those that share an executable together, with what the attempts say of them.

    `tried`: the first with nothing folded.
    """
    # entry point, as any target spells it → bytes of its executable where it has one of
    # its own, else of its code
    sizes = [
        {
            UNSPEAKABLE.sub("_", row.name): (
                row.code_bytes if row.executable_bytes is None else row.executable_bytes
            )
            for row in attempt.cell.dispatches
        }
        for attempt in tried
    ]
    joined: list[set[str]] = []  # levels are one inside of the other, halves are not
    for group in (group for attempt in tried for group in attempt.groups):
        touching = [names for names in joined if not names.isdisjoint(group)]
        joined = [names for names in joined if names not in touching] + [
            set(group).union(*touching)
        ]
    result = []
    for names in joined:
        members = tuple(name for name in groups.entries if name in names)
        entries = [UNSPEAKABLE.sub("_", groups.entries[name]) for name in members]
        ways = dict[tuple[Group, ...], int | None]()
        for size, attempt in zip(sizes, tried, strict=True):
            # of those entry points that are left; None where one is not known, or none
            # is found
            sizes_of_entries = [size[name] for name in entries if name in size]
            known_sizes = [
                entry_size for entry_size in sizes_of_entries if entry_size is not None
            ]
            inside = tuple(
                group for group in attempt.groups if set(group) <= set(members)
            )
            ways.setdefault(
                inside,
                sum(known_sizes)
                if sizes_of_entries and len(known_sizes) == len(sizes_of_entries)
                else None,
            )
        apart_bytes = ways.pop(())
        ordered = sorted(ways, key=lambda way: (ways[way] is None, ways[way] or 0))
        least_bytes = ways[ordered[0]]
        share = (
            None
            if least_bytes is None or not apart_bytes
            else least_bytes / apart_bytes
        )
        result.append(
            Choice(
                members=members,
                apart_bytes=apart_bytes,
                left_share=share,
                ways=tuple(ordered),
            )
        )
    return result


def gaining(
    choices: Sequence[Choice], attempt: Try, elements: Mapping[str, int]
) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with the ways that make the artifact smaller, and what the others give.

    What clearly does, as less than half of its code is left, is taken at once, if all
    of it does; each of the others is compiled beside what is kept by then, and where it
    does not gain as a whole, its small and its large executables apart.

    `elements`: executable → how many its largest tensor has.
    """
    clear = [
        choice
        for choice in choices
        if choice.left_share is not None and choice.left_share < 0.5
    ]
    best, without = attempt([group for family in clear for group in family.ways[0]]), {}
    doubtful = [choice for choice in choices if choice not in clear]
    if not is_smaller(best, plain := attempt(NOTHING)):
        best, doubtful = plain, list(choices)
    for audit in sorted(
        doubtful,
        key=lambda family: (
            family.apart_bytes is None,
            -(family.apart_bytes or 0),
            family.members,
        ),
    ):
        before, reason = best, "folding this group saves no code"
        if audit.left_share is None or audit.left_share < 1:
            tried = [attempt([*best.groups, *groups]) for groups in audit.ways]
            sizes = [
                size
                for with_it in tried
                if (size := with_it.artifact_bytes) is not None
            ]
            reason = (
                "this group does not make the artifact smaller"
                if sizes
                else "this group does not compile together with the others"
            )
            best = next(
                (
                    size
                    for size in tried
                    if is_smaller(size, best) and size.artifact_bytes == min(sizes)
                ),
                best,
            )
        if best is before:
            for half in halves(audit.members, elements):
                with_it = attempt([*best.groups, half])
                best = with_it if is_smaller(with_it, best) else best
        if best is before:
            without[audit.members] = reason
    return best, without


def is_smaller(attempt: Attempt, other_attempt: Attempt) -> bool:
    """Whether its artifact is; not where one of both has none."""
    sizes = attempt.artifact_bytes, other_attempt.artifact_bytes
    return sizes[0] is not None and sizes[1] is not None and sizes[0] < sizes[1]


def halves(group: Group, elements: Mapping[str, int]) -> list[Group]:
    """A group's small and its large executables, in the program's order.

    None for a group of few.
    """
    if len(group) < _MOST_HALVES:
        return []
    by_size = sorted(group, key=lambda name: (elements.get(name, 0), group.index(name)))
    small = set(by_size[: len(group) // 2])
    return [
        tuple(name for name in group if (name in small) is is_small)
        for is_small in (True, False)
    ]


def affordable(
    best: Attempt,
    attempt: Try,
    price: Callable[[Attempt], Price | str],
    max_slowdown: float,
) -> tuple[Attempt, dict[Group, str], Price | str]:
    """The groups that are worth their price together, why the others are not, and that price.

    What is dearest alone is dropped first. Where no price is known of all of them, all are kept.
    """
    whole, alone_prices, whys = (
        price(best),
        dict[Group, Price | str](),
        dict[Group, str](),
    )
    if isinstance(whole, str):
        return best, {}, whole
    while isinstance(whole, str) or not within(whole, max_slowdown):
        alone_prices = alone_prices or {
            group: price(attempt([group])) for group in best.groups
        }
        ratios = {group: _ratio_of(alone_prices[group]) for group in best.groups}
        dearest = max(best.groups, key=lambda group: (ratios[group], group))
        whys[dearest] = _dear(alone_prices[dearest], max_slowdown)
        best = attempt([group for group in best.groups if group != dearest])
        if not best.groups:
            return best, whys, "no remaining group is worth its slowdown"
        whole = price(best)
    return best, whys, whole


def _ratio_of(price: Price | str) -> float:
    """Return how much slower a group makes its program; infinite where that is unknown."""
    if isinstance(price, Price):
        return price.ratio
    return math.inf


def _dear(alone_prices: Price | str, max_slowdown: float) -> str:
    if isinstance(alone_prices, str):
        return f"its slowdown is unknown: {alone_prices}"
    is_within = within(alone_prices, max_slowdown)
    if is_within:
        return "alone it is worth its slowdown, but not together with the other groups"
    return (
        f"{'it may be' if is_within is None else 'it is'} slower by more than"
        f" {max_slowdown:.1%}"
    )
