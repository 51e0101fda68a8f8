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
    "one_flag": "❌ **Code size: 1 cause over the limit, in 4 of 32 builds**",
    "model_edit": "⚠️ **Code size: 1 of 32 builds to look at** · +5,136 B (+0.1 %) in all",
    "newly_broken": "❌ **Code size: 1 of 32 builds newly broken**",
    "improvement": "✅ **Code size: smaller, −210,864 B (−4.0 %) in all**",
    "everything_broke": "❌ **Code size: 29 of 32 builds newly broken**",
    "patch_release": "✅ **Code size: changed within the rules, −1,272 B (−0.1 %) in all**",
    "two_releases": "❌ **Code size: 2 causes over the limit, in 2 of 32 builds** · 4 causes to look at, in 8 of 32",
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
    assert top <= 6


@pytest.mark.parametrize("case", CASES)
def test_it_says_whether_it_is_allowed_what_changed_how_much_why_and_what_to_do(case: str) -> None:
    screen = first_screen(case)
    assert HEADLINES[case] in screen
    assert screen.index("**Code size:") < screen.index("**What changed:**")
    parts = ("| target | change |", "**Root causes**", "**Newly broken**", "**Over the limit**", "**Next:**")
    places = [screen.find(words) for words in parts]
    found = [place for place in places if place >= 0]
    assert found == sorted(found)
    broken = case in ("newly_broken", "everything_broke")
    assert ("| target | change |" in screen) == (case not in ("nothing_changed", "everything_broke"))
    assert ("\n\n**Root causes**" in screen) == (case != "nothing_changed" and not broken)
    fails = HEADLINES[case].startswith("❌")
    assert ("/code-size accept" in comment(case)) == fails
    assert [title in screen for title in ("**Newly broken**", "**Over the limit**")] == [broken, fails and not broken]
    assert "</code>: cause not known" not in comment(case), "what fails is known"
    if fails:
        command = screen if broken else comment(case).partition("<summary>To reproduce")[2].partition("</details>")[0]
        assert "```sh\n# " in command and "actions/runs/1" in screen


@pytest.mark.parametrize(("case", "most"), [("two_releases", 250), ("one_flag", 150), ("newly_broken", 150)])
def test_it_is_short(case: str, most: int) -> None:
    """Words outside of all folds, and in them: half of what there was when the page said less than the comment."""
    text, depth, words = comment(case).replace("&nbsp;", " "), 0, [0, 0]
    for part in re.split(r"(</?details>)", text.partition("\n")[2]):
        depth += {"<details>": 1, "</details>": -1}.get(part, 0)
        told = re.sub(r"<[^>]*>", " ", part).split()
        words[depth > 0] += sum(bool(re.search(r"\w", word)) for word in told)
    assert words[0] <= most and words[1] <= 5_371 / 2


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
    assert "Findings: 6 that base had, 3 broken on both sides" in text
    grid = text.partition("Every build:")[2].partition("</details>")[0]
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


def test_a_dispatch_that_moved_most_is_a_link() -> None:
    text = linked("two_releases", PAGE)
    assert f"](<{PAGE}#bert_l4_f32_dyn/llvm-cpu-x86_64/main%24async_dispatch_1>)" in text
