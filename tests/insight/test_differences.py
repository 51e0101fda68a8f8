"""Differences: unified, capped, clean.

The smallest piece of a pair, and nothing where a text is not at hand.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.explain.differences import (
    LINE_CHARACTERS,
    LINES,
    source_diff,
    strategy_diff,
    strategy_note,
    unified,
)

BASE = (
    "CPUDoubleTilingExpert | workgroup = [64, 64, 0], vector = [8, 32, 1] | 1 subgroup"
)
HEAD = BASE.replace("[8, 32, 1]", "[4, 32, 1]")
TEXTS = {"s": "a\nb\nc\n", "t": "a\nB\nc\n"}


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_diff_names_its_sides_and_is_cut_and_clean(base: str, head: str) -> None:
    assert all(
        line.isprintable() and len(line) <= LINE_CHARACTERS
        for line in unified(base, head)
    )
    assert unified("a\nb\nc", "a\nB\nc") == (
        "--- base",
        "+++ head",
        "@@ -1,3 +1,3 @@",
        " a",
        "-b",
        "+B",
        " c",
    )
    assert unified(base, base) == ()
    lines = [str(number) for number in range(20)]
    lines_shown = unified("\n".join(lines), "\n".join([*lines[:10], "x", *lines[11:]]))
    assert lines_shown[3:] == (" 8", " 9", "-10", "+x", " 11", " 12")
    lines_shown = unified(
        "\n".join(f"b{i}" for i in range(50)), "\n".join(f"h{i}" for i in range(50))
    )
    assert (len(lines_shown), lines_shown[-1]) == (
        LINES + 1,
        f"… {103 - LINES} more lines",
    )
    assert [len(line) for line in unified("x" * 500, "y" * 500)[3:]] == [
        LINE_CHARACTERS
    ] * 2


def test_huge_texts_are_no_trap() -> None:
    base = "\n".join("ab"[i % 2] for i in range(200_000))
    head = "\n".join("ba"[i % 3 == 0] for i in range(200_000))
    assert len(unified(base, head)) <= LINES + 1


@pytest.mark.parametrize(
    ("base", "head", "note"),
    [
        (BASE, HEAD, "CPUDoubleTilingExpert … vector 8 → 4"),
        (
            BASE,
            HEAD.replace("CPU", "Other"),
            "pipeline CPUDoubleTilingExpert → OtherDoubleTilingExpert; vector 8 → 4",
        ),
        (BASE, BASE + " | more", "CPUDoubleTilingExpert … more not set → set"),
        (
            BASE,
            BASE.replace("vector = [8, 32, 1]", "cache = [2]"),
            "CPUDoubleTilingExpert … vector [8, 32, 1] → not set; cache not set → [2]",
        ),
        (
            BASE,
            BASE.replace("1 subgroup", "2 subgroup"),
            "a different configuration, but all named values are equal",
        ),
    ],
)
def test_a_note_shows_what_differs_of_two_configurations(
    base: str, head: str, note: str
) -> None:
    assert strategy_note(base, head) == note


def test_a_difference_is_shown_where_both_texts_are_at_hand() -> None:
    assert source_diff("s", "t", TEXTS.get)[3:] == (" a", "-b", "+B", " c")
    for base_text, head_text in (("s", "gone"), ("gone", "s"), (None, "s"), ("s", "s")):
        assert source_diff(base_text, head_text, TEXTS.get) == ()
    assert {"-vector = [8, 32, 1]", "+vector = [4, 32, 1]"} < set(
        strategy_diff(BASE, HEAD)
    )


def test_one_argument_of_a_long_signature_is_a_line_of_its_own() -> None:
    arguments = [f"%arg{i}: tensor<{i}x{i}xf32>" for i in range(20)]
    changed_arguments = [*arguments[:12], "%arg12: tensor<7xi8>", *arguments[13:]]
    texts = {
        "s": f"func({', '.join(arguments)})\n short, %1",
        "t": f"func({', '.join(changed_arguments)})\n short, %1",
    }
    changed_lines = [
        line for line in source_diff("s", "t", texts.get)[2:] if line[0] in "+-"
    ]
    assert changed_lines == [
        "-    %arg12: tensor<12x12xf32>,",
        "+    %arg12: tensor<7xi8>,",
    ]
