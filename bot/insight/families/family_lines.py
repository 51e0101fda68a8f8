"""What varies in a group of executables of one structure, a line each: constants, offsets, shapes, or all of them.

Executables that are paired line by line here have equal keys under some view, so that their rows are equally long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress, zip_longest

from bot.core.values.program import IDENTICAL
from bot.insight.families import family_views as views
from bot.insight.families.family_groups import Member
from bot.insight.families.family_roles import labels_of_constants

_INDEX = ("index",)


def _transposed(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(zip(*rows, strict=True)) if len({len(row) for row in rows}) == 1 else []


def constant_lines(group: Sequence[Member], index: bool = True) -> list[str]:
    """Constants, told by what they are for; without those that are an index, which may follow from a shape."""
    uses = [views.constant_uses(member.text) for member in group]
    columns = _transposed([[views.whole_value_of(constant) for _, _, constant in row] for row in uses])
    if not columns:
        return []
    kept = [index or constant.result_types != _INDEX for _, _, constant in uses[0]]
    labels = labels_of_constants(group[0].text)
    return views.differing(list(compress(labels, kept)), list(compress(columns, kept)))


def offset_lines(group: Sequence[Member], name: str = "static_") -> list[str]:
    """Static arrays whose name begins like that."""
    arrays = [views.arrays_of(member.text) for member in group]
    kept = [[entry for entry in row if entry[0].startswith(name)] for row in arrays]
    columns = _transposed([[values for _, values in row] for row in kept])
    return views.differing([label for label, _ in kept[0]], columns) if columns else []


def _shape_rows(member: Member) -> list[tuple[str, str]]:
    """Label and value of every argument's shape, every result's shape and every index, in the order of the text."""
    operations = member.text.operations
    arguments = [type_ for _, type_ in operations[0].block_arguments]
    rows = [(f"argument {at}", shape) for at, type_ in enumerate(arguments) for shape in views.shapes_of([type_])]
    inner = [(f"result of {op.name}", shape) for op in operations for shape in views.shapes_of(op.tail.result_types)]
    uses = views.constant_uses(member.text)
    indices = [(f"index of {op.name}", views.value_of(value)) for op, _, value in uses if value.result_types == _INDEX]
    return rows + inner + indices


def shape_lines(group: Sequence[Member]) -> list[str]:
    """Shapes, and offsets if they vary as well."""
    return _in_turns(_dimension_lines(group), offset_lines(group, "static_offsets"))


def _dimension_lines(group: Sequence[Member]) -> list[str]:
    """Shapes inside that repeat how an argument varies are left out."""
    rows = [_shape_rows(member) for member in group]
    columns: dict[tuple[str, ...], str] = {}
    for at, column in enumerate(_transposed([[value for _, value in row] for row in rows])):
        columns.setdefault(column, rows[0][at][0])
    return views.differing(list(columns.values()), list(columns))


def _other_lines(group: Sequence[Member]) -> list[str]:
    """Operations whose attributes or types differ, where nothing better is known."""
    rows = [[line for line, _ in member.text.lines if line.name not in views.CONSTANTS] for member in group]
    columns = _transposed([[line.text for line in row] for row in rows])
    counts = [(line.name or "a block", len(set(column))) for line, column in zip(rows[0], columns, strict=False)]
    said = [views.line(f"types or attributes of {name}", [f"{count} versions"]) for name, count in counts if count > 1]
    return list(dict.fromkeys(said)) or ["something else than types, attributes and values"]


def told(group: Sequence[Member]) -> tuple[str, list[str]]:
    """Kind and lines of executables of one structure: the loosest kind that varies, and in turns all that do."""
    exact = views.same([member.text for member in group])
    if exact(views.exactly, views.exactly):
        return "constants", list(IDENTICAL)
    if exact(views.exactly, views.kind_of_constant):
        return "constants", constant_lines(group) or _other_lines(group)
    if exact(views.without_offsets, views.kind_of_constant):
        return "offsets", _in_turns(offset_lines(group), constant_lines(group)) or _other_lines(group)
    kinds = _dimension_lines(group), constant_lines(group, index=False), offset_lines(group, "static_offsets")
    return "static-shapes", _in_turns(*kinds) or _other_lines(group)


def _in_turns(*kinds: Sequence[str]) -> list[str]:
    """One line of each, the second of each, …: only the first few lines are shown."""
    return [line for line in chain.from_iterable(zip_longest(*kinds)) if line]
