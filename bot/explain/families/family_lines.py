"""What varies in a group of executables of one structure, a line each: constants, offsets, shapes, or all of them.

Constants are called what they are for, told by the operations that use them: shift, multiplier, zero point.

Executables that are paired line by line here have equal keys under some view, so that their rows are equally long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, compress, zip_longest

from bot.core.program import IDENTICAL
from bot.explain.families import family_views as views
from bot.explain.families.family_groups import Member
from bot.explain.texts import Operation

_INDEX = ("index",)
_SHIFTS = frozenset({"arith.shrsi", "arith.shrui"})
_SUMS = frozenset({"arith.addi", "arith.subi"})
_BOUNDS = frozenset({"arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "arith.maximumf", "arith.minimumf"})
_NARROW = _BOUNDS | {"arith.trunci", "arith.cmpi"}
_PASSING = _SUMS | {"arith.select", "arith.extsi"}
_STEPS = 8

Users = Mapping[str, list[Operation]]


def _transposed(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(zip(*rows, strict=True)) if len({len(row) for row in rows}) == 1 else []


def constant_lines(group: Sequence[Member], index: bool = True) -> list[str]:
    """Constants, told by what they are for; without those that are an index, which may follow from a shape."""
    uses = [views.constant_uses(member.text) for member in group]
    columns = _transposed([[views.whole_value_of(constant) for _, _, constant in row] for row in uses])
    if not columns:
        return []
    is_shown = [index or constant.result_types != _INDEX for _, _, constant in uses[0]]
    text = group[0].text
    users: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in text.operations:
        for name in operation.operands:
            users[name].append(operation)
    labels: list[str] = []
    for user, position, constant in views.constant_uses(text):
        type_ = constant.result_types[0] if constant.result_types else "?"
        role = _role(users, user, position)
        labels.append(f"{role} ({user.name}, {type_})" if role else f"{type_} constant of {user.name}")
    return views.differing(list(compress(labels, is_shown)), list(compress(columns, is_shown)))


def offset_lines(group: Sequence[Member], name: str = "static_") -> list[str]:
    """Static arrays whose name begins like that."""
    arrays = [views.arrays_of(member.text) for member in group]
    rows_of_name = [[entry for entry in row if entry[0].startswith(name)] for row in arrays]
    columns = _transposed([[values for _, values in row] for row in rows_of_name])
    return views.differing([label for label, _ in rows_of_name[0]], columns) if columns else []


def _shape_rows(member: Member) -> list[tuple[str, str]]:
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


def _reaches(users: Users, operation: Operation, goals: frozenset[str]) -> bool:
    """Whether its result comes to one of `goals` through sums and selections only."""
    todo, steps = list(operation.results), 0
    while todo and steps < _STEPS:
        steps += 1
        for user in users.get(todo.pop(0), ()):
            if user.name in goals:
                return True
            if user.name in _PASSING:
                todo += user.results
    return False


def _role(users: Users, user: Operation, position: int) -> str | None:
    if user.name in _SHIFTS:
        return "shift" if position == 1 else None
    if user.name in _BOUNDS:
        return "bound"
    if user.name == "arith.muli":
        return "multiplier" if _reaches(users, user, _SHIFTS) else None
    if user.name in _SUMS and _reaches(users, user, _SHIFTS):
        return "rounding"
    narrow = user.tail.result_types == ("i32",) and _reaches(users, user, _NARROW | {"arith.muli"})
    return "zero point" if user.name in _SUMS and narrow else None
