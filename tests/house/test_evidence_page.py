"""The page of evidence: its parts, its tables, and what root causes and a compiler against itself make of reports."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import everyday
import pytest
from alarm_sources import Comparison
from cause_members import members_of
from evidence import PARTS
from evidence_page import begin, end, parts, table, written
from evidence_work import plain
from places import ROOT
from repeat_evidence import difference, held, noise_lines
from root_causes import Moved, lines, moved_of

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


# Root causes


def test_all_that_moved_has_a_name_or_a_reason(releases: Mapping[str, Any], tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(releases), encoding="utf-8")
    for side in ("base", "head"):
        cells = [
            {**cell, "metrics": {"compile_cpu_ms": 1000}, "traces": {"d": {"cpu_ms": 250}}}
            for cell in releases["cells"]
        ]
        (tmp_path / f"{side}.json").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    targets = moved_of(Comparison("release steps", "old → new", tmp_path, {}, {}, {}))
    x86 = targets["llvm-cpu-x86_64"]
    assert x86.named.total() + x86.unnamed.total() == x86.bytes > 50_000
    assert 0 < (x86.share or 0) < 1 and x86.causes is None
    assert Moved(100, Counter({"a": 60, "b": 30, "c": 5}), Counter({"why": 5})).causes == 2
    text = "\n".join(lines([("old → new", targets, members_of(releases))]))
    count = len(releases["cells"])
    assert f"| 0 | 0 | {2 * count} | {count / 2:.0f} |" in text
    assert (
        f"- old → new: other code, not traced {x86.unnamed['other code, not traced']:,} B on llvm-cpu-x86_64; " in text
    )


def test_causes_that_do_not_add_up_are_refused(releases: Mapping[str, Any], tmp_path: Path) -> None:
    false = {**releases, "root_causes": releases["root_causes"][1:]}
    (tmp_path / "report.json").write_text(json.dumps(false), encoding="utf-8")
    for side in ("base", "head"):
        (tmp_path / f"{side}.json").write_text('{"cells": []}', encoding="utf-8")
    with pytest.raises(ValueError, match="causes have"):
        moved_of(Comparison("release steps", "old → new", tmp_path, {}, {}, {}))


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
