"""Executables as the finders of families pass them on, and grouping them by a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from bot.explain.texts import Text


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One readable executable: `at` is its place in the program."""

    at: int
    name: str
    text: Text


@dataclass(frozen=True, slots=True)
class FamilyDraft:
    """One family: its members in the program's order, and a line for each thing that keeps them apart.

    Its kind is set by who asked the finder for it.
    """

    members: Sequence[Member]
    lines: Sequence[str]
    kind: str = ""


def grouped(members: Sequence[Member], key: Callable[[Member], Hashable | None]) -> list[list[Member]]:
    """Groups of two and more with equal keys; a member whose key is None is in none."""
    groups: dict[Hashable, list[Member]] = {}
    for member in members:
        if (group_key := key(member)) is not None:
            groups.setdefault(group_key, []).append(member)
    return [group for group in groups.values() if len(group) > 1]
