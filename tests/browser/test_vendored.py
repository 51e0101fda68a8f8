"""The chart library that pages carry: as pinned, with its licence, and running under the policy that allows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import opened
from places import ROOT
from playwright.sync_api import Browser

from bot.show.renderers import chart_library, sources

PINS = ROOT / ".github" / "vendor"
DRAWING = (
    "new Chart(document.querySelector('canvas'), {type: 'bar', data: {labels: 'abc',"
    " datasets: [{data: [6, 5, 4]}]}})"
)


def test_versions_are_those_of_the_lock() -> None:
    lock = json.loads((PINS / "package-lock.json").read_text(encoding="utf-8"))[
        "packages"
    ]
    versions = json.loads((PINS / "package.json").read_text(encoding="utf-8"))[
        "dependencies"
    ]
    assert {
        name: lock[f"node_modules/{name}"]["version"] for name in versions
    } == versions
    assert f"Chart.js v{versions['chart.js']}" in chart_library()


def test_it_carries_its_licence_and_names_no_other_file() -> None:
    assert "Permission is hereby granted" in chart_library().partition("*/")[0]
    assert "sourceMappingURL" not in chart_library()


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_page_runs_the_scripts_that_its_policy_names_and_no_others(
    browser: Browser, tmp_path: Path, is_allowed: bool
) -> None:
    scripts = [chart_library(), f"window.drawn = {DRAWING}"]
    policy = (
        "default-src 'none'; script-src"
        f" {sources(scripts if is_allowed else scripts[:1])}"
    )
    page = tmp_path / "page.html"
    meta = (
        '<meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
        f' content="{policy}">'
    )
    elements = "".join(f"<script>{text}</script>" for text in scripts)
    page.write_text(
        f"<!DOCTYPE html>{meta}<canvas></canvas>{elements}", encoding="utf-8"
    )
    if is_allowed:
        with opened(browser, page) as tab:
            assert tab.evaluate("drawn.getDatasetMeta(0).data.length") == 3
    else:
        with (
            pytest.raises(AssertionError, match="script-src"),
            opened(browser, page) as tab,
        ):
            assert tab.evaluate("typeof drawn") == "undefined"
