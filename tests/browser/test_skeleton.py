"""What all pages share: policy, addresses, sortable tables, charts.

A user's files replace the packaged ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import opened, violations
from contrasts import colours
from playwright.sync_api import Browser

from bot.errors import TemplateError
from bot.show.renderers import draw, load, skeleton

PAGE = """{% extends "page/skeleton.html.j2" %}
{% block title %}Sizes{% endblock %}
{% block header %}<h1>Sizes</h1>{% endblock %}
{% block main %}
<details><summary>one</summary>
<table class="sortable"><thead><tr><th>name</th><th class="n">size</th></tr></thead><tbody>
<tr id="net_f32/llvm-cpu-x86_64/main_dispatch_10"><td>main_dispatch_10</td><td class="n">1,000 → 20 B</td></tr>
<tr id="net_f32/llvm-cpu-x86_64/main_dispatch_9"><td>main_dispatch_9</td><td class="n">900 B</td></tr>
<tr id="net_i8/llvm-cpu-x86_64/%3Cb%3E"><td>none</td><td class="n">n/a</td></tr>
</tbody></table></details>
{% endblock %}
{% block footer %}Made by a test.{% endblock %}
"""
CHART = """
addEventListener("toggle", (event) => {
  const { figure, canvas } = pictureOf("Sizes of both", "The same as in the table", 200);
  event.target.append(figure);
  drawChart(canvas, () => ({ type: "bar", data: { labels: ["a", "b"],
    datasets: [{ data: [1, 2], backgroundColor: colour("--fill-up") }] } }));
}, true);
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "sizes.html.j2").write_text(PAGE, encoding="utf-8")
    (tmp_path / "sizes.js").write_text(CHART, encoding="utf-8")
    frame = skeleton(tmp_path, scripts=("sizes.js",), charts=True)
    place = tmp_path / "sizes.html"
    place.write_text(
        draw(load("sizes.html.j2", tmp_path), skeleton=frame), encoding="utf-8"
    )
    return place


@pytest.mark.parametrize("dark", [False, True])
def test_a_chart_is_drawn_when_it_is_asked_for_in_the_colours_of_the_page(
    browser: Browser, page: Path, dark: bool
) -> None:
    with opened(browser, page, dark=dark) as tab:
        assert tab.evaluate("typeof Chart") == "undefined"
        tab.locator("summary").click()
        tab.locator("canvas[role=img][aria-label='Sizes of both']").wait_for()
        fill = colours("dark" if dark else "light")["fill-up"]
        assert (
            tab.evaluate(
                "drawn[0].chart.getDatasetMeta(0).data[0].options.backgroundColor"
            )
            == fill
        )
        tab.emulate_media(color_scheme="light" if dark else "dark")
        tab.wait_for_function(
            "drawn[0].chart.getDatasetMeta(0).data[0].options.backgroundColor !=="
            f" '{fill}'"
        )
        assert not violations(tab)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("net_f32/llvm-cpu-x86_64/main_dispatch_9", "main_dispatch_9"),
        ("net_f32/x86_64/dispatch_9", "main_dispatch_9"),
        ("net_i8/x86_64/%3Cb%3E", "none"),
        ("net_i8/x86_64/<b>", "none"),
        ("net/x86_64/dispatch_1", None),
        ("net/x86_64/dispatch_10", "main_dispatch_10"),
        ("x/%E0%A4%A", None),
    ],
)
def test_an_address_opens_what_is_around_it(
    browser: Browser, page: Path, address: str, name: str | None
) -> None:
    with opened(browser, page) as tab:
        tab.goto(f"{page.as_uri()}#{address}")
        if name is None:
            assert not tab.locator("details[open]").count()
        else:
            assert tab.locator(":focus td").first.inner_text() == name


def test_tables_are_sorted_by_numbers_and_as_people_sort_names(
    browser: Browser, page: Path
) -> None:
    with opened(browser, page) as tab:
        tab.locator("summary").click()

        def order(column: str) -> list[str]:
            tab.get_by_role("button", name=column).click()
            return tab.locator("tbody td:first-child").all_inner_texts()

        assert order("size") == ["main_dispatch_9", "main_dispatch_10", "none"]
        assert order("size") == ["main_dispatch_10", "main_dispatch_9", "none"]
        assert order("name") == ["main_dispatch_9", "main_dispatch_10", "none"]
        assert tab.locator("th[aria-sort]").inner_text() == "name"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page/page.css", "</style>"),
        ("page/tables.js", "'</SCRIPT"),
        ("page/tables.js", "<!--"),
    ],
)
def test_files_that_would_end_their_element_are_refused(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(TemplateError, match="which a page cannot have"):
        skeleton(tmp_path)
    with pytest.raises(TemplateError, match="cannot be read"):
        skeleton(scripts=("no.js",))
