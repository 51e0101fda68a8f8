"""The page: self-contained, harmless, with everything in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
import report_factory as make
from golden_files import check_golden
from growth import LINEAR, cpu_growth
from replacing import replace

from bot.core.metrics import METRICS
from bot.core.values.snapshot import Cell, CellKey
from bot.core.values.whole_report import Report
from bot.errors import TemplateError
from bot.render.html.page import render_html
from bot.render.markdown.comment import render_comment
from bot.render.markdown.summary import render_summary

_VOID = {"meta", "br"}
_TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "p",
    "br",
    "ul",
    "ol",
    "li",
    "div",
    "table",
    "thead",
}
_TAGS |= {"tbody", "tr", "th", "td", "code", "pre", "strong", "small", "span", "details", "summary"}
_ATTRIBUTES = {"class", "lang", "charset", "name", "content", "http-equiv"}


class Page(HTMLParser):
    """Tags in balance, attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", ["small", "many", "none", "usual", "broken", "broken_on_both", "hostile", "why"])
def test_it_is_well_formed_and_harmless(name: str) -> None:
    html = render_html(getattr(make, name)())
    page = Page(html)
    assert not page.open
    assert page.tags <= _TAGS
    assert page.attributes <= _ATTRIBUTES
    assert "url(" not in html
    assert html.encode()
    assert all(c.isprintable() or c == "\n" for c in page.text)


def test_golden() -> None:
    check_golden("small.report.html", render_html(make.small()))
    check_golden("explained_small.report.html", render_html(make.explained_small()))


def test_every_cell_and_metric_is_there() -> None:
    text = Page(render_html(make.many())).text
    for metric in METRICS:
        assert text.count(metric.label) >= 13
    assert "50,438 → 83,990 B" in text
    assert text.count("main_dispatch_2_matmul_128x2_f32") == 101, "cells that one side measured"
    assert "newly-broken" in text


def test_dispatches_of_both_sides_are_joined_by_name() -> None:
    def head(_key: CellKey, found: Cell) -> Cell:
        first, second, third = found.dispatches
        other = (replace(first, code_bytes=9_999), replace(second, name="renamed"), third)
        return make.with_metrics(replace(found, dispatches=other), linalg_ops=1)

    models, targets = ("m",), {"vmvx": "vmvx"}
    report = make.report(make.snapshot("1", models=models, targets=targets), make.snapshot("2", head, models, targets))
    html = render_html(report)
    assert "<td>main_dispatch_0_matmul_128x0_f32</td><td>matmul</td><td>2</td><td>1,200 → 9,999 B</td>" in html
    assert "<td>renamed (only on head)</td><td>matmul</td><td>2</td><td>1,201 B</td>" in html
    assert "<td>main_dispatch_1_matmul_128x1_f32 (only on base)</td>" in html


def test_a_changed_cell_tells_its_whole_story() -> None:
    text = Page(render_html(make.explained_small())).text
    for words in (
        "strategy in encoder.layer.*: tile sizes",
        "24 other dispatches did not change; 2 other dispatches have the same numbers, "
        "and what the program binds there differs.",
        "Dispatches that changed (4)",
        "main_dispatch_41_elementwise_128x768x768_f32",
        "+  vector_common_parallel = [8, 16, 0],",
        "What deduplication left behind (1)",
        "main_dispatch_4, main_dispatch_5",
        "Arguments of the dispatches: what a dynamic version would have to know (2)",
        "64, 128, 768",
        "Compile time by phase (informational) (2)",
    ):
        assert words in text, words
    html = render_html(make.explained_small())
    assert "<td>encoder</td><td>2</td><td>400 → 500 B</td><td>64 B</td>" in html
    assert "<td>· layer.0</td>" in html and "<td>· · attention</td>" in html
    assert "<td>main_dispatch_0_matmul</td><td>1</td><td>i32</td><td></td><td>0</td><td>n/a</td><td>1</td>" in html


def test_what_is_said_of_whole_models_is_whole() -> None:
    html = render_html(make.explained_small())
    text = Page(html).text
    row = "<td><code>mobilenet</code></td><td>301</td><td>288</td><td>74</td><td>120</td><td>3</td>"
    assert f"{row}<td>n/a</td><td>n/a</td><td>n/a</td><td>1.46</td>" in html
    assert "mobilenet against bert on" in text
    assert "<h2>Fusion" not in render_html(make.many())


@pytest.mark.parametrize("word", make.HOSTILE)
def test_the_words_of_an_explanation_are_harmless(word: str) -> None:
    page = Page(render_html(make.explained(make.small(), word)))
    assert not page.open and page.tags <= _TAGS and page.attributes <= _ATTRIBUTES
    assert all(c.isprintable() or c == "\n" for c in page.text)


def test_stories_have_a_limit() -> None:
    report = make.explained(make.huge(1_600))
    html = render_html(report)
    told = html.count("24 other dispatches did not change")
    left_out = sum(int(count) for count in re.findall(r"no room to explain (\d+) cells?, report.json does", html))
    assert told > 100 and told + left_out == len(report.explanations)


def test_no_scripts_and_nothing_from_elsewhere() -> None:
    html = render_html(make.hostile())
    assert "default-src 'none'" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "prefers-color-scheme: dark" in html


def test_a_user_template_is_escaped_too(tmp_path: Path) -> None:
    (tmp_path / "report.html.j2").write_text("{% for m in models %}{{ m.model }}{% endfor %}")
    html = render_html(make.hostile(), tmp_path)
    assert "<" not in html
    assert "\u202e" not in html
    (tmp_path / "report.html.j2").write_text("\n{{ view.x }}")
    with pytest.raises(TemplateError, match=r"report\.html\.j2:2: template failed"):
        render_html(make.small(), tmp_path)


@pytest.mark.parametrize("render", [render_comment, render_summary, render_html])
def test_time_grows_with_the_number_of_cells(render: Callable[[Report], str]) -> None:
    assert cpu_growth(make.huge, render, 1_000) < LINEAR


def test_the_page_of_five_thousand_cells_opens_in_a_browser() -> None:
    assert len(render_html(make.huge())) < 16_000_000
