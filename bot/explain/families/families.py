"""Which executables of one program are identical or equal but for static information: what deduplication left behind.

Every kind groups the executables that are left by a key; nothing is compared pair by pair, so the work is linear in
the number of operations. An executable belongs to one family at most: the first kind that finds it has it. What differs
in two kinds at once, or in nothing, no kind finds: what the finders left apart is joined in the end.

Executables of one structure are one family, whatever static information varies. A structure is the text without values
of constants, static shapes and offsets. Families that a looser finder made are not of one structure; they keep their
members but for those that are better told by their structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from bot.core.program import FAMILY_KINDS, IDENTICAL, Family
from bot.core.reading import SourceText
from bot.explain.families import family_views as views
from bot.explain.families.family_extras import extra_operations
from bot.explain.families.family_fusions import different_fusions
from bot.explain.families.family_groups import FamilyDraft, Member, grouped
from bot.explain.families.family_lines import constant_lines, offset_lines, shape_lines, told
from bot.explain.families.family_orders import operand_orders
from bot.explain.texts import Reader

_Finder = Callable[[Sequence[Member]], list[FamilyDraft]]

OF_ONE_STRUCTURE = frozenset({"constants", "offsets", "static-shapes"})
LOOSER = frozenset({"extra-operation", "different-fusion"})
"""Kinds that say less of a member than that it has the structure of another executable."""


def _equal_under(view: views.View, constant: views.View, lines_of: Callable[[Sequence[Member]], list[str]]) -> _Finder:
    """Finds members that are equal under a view of lines and one of constants, and differ in what `lines_of` tells."""

    def find(members: Sequence[Member]) -> list[FamilyDraft]:
        line_view, constant_view = views.cached(view), views.cached(constant)
        groups = grouped(members, lambda member: views.key(member.text, line_view, constant_view))
        return [FamilyDraft(group, lines) for group in groups if (lines := lines_of(group))]

    return find


_FINDERS: dict[str, _Finder] = {
    "constants": _equal_under(views.exactly, views.kind_of_constant, constant_lines),
    "static-shapes": _equal_under(views.without_shapes, views.constant_of_any_shape, shape_lines),
    "offsets": _equal_under(views.without_offsets, views.exactly, offset_lines),
    "operand-order": operand_orders,
    "extra-operation": extra_operations,
    "different-fusion": different_fusions,
}
_ORDER = ("constants", "offsets", "operand-order", "static-shapes", "extra-operation", "different-fusion")
"""Offsets before static shapes, which would take them too; operand order before the looser ones."""


def families(texts: Sequence[SourceText], reader: Reader | None = None) -> tuple[Family, ...]:
    """The families of one program, in the order of FAMILY_KINDS, larger ones first; unreadable texts are in none."""
    reader = reader or Reader()
    read = [(text.executable, reader.read(text.generic)) for text in texts]
    members = [Member(at, name, text) for at, (name, text) in enumerate(read) if text is not None]
    result = list(_found(members))
    view, constant = views.cached(views.without_shapes), views.cached(views.structural_constant)
    structures = grouped(members, lambda member: views.key(member.text, view, constant))
    others = [one for one in result if one.kind not in OF_ONE_STRUCTURE]
    taken = {member for one in others for member in one.members}
    wanted = {member for group in structures if not taken.issuperset(group) for member in group}
    loose = [_spared(one, _FINDERS[one.kind], wanted) for one in others]
    joined = _with_structures(structures, loose, {tuple(one.members): one for one in result})
    ranked = sorted(joined, key=lambda one: (FAMILY_KINDS.index(one.kind), -len(one.members), one.members[0].at))
    return tuple(Family(one.kind, tuple(each.name for each in one.members), views.capped(one.lines)) for one in ranked)


def _found(remaining: Sequence[Member]) -> Iterator[FamilyDraft]:
    for kind in _ORDER:
        here = _FINDERS[kind](remaining)
        taken = {member.at for one in here for member in one.members}
        remaining = [member for member in remaining if member.at not in taken]
        yield from (replace(one, kind=kind) for one in here)


def _with_structures(
    structures: Sequence[Sequence[Member]], loose: list[FamilyDraft], known: Mapping[tuple[Member, ...], FamilyDraft]
) -> list[FamilyDraft]:
    """Those of one structure, and the looser ones; the only one of a structure that is left goes where the others are.

    `known` are the families of the finders, which stay as they are where nobody joins them.
    """
    homes = {member: at for at, one in enumerate(loose) for member in one.members}
    result: list[FamilyDraft] = []
    for group in structures:
        free = [member for member in group if member not in homes]
        if len(free) > 1:
            result.append(known.get(tuple(free)) or _of_structure(free))
        elif free:
            partner = next(member for member in group if member in homes)
            family = loose[homes[partner]]
            one = free[0]
            members = sorted([*family.members, one], key=lambda member: member.at)
            kind, lines = told([partner, one])
            other = "" if tuple(lines) == IDENTICAL else f" with other {kind.replace('-', ' ')}"
            likeness = views.line(f"@{one.name}", [f"as @{partner.name}{other}"])
            loose[homes[partner]] = replace(family, members=members, lines=[*family.lines, likeness])
    return result + loose


def _spared(one: FamilyDraft, finder: _Finder, wanted: set[Member]) -> FamilyDraft:
    """The family without the members that others want, if the rest of it is still one; else as it is."""
    staying = [member for member in one.members if member not in wanted]
    if one.kind not in LOOSER or len(staying) == len(one.members):
        return one
    again = finder(staying)
    whole = len(again) == 1 and list(again[0].members) == staying
    return replace(again[0], kind=one.kind) if whole else one


def _of_structure(group: Sequence[Member]) -> FamilyDraft:
    kind, lines = told(group)
    return FamilyDraft(group, lines, kind)
