"""Differences: unified, capped, clean; the smallest piece of a pair, and nothing where a text is not at hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.snapshot import Dispatch
from bot.explain.matching import Match
from bot.explain.phases import (
    LINE_CHARACTERS,
    LINES,
    dispatch_diff,
    pieces,
    source_diff,
    strategy_diff,
    strategy_note,
    unified,
)

BASE = "CPUDoubleTilingExpert | workgroup = [64, 64, 0], vector = [8, 32, 1] | 1 subgroup"
HEAD = "CPUDoubleTilingExpert | workgroup = [64, 64, 0], vector = [4, 32, 1] | 1 subgroup"
TEXTS = {"s": "a\nb\nc\n", "t": "a\nB\nc\n"}


def test_a_diff_names_its_sides() -> None:
    assert unified("a\nb\nc", "a\nB\nc") == ("--- base", "+++ head", "@@ -1,3 +1,3 @@", " a", "-b", "+B", " c")
    assert unified("a\nb\n", "a\nb\n") == ()


def test_two_lines_of_context() -> None:
    lines = [str(number) for number in range(20)]
    shown = unified("\n".join(lines), "\n".join([*lines[:10], "x", *lines[11:]]))
    assert shown[3:] == (" 8", " 9", "-10", "+x", " 11", " 12")


@pytest.mark.parametrize("limit", [3, 10, LINES])
def test_long_diffs_are_cut_and_counted(limit: int) -> None:
    base, head = "\n".join(f"b{i}" for i in range(50)), "\n".join(f"h{i}" for i in range(50))
    whole = unified(base, head, 1_000)
    cut = unified(base, head, limit)
    assert cut == (*whole[:limit], f"… {len(whole) - limit} more lines")
    assert len(whole) == 103


def test_long_lines_are_clipped() -> None:
    shown = unified("x" * 500, "y" * 500)
    assert [len(line) for line in shown[3:]] == [LINE_CHARACTERS, LINE_CHARACTERS]
    assert shown[3].endswith("x…")


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_gives_clean_lines(base: str, head: str) -> None:
    for line in unified(base, head):
        assert line.isprintable() and len(line) <= LINE_CHARACTERS


def test_huge_texts_are_no_trap() -> None:
    base, head = "\n".join("ab"[i % 2] for i in range(200_000)), "\n".join("ba"[i % 3 == 0] for i in range(200_000))
    assert len(unified(base, head)) <= LINES + 1


@pytest.mark.parametrize(
    ("strategy", "parts"),
    [
        (
            "Tiling | a = [8, 0], b = [[1, 2], [3]] | wg (4, 1, 1)",
            ["Tiling", "a = [8, 0]", "b = [[1, 2], [3]]", "wg (4, 1, 1)"],
        ),
        ("<p>, #x<map = (d0, d1) -> (d0)>, {k = 1, l = 2}", ["<p>", "#x<map = (d0, d1) -> (d0)>", "{k = 1, l = 2}"]),
        ("", []),
        ("], a, b", ["]", "a", "b"]),
    ],
)
def test_a_configuration_has_parts(strategy: str, parts: list[str]) -> None:
    assert pieces(strategy) == parts


@pytest.mark.parametrize(
    ("base", "head", "note"),
    [
        ("Tiling | [8, 0]", "Tiling | [4, 0]", "Tiling | [8, 0] → Tiling | [4, 0]"),
        (BASE, HEAD, "CPUDoubleTilingExpert … vector = [8, 32, 1] → [4, 32, 1]"),
        (
            BASE,
            HEAD.replace("CPU", "Other"),
            "CPUDoubleTilingExpert → OtherDoubleTilingExpert; vector = [8, 32, 1] → [4, 32, 1]",
        ),
        (BASE, BASE + " | more", "CPUDoubleTilingExpert … nothing → more"),
        (
            BASE,
            BASE.replace("vector = [8, 32, 1]", "cache = [2]"),
            "CPUDoubleTilingExpert … vector = [8, 32, 1] → nothing; cache = nothing → [2]",
        ),
        ("A | " + "x" * 200, "A | y", "A … " + "x" * 39 + "… → y"),
        (
            "P | " + BASE,
            "Q | a = 1 | b = 2 | c = 3",
            "P → Q; CPUDoubleTilingExpert → nothing; workgroup = [64, 64, 0] → nothing; 5 more",
        ),
    ],
)
def test_a_note_shows_what_differs(base: str, head: str, note: str) -> None:
    assert strategy_note(base, head) == note


def test_configurations_differ_part_by_part() -> None:
    assert strategy_diff(BASE, HEAD)[3:] == (
        " CPUDoubleTilingExpert",
        " workgroup = [64, 64, 0]",
        "-vector = [8, 32, 1]",
        "+vector = [4, 32, 1]",
        " 1 subgroup",
    )
    assert strategy_diff(BASE, BASE) == ()


def test_sources_differ_only_where_both_texts_are_at_hand() -> None:
    assert source_diff("s", "t", TEXTS.get)[3:] == (" a", "-b", "+B", " c")
    assert source_diff("s", "gone", TEXTS.get) == source_diff("gone", "s", TEXTS.get) == ()
    assert source_diff(None, "s", TEXTS.get) == source_diff("s", "s", TEXTS.get) == ()


def test_one_argument_of_a_long_signature_is_a_line_of_its_own() -> None:
    arguments = [f"%arg{i}: tensor<{i}x{i}xf32>" for i in range(20)]
    others = [*arguments[:12], "%arg12: tensor<7xi8>", *arguments[13:]]
    texts = {"s": f"func({', '.join(arguments)})\n short, %1", "t": f"func({', '.join(others)})\n short, %1"}
    shown = source_diff("s", "t", texts.get)
    assert [line for line in shown[2:] if line[0] in "+-"] == [
        "-    %arg12: tensor<12x12xf32>,",
        "+    %arg12: tensor<7xi8>,",
    ]


def test_a_pair_shows_its_earliest_difference() -> None:
    base, head = Dispatch("e", "n", strategy=BASE), Dispatch("f", "m", strategy=HEAD)
    found = Match(base, head, "same-structure")
    assert dispatch_diff(found, ("s", "t"), TEXTS.get) == source_diff("s", "t", TEXTS.get)
    assert dispatch_diff(found, ("s", "gone"), TEXTS.get) == ()
    assert dispatch_diff(found, ("s", "s"), TEXTS.get) == strategy_diff(BASE, HEAD)
    assert dispatch_diff(Match(None, head, "added"), (None, None), TEXTS.get) == ()
    assert dispatch_diff(Match(Dispatch("e", "n"), head, "same-source"), ("s", "s"), TEXTS.get) == ()
