"""Which executables of one program are equal but for one kind of static information: what deduplication left behind.

Every kind groups the executables that are left by a key; nothing is compared pair by pair, so the work is linear in
the number of operations. An executable belongs to one family at most: the first kind that finds it has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.core.program import FAMILY_KINDS, Family
from bot.core.reading import SourceText
from bot.insight import family_views as views
from bot.insight.family_extras import extra_operations
from bot.insight.family_fusions import different_fusions
from bot.insight.family_groups import Found, Member, grouped
from bot.insight.family_orders import operand_orders
from bot.insight.family_roles import labels_of_constants
from bot.insight.tokens import Reader


def _transposed(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(zip(*rows, strict=True)) if len({len(row) for row in rows}) == 1 else []


def _constants(members: Sequence[Member]) -> list[Found]:
    view, constant = views.exactly, views.cached(views.kind_of_constant)
    groups = grouped(members, lambda member: views.key(member.text, view, constant))
    return [Found(group, lines) for group in groups if (lines := _constant_lines(group))]


def _constant_lines(group: Sequence[Member]) -> list[str]:
    rows = [[views.value_of(constant) for _, _, constant in views.constant_uses(member.text)] for member in group]
    columns = _transposed(rows)
    return views.differing(labels_of_constants(group[0].text), columns) if columns else []


def _offsets(members: Sequence[Member]) -> list[Found]:
    view = views.cached(views.without_offsets)
    groups = grouped(members, lambda member: views.key(member.text, view, views.exactly))
    return [Found(group, lines) for group in groups if (lines := _offset_lines(group))]


def _offset_lines(group: Sequence[Member]) -> list[str]:
    arrays = [views.arrays_of(member.text) for member in group]
    columns = _transposed([[values for _, values in row] for row in arrays])
    return views.differing([label for label, _ in arrays[0]], columns) if columns else []


def _static_shapes(members: Sequence[Member]) -> list[Found]:
    view, constant = views.cached(views.without_shapes), views.cached(views.constant_of_any_shape)
    groups = grouped(members, lambda member: views.key(member.text, view, constant))
    return [Found(group, lines) for group in groups if (lines := _shape_lines(group))]


def _shape_rows(member: Member) -> list[tuple[str, str]]:
    """Label and value of every argument's shape, every result's shape and every index, in the order of the text."""
    operations = member.text.operations
    arguments = [type_ for _, type_ in operations[0].block_arguments]
    rows = [(f"argument {at}", shape) for at, type_ in enumerate(arguments) for shape in views.shapes_of([type_])]
    inner = [(f"result of {op.name}", shape) for op in operations for shape in views.shapes_of(op.tail.result_types)]
    uses = views.constant_uses(member.text)
    indices = [(f"index of {op.name}", views.value_of(value)) for op, _, value in uses]
    return rows + inner + indices


def _shape_lines(group: Sequence[Member]) -> list[str]:
    """Shapes inside that repeat how an argument varies are left out."""
    rows = [_shape_rows(member) for member in group]
    columns: dict[tuple[str, ...], str] = {}
    for at, column in enumerate(_transposed([[value for _, value in row] for row in rows])):
        columns.setdefault(column, rows[0][at][0])
    return views.differing(list(columns.values()), list(columns))


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
    left = [Member(at, name, text) for at, (name, text) in enumerate(read) if text is not None]
    found: list[Family] = []
    for kind in _ORDER:
        here = sorted(_FINDERS[kind](left), key=lambda one: (-len(one.members), one.members[0].at))
        taken = {member.at for one in here for member in one.members}
        left = [member for member in left if member.at not in taken]
        found += [Family(kind, tuple(member.name for member in one.members), views.capped(one.lines)) for one in here]
    return tuple(sorted(found, key=lambda family: FAMILY_KINDS.index(family.kind)))
