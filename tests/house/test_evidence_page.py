"""The page of evidence: its parts, its tables, and what release steps and a compiler against itself make of reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import everyday
import pytest
from evidence import PARTS
from evidence_page import begin, end, parts, table, written
from evidence_work import plain
from places import ROOT
from release_steps import Step, cause_rows, lines, moved, pairs, row
from repeat_evidence import difference, held, noise_lines

from bot.core.codec.report_json import report_lines

ORDER = ("one", "two", "three")


def report(case: str) -> dict[str, Any]:
    """The real `report.json` of an everyday pull request."""
    found: dict[str, Any] = json.loads(b"".join(report_lines(everyday.report(case))))
    return found


@pytest.fixture(scope="module")
def releases() -> Mapping[str, Any]:
    return report("two_releases")


# The page


def test_a_part_is_written_where_it_was_and_the_others_stay() -> None:
    page = written(written("# Page\n", "one", ["first"], ORDER), "three", ["third"], ORDER)
    again = written(page, "one", ["anew", "and more"], ORDER)
    assert again == page.replace("first", "anew\nand more")
    assert written(again, "one", ["anew", "and more"], ORDER) == again


def test_a_part_that_is_new_stands_before_the_later_ones() -> None:
    page = written(written("# Page\n", "three", ["third"], ORDER), "two", ["second"], ORDER)
    assert parts(written(page, "one", ["first"], ORDER)) == list(ORDER)


@pytest.mark.parametrize(
    "page",
    [begin("one"), end("one"), f"{end('one')}\n{begin('one')}", f"{begin('one')}\n{begin('one')}\n{end('one')}"],
)
def test_a_page_of_which_nobody_knows_what_to_replace_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="not one pair"):
        written(page, "one", [], ORDER)


def test_the_page_of_the_repository_has_whole_parts_in_their_order() -> None:
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    there = parts(page)
    assert there == [name for name in PARTS if name in there] != []
    for name in there:
        assert written(page, name, ["what no page says"], tuple(PARTS)).count("what no page says") == 1


def test_text_cannot_leave_its_cell_of_a_table() -> None:
    hostile = f"a | b\n`c` {end('one')}"
    assert table(["x"], [[plain(hostile)]])[-1] == "| a \\| b 'c' &lt;!-- end: one --> |"
    assert end("one") not in plain(hostile)


# Release steps


def test_steps_are_those_between_neighbours_and_the_pair_of_the_page() -> None:
    assert pairs(["3.11.0", "3.12.0", "3.13.0"]) == [
        ("3.11.0", "3.13.0"),
        ("3.11.0", "3.12.0"),
        ("3.12.0", "3.13.0"),
    ]
    assert pairs(["3.11.0", "3.13.0"]) == [("3.11.0", "3.13.0")]
    assert pairs(["3.8.0", "3.9.0"]) == [("3.8.0", "3.9.0")]


def test_a_step_counts_cells_and_bytes_of_its_report(releases: Mapping[str, Any]) -> None:
    base, net, absolute = moved(releases)
    changes = [
        one["head"] - one["base"]
        for cell in releases["cells"]
        if (one := cell["metrics"].get("artifact_bytes")) and None not in one.values()
    ]
    assert len(changes) > 10
    assert (net, absolute) == (sum(changes), sum(abs(change) for change in changes))
    assert 0 < abs(net) < absolute < base
    states = [cell["state"] for cell in releases["cells"]]
    told = row("old → new", releases)
    assert told[:3] == ["old → new", str(states.count("same")), str(states.count("changed"))]
    assert told[-2:] == [f"{absolute:,}", releases["verdict"]["status"]]


def test_root_causes_are_the_five_with_most_bytes(releases: Mapping[str, Any]) -> None:
    told = [int(one[6].replace(",", "")) for one in cause_rows(releases)]
    known = sorted((one["bytes"]["absolute"] for one in releases["root_causes"]), reverse=True)
    assert len(known) > 5 and told == known[:5]


def test_a_step_without_bytes_divides_by_nothing() -> None:
    nothing = {"cells": [], "root_causes": [], "verdict": {"status": "unknown"}}
    text = "\n".join(lines([(Step("1", "2"), nothing)]))
    assert "| 1 → 2 | 0 | 0 | 0 | 0 | 0 | 0 | +0 | n/a | 0 | unknown |" in text
    assert "0 root causes, 0 bytes" in text
    with pytest.raises(ValueError, match="no wheel"):
        Step("1", "2", problem="no wheel").report()


# A compiler against itself


def test_nothing_changed_is_nothing_found() -> None:
    found = held("elsewhere", report("nothing_changed"))
    assert (found.differing, found.findings) == ({}, [])
    assert found.states["same"] > 20
    told, sound = noise_lines([found], {})
    assert sound and f"| elsewhere | {found.states['same']} |" in "\n".join(told)


def test_another_compiler_is_found_in_every_cell_that_it_changed(releases: Mapping[str, Any]) -> None:
    found = held("elsewhere", releases)
    changed = {f"{cell['model']} on {cell['target']}" for cell in releases["cells"] if cell["state"] == "changed"}
    assert changed <= set(found.differing)
    noisy, *others = sorted({*found.differing, *found.findings})
    told, sound = noise_lines([found], {noisy: " (why)"})
    assert not sound
    assert f"- noise: `{noisy}` (why)" in told
    assert {f"- difference: `{name}`" for name in others} <= set(told)
    assert noise_lines([found], dict.fromkeys([noisy, *others], ""))[1]


def test_other_bytes_of_equal_size_are_a_difference() -> None:
    cell = next(one for one in report("nothing_changed")["cells"] if one["state"] == "same")
    assert difference(cell) == ""
    assert difference({**cell, "identical": False}) == "the artifacts are other bytes"
    size = cell["metrics"]["artifact_bytes"]
    other = {**cell["metrics"], "artifact_bytes": {**size, "head": size["head"] + 1}}
    assert difference({**cell, "metrics": other}) == "artifact_bytes"
    assert difference({**cell, "state": "unmeasured"}) == "unmeasured"
