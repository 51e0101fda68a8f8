"""The job summary: the comment with more room."""

from __future__ import annotations

import pytest
import report_factory as make
from golden_files import check_golden
from test_comment import assert_harmless

from bot.show.comment import SUMMARY_LIMIT_BYTES, render_summary


def test_golden() -> None:
    check_golden("small.summary.md", render_summary(make.small()))


@pytest.mark.parametrize("name", ["many", "none", "broken", "hostile"])
def test_it_is_harmless_and_leaves_nothing_out(name: str) -> None:
    text = render_summary(getattr(make, name)())
    assert_harmless(text)
    assert "Shortened to fit" not in text
    assert "<!--" not in text


def test_it_fits_with_very_many_cells() -> None:
    text = render_summary(make.huge())
    assert 300_000 < len(text.encode()) <= SUMMARY_LIMIT_BYTES
    assert "report.html and report.json have everything" in text


def test_it_fits_with_long_hostile_text() -> None:
    words = tuple(f"{index}{word * 400}" for index, word in enumerate(("`", "|", "\\|", "😀", "&", "@a ", "#1 ") * 6))
    text = render_summary(make.hostile(words))
    assert len(text.encode()) <= SUMMARY_LIMIT_BYTES
    assert "\n❌ **Code size: " in f"\n{text}"


@pytest.mark.parametrize("word", make.HOSTILE[::3])
def test_the_words_of_an_explanation_are_harmless(word: str) -> None:
    assert_harmless(render_summary(make.explained(make.many(), word)))
