"""Blocks that do not fit: the least important parts give way first, and are counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import report_factory as make

from bot.core.report import Report
from bot.errors import TemplateError
from bot.show.blocks import (
    Block,
    Fold,
    List,
    Part,
    Rank,
    Sentence,
    Table,
    bounded,
    listed,
    listing,
    more_of,
    part,
    section,
)
from bot.show.comment import COMMENT_LIMIT, render_comment, render_summary
from bot.show.fit import drawable, fit, left_out
from bot.show.renderers import fitting_text, length
from bot.show.sizes import block_bytes

ROWS = [(f"row {number}", str(number)) for number in range(100)]
LINES = [f"line {number}" for number in range(100)]


def answer() -> tuple[Block, ...]:
    table = Table(("name", "number"), listed(ROWS, "row"))
    return (
        Sentence("It grew."),
        bounded(List(listed(LINES, "line")), Rank.ANSWER),
        Fold("Details", (bounded(table, Rank.ROW),)),
    )


def text_of(blocks: tuple[Block, ...], limit: int) -> str:
    def values(blocks: tuple[Block, ...]) -> dict[str, object]:
        return {"answer": "test", "blocks": blocks}

    return fitting_text("blocks.md.j2", blocks, values=values, limit=limit)


def shown_and_left_out(text: str, noun: str) -> tuple[int, int]:
    """Return how many entries a text shows, and how many it counts."""
    counted = re.search(rf"…and ([\d,]+) more {noun}s?\.", text)
    shown_count = len(re.findall(rf"^(?:- |\| ){noun} \d", text, re.MULTILINE))
    return shown_count, int(counted[1]) if counted else 0


@pytest.mark.parametrize("limit", [10_000, 4_000, 2_000, 1_000, 400])
def test_every_entry_is_shown_or_counted(limit: int) -> None:
    text = text_of(answer(), limit)
    assert length(text) <= limit
    assert text.startswith("It grew.\n")
    for noun in ("row", "line"):
        assert sum(shown_and_left_out(text, noun)) == 100, text


def test_an_answer_keeps_its_lines_until_no_row_is_left() -> None:
    text = text_of(answer(), 2_000)
    assert shown_and_left_out(text, "line") == (100, 0)
    assert 0 < shown_and_left_out(text, "row")[0] < 100
    text = text_of(answer(), 1_000)
    assert shown_and_left_out(text, "row") == (0, 100)
    assert 0 < shown_and_left_out(text, "line")[0] < 100


def test_what_fits_is_drawn_as_it_is() -> None:
    blocks = answer()
    whole = sum(map(block_bytes, drawable(blocks)))
    assert fit(blocks, whole) == blocks
    assert left_out(drawable(blocks)) == ""


def test_a_part_is_made_again_with_fewer_entries_and_only_where_it_is_shortened() -> (
    None
):
    counts = list[int]()

    def lines(count: int) -> Iterator[Block]:
        counts.append(count)
        yield List(listing(LINES[:count], len(LINES), "line"))
        yield more_of(listing(LINES[:count], len(LINES), "shown line"))

    shortened = part(lines, 64, Rank.STORY)
    kept_block = bounded(List(listed(LINES)), Rank.ANSWER)
    room_bytes = block_bytes(shortened) * 3 // 4 + block_bytes(kept_block)
    shorter, same = fit((section("", shortened), kept_block), room_bytes)
    assert same is kept_block
    assert counts == sorted(counts, reverse=True) and 0 < counts[-1] < 64
    assert isinstance(shorter, Fold) and isinstance(shorter.blocks[0], Part)
    assert (
        left_out(drawable((shorter,)))
        == f"{100 - counts[-1]} lines, {100 - counts[-1]} shown lines"
    )


def test_a_text_that_has_nothing_to_shorten_and_is_too_long_is_our_own_fault() -> None:
    with pytest.raises(AssertionError, match="too large even in its smallest form"):
        text_of((Sentence("x" * 1_000),), 100)


@pytest.mark.parametrize(
    "cells", [300, 800, pytest.param(5_000, marks=pytest.mark.slow)]
)
def test_a_comment_loses_stories_before_the_grid_and_never_its_alarms(
    cells: int,
) -> None:
    report: Report = make.explained(make.huge(cells))
    text = render_comment(report)
    assert length(text) <= COMMENT_LIMIT
    screen = text.partition("<details><summary>Every build")[0]
    assert "**Fails the check**" in screen and "**Causes**" in screen
    summary = render_summary(report)
    assert summary.partition("<details>")[0].count("\n") >= screen.partition(
        "<details>"
    )[0].count("\n")


def test_a_user_s_template_is_shown_ever_shorter_blocks(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    templates = tmp_path_factory.mktemp("templates")
    template = templates / "summary.md.j2"
    template.write_text("{% include 'blocks.md.j2' %}" * 3)
    text = render_summary(make.huge(2_000), templates)
    assert text.count("Every build: ") == 3
    assert len(text.encode()) <= 1024 * 1024
    template.write_text("{{ blocks[0].lines.items }}")
    with pytest.raises(TemplateError):
        render_summary(make.small(), templates)
