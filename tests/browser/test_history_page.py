"""The page of a history in a browser: charts with gaps, addresses, no scripts, small screens, and hostile texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import history_factory as make
import pytest
from browser import opened, violations
from playwright.sync_api import Browser, Page
from report_factory import HOSTILE

from bot.core.history import History
from bot.show.history import write_history

Written = Callable[[History], Path]
CELL = "bert_l4_f32_s128/llvm-cpu-x86_64"


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(history: History) -> Path:
        return write_history(history, None, tmp_path)[-1]

    return write


def all_charts(page: Page) -> list[dict[str, Any]]:
    """What each chart shows, once all were in view."""
    for box in page.locator(".total > div, .multiples > div").all():
        box.scroll_into_view_if_needed()
        box.locator("canvas").wait_for()
    page.wait_for_function("() => drawn.length === 1 + told.models.length")
    script = """[...drawn].sort((one, other) => AT).map(({ chart }) => ({ labels: chart.data.labels,
        sets: chart.data.datasets.map((one) => ({ label: one.label, data: one.data, gaps: one.spanGaps,
        look: [one.borderColor, one.pointStyle, one.borderDash.join()] })) }))"""
    order = "one.chart.canvas.compareDocumentPosition(other.chart.canvas) & 4 ? -1 : 1"
    charts: list[dict[str, Any]] = page.evaluate(script.replace("AT", order))
    return charts


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_it_is_accessible_and_nothing_is_wider_than_the_screen(
    browser: Browser, written: Written, width: int, dark: bool
) -> None:
    with opened(browser, written(make.measured()), width=width, dark=dark) as page:
        assert len(all_charts(page)) == 3
        page.locator("details").evaluate_all(
            "all => all.forEach((one) => { one.open = true; })"
        )
        assert not violations(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_charts_have_the_values_and_bridge_no_gap(
    browser: Browser, written: Written
) -> None:
    with opened(browser, written(make.measured())) as page:
        page.get_by_label("difference from the first release, in percent").uncheck()
        bert = all_charts(page)[1]
        assert bert["labels"] == list(make.RELEASES)
        lines = {dataset["label"]: dataset for dataset in bert["sets"]}
        assert [round(1024 * size) for size in lines["x86_64"]["data"]][2:] == [
            47_832,
            74_296,
            64_872,
            64_920,
        ]
        cuda = lines["cuda"]
        assert (
            cuda["data"][3] is None
            and None not in cuda["data"][:3]
            and cuda["gaps"] is False
        )
        for part in range(3):
            assert lines["cuda"]["look"][part] != lines["x86_64"]["look"][part], (
                "colour, mark and dashes differ"
            )
        page.get_by_label("difference from the first release, in percent").check()
        relative = {
            chart["label"]: chart["data"] for chart in all_charts(page)[1]["sets"]
        }
        assert relative["x86_64"][0] == 0 and round(relative["x86_64"][3], 1) == round(
            100 * 74_296 / 47_704 - 100, 1
        )


def test_metric_and_targets_can_be_chosen(browser: Browser, written: Written) -> None:
    with opened(browser, written(make.measured())) as page:
        page.get_by_label("difference from the first release, in percent").uncheck()
        page.get_by_label("Metric").select_option("executables")
        mobilenet = all_charts(page)[2]["sets"]
        assert {dataset["label"]: dataset["data"][:2] for dataset in mobilenet} == {
            "cuda": [46, 36],
            "x86_64": [46, 36],
        }
        page.get_by_role("button", name="cuda").click()
        assert [chart["label"] for chart in all_charts(page)[2]["sets"]] == ["x86_64"]
        assert (
            page.get_by_role("button", name="cuda").get_attribute("aria-pressed")
            == "false"
        )


def test_choices_are_in_the_address_and_work_with_back(
    browser: Browser, written: Written
) -> None:
    with opened(browser, written(make.measured())) as page:
        relative = page.get_by_label("difference from the first release, in percent")
        metric = page.get_by_label("Metric")
        cuda = page.get_by_role("button", name="cuda")
        metric.select_option("executables")
        relative.uncheck()
        cuda.click()
        address = page.url
        page.go_back()
        assert cuda.get_attribute("aria-pressed") == "true"
        assert not relative.is_checked()
        page.go_back()
        assert relative.is_checked()
        assert metric.input_value() == "executables"
        page.go_back()
        assert metric.input_value() != "executables"
        page.goto(address)
        assert metric.input_value() == "executables"
        assert not relative.is_checked()
        assert cuda.get_attribute("aria-pressed") == "false"
        mobilenet = all_charts(page)[2]["sets"]
        assert {dataset["label"]: dataset["data"][:2] for dataset in mobilenet} == {
            "x86_64": [46, 36]
        }


def test_pointing_at_a_line_tells_why_it_moved_and_a_click_leads_there(
    browser: Browser, written: Written
) -> None:
    with opened(browser, written(make.measured())) as page:
        all_charts(page)
        where = """(() => { const canvas = document.querySelector(".multiples canvas");
            const { chart } = drawn.find((one) => one.chart.canvas === canvas);
            canvas.scrollIntoView({ block: "center" });
            const at = chart.data.datasets.findIndex((one) => one.label === "x86_64");
            const { x, y } = chart.getDatasetMeta(at).data[3]; const box = chart.canvas.getBoundingClientRect();
            return [box.x + x, box.y + y]; })()"""
        x, y = page.evaluate(where)
        page.mouse.move(x, y)
        caption = page.locator(".multiples figcaption").first
        page.wait_for_function(
            "() => document.querySelector('.multiples"
            " figcaption').textContent.includes('3.11.0')"
        )
        assert "llvm-cpu-x86_64: 74,296 B. strategy: " in caption.inner_text()
        page.mouse.click(x, y)
        page.wait_for_function(f"() => location.hash === '#{CELL}'")
        assert page.locator(f'[id="{CELL}"]').get_attribute("open") is not None


def test_an_address_opens_its_cell_with_every_release(
    browser: Browser, written: Written
) -> None:
    path = written(make.measured())
    with opened(browser, path) as page:
        page.goto(f"{path.as_uri()}#bert_l4_f32_s128/x86_64")
        cell = page.locator("details[id][open]")
        assert cell.get_attribute("id") == CELL
        rows = cell.locator("tbody tr").all_inner_texts()
        assert (
            len(rows) == len(make.RELEASES)
            and "74,296" in rows[3]
            and "strategy: " in rows[3]
        )
        assert "iree-compile - " in cell.locator("pre").inner_text()


def test_gaps_have_their_reasons_in_the_tables(
    browser: Browser, written: Written
) -> None:
    path = written(make.eventful())
    with opened(browser, path) as page:
        page.goto(f"{path.as_uri()}#bert_l4_f32_s128/cuda")
        reasons = page.locator("details[id][open] td.gap").all_inner_texts()
        assert (
            reasons[0] == "failed: error: failed to distribute"
            and "no such release" in reasons[1]
        )
        assert "could not be measured" in page.locator("main").inner_text()


def test_without_scripts_the_tables_say_everything(
    browser: Browser, written: Written
) -> None:
    with opened(browser, written(make.measured()), script=False) as page:
        assert (
            not page.locator("canvas").count()
            and not page.locator(".pictures").is_visible()
        )
        page.locator(f'[id="{CELL}"] summary').click()
        assert "74,296" in page.locator(f'[id="{CELL}"] table').inner_text()
        assert page.get_by_text("Charts need JavaScript").is_visible()


def test_many_releases_mark_where_another_compiler_begins(
    browser: Browser, written: Written
) -> None:
    path = written(make.long())
    assert path.stat().st_size < 1 << 20
    with opened(browser, path) as page:
        assert page.evaluate("told.marks") == [
            {"at": 0, "text": "3.12.0"},
            {"at": 30, "text": "3.13.0"},
        ]
        failing = all_charts(page)[4]["sets"][0]["data"]
        assert [index for index, value in enumerate(failing) if value is None] == [
            20,
            21,
            22,
            23,
        ]
        page.goto(f"{path.as_uri()}#model_3/cuda")
        row_count = page.locator("details[id][open] tbody tr").count()
        assert (
            "releases in which nothing changed have no row"
            in page.locator("details[id][open]").inner_text()
        )
        assert row_count == 8, (
            "both ends, both ends of the gap, and where the numbers are others"
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_texts_stay_texts(browser: Browser, written: Written) -> None:
    # which no JSON holds
    hostile_texts = [word for word in HOSTILE if "\ud800" not in word]
    with opened(browser, written(make.hostile(hostile_texts))) as page:
        all_charts(page)
        assert page.evaluate("document.scripts.length") == page.evaluate(
            "document.querySelectorAll('body > script, #main > script, head >"
            " script').length"
        )
        assert not page.locator("img, a[href^='http']").count()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
