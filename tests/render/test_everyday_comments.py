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
HEADLINES = {
    "nothing_changed": "✅ **Code size: nothing changed**",
    "one_flag": "❌ **Code size: 4 cells over their limit**",
    "model_edit": "⚠️ **Code size: 1 cell at a warning level** · +5,136 B (+0.1 %) in all",
    "newly_broken": "❌ **Code size: 1 cell newly broken**",
    "improvement": "✅ **Code size: smaller, −210,864 B (−4.0 %) in all**",
    "everything_broke": "❌ **Code size: 29 cells newly broken**",
    "patch_release": "✅ **Code size: changed within the rules, −1,272 B (−0.1 %) in all**",
    "two_releases": "❌ **Code size: 2 cells over their limit**",
}
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
    assert top <= 5


@pytest.mark.parametrize("case", CASES)
def test_it_says_whether_it_is_allowed_what_changed_how_much_why_and_what_to_do(case: str) -> None:
    screen = first_screen(case)
    assert HEADLINES[case] in screen
    assert screen.index("**Code size:") < screen.index("**What changed:**")
    places = [screen.find(words) for words in ("| target | change |", "**Root causes**", "**Over the limit**")]
    found = [place for place in places if place >= 0]
    assert found == sorted(found)
    assert ("| target | change |" in screen) == (case not in ("nothing_changed", "everything_broke"))
    assert ("**Root causes**" in screen) == (case not in ("nothing_changed", "newly_broken", "everything_broke"))
    fails = HEADLINES[case].startswith("❌")
    assert ("/code-size accept" in screen) == fails
    assert ("**Over the limit**" in screen) == fails


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("nothing_changed", "nothing of what is measured: the same compiler, flags and models on both sides"),
        ("one_flag", "flag `--iree-llvmcpu-target-cpu=x86-64-v3` → `x86-64-v4` on `x86_64`"),
        ("model_edit", "model `mobilenet_v1_f32_224` edited (+1 operation in `classifier`)"),
        ("newly_broken", "flag `--iree-rocm-bc-dir=third_party/rocm-device-libs` added on `rocm`"),
        ("improvement", "flag `--iree-llvmcpu-target-cpu=x86-64-v4` → `x86-64-v3` on `x86_64`"),
        ("everything_broke", "flag `--iree-opt-level=O4` added"),
        ("patch_release", "compiler IREE 3.12.0 → IREE 3.13.0"),
        ("two_releases", "compiler IREE 3.11.0 → IREE 3.13.0"),
    ],
)
def test_what_changed_is_named(case: str, told: str) -> None:
    assert f"**What changed:** {told}\n" in first_screen(case)


def test_what_base_had_is_known_and_alarms_nobody() -> None:
    text = comment("nothing_changed")
    assert "0 of this change, 6 that base had" in text
    grid = text.partition("Every cell:")[2].partition("</details>")[0]
    assert not re.search("❌|⚠️|⛔", grid)
    assert "/code-size accept" not in text


PAGE = "https://example.com/code-size/7/report.html"


def linked(case: str, page: str) -> str:
    return render_comment(replace(everyday.report(case), page=page))


@pytest.mark.parametrize("case", CASES)
def test_a_comment_links_to_what_the_page_has_where_that_can_be_read(case: str) -> None:
    text = linked(case, PAGE)
    links = set(re.findall(re.escape(f"](<{PAGE}#") + r"([^>]+)>", text))
    known = set(re.findall(r'\bid="([^"]+)"', render_html(everyday.report(case))))
    assert links and links <= known
    assert {f"cause-{at + 1}" for at in range(text.count("[details]("))} <= links
    told = [re.sub(r" · \[details\]\(<[^>]+>\)|\[([^\]]+)\]\(<[^>]+>\)", r"\1", text), linked(case, "")]
    if len(told[1]) > 0.9 * COMMENT_LIMIT:  # links take the room of what comes last
        told = [each.partition("<details>")[0] for each in told]
    assert told[0] == told[1]


@pytest.mark.parametrize("page", ["", "http://example.com/report.html", "javascript:alert(1)//", "report.html"])
def test_it_never_links_to_a_page_that_nobody_can_read(page: str) -> None:
    assert "](<" not in linked("two_releases", page)


def test_a_dispatch_that_moved_most_is_a_link() -> None:
    text = linked("two_releases", PAGE)
    assert f"](<{PAGE}#bert_l4_f32_dyn/llvm-cpu-x86_64/main%24async_dispatch_1>)" in text
