"""Joins what the finders left apart: executables of one structure are one family, whatever static information varies.

A structure is the text without values of constants, static shapes and offsets. Families that a looser finder made are
not of one structure; they keep their members but for those that are better told by their structure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bot.core.values.program import IDENTICAL
from bot.insight.families import family_views as views
from bot.insight.families.family_groups import Found, Member, grouped
from bot.insight.families.family_lines import told
from bot.insight.families.family_views import line

OF_ONE_STRUCTURE = frozenset({"constants", "offsets", "static-shapes"})
LOOSER = frozenset({"extra-operation", "different-fusion"})
"""Kinds that say less of a member than that it has the structure of another executable."""

Finder = Callable[[Sequence[Member]], list[Found]]


def joined(members: Sequence[Member], found: Sequence[Found], finders: Mapping[str, Finder]) -> list[Found]:
    """The families of `found`, joined where a structure goes through them; nobody who was in one is left out."""
    view, constant = views.cached(views.without_shapes), views.cached(views.structural_constant)
    structures = grouped(members, lambda member: views.structure(member.text, view, constant))
    others = [one for one in found if one.kind not in OF_ONE_STRUCTURE]
    wanted = _wanted(structures, others)
    loose = [_spared(one, finders[one.kind], wanted) for one in others]
    return _with_structures(structures, loose, {tuple(one.members): one for one in found})


def _with_structures(
    structures: Sequence[Sequence[Member]], loose: list[Found], known: Mapping[tuple[Member, ...], Found]
) -> list[Found]:
    """Those of one structure, and the looser ones; the only one of a structure that is left goes where the others are.

    `known` are the families of the finders, which stay as they are where nobody joins them.
    """
    homes = {member: at for at, one in enumerate(loose) for member in one.members}
    made: list[Found] = []
    for group in structures:
        free = [member for member in group if member not in homes]
        if len(free) > 1:
            made.append(known.get(tuple(free)) or _of_structure(free))
        elif free:
            partner = next(member for member in group if member in homes)
            loose[homes[partner]] = _with(loose[homes[partner]], free[0], partner)
    return made + loose


def _wanted(structures: Sequence[Sequence[Member]], loose: Sequence[Found]) -> set[Member]:
    """Members of looser families that have the structure of an executable outside of those."""
    taken = {member for one in loose for member in one.members}
    return {member for group in structures if not taken.issuperset(group) for member in group}


def _spared(one: Found, finder: Finder, wanted: set[Member]) -> Found:
    """The family without the members that others want, if the rest of it is still one; else as it is."""
    staying = [member for member in one.members if member not in wanted]
    if one.kind not in LOOSER or len(staying) == len(one.members):
        return one
    again = finder(staying)
    whole = len(again) == 1 and list(again[0].members) == staying
    return replace(again[0], kind=one.kind) if whole else one


def _of_structure(group: Sequence[Member]) -> Found:
    kind, lines = told(group)
    return Found(group, lines, kind)


def _with(family: Found, one: Member, partner: Member) -> Found:
    members = sorted([*family.members, one], key=lambda member: member.at)
    return replace(family, members=members, lines=[*family.lines, line(f"@{one.name}", [_likeness(one, partner)])])


def _likeness(one: Member, partner: Member) -> str:
    kind, lines = told([partner, one])
    return f"as @{partner.name}" + ("" if tuple(lines) == IDENTICAL else f" with other {kind.replace('-', ' ')}")
