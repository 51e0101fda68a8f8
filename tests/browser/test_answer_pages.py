"""The pages of a lab and of a fold audit in a browser: drawn from the blocks that the Markdown has, too."""

from __future__ import annotations

import re
from pathlib import Path

import fold_factory
import lab_factory
import pytest
from browser import opened, violations
from playwright.sync_api import Browser

from bot.fold.showing import write_folds
from bot.show.lab import write_lab

OPEN_ALL = "all => all.forEach((fold) => { fold.open = true; })"
FIGURE = re.compile(r"[\d,]+ B")


@pytest.fixture(params=["lab", "fold"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The files of one command: JSON, Markdown, page."""
    if request.param == "lab":
        return write_lab(lab_factory.timed(), None, tmp_path)
    return write_folds(fold_factory.small(), None, tmp_path)


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_accessible(
    browser: Browser, files: list[Path], width: int, dark: bool
) -> None:
    with opened(browser, files[-1], width=width, dark=dark) as tab:
        tab.locator("details").evaluate_all(OPEN_ALL)
        assert violations(tab) == []
        assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_it_has_the_figures_of_the_markdown_and_no_caption_without_a_picture(
    browser: Browser, files: list[Path]
) -> None:
    _, markdown, page = files
    figures = set(FIGURE.findall(markdown.read_text(encoding="utf-8")))
    with opened(browser, page, script=False) as tab:
        text = tab.locator("body").text_content() or ""
        assert all(figure in text for figure in figures)
        assert tab.locator("main table tbody tr").count()
        assert not tab.locator("figcaption, .pictures, figure, script.library").count()
