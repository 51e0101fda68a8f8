"""Which executables of one program are identical or equal but for static information: what deduplication left behind.

Every kind groups the executables that are left by a key; nothing is compared pair by pair, so the work is linear in
the number of operations. An executable belongs to one family at most: the first kind that finds it has it. What differs
in two kinds at once, or in nothing, no kind finds: that is joined in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bot.core.values.program import FAMILY_KINDS, Family
from bot.core.values.reading import SourceText
from bot.insight.facts.tokens import Reader
from bot.insight.families import family_views as views
from bot.insight.families.family_extras import extra_operations
from bot.insight.families.family_fusions import different_fusions
from bot.insight.families.family_groups import Found, Member, grouped
from bot.insight.families.family_joins import joined
from bot.insight.families.family_lines import constant_lines, offset_lines, shape_lines
from bot.insight.families.family_orders import operand_orders


def _constants(members: Sequence[Member]) -> list[Found]:
    view, constant = views.exactly, views.cached(views.kind_of_constant)
    groups = grouped(members, lambda member: views.key(member.text, view, constant))
    return [Found(group, lines) for group in groups if (lines := constant_lines(group))]


def _offsets(members: Sequence[Member]) -> list[Found]:
    view = views.cached(views.without_offsets)
    groups = grouped(members, lambda member: views.key(member.text, view, views.exactly))
    return [Found(group, lines) for group in groups if (lines := offset_lines(group))]


def _static_shapes(members: Sequence[Member]) -> list[Found]:
    view, constant = views.cached(views.without_shapes), views.cached(views.constant_of_any_shape)
    groups = grouped(members, lambda member: views.key(member.text, view, constant))
    return [Found(group, lines) for group in groups if (lines := shape_lines(group))]


_FINDERS: dict[str, Callable[[Sequence[Member]], list[Found]]] = {
    "constants": _constants,
    "static-shapes": _static_shapes,
    "offsets": _offsets,
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
    found = joined(members, list(_found(members)), _FINDERS)
    ranked = sorted(found, key=lambda one: (FAMILY_KINDS.index(one.kind), -len(one.members), one.members[0].at))
    return tuple(Family(one.kind, tuple(each.name for each in one.members), views.capped(one.lines)) for one in ranked)


def _found(left: Sequence[Member]) -> Iterator[Found]:
    for kind in _ORDER:
        here = _FINDERS[kind](left)
        taken = {member.at for one in here for member in one.members}
        left = [member for member in left if member.at not in taken]
        yield from (replace(one, kind=kind) for one in here)
