"""A history in Markdown and on a terminal: exact, gaps never 0, within limits, and harmless."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path

import history_factory as make
import pytest
from golden_files import check_golden
from rich.console import Console
from test_comment import assert_harmless

from bot.core.history import History
from bot.errors import TemplateError
from bot.show.blocks import TERMINAL
from bot.show.history import HISTORY_LIMIT_BYTES, history_blocks
from bot.show.renderers import markdown, print_blocks


def render_history(history: History, templates: Path | None = None) -> str:
    """As the command writes it."""
    return markdown("history", partial(history_blocks, history), HISTORY_LIMIT_BYTES, templates)


def printed(history: History, width: int = 160) -> str:
    out = io.StringIO()
    print_blocks(history_blocks(history, TERMINAL), Console(file=out, width=width, legacy_windows=False))
    return out.getvalue()


def row(text: str, *names: str) -> list[str]:
    """The cells of the first row of Markdown that has these names."""
    lines = (line for line in text.splitlines() if line.startswith("|"))
    line = next(line for line in lines if all(f"`{name}`" in line for name in names))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_goldens() -> None:
    check_golden("history.measured.md", render_history(make.measured()))
    check_golden("history.eventful.md", render_history(make.eventful()))


def test_the_known_steps_stand_in_the_table_of_cells() -> None:
    found = row(render_history(make.measured()), make.BERT.model, make.BERT.target)
    assert found[2:8] == ["47,704", "47,752", "47,832", "74,296", "64,872", "64,920"]
    assert found[8:] == ["3\\.9.0: +48 (+0.1 %), container", "3\\.11.0: +26,464 (+55.3 %), strategy"]


def test_the_largest_move_is_so_by_its_amount_and_of_equal_ones_the_first() -> None:
    sizes = (100_000, 110_000, 60_000, 110_000, 100_000)
    found = make.study_of(*(make.side(f"3.{at}.0", {make.BERT: size}) for at, size in enumerate(sizes)))
    for text in (render_history(make.history_of(found)), printed(make.history_of(found), 240)):
        told = next(line for line in text.replace("\\", "").splitlines() if "3.1.0: +10,000 (+10.0 %)" in line)
        assert "3.2.0: −50,000 (−45.5 %)" in told and "3.3.0" not in told.partition("3.1.0: ")[2]


def test_gaps_are_dashes_with_their_reasons_and_totals_say_over_what() -> None:
    text = render_history(make.eventful())
    cuda = row(text, make.BERT_CUDA.model, "cuda")
    assert cuda[2:7] == ["280,876", "–¹", "–²", "282,332", "282,400"]
    assert "¹ failed: error: failed to distribute" in text
    assert "² iree\\-base-compiler" in text or "² iree-base-compiler" in text
    assert re.search(r"\*\*3\\?\.12\.0\*\*: could not be measured: ", text)
    assert row(text, "cuda")[:7] == ["`cuda`", "0 of 1", "n/a", "n/a", "–", "n/a", "n/a"]
    assert "(since 3.11.0)" in text, "3.12.0 could not be had"
    assert "(since 3.10.0)" in text, "3.11.0 does not compile it, either"
    assert "does not repeat itself" in text and "asked for more than once" in text


@pytest.mark.parametrize("width", [60, 80, 100, 160, 240])
def test_a_terminal_of_any_width_breaks_no_number(width: int) -> None:
    told = printed(make.measured(), width)
    assert "64,920" in told and "47,704" in told
    assert all(len(line.rstrip()) <= width for line in told.splitlines())
    assert ("no room for " in told) is (width < 160)


def test_many_releases_have_as_many_columns_as_there_is_room_for() -> None:
    text = render_history(make.long())
    assert len(text.encode()) <= HISTORY_LIMIT_BYTES
    assert "48 releases have no column here" in text
    header = next(line for line in text.splitlines() if line.startswith("| model"))
    assert header.count("|") == 12 + 4 + 1


def test_hostile_texts_are_harmless() -> None:
    text = render_history(make.hostile())
    assert_harmless(text)
    assert len(text.encode()) <= HISTORY_LIMIT_BYTES
    assert "\x1b" not in printed(make.hostile()) and "\u202e" not in printed(make.hostile())


def test_a_template_of_the_user_comes_first(tmp_path: Path) -> None:
    (tmp_path / "history.md.j2").write_text("mine: {{ blocks[0].said|phrase }}", encoding="utf-8")
    assert render_history(make.measured(), tmp_path).startswith("mine: Code size from ")
    (tmp_path / "history.md.j2").write_text("{{ blocks.nothing }}", encoding="utf-8")
    with pytest.raises(TemplateError):
        render_history(make.measured(), tmp_path)
