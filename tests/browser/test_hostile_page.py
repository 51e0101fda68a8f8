"""Hostile names of models, targets, dispatches, components: nothing of them runs, nothing is lost, all are found."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_factory as make
from browser import opened, violations
from page_texts import render_html
from playwright.sync_api import Browser
from replacing import replace

from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.addresses import cell_address, dispatch_address
from bot.show.escape import clip, visible

WORDS = (
    *make.HOSTILE,
    "</script><script>window.ran = 1</script>",
    "\"'><svg onload='window.ran = 1'>",
    "javascript:window.ran=1",
    "a/b#c%2Fd?e=f&g",
    "component=x",
    "x" * 4_999 + "y",
)
MODELS = tuple(sorted(set(WORDS)))
TARGETS = {"t": "vmvx", "'\"><img src=x onerror='window.ran = 1'>": "llvm-cpu"}


def hostile() -> Report:
    """Each word as the name of a model, of dispatches and, by turns, of whatever else has one."""

    def head(key: CellKey, cell: Cell) -> Cell:
        word = MODELS[MODELS.index(key.model) - 3]
        named = [
            replace(dispatch, executable=f"{word}{index}", name=f"{index} {word}")
            for index, dispatch in enumerate(cell.dispatches)
        ]
        if key.model == "javascript:window.ran=1":
            return make.failed(cell, "\n".join(WORDS))
        return make.grown(replace(cell, dispatches=tuple(named)), artifact_bytes=9_000)

    base = make.snapshot("1", models=MODELS, targets=TARGETS)
    changed = make.snapshot("2", head, MODELS, TARGETS)
    return make.explained(
        make.report(base, changed, WORDS),
        "</pre><img src=x onerror='window.ran = 1'>\u202e",
    )


REPORT = hostile()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    path.write_text(render_html(REPORT), encoding="utf-8")
    return path


def test_nothing_of_it_runs_whatever_is_opened(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        tab.evaluate(
            "document.querySelectorAll('details').forEach((one) => { one.open ="
            " true; })"
        )
        tab.wait_for_function("document.querySelectorAll('.treemap').length > 9")
        assert tab.evaluate(
            "[typeof ran, document.querySelectorAll('svg, img, iframe,"
            ' a:not([href^="#"])\').length]'
        ) == [
            "undefined",
            0,
        ]


def test_the_policy_stops_a_script_even_where_something_was_not_escaped(
    browser: Browser, page: Path
) -> None:
    bad = page.with_name("bad.html")
    bad.write_text(
        page.read_text(encoding="utf-8").replace(
            "<main", "<script>window.ran = 1</script><main"
        ),
        "utf-8",
    )
    with pytest.raises(AssertionError, match="script-src"), opened(browser, bad) as tab:
        assert tab.evaluate("typeof ran") == "undefined"


def test_nothing_of_it_is_lost(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        names = tab.locator(".cell .model").all_text_contents()
        assert sorted(set(names)) == sorted(
            {visible(clip(name, 64)) or "(empty)" for name in MODELS}
        )
        assert len(names) == len(MODELS) * len(TARGETS)
        rows = tab.locator(".dispatches th").all_text_contents()
        printed = {row.partition(" (only on")[0].strip() for row in rows}
        for cell in REPORT.head.cells:
            assert {
                visible(clip(dispatch.name, 100)).strip()
                for dispatch in cell.dispatches
            } <= printed


def test_every_address_leads_to_its_own(browser: Browser, page: Path) -> None:
    addresses = [cell_address(delta.key) for delta in REPORT.deltas]
    addresses += [
        dispatch_address(d.key, d.head.dispatches[1].executable)
        for d in REPORT.deltas
        if d.head and d.head.dispatches
    ]
    assert len(set(addresses)) == len(addresses)
    with opened(browser, page) as tab:
        go = (
            "(address) => { location.hash = address; showAddressed(); return"
            " document.activeElement.id; }"
        )
        assert [tab.evaluate(go, address) for address in addresses] == addresses


def test_names_are_found_as_people_write_them(browser: Browser, page: Path) -> None:
    with opened(browser, page) as tab:
        for word in (
            "<img src=x onerror=alert(1)>",
            "\"'><svg onload='window.ran = 1'>",
            "javascript:window.ran=1",
        ):
            tab.evaluate("(word) => { location.hash = `${word}/t`; }", word)
            tab.wait_for_function(
                "(id) => document.activeElement.id === id",
                arg=cell_address(CellKey(word, "t")),
            )


def test_it_is_searched_filtered_and_accessible(browser: Browser, page: Path) -> None:
    with opened(browser, page, width=375) as tab:
        tab.locator("select[name=model]").select_option(
            "</details></summary><script>alert(1)</script>"
        )
        assert tab.locator(".cell:not([hidden])").count() == 2
        assert tab.evaluate("document.documentElement.scrollWidth") == 375
        assert violations(tab) == []
