"""The page in a browser, as people use it: on a real comparison of two releases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import everyday
import pytest
from browser import opened, violations
from page_texts import render_html
from playwright.sync_api import Browser, Locator, Page
from replacing import replace
from trace_factory import traced

from bot.config.configuration import load_config
from bot.core.report import Baseline, Report
from bot.core.snapshot import CellKey, Snapshot
from bot.show.addresses import cell_address, dispatch_address
from bot.show.facts import build_facts
from bot.study.comparison import reported

REPORT = everyday.report("two_releases")
CELLS = 200
LARGEST_BYTES = 5_000_000
GREW = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
WIDTH = "document.documentElement.scrollWidth"
TALLEST = (
    "Math.max(...[...document.querySelectorAll('tr')].map((row) =>"
    " row.getBoundingClientRect().height))"
)
SHOWN = "[...document.querySelectorAll('.cell:not([hidden])')].map((cell) => cell.id)"
MOST_SHEETS = 8  # of A4, for 32 builds
# Pixels of a row: nobody reads a table whose rows fill a third of the screen
MOST_HIGH = 190


def written(folder: Path, report: Report) -> Path:
    path = folder / "report.html"
    path.write_text(render_html(report), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page"), REPORT)


def shown(page: Page) -> list[str]:
    """The addresses of the cells that are not filtered out, in order."""
    addresses: list[str] = page.evaluate(SHOWN)
    return addresses


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three of the cells, with three traces: axe takes a minute for thousands of rows."""
    keys = (
        GREW,
        CellKey("bert_l4_f32_dyn", "cuda"),
        CellKey("bert_l4_f32_s128", "vmvx"),
    )
    sides = [
        replace(side, cells=tuple(c for c in side.cells if c.key in keys))
        for side in (REPORT.base, REPORT.head)
    ]
    base, head = (
        with_few_traces(traced(side, growth))
        for side, growth in zip(sides, (1, 4), strict=True)
    )
    report = reported(
        load_config(models=False), base, head, Baseline("snapshot base.json")
    )
    return written(tmp_path_factory.mktemp("few"), report)


def with_few_traces(side: Snapshot) -> Snapshot:
    """The traces of the first three dispatches that the page shows with their passes."""
    cells = []
    for cell in side.cells:
        names = [name for name in cell.traces if name.startswith("_initializer_")][:3]
        traces = {name: cell.traces[name] for name in names}
        cells.append(replace(cell, traces=traces))
    return replace(side, cells=tuple(cells))


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_accessible(browser: Browser, few: Path, width: int, dark: bool) -> None:
    with opened(browser, few, width=width, dark=dark) as tab:
        assert violations(tab) == []
        tab.evaluate(OPEN_ALL)
        tab.wait_for_function(
            "drawn.length >= document.querySelectorAll('.trace').length"
        )
        assert violations(tab) == []
        assert tab.evaluate(WIDTH) == width


def test_each_element_that_breaks_a_rule_is_counted(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!doctype html><html lang='en'><title>Bad</title><main><h1>Bad</h1>"
        "<p style='color: #ccc; background: #fff'>pale</p>"
        "<img><img><img alt='good'><button aria-label='Other'>Press</button>"
        "</main></html>",
        encoding="utf-8",
    )
    with opened(browser, path) as tab:
        assert violations(tab) == [
            "color-contrast: 1",
            "image-alt: 2",
            "label-content-name-mismatch: 1",
        ]


