"""Nothing that a model or a compiler says means anything to Markdown, GitHub, HTML or a terminal.

Numbers.
"""

from __future__ import annotations

import html
import re
import unicodedata

import pytest
from harmless import JOINER, LINKS, PARSER, nasty
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it.token import Token
from report_factory import HOSTILE

from bot.core.record import Spread
from bot.show.escape import (
    clean,
    clean_block,
    clip,
    html_text,
    md_cell,
    md_code,
    md_fence,
    md_text,
)
from bot.show.filters import (
    amount,
    change,
    grid_percent,
    grid_relative,
    human,
    percent,
    plural,
    relative,
    share,
    sides,
    signed,
    superscript,
)


def _inline(markdown: str) -> list[Token]:
    tokens = PARSER.parse(markdown)
    assert [token.type for token in tokens] == [
        "paragraph_open",
        "inline",
        "paragraph_close",
    ], markdown
    return tokens[1].children or []


def _hidden(text: str) -> str:
    return text.replace("<!--", "<!- -")


@given(nasty)
@example("`")
@example("a``b`")
def test_code_is_one_code_span_with_the_text(text: str) -> None:
    (span,) = _inline(md_code(text))
    assert (span.type, span.content) == (
        "code_inline",
        _hidden(clean(text)) or "(empty)",
    )


@given(nasty)
@example("a\\|b")
@example("\\")
def test_a_cell_stays_in_its_column(text: str) -> None:
    row = f"| {md_cell(text)} | {md_text(text)} | end |"
    tokens = PARSER.parse(
        f"| a | b | c |\n|---|---|---|\n{row}\n| next | row | end |\n"
    )
    cells = [token for token in tokens if token.type == "inline"]
    assert len(cells) == 9
    (span,) = cells[3].children or []
    assert span.type == "code_inline"
    assert span.content.replace("\u2216", "\\") == (
        _hidden(clean(text)).replace("\u2216", "\\") or "(empty)"
    )
    assert cells[5].content == "end"
    assert not re.search(r"\\\\\|", md_cell(text)), (
        "parsers disagree about a backslash before an escaped pipe"
    )


@given(nasty)
def test_no_line_closes_a_fence(text: str) -> None:
    fence, heading, *_ = PARSER.parse(f"{md_fence(text)}\n# after\n")
    assert (fence.type, fence.info, heading.type) == ("fence", "text", "heading_open")
    assert fence.content == _hidden(clean_block(text)).strip("\n") + "\n"


@given(nasty)
@example("1. a")
@example("- a")
@example("# a")
@example("===")
@example("deadbeef" * 5)
def test_text_is_only_text(text: str) -> None:
    line = md_text(text)
    if not clean(text):
        assert not line
        return
    children = _inline(line)
    assert {token.type for token in children} == {"text"}
    visible = "".join(token.content for token in children)
    assert visible.replace(JOINER, "") == clean(text)
    assert not LINKS.search(visible)


@pytest.mark.parametrize(
    "version",
    [
        "IREE 3.13.0rc20261127",
        "IREE 3.14.0.dev20261127",
        "IREE 20240410.859",
        "IREE 3.13.0.dev0+4f2c1d9a8b77",
        "triton 3.8.0+git1a2b3c4d5e",
        "clang 21.1.0-rc20260101",
    ],
)
def test_a_version_has_no_invisible_character(version: str) -> None:
    assert md_text(version).isprintable()
    assert md_text(version).replace("\\", "") == version


@pytest.mark.parametrize(
    "commit", ["deadbeef", "4f2c1d9a8b77", "at 0123abc.", "(1a2b3c4)", "a@0abc123"]
)
def test_a_commit_s_id_in_running_text_is_no_link(commit: str) -> None:
    assert not LINKS.search(md_text(commit))
    assert JOINER in md_text(commit)


@given(nasty)
@example('a" onclick="b')
@example("a' onclick='b")
def test_html_gives_the_text_back(text: str) -> None:
    escaped = html_text(text)
    assert not set(escaped) & set("<>\"'")
    assert html.unescape(escaped) == _hidden(clean(text))


@given(nasty)
def test_clean_text_is_visible(text: str) -> None:
    assert "\n" not in clean(text)
    for visible in (clean(text), clean_block(text).replace("\n", "")):
        assert not [
            c for c in visible if unicodedata.category(c)[0] in "CZ" and c != " "
        ]
        visible.encode()  # no lone surrogates


def test_terminal_sequences_go_with_their_parameters() -> None:
    assert (
        clean("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b(Bplain")
        == "red link plain"
    )
    assert clean_block("a\r\n\x1b[2Kb\tc\rd") == "a\nb   c\nd"


