"""What a constant is for, told by the operations that use it: shift, multiplier, rounding, zero point, bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from bot.insight.facts.tokens import Operation, Text
from bot.insight.families.family_views import constant_uses

_SHIFTS = frozenset({"arith.shrsi", "arith.shrui"})
_SUMS = frozenset({"arith.addi", "arith.subi"})
_BOUNDS = frozenset({"arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "arith.maximumf", "arith.minimumf"})
_NARROW = _BOUNDS | {"arith.trunci", "arith.cmpi"}
_PASSING = _SUMS | {"arith.select", "arith.extsi"}
_STEPS = 8

Users = Mapping[str, list[Operation]]


def _users(text: Text) -> Users:
    users: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in text.operations:
        for name in operation.operands:
            users[name].append(operation)
    return users


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


def labels_of_constants(text: Text) -> list[str]:
    """A label for each use of a constant, in the order of `constant_uses`: `shift (arith.shrsi, i64)`."""
    users = _users(text)
    labels: list[str] = []
    for user, position, constant in constant_uses(text):
        type_ = constant.result_types[0] if constant.result_types else "?"
        role = _role(users, user, position)
        labels.append(f"{role} ({user.name}, {type_})" if role else f"{type_} constant of {user.name}")
    return labels
