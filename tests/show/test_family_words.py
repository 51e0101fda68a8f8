"""What the comment, the page and the terminal say of families."""

from __future__ import annotations

import pytest

from bot.core.program import IDENTICAL, Family
from bot.show.blocks import plain
from bot.show.why import Room, family_line


@pytest.mark.parametrize(
    ("family", "said"),
    [
        (Family("constants", ("a", "b"), IDENTICAL), "2 executables have identical functions (a, b)"),
        (
            Family("constants", ("a", "b", "c"), ("i32: 3, 5",)),
            "constants keep 3 executables apart (a, b, …): i32: 3, 5",
        ),
        (Family("constants", ("a", "b")), "constants keep 2 executables apart (a, b)"),
        (
            Family("static-shapes", ("a", "b"), ("argument 0: 8, 16", "shift (arith.shrsi, i64): 36, 37")),
            "static shapes keep 2 executables apart (a, b): argument 0: 8, 16; shift (arith.shrsi, i64): 36, 37",
        ),
        (
            Family("different-fusion", ("a", "b"), ("@a: + 2 arith.addf",)),
            "different fusion keeps 2 executables apart (a, b): @a: + 2 arith.addf",
        ),
    ],
)
def test_identical_is_said_of_those_that_nothing_keeps_apart_only(family: Family, said: str) -> None:
    """A stored baseline has no lines of any other family."""
    assert plain(family_line(family, Room())) == said


def test_where_there_is_room_all_are_named() -> None:
    family = Family("offsets", ("a", "b", "c"), ("offset 0: 1, 2", "offset 1: 3, 4"))
    assert (
        plain(family_line(family, Room(members=12, varying=1)))
        == "offsets keep 3 executables apart (a, b, c): offset 0: 1, 2"
    )