def test_an_unfinished_sequence_swallows_nothing() -> None:
    assert (
        clean("\x1b]0;title and the error that matters")
        == "0;title and the error that matters"
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_poses_as_the_marker(text: str) -> None:
    assert not any(
        "<!-- code-size-bot" in escape(text)
        for escape in (md_code, md_cell, md_fence, md_text, html_text)
    )


@given(st.text(max_size=40), st.integers(4, 30))
def test_clip(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert len(clipped) <= limit
    assert clipped == text if len(text) <= limit else "…" in clipped


# Numbers.

counts = st.integers(0, 1 << 53)


def test_each_number_is_written_as_people_read_it() -> None:
    sizes = [
        (83_990, "82.0 KiB"),
        (1_023, "1,023 B"),
        (1_024, "1.0 KiB"),
        (1_048_575, "1.0 MiB"),
        (5 << 40, "5.0 TiB"),
    ]
    for size, text in [*sizes, (5 << 50, "5,120.0 TiB"), (None, "n/a")]:
        assert human(size) == text
    for value, unit, text in [
        (83_990, "bytes", "83,990 B"),
        (0, "bytes", "0 B"),
        (36, "count", "36"),
        (1_234, "ms", "1,234 ms"),
        (5, "KiB", "5 KiB"),
        (None, "bytes", "n/a"),
    ]:
        assert amount(value, unit) == text
    assert [*map(signed, (33_552, -1_024, 0, None))] == [
        "+33,552 B",
        "−1,024 B",
        "±0",
        "n/a",
    ]
    ratios = (
        33_552 / 50_438,
        -0.5,
        0.0004,
        -0.0004,
        0.0,
        -1.0,
        -0.99999,
        12.3456,
        9.99,
        None,
    )
    assert (
        "; ".join(map(percent, ratios))
        == "+66.5 %; −50.0 %; +0.04 %; −0.04 %; 0 %; −100.0 %; −99.9 %; +1,235 %;"
        " +999.0 %; –"
    )
    narrow = (0.665, 0.0994, 0.0996, -0.031, 0.0001, 25.0)
    assert [
        grid_relative(*pair)
        for pair in ((10, 11), (Spread(0, 10), 20), (0, 5), (5, None))
    ] == ["+10", *"–––"]
    assert [*map(grid_percent, narrow)] == [
        "+66",
        "+9.9",
        "+10",
        "−3.1",
        "+0.01",
        "+2,500",
    ]
    assert [grid_relative(1_000, head) for head in (4, 1, 0)] == [
        "−99.6",
        "−99.9",
        "−100",
    ], "less than all is not −100"
    assert [*map(grid_percent, (-0.99, -0.9951, -0.9999, -1))] == [
        "−99",
        "−99.5",
        "−99.9",
        "−100",
    ]
    assert [*map(share, (0.56, 0.994, 0.996, 0.9999, 1))] == [
        "56 %",
        "99 %",
        "99.6 %",
        "99.9 %",
        "100 %",
    ]


def test_both_sides_are_written_with_what_lies_between() -> None:
    for base, head, expected, grown, moved in [
        (50_438, 83_990, "50,438 → 83,990 B", "+66.5 %", "+33,552 B (+66.5 %)"),
        (5, 5, "5 B", "0 %", "±0"),
        (4, 0, "4 → 0 B", "−100.0 %", "−4 B (−100.0 %)"),
        (0, 5, "0 → 5 B", "new", "+5 B (new)"),
        (None, 5, "n/a → 5 B", "new", "n/a"),
        (5, None, "5 B → n/a", "–", "n/a"),
        (0, 0, "0 B", "–", "±0"),
        (Spread(0, 48), 24, "0..48 → 24 B", "–", "−24..+24 B (–)"),
        (
            Spread(40, 50),
            60,
            "40..50 → 60 B",
            "+20.0..+50.0 %",
            "+10..+20 B (+20.0..+50.0 %)",
        ),
        (None, None, "n/a", "–", "n/a"),
    ]:
        assert (sides(base, head), relative(base, head), change(base, head)) == (
            expected,
            grown,
            moved,
        )


@given(counts.filter(bool), counts)
def test_a_change_never_reads_as_none(base: int, head: int) -> None:
    text = percent((head - base) / base)
    assert (text == "0 %") == (base == head)
    assert text.lstrip("+−") != "0.0 %"
    assert text.startswith("−") == (head < base)


def test_plural_and_superscript() -> None:
    assert [plural(count, "cell") for count in (0, 1, 1_204)] == [
        "0 cells",
        "1 cell",
        "1,204 cells",
    ]
    assert superscript(120) == "¹²⁰"
