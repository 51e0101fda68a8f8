"""Which executables of a program could become one, level by level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.fold_worker.fold_members import EXECUTABLE, LEVELS, SHAPE, Member, Unfit, member_of
else:
    from fold_members import EXECUTABLE, LEVELS, SHAPE, Member, Unfit, member_of

Groups = dict[str, list[list[str]]]


def read(module: Any) -> tuple[dict[str, Member], dict[str, str]]:
    """The executables by name that have the form that fusion gives, and why the others have not."""
    members: dict[str, Member] = {}
    unfit: dict[str, str] = {}
    for op in list(module.body.operations):
        if op.operation.name != EXECUTABLE:
            continue
        try:
            member = member_of(op.operation)
            members[member.name] = member
        except Unfit as error:
            unfit[op.operation.attributes["sym_name"].value] = str(error)
    return members, unfit


def partition(members: Iterable[Member], level: str) -> list[list[Member]]:
    """All members, those of one key together, in the program's order."""
    by_key: dict[Any, list[Member]] = {}
    for member in members:
        by_key.setdefault(member.key(LEVELS[level]), []).append(member)
    return list(by_key.values())


def classes(members: Sequence[Member], free: frozenset[str]) -> int:
    """How many kinds there are of executables, where what is free does not count."""
    return len({member.key(free) for member in members})


def elements(member: Member) -> int:
    """How many the largest tensor has that the function takes or gives, dynamic dimensions counted as 1."""
    types = [str(argument.type) for argument in member.function.regions[0].blocks[0].arguments]
    shapes = (SHAPE.search(type_) for type_ in types)
    return max((prod(int(size) for size in one[2][:-1].split("x") if size != "?") for one in shapes if one), default=1)


def groups(members: Sequence[Member]) -> Groups:
    """Level → names of the executables that could become one there; groups of two and more."""
    return {
        level: [[member.name for member in group] for group in partition(members, level) if len(group) > 1]
        for level in LEVELS
    }
