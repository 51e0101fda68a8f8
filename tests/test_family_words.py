"""What the comment, the page and the terminal say of families."""

from __future__ import annotations

import pytest

from bot.core.values.program import IDENTICAL, Family
from bot.render.html.cell_story import _family_row
from bot.render.reasons.why import family_line


def words(family: Family) -> str:
    """The line of the comment and of `explain`, without its marks."""
    return "".join(span.text for span in family_line(family))


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
    ],
)
def test_identical_is_said_of_those_that_nothing_keeps_apart_only(family: Family, said: str) -> None:
    """A stored baseline has no lines of any other family."""
    assert words(family) == said


def test_the_page_calls_them_identical() -> None:
    kind, members, varying, names = _family_row(Family("constants", ("a", "b"), IDENTICAL))
    assert (kind, members, varying, names) == ("identical", "2", "nothing: their functions are identical", "a, b")
    assert _family_row(Family("constants", ("a", "b")))[0] == "constants"
