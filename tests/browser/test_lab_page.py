"""The page of an experiment in the browser: pictures have the numbers of the tables, whatever names it shows."""

from __future__ import annotations

from pathlib import Path

import lab_factory as make
import pytest
from browser import opened, violations
from playwright.sync_api import Browser

from bot.core.lab import Lab
from bot.show.lab import write_lab


def written(tmp_path: Path, lab: Lab) -> Path:
    return write_lab(lab, None, tmp_path)[-1]


@pytest.mark.parametrize("width", [1280, 375])
def test_it_draws_and_breaks_no_rule(browser: Browser, tmp_path: Path, width: int) -> None:
    with opened(browser, written(tmp_path, make.timed()), width=width) as shown:
        assert shown.evaluate("drawn.length") == 2
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert not violations(shown)


def test_names_from_elsewhere_run_nothing_and_are_shown(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, make.many())) as shown:
        assert shown.evaluate("drawn.length") >= 1
        assert not shown.locator("main a, main img, main script, main iframe").count()


def test_without_scripts_the_tables_say_it_all(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, make.timed()), script=False) as shown:
        assert shown.get_by_text("1,800 (−10.0 %)").first.is_visible()
