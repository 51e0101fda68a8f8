"""One story, drawn three times: what the comment, the page and `explain` say of a cell is the same."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html import unescape

import pytest
import report_factory as make
from json_texts import report_to_json
from rich.console import Console

from bot.commands.explain import explain
from bot.core.values.explanation import PartDelta
from bot.core.values.whole_report import Report
from bot.render.html.page import render_html
from bot.render.markdown.comment import render_comment

FALLS = {"codegen": -120, "host": 900, "strategy": 32_772}
PARTS = (PartDelta("host", "VM [bytecode]", 1_000), PartDelta("host", "constants", -100))
REPORT = make.explained_small()


def fallen(report: Report) -> Report:
    """The report with a change by cause, in another order than by size, as a file has it."""
    ((key, known),) = report.explanations.items()
    return replace(report, explanations={key: replace(known, waterfall=FALLS, parts=PARTS)})


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words of each place, without marks, on one line."""
    report, path = fallen(REPORT), tmp_path_factory.mktemp("told") / "report.json"
    path.write_text(report_to_json(report), encoding="utf-8")
    out = io.StringIO()
    explain(path, "mobilenet", "*x86*", None, Console(file=out, width=400, color_system=None))
    comment = re.sub(r"</?\w+>|[`*\\|]", "", render_comment(report))
    page = unescape(re.sub(r"<[^>]+>", " ", render_html(report)))
    return [re.sub(r"\s+", " ", text.replace("\u2060", "")) for text in (comment, page, out.getvalue())]


@pytest.mark.parametrize(
    "said",
    [
        "; the sides first differ in configuration.",
        "24 other dispatches did not change; 2 other dispatches have the same numbers, and what the program binds ",
        "What deduplication left behind",
        "constants keep 6 executables apart",
        "arith.constant i32 → arith.muli: 3, 5, 7, 11",
        "stack frame",
        "main_dispatch_1_matmul_128x768x768_f32",
        "encoder.layer.1.attention",
        "2,001 → 3,990 B",
        "– → 900 B",
        "dispatch sites",
        "# base: IREE 3.11.0rc20261016; head: IREE 3.13.0rc20261016",
    ],
)
def test_all_three_say(drawn: list[str], said: str) -> None:
    assert [said in re.sub(r" ([;.,:)])", r"\1", text) for text in drawn] == [True] * 3


def test_the_largest_part_of_the_change_comes_first(drawn: list[str]) -> None:
    comment, page, terminal = drawn
    assert "By cause: strategy +32,772 B, VM [bytecode] +1,000 B, codegen −120 B, constants −100 B." in comment
    table = (
        "strategy +32,772 B host program +900 B VM [bytecode] +1,000 B{} constants −100 B codegen −120 B all +33,552 B"
    )
    assert table.format(",") in page
    assert table.format("") in terminal
