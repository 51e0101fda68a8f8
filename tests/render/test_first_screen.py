"""The first screen: verdict, changes, totals, root causes and alarms, in this order everywhere; at most five folds."""

from __future__ import annotations

import re
from html import unescape

import pytest
import report_factory as make
from replacing import replace
from test_comment import PULLS, _leaves
from test_terminal import printed

from bot.core.rules.policy import Amount as Limit
from bot.core.rules.policy import LevelSpec, Rule, judge
from bot.core.values.whole_report import Report
from bot.render.html.page import render_html
from bot.render.markdown.comment import render_comment
from bot.render.markdown.summary import render_summary

FIXTURES = ("small", "many", "none", "usual", "broken", "broken_on_both", "no_baseline", "hostile", "why")
REPORTS: dict[str, Report] = {name: getattr(make, name)() for name in (*FIXTURES, "explained_small")}
REPORTS |= {f"pull {name}": report for name, report in PULLS.items()}
WIDE = 4_000


def plain(text: str) -> str:
    words = unescape(re.sub(r"</?(?!code|strong)[a-z][^>]*>", " ", re.sub(r"</?(?:code|strong)>", "", text)))
    return re.sub(r"[\u2060`*\\]", "", words).replace("\xa0", " ")


def comment(report: Report) -> str:
    return plain(render_comment(report).partition("<details>")[0])


def summary(report: Report) -> str:
    return plain(render_summary(report).partition("<details>")[0])


def page(report: Report) -> str:
    body = render_html(report).partition("<body>")[2]
    return plain(body.partition("<details>")[0].partition("<h2>Every cell")[0])


def terminal(report: Report) -> str:
    return re.split(r"^ *model ", printed(report, WIDE), maxsplit=1, flags=re.MULTILINE)[0]


PLACES = {"comment": comment, "summary": summary, "page": page, "terminal": terminal}


@pytest.mark.parametrize("name", REPORTS)
def test_a_comment_and_a_summary_have_at_most_five_folds(name: str) -> None:
    for text in (render_comment(REPORTS[name]), render_summary(REPORTS[name])):
        depth, top = 0, 0
        markup = "".join(token.content for token in _leaves(text) if token.type in ("html_block", "html_inline"))
        for tag in re.findall(r"</?details>", markup):
            top += tag == "<details>" and depth == 0
            depth += 1 if tag == "<details>" else -1
        assert depth == 0 and 1 <= top <= 5


def parts(report: Report) -> list[str]:
    """What has to be there, in this order."""
    moved = any(delta.state not in ("same", "broken", "unmeasured") for delta in report.deltas)
    both = any(delta.metrics["artifact_bytes"].change is not None for delta in report.deltas)
    found = ["Code size: ", "What changed:", *(["all models, base → head"] if moved and both else [])]
    if report.root_causes:
        found.append("Root causes")
    if any(one.level == "fail" for one in report.verdict.news):
        found.append("Over the limit" if report.verdict.status == "fail" else "To look at")
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", REPORTS)
def test_the_order_is_the_same_everywhere(name: str, place: str) -> None:
    screen, told = PLACES[place](REPORTS[name]), parts(REPORTS[name])
    at = [screen.find(part) for part in told]
    assert -1 not in at, [part for part, index in zip(told, at, strict=True) if index < 0]
    assert at == sorted(at)


@pytest.mark.parametrize("place", PLACES)
def test_each_answers_is_it_allowed_what_changed_how_much_why_and_what_alarms(place: str) -> None:
    screen = re.sub(r"\s+", " ", PLACES[place](REPORTS["explained_small"]))
    for words in (
        "❌ Code size: 1 cell newly broken",
        "1 cell over its limit",
        "compiler IREE 3.11.0 → IREE 3.13.0",
        "285,233 → 318,785 B",
        "+11.8 %",
        "(strategy)",
        "cause 1",
        "newly broken: bert on vmvx: does not compile (exit code 1)",
        "50,438 → 83,990 B, +66.5 %; allowed: growth up to 4 KiB or 5 %",
    ):
        assert words in screen, words


@pytest.mark.parametrize("place", PLACES)
def test_a_quiet_report_has_neither_causes_nor_alarms(place: str) -> None:
    for name in ("none", "usual"):
        screen = PLACES[place](REPORTS[name])
        assert "✅ Code size: nothing changed" in screen
        assert not re.search("Root causes|Over the limit|To look at|Close to a limit", screen, re.IGNORECASE)


@pytest.mark.parametrize("place", PLACES)
def test_a_budget_that_grew_is_after_the_alarms(place: str) -> None:
    report = REPORTS["small"]
    limit = Rule("budget", ("artifact_bytes",), ("mobilenet",), fail=LevelSpec(limit=Limit(84_000, "own", "84000")))
    screen = PLACES[place](replace(report, verdict=judge(report.deltas, [limit])))
    at = screen.lower().find("close to a limit: ")
    assert screen.find("newly broken: ") < at and "83,990 of 84,000 B, >99.9 %" in screen[at:]
    assert screen.count("lose to a limit: ") == 1, "vmvx did not grow"


def test_the_screen_is_short() -> None:
    for name, report in REPORTS.items():
        assert len(comment(report).strip().splitlines()) <= 60, name


def test_what_is_known_is_in_a_fold() -> None:
    text = render_comment(REPORTS["usual"])
    assert "Findings: 0 of this change, 9 that base had; 3 cells broken on both sides" in text
    assert "**Known: base had them, and head is not worse**" in text.partition("<details>")[2]
    assert "◽" not in text.partition("<details>")[0]