def test_the_whole_of_it_is_accessible(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        assert violations(tab) == []


@pytest.mark.parametrize("width", [1280, 375])
def test_it_never_scrolls_sideways_and_rows_are_no_pages(
    browser: Browser, page: Path, width: int
) -> None:
    with opened(browser, page, width=width) as tab:
        assert tab.evaluate(WIDTH) == width
        tab.evaluate(OPEN_ALL)
        tab.wait_for_function("document.querySelectorAll('.treemap').length > 9")
        assert tab.evaluate(WIDTH) == width
        assert tab.evaluate(TALLEST) < MOST_HIGH


def test_on_a_telephone_no_column_of_failing_builds_or_measures_is_cut_off(
    browser: Browser, page: Path
) -> None:
    cut = (
        "(tables) => tables.filter((table) => table.scrollWidth >"
        " table.clientWidth).length"
    )
    with opened(browser, page, width=375) as tab:
        tables = tab.locator(".wide:has(table.alarms), .wide:has(table.measures)")
        assert tables.count() == 3
        assert not tables.evaluate_all(cut)
        first = tab.locator("table.alarms tbody tr").first.inner_text().split()
        assert "mobilenet_v1_f32_224" in first
        assert "54,534" in first


def test_the_first_picture_is_of_the_change_and_its_sums_are_the_artifacts(
    browser: Browser, page: Path
) -> None:
    """In proportion, to the byte, zoomed by its titles, and the same without scripts as a table."""
    changes = {
        d.key: d.metrics["artifact_bytes"].change
        for d in REPORT.deltas
        if d.metrics.get("artifact_bytes")
    }
    with opened(browser, page) as tab:
        assert tab.evaluate(
            "[typeof Chart, document.querySelectorAll('.cell[open]').length]"
        ) == ["undefined", 0]
        tab.evaluate(
            "() => { window.leaves = (one) => one[4] ? one[4].flatMap(leaves) :"
            " [one[1]]; }"
        )
        row = "(cell) => [cell[3], cell[1], cell[2], leaves(cell)]"
        tree = tab.evaluate(f"change[4].flatMap((target) => target[4].map({row}))")
        assert {address: net for address, net, *_ in tree} == {
            cell_address(key): change for key, change in changes.items() if change
        }
        assert all(
            net == sum(leaves) and moved == sum(map(abs, leaves))
            for _, net, moved, leaves in tree
        )
        area = (
            "(box) => [box.hash.slice(1), (box.clientWidth + 1) * (box.clientHeight"
            " + 1)]"
        )
        areas = dict(
            tab.evaluate(f"[...document.querySelectorAll('.treemap a')].map({area})")
        )
        moved = {address: size for address, _, size, _ in tree}
        grown_address = cell_address(GREW)
        bert_address = "bert_l4_f32_dyn/llvm-cpu-x86_64"
        assert areas[bert_address] / areas[grown_address] == pytest.approx(
            moved[bert_address] / moved[grown_address], rel=0.05
        )
        title = tab.locator(".treemap .title", has_text="x86_64")
        title.click()
        assert (
            tab.locator(".treemap .title")
            .first.inner_text()
            .startswith("bert_l4_f32_dyn ▼ −36,544 B")
        )
        tab.locator(".treemap a", has_text="mobilenet_v1.layer").click()
        assert tab.locator(".cell[open]").get_attribute("id") == cell_address(GREW)
        tab.keyboard.press("Shift+Tab")
        tab.locator(".path").first.get_by_role("button", name="all targets").click()
        assert title.is_visible()
    with opened(browser, page, script=False) as tab:
        assert not tab.locator(".change-map").is_visible()
        tab.get_by_text("The same as a table").click()
        assert tab.locator("tr", has_text="+33,552 B").first.is_visible()


def test_names_in_the_picture_keep_both_ends_and_numbers_are_whole(
    browser: Browser, page: Path
) -> None:
    changes = r"[▲▼] [+−][\d,]+ B( net)?|±0 net|[\d,]+ B moved"
    facts = build_facts(REPORT)
    names = {delta.key.model for delta in REPORT.deltas} | set(facts.short.values())
    for width in (1280, 700, 375):
        with opened(browser, page, width=width) as tab:
            lines = tab.locator(".treemap .place > span").all_inner_texts()
            assert lines
            for line in map(str.strip, lines):
                start, is_short, end = line.partition("…")
                if is_short:
                    assert any(
                        name.startswith(start) and name.endswith(end) for name in names
                    ), line
                    assert start and end
                else:
                    assert line in names or re.fullmatch(changes, line), line
            titles = tab.locator(".treemap .title").all_inner_texts()
            assert titles
            for title in titles:
                assert re.fullmatch(r"[^▲▼ ]*( [▲▼] [+−][\d,]+ B)?", title), title
            cut = "(box) => box.scrollWidth > box.clientWidth"
            texts = ".treemap .place > span, .treemap .title"
            assert not tab.locator(texts).evaluate_all(
                f"(boxes) => boxes.filter({cut}).length"
            )


def test_the_sum_stays_last_when_a_table_is_sorted_and_back_undoes_it(
    browser: Browser, page: Path
) -> None:
    with opened(browser, page) as tab:
        rows = tab.locator("table.measures tbody th")
        as_reported = rows.all_inner_texts()
        assert as_reported[-1] == "all"
        column = tab.locator("table.measures thead th button").first
        column.click()
        ascending = rows.all_inner_texts()
        assert ascending == [*sorted(as_reported[:-1]), "all"]
        column.click()
        descending = rows.all_inner_texts()
        assert descending == [*sorted(as_reported[:-1], reverse=True), "all"]
        tab.go_back()
        assert rows.all_inner_texts() == ascending
        address = tab.url
        tab.go_back()
        assert rows.all_inner_texts() == as_reported
        assert not tab.locator("th[aria-sort]").count()
        tab.goto(address)
        assert rows.all_inner_texts() == ascending
        assert tab.locator("table.measures th[aria-sort=ascending]").count() == 1


def test_filters_are_in_the_address_and_work_with_back(
    browser: Browser, page: Path
) -> None:
    with opened(browser, page) as tab:
        all_addresses = shown(tab)
        target = tab.locator("select[name=target]")
        target.select_option("x86_64")
        filtered = shown(tab)
        tab.locator("select[name=order]").select_option("size")
        tab.get_by_role("searchbox").press_sequentially("bert")
        searched = shown(tab)
        address = tab.url
        assert 0 < len(searched) < len(filtered) < len(all_addresses)
        tab.go_back()  # one step for the word, not four for its letters
        assert len(shown(tab)) == len(filtered)
        assert not tab.get_by_role("searchbox").input_value()
        tab.go_back()
        assert shown(tab) == filtered
        tab.go_back()
        assert shown(tab) == all_addresses
        assert not target.input_value()
        tab.go_forward()
        assert shown(tab) == filtered
        tab.goto(address)
        assert shown(tab) == searched
        assert tab.get_by_role("searchbox").input_value() == "bert"
        tab.goto(
            f"{page.as_uri()}?target=none-such&order=none-such&zoom=&zoom=none-such&sort=99.9.up&sort=x"
        )
        assert shown(tab) == all_addresses


def test_zoom_is_in_the_address_and_works_with_back(
    browser: Browser, page: Path
) -> None:
    with opened(browser, page) as tab:
        path = tab.locator("#map ~ .change-map .path")
        whole = path.inner_text()
        tab.locator(".treemap .title", has_text="x86_64").click()
        zoomed = path.inner_text()
        assert "x86_64" in zoomed
        address = tab.url
        tab.go_back()
        assert path.inner_text() == whole
        tab.go_forward()
        assert path.inner_text() == zoomed
        tab.goto(address)
        assert path.inner_text() == zoomed


def test_the_grid_leads_to_cells_that_open_with_one_picture(
    browser: Browser, page: Path
) -> None:
    with opened(browser, page) as tab:
        link = tab.locator(f".grid a[href='#{cell_address(GREW)}']")
        assert link.text_content() == "❌+67 fails the check, code size +66.5 %"
        link.click()
        cell = tab.locator(".cell[open]")
        cell.locator(".treemap").wait_for()
        assert cell.get_attribute("id") == cell_address(GREW)
        assert tab.evaluate(
            "document.activeElement.closest('.cell').id"
        ) == cell_address(GREW)
        assert cell.locator(".treemap, canvas").count() == 1
        cell.locator(".treemap a[href*='dispatch_9']").first.click()
        tab.wait_for_function("location.hash.includes('dispatch_9')")
        assert (
            tab.locator("tr:focus th").inner_text()
            == "main$async_dispatch_9_matmul_like_256x28x28x128_f32"
        )


def test_cells_are_filtered_searched_and_sorted(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        all_addresses = shown(tab)
        controls = tab.locator(".controls")
        status = tab.locator(".controls [role=status]")
        assert (
            len(all_addresses) == len(REPORT.deltas)
            and status.inner_text() == "36 builds"
        )
        controls.locator("select[name=target]").select_option("x86_64")
        assert {address.partition("/")[2] for address in shown(tab)} == {
            "llvm-cpu-x86_64"
        }
        controls.locator("select[name=state]").select_option("changed")
        assert len(shown(tab)) == 3 and status.inner_text() == "3 of 36 builds"
        controls.locator("select[name=level]").select_option("fail")
        assert shown(tab) == [cell_address(GREW)]
        controls.get_by_role("button", name="Reset").click()
        tab.wait_for_function("!document.querySelector('.cell[hidden]')")
        assert shown(tab) == all_addresses
        controls.get_by_role("searchbox").fill(
            "Mobilenet_v1_f32 DISPATCH_9_matmul_like"
        )
        searched = shown(tab)
        assert cell_address(GREW) in searched and all(
            address.startswith("mobilenet_v1_f32_224/") for address in searched
        )
        controls.get_by_role("searchbox").fill("")
        controls.locator("select[name=model]").select_option("bert_l4_f32_dyn")
        controls.locator("select[name=order]").select_option("size")
        sizes = tab.evaluate(
            "[...document.querySelectorAll('.cell:not([hidden])')].map((one) =>"
            " +one.dataset.size)"
        )
        assert len(sizes) == 9 and sizes == sorted(sizes, reverse=True)
        controls.locator("select[name=order]").select_option("ratio")
        assert shown(tab)[0] == "bert_l4_f32_dyn/llvm-cpu-x86_64"


@pytest.mark.parametrize(
    "address",
    [
        "mobilenet_v1_f32/x86_64/dispatch_9",
        "mobilenet_v1_f32_224/llvm-cpu-x86_64/main$async_dispatch_9",
        dispatch_address(GREW, "main$async_dispatch_9"),
    ],
)
def test_a_dispatch_is_found_by_its_address_even_where_its_cell_is_filtered_out(
    browser: Browser, page: Path, address: str
) -> None:
    with opened(browser, page) as tab:
        tab.locator("select[name=target]").select_option("cuda")
        tab.evaluate("(address) => { location.hash = address; }", address)
        row = tab.locator("tr:focus")
        assert (
            row.locator("th").inner_text()
            == "main$async_dispatch_9_matmul_like_256x28x28x128_f32"
        )
        assert row.is_visible()
        assert tab.evaluate("location.hash.slice(1)") == dispatch_address(
            GREW, "main$async_dispatch_9"
        )


def test_a_wrong_address_says_so(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        tab.goto(f"{page.as_uri()}#bert_l4_f32_dyn/x86_65")
        assert (
            "“bert_l4_f32_dyn/x86_65” is not on this page. It may be misspelt"
            in tab.locator(".lost").inner_text()
        )
        tab.goto(f"{page.as_uri()}#{cell_address(GREW)}/main%24async_dispatch_999")
        assert tab.locator(".cell[open]").get_attribute("id") == cell_address(GREW)
        assert (
            tab.locator(".lost")
            .inner_text()
            .endswith("is not on this page. This is the nearest that it has.")
        )
        tab.goto(f"{page.as_uri()}#{cell_address(GREW)}")
        assert not tab.locator(".lost").inner_text()


def test_root_causes_and_components_have_addresses(
    browser: Browser, page: Path
) -> None:
    with opened(browser, page) as tab:
        last = tab.locator("li[id^='cause-']").last.get_attribute("id")
        tab.goto(f"{page.as_uri()}#{last}")
        assert tab.locator("li:focus").is_visible()
        tab.goto(f"{page.as_uri()}#{cell_address(GREW)}/component=classifier")
        assert tab.locator("tr:focus th").inner_text() == "classifier"


def test_the_command_is_copied(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab.goto(f"{page.as_uri()}#{cell_address(GREW)}")
        tab.locator(".cell[open] .command summary").first.click()
        tab.locator(".cell[open] .command").get_by_role("button", name="Copy").click()
        tab.get_by_role("button", name="Copied").wait_for()
        (cell,) = (cell for cell in REPORT.base.cells if cell.key == GREW)
        assert cell.command.startswith(
            tab.evaluate("navigator.clipboard.readText()")[:40]
        )


def test_the_commands_to_reproduce_are_copied(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab.get_by_text("Reproduce 10 builds").click()
        texts = tab.locator("#commands pre.sh")
        buttons = tab.locator("#commands button.copy")
        buttons.first.wait_for()
        assert buttons.count() == texts.count() > 1
        buttons.nth(1).click()
        tab.get_by_role("button", name="Copied").wait_for()
        assert (
            tab.evaluate("navigator.clipboard.readText()")
            == texts.nth(1).text_content()
        )


def test_the_keyboard_is_enough(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        tab.keyboard.press("Tab")
        assert tab.locator(":focus").inner_text() == "Skip to the content"
        tab.keyboard.press("Enter")
        tab.locator(".cell summary").first.focus()
        tab.keyboard.press("Enter")
        tab.locator(".cell[open]").wait_for()
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.closest('.cell') !== null")


def test_without_scripts_everything_is_there(browser: Browser, page: Path) -> None:
    with opened(browser, page, script=False) as tab:
        assert not tab.locator(".controls").is_visible()
        tab.goto(f"{page.as_uri()}#{dispatch_address(GREW, 'main$async_dispatch_9')}")
        assert tab.locator("table.told th", has_text="dispatch_9_").first.is_visible()
        text = tab.locator("main").text_content() or ""
        for cell in (*REPORT.base.cells, *REPORT.head.cells):
            assert all(dispatch.name in text for dispatch in cell.dispatches)


def test_on_paper_the_report_is_a_few_sheets_with_all_causes(
    browser: Browser, page: Path
) -> None:
    with opened(browser, page) as tab:
        sheets = len(re.findall(rb"/Type\s*/Page\b", tab.pdf(format="A4")))
        assert 1 < sheets <= MOST_SHEETS
        tab.emulate_media(media="print")
        assert tab.locator("#alarms ~ .wide tbody tr").first.is_visible()
        assert (
            tab.locator("table.measures thead th")
            .first.inner_text()
            .startswith("target")
        )
        causes = tab.locator("li[id^='cause-']")
        assert causes.last.is_visible()
        last = causes.last.evaluate(
            "(line) => line.checkVisibility({ contentVisibilityAuto: true })"
        )
        assert last
        assert tab.locator(".cell > summary").last.is_visible()
        assert not tab.locator("table.told").first.is_visible()
        assert not tab.locator("nav").first.is_visible()
        assert not tab.locator("button.copy").first.is_visible()


def test_a_page_of_two_hundred_cells_is_small(tmp_path: Path, browser: Browser) -> None:
    report = everyday.repeated_report(CELLS)
    path = written(tmp_path, report)
    assert len(report.deltas) >= CELLS
    assert path.stat().st_size < LARGEST_BYTES
    assert "This page has no room" not in path.read_text(encoding="utf-8"), (
        "all dispatches and all stories are there"
    )
    with opened(browser, path, width=375) as tab:
        assert tab.evaluate(WIDTH) == 375
        tab.get_by_role("searchbox").fill("softmax")
        assert 0 < len(shown(tab)) < CELLS
        assert json.loads(tab.evaluate("JSON.stringify(drawn)")) == []


def first_trace(tab: Page, page: Path) -> Locator:
    """Of the dispatch that grew most, opened."""
    tab.goto(f"{page.as_uri()}#{cell_address(GREW)}")
    trace = tab.locator(".cell[open] .trace").first
    trace.locator("summary").click()
    return trace


def test_a_traced_dispatch_has_a_picture_of_its_passes_and_a_table(
    browser: Browser, few: Path
) -> None:
    with opened(browser, few) as tab:
        trace = first_trace(tab, few)
        trace.locator("canvas").wait_for()
        chart = tab.evaluate("drawn.at(-1).chart.data")
        names = [line["label"] for line in chart["datasets"]]
        assert names[-2:] == ["base", "head"]
        assert names[0].startswith("the sides diverge: pass-")
        base = chart["datasets"][-2]["data"]
        head = chart["datasets"][-1]["data"]
        assert base[:30] == head[:30] == [40 + step % 5 for step in range(30)], (
            "all passes, not only those of the table"
        )
        assert (base[60], base[-1], head[-1]) == (
            None,
            26,
            29,
        ), "machine code is no continuation of MLIR"
        (marked,) = trace.locator(
            "tr.parts", has_text="the sides diverge"
        ).all_inner_texts()
        name, level, base_count, head_count, share, operations = marked.split("\t")
        number = int(name.partition(" ")[0].removeprefix("pass-"))
        assert (level, base_count, head_count) == (
            "MLIR",
            f"{40 + number}",
            f"{40 + 4 * number}",
        )
        assert (share, operations) == (
            f"{3 * number / (40 + 4 * number):.1%}".replace("%", " %"),
            f"v.extract +{3 * number}",
        )


def test_the_passes_are_there_without_scripts_and_on_paper(
    browser: Browser, few: Path
) -> None:
    with opened(browser, few, script=False) as tab:
        cell = tab.locator(f".cell[id='{cell_address(GREW)}']")
        cell.locator("summary").first.click()
        cell.locator(".trace summary").first.click()
        assert cell.locator(
            ".trace tr", has_text="the sides diverge"
        ).first.is_visible()
        assert cell.locator("figure").count() == 0
    with opened(browser, few) as tab:
        trace = first_trace(tab, few)
        tab.emulate_media(media="print")
        assert trace.locator("tr", has_text="the sides diverge").is_visible()
        assert not trace.locator("figure").is_visible()


def test_a_page_of_many_traces_is_small(tmp_path: Path, browser: Browser) -> None:
    many = everyday.repeated_report(CELLS)
    word = "</script><img src=x onerror='window.ran = 1'>\u202e"
    base, head = (
        traced(side, growth, 400, word)
        for side, growth in ((many.base, 1), (many.head, 3))
    )
    path = written(
        tmp_path,
        reported(load_config(models=False), base, head, Baseline("snapshot base.json")),
    )
    assert path.stat().st_size < LARGEST_BYTES
    text = path.read_text(encoding="utf-8")
    assert "\u202e" not in text
    assert "for the passes of" in text, "what there is no room for is said"
    assert "The table leaves out 282 passes before or after these rows." in text
    with opened(browser, path) as tab:
        assert 20 < tab.locator(".trace").count() <= 40, "as many as there is room for"
        rows = (
            "[...document.querySelectorAll('.trace')].map((one) =>"
            " one.querySelectorAll('tbody tr').length)"
        )
        assert 20 < max(tab.evaluate(rows)) <= 120
        tab.locator(".cell", has=tab.locator(".trace")).first.locator(
            "summary"
        ).first.click()
        tab.locator(".cell[open] .trace summary").first.click()
        tab.locator(".cell[open] .trace canvas").first.wait_for()
        assert tab.evaluate(
            "[typeof ran, document.querySelectorAll('img').length]"
        ) == ["undefined", 0]
