"""The tables of a comment in a browser of 375 pixels: build, metric, values, limit and cause are in sight."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import everyday
import pytest
import report_factory as make
from browser import opened
from comment_page import write_comment_page
from playwright.sync_api import Browser, Locator
from replacing import replace

from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.comment import render_comment

HEADERS = ("base → head", "code size", "what happened")
"""Words of the headers of the tables that nobody should have to scroll."""
CUT = "(table) => table.scrollWidth > table.clientWidth"

LONG_NAMES = (
    "m" * 64,
    "llama_3_1_8b_instruct_decode_f16_batch_4_kv_cache_paged_int8_x86",
    "resnet50-v1.5-int8-calibrated-per-channel-2026-11-27",
    "大型语言模型_解码_八位整数_批量四",
    "_____________________________________",
    "MobileNetV1WithAClassifierOfOneThousandAndOneClasses",
)
LONG_TARGETS = {
    "llvm-cpu-x86_64_avx512_vnni_bf16_amx_tile": "llvm-cpu",
    "vulkan-spirv-ampere_with_cooperative_matrices": "vulkan-spirv",
    "npu_of_the_third_generation": "vmvx",
}


def with_long_names(scale: int) -> Report:
    """Every model grew on every target.

    Sizes and frames are `scale` times those of a small model.
    """

    def base(_key: CellKey, cell: Cell) -> Cell:
        return make.with_metrics(
            cell, artifact_bytes=83_990 * scale, stack_max_bytes=376 * scale
        )

    def head(key: CellKey, cell: Cell) -> Cell:
        if key.model == LONG_NAMES[0]:
            return make.failed(
                cell,
                f"error: cannot open {'third_party/rocm_device_libraries/' * 4}ocml.bc",
            )
        return make.with_metrics(
            cell,
            artifact_bytes=343_512 * scale,
            stack_max_bytes=1_176 * scale,
            executables=99,
        )

    models = tuple(sorted(LONG_NAMES))
    sides = (
        make.snapshot("1", base, models, LONG_TARGETS),
        make.snapshot("2", head, models, LONG_TARGETS),
    )
    return make.explained(make.report(*sides))


def with_few_rows(report: Report) -> Report:
    """One model that compiles and one that does not: few enough for a row of each finding."""
    models = LONG_NAMES[:2]
    findings = tuple(
        finding for finding in report.verdict.findings if finding.key.model in models
    )
    deltas = tuple(delta for delta in report.deltas if delta.key.model in models)
    return replace(
        report, deltas=deltas, verdict=replace(report.verdict, findings=findings)
    )


MADE_REPORTS: Mapping[str, Callable[[], Report]] = {
    "many": make.many,
    "explained": make.why,
    "hostile": make.hostile,
    "long names": lambda: with_long_names(1),
    "long names, few rows": lambda: with_few_rows(with_long_names(1)),
    "gigabytes": lambda: with_few_rows(with_long_names(100_000)),
}


def report_named(name: str) -> Report:
    """Return the report of an everyday case, or one that is made here."""
    if name in MADE_REPORTS:
        return MADE_REPORTS[name]()
    return everyday.report(name)


def important_tables(tables: Locator) -> list[Locator]:
    """The tables of failing builds, of warnings and of the three measures."""
    important = []
    for table in tables.all():
        header = table.locator("thead").inner_text()
        if (
            any(heading in header for heading in HEADERS)
            and not table.locator("sub").count()
        ):
            important.append(table)
    return important


@pytest.mark.parametrize("width", [375, 900])
@pytest.mark.parametrize("name", [*everyday.CASES, *MADE_REPORTS])
def test_no_column_that_matters_is_cut_off(
    browser: Browser, tmp_path: Path, name: str, width: int
) -> None:
    comment = render_comment(report_named(name))
    path = write_comment_page(tmp_path, comment)
    with opened(browser, path, width=width) as tab:
        tables = important_tables(tab.locator("table"))
        assert bool(tables) == bool(
            re.search(r"^\| (?:build|target)\b", comment, re.MULTILINE)
        )
        cut = [table.inner_text() for table in tables if table.evaluate(CUT)]
        assert not cut


def test_a_row_has_build_metric_values_limit_and_cause(
    browser: Browser, tmp_path: Path
) -> None:
    path = write_comment_page(tmp_path, render_comment(report_named("two_releases")))
    with opened(browser, path, width=375) as tab:
        failing, measures, *_ = important_tables(tab.locator("table"))
        row = " ".join(failing.locator("tbody tr").first.inner_text().split())
        assert "mobilenet_v1_f32_224 on x86_64: code size mainly cause 1 (63 %)" in row
        assert "50,438 → 83,990 B (+66.5 %) limit: 54,534 B" in row
        rows = [
            " ".join(text.split())
            for text in measures.locator("tbody tr").all_inner_texts()
        ]
        assert any(
            row.startswith(
                "x86_64 (3 of 4): 325,846 → 313,478 B (−3.8 %) frame 376 → 1,176 B"
            )
            for row in rows
        )


def test_a_long_name_is_whole_although_it_has_several_lines(
    browser: Browser, tmp_path: Path
) -> None:
    path = write_comment_page(
        tmp_path, render_comment(report_named("long names, few rows"))
    )
    with opened(browser, path, width=375) as tab:
        names = tab.locator("table").first.locator("td").first.inner_text()
        text = "".join(names.split())
        assert LONG_NAMES[0] in text
        assert "third_party/rocm_device_libraries/" in text


FIRST_SCREEN = 940
"""Pixels of a comment that a reader sees in a window of 900 by 1,000: the frame takes 60 of the height."""


@pytest.mark.parametrize("case", everyday.CASES)
def test_the_first_screen_says_why_and_what_to_do(
    browser: Browser, tmp_path: Path, case: str
) -> None:
    report = everyday.report(case)
    path = write_comment_page(tmp_path, render_comment(report))
    with opened(browser, path, width=794) as tab:
        headings = ["Code size:", "What changed:", "Next:"]
        if report.root_causes:
            headings.append("Causes")
        for heading in headings:
            box = tab.locator("strong", has_text=heading).first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] < FIRST_SCREEN, heading
