"""The comments of everyday pull requests, made from real compiles: goldens, one screen, five folds, five answers."""

from __future__ import annotations

import re
from math import ceil

import everyday
import pytest
from golden_files import check_golden
from replacing import replace

from bot.core.report import Baseline
from bot.show.comment import COMMENT_LIMIT, render_comment
from bot.show.page import render_html

CASES = tuple(everyday.CASES)
_COLUMNS, _LINES = 100, 60
"""Characters of a line of a comment, and lines of a large screen: two releases against each other just fit."""


def comment(case: str) -> str:
    """As on a pull request: measured against main's snapshot, with a run to link to."""
    made = everyday.report(case)
    found = Baseline("snapshot of the base commit", made.baseline.sha, 0)
    links = (("workflow run", "https://github.com/example/models/actions/runs/1"),)
    return render_comment(replace(made, baseline=found, links=links))


def first_screen(case: str) -> str:
    return comment(case).partition("<details>")[0]


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str) -> None:
    check_golden(f"../everyday/{case}/comment.md", comment(case))


@pytest.mark.parametrize("case", CASES)
def test_it_is_one_screen_and_five_folds(case: str) -> None:
    text = comment(case)
    lines = [re.sub(r"<[^>]+>|[`*\\]", "", line) for line in first_screen(case).splitlines()[1:]]
    assert sum(max(1, ceil(len(line) / _COLUMNS)) for line in lines if line) <= _LINES
    depth = top = 0
    for tag in re.findall(r"</?details>", text):
        top += tag == "<details>" and depth == 0
        depth += 1 if tag == "<details>" else -1
    assert depth == 0
    assert top <= 6


@pytest.mark.parametrize(("case", "most"), [("two_releases", 250), ("one_flag", 150), ("newly_broken", 150)])
def test_it_is_short(case: str, most: int) -> None:
    """Words outside of all folds, and in them: half of what there was when the page said less than the comment."""
    text, depth, words = comment(case).replace("&nbsp;", " "), 0, [0, 0]
    for part in re.split(r"(</?details>)", text.partition("\n")[2]):
        depth += {"<details>": 1, "</details>": -1}.get(part, 0)
        told = re.sub(r"<[^>]*>", " ", part).split()
        words[depth > 0] += sum(bool(re.search(r"\w", word)) for word in told)
    assert words[0] <= most and words[1] <= 5_371 / 2


PAGE = "https://example.com/code-size/7/report.html"


def linked(case: str, page: str) -> str:
    return render_comment(replace(everyday.report(case), page=page))


@pytest.mark.parametrize("case", CASES)
def test_a_comment_links_to_what_the_page_has_where_that_can_be_read(case: str) -> None:
    text = linked(case, PAGE)
    links = set(re.findall(re.escape(f"](<{PAGE}#") + r"([^>]+)>", text))
    known = set(re.findall(r'\bid="([^"]+)"', render_html(everyday.report(case))))
    assert links and links <= known
    causes = len(everyday.report(case).root_causes)
    assert "cause-1" in links or not causes
    told = [re.sub(r"\[([^\]]+)\]\(<[^>]+>\)", r"\1", text), linked(case, "")]
    told[0] = told[0].replace(" More: the page.", "").replace("<sub>More: the page</sub>\n\n", "")
    if len(told[1]) > 0.9 * COMMENT_LIMIT:  # links take the room of what comes last
        told = [each.partition("<details>")[0] for each in told]
    assert told[0] == told[1]


@pytest.mark.parametrize("page", ["", "http://example.com/report.html", "javascript:alert(1)//", "report.html"])
def test_it_never_links_to_a_page_that_nobody_can_read(page: str) -> None:
    assert "](<" not in linked("two_releases", page)
