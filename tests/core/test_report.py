"""bot.core.report: `report.json` has the contract's fields, and every cell of both sides."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
import report_factory as make
from hypothesis import given
from json_texts import report_to_json
from replacing import replace
from strategies import plain_snapshot, snapshots

from bot.core.baseline import between
from bot.core.delta import STATES, diff
from bot.core.metrics import METRIC_IDS
from bot.core.policy import Amount, LevelSpec, Ratio, Rule, Verdict, judge
from bot.core.report import REPORT_SCHEMA, Baseline, Between, Report
from bot.core.snapshot import CellKey, ModelEdit, Snapshot, comparable

BASE = plain_snapshot(("a", "vmvx", "ok"), ("b", "vmvx", "ok"), ("c", "vmvx", "failed"))
HEAD = plain_snapshot(("a", "vmvx", "ok"), ("b", "vmvx", "over-stack-limit"), ("d", "vmvx", "ok"))
BASELINE = Baseline("--base 3.11.0", "5" * 40, 2)
ANY_GROWTH = Rule("growth", ("*",), warn=LevelSpec(relative=Ratio(Fraction(0), "0%")), line=7)


def report_of(base: Snapshot, head: Snapshot, **more: Any) -> dict[str, Any]:
    """The report of two snapshots, as a script that reads the file has it."""
    deltas = diff(base, head)
    made = Report(base, head, BASELINE, deltas, judge(deltas, [ANY_GROWTH]), notes=("a note",), **more)
    found: dict[str, Any] = json.loads(report_to_json(made))
    return found


def grown() -> Snapshot:
    """HEAD with 50 bytes more in its first cell."""
    first, *rest = HEAD.cells
    return replace(HEAD, cells=(replace(first, metrics={**first.metrics, "artifact_bytes": 1050}), *rest))


def test_the_top_has_the_fields_of_the_contract_and_each_side_says_what_it_was() -> None:
    edit = ModelEdit("a", None, "2" * 64, {"arith.addf": 1}, {"head": 1})
    report = report_of(BASE, HEAD, edits=(edit, ModelEdit("b", "1" * 64, "2" * 64)))
    assert report["schema"] == REPORT_SCHEMA == "code-size-report/1"
    contract = {"schema", "base", "head", "baseline", "verdict", "cells"}
    assert report.keys() - contract == {"notes", "overview", "root_causes", "edits"} and contract <= report.keys()
    assert report["baseline"] == {"rule": "--base 3.11.0", "sha": "5" * 40, "distance": 2}
    assert report["verdict"].keys() == {"status", "findings", "budgets"}
    assert (report["notes"], report["overview"]) == (["a note"], {"fusion": [], "folding": [], "pairs": []})
    assert report["edits"] == [
        {"model": "a", "base": None, "head": "2" * 64, "operations": {"arith.addf": 1}, "components": {"head": 1}},
        {"model": "b", "base": "1" * 64, "head": "2" * 64, "operations": None, "components": None},
    ]
    for name, snapshot in (("base", BASE), ("head", HEAD)):
        side = report[name]
        assert side.keys() == {"compiler", "source", "flags", "targets", "models", "notes"}
        assert side["compiler"] == {"version": "3.13.0", "revision": "r" * 8, "digest": "c" * 64, "spec": "3.13.0"}
        assert side["source"] == {"sha": "5" * 40, "ref": "main", "dirty": False}
        assert (side["flags"], side["models"]) == (list(snapshot.flags), dict(snapshot.models))


def test_a_baseline_says_what_lies_between_only_where_that_is_known() -> None:
    gap = between(["docs/a", "compiler/a", "compiler/b/c", "d"], ["compiler/*"])
    report = Report(BASE, HEAD, replace(BASELINE, between=gap), (), Verdict("unknown"))
    assert json.loads(report_to_json(report))["baseline"]["between"] == {
        "folders": [{"folder": "compiler", "files": 2}, {"folder": "", "files": 1}, {"folder": "docs", "files": 1}],
        "more": 0,
        "files": 4,
        "sources": 2,
    }
    gap = between((f"{number:04}/f" for number in range(5_000)), [])
    assert [one.folder for one in gap.folders] == [f"{number:04}" for number in range(8)]
    assert (gap.more, gap.files, gap.sources) == (4_992, 5_000, 5_000)
    assert between([], []) == Between((), 0, 0, 0) == between([], ["*"])


@pytest.mark.parametrize(
    ("sources", "count"),
    [([], 3), (["*"], 3), (["compiler/*"], 2), (["compiler/a.cpp", "*.md"], 2), (["Compiler/*"], 0), (["compiler"], 0)],
)
def test_globs_say_what_is_compiler_source(sources: list[str], count: int) -> None:
    assert between(["compiler/a.cpp", "compiler/deep/b.td", "docs/a.md"], sources).sources == count


def test_a_cell_has_the_fields_of_the_contract_and_what_a_reader_needs_beside_them() -> None:
    cells = {cell["model"]: cell for cell in report_of(BASE, HEAD)["cells"]}
    contract = {"model", "target", "state", "metrics", "cause", "dispatches"}
    beside = {"identical", "reason", "status", "failure", "command"}
    beside |= {"first", "why", "unchanged", "rebased", "components", "families", "tree", "arguments", "phases_ms"}
    beside |= {"short_digests", "first_compiles", "waterfall", "parts", "renamed_bytes"}
    assert all(cell.keys() == contract | beside for cell in cells.values())
    states = {"a": "same", "b": "newly-broken", "c": "removed", "d": "new"}
    assert {name: cell["state"] for name, cell in cells.items()} == states
    assert cells["a"]["metrics"]["artifact_bytes"] == {"base": 1000, "head": 1000}
    assert cells["d"]["metrics"]["artifact_bytes"] == {"base": None, "head": 1000}
    assert cells["a"]["metrics"].keys() == set(METRIC_IDS)
    assert cells["b"]["status"] == {"base": "ok", "head": "over-stack-limit"}
    assert cells["b"]["failure"]["base"] is None
    assert cells["b"]["failure"]["head"]["message"] == "b is refused"
    assert cells["c"]["status"] == {"base": "failed", "head": None}
    assert cells["c"]["command"] == {"base": "iree-compile - -o c.vmfb < m/c.mlir", "head": None}
    for cell in cells.values():
        assert (cell["cause"], cell["first"], cell["why"], cell["unchanged"]) == (None, None, "", None)
        assert cell["dispatches"] == cell["components"] == cell["families"] == []


def test_a_finding_names_cell_rule_limit_and_value() -> None:
    verdict = report_of(BASE, grown())["verdict"]
    assert verdict["status"] == "fail"
    state, _removed, growth = verdict["findings"]
    words = ("b", "vmvx", "fail", None, "state", "newly-broken")
    assert tuple(state[name] for name in ("model", "target", "level", "metric", "kind", "limit")) == words
    assert growth == {
        "model": "a",
        "target": "vmvx",
        "level": "warn",
        "metric": "artifact_bytes",
        "rule": "growth",
        "kind": "change",
        "limit": "0%",
        "actual": "+50 B (+5.0 %)",
        "base": 1000,
        "head": 1050,
        "line": 7,
        "accepted": None,
        "outcomes": None,
        "allowed": 0,
        "known": False,
    }

    deltas = diff(BASE, grown())
    limit = Rule("budget", ("artifact_bytes",), ("a",), fail=LevelSpec(limit=Amount(1100, "own", "1100")))
    report = Report(BASE, grown(), BASELINE, deltas, judge(deltas, [limit]))
    numbers = {"rule": "budget", "base": 1000, "head": 1050, "limit": 1100}
    budget = {"model": "a", "target": "vmvx", "metric": "artifact_bytes", **numbers}
    assert json.loads(report_to_json(report))["verdict"]["budgets"] == [budget]


@given(snapshots(), snapshots())
def test_every_cell_of_both_sides_is_there_with_its_values(base: Snapshot, head: Snapshot) -> None:
    left, right = ({cell.key: cell for cell in one.cells} for one in (base, head))
    cells = report_of(base, head)["cells"]
    keys = [CellKey(cell["model"], cell["target"]) for cell in cells]
    assert keys == sorted(set(keys)) and left.keys() | right.keys() <= set(keys)
    assert {cell["state"] for cell in cells} <= set(STATES)
    for key, cell in zip(keys, cells, strict=True):
        sides = comparable(left.get(key), right.get(key))
        for id_, both in cell["metrics"].items():
            assert [both["base"], both["head"]] == [one.value(id_) if one else None for one in sides]
    same = Report(base, base, BASELINE, diff(base, base), Verdict("pass"))
    text = report_to_json(same)
    assert text == report_to_json(same)
    assert json.loads(text)["verdict"] == {"status": "pass", "findings": [], "budgets": []}


def told() -> dict[str, Any]:
    """The report of `make.small`, explained."""
    found: dict[str, Any] = json.loads(report_to_json(make.explained(make.small())))
    return found


def test_an_explained_cell_has_cause_dispatches_components_and_families() -> None:
    (cell,) = (one for one in told()["cells"] if one["cause"])
    assert (cell["model"], cell["cause"], cell["first"], cell["why"]) == (
        "mobilenet",
        "strategy",
        "configuration",
        make.TILES,
    )
    first, _second, added, removed = cell["dispatches"]
    assert first == {
        "name": "main_dispatch_0_matmul_128x768x768_f32",
        "cause": "strategy",
        "component": "unattributed",
        "matched": "same source",
        "note": make.TILES,
        "diff": list(make.DIFF),
        "base": {**first["head"], "code_bytes": 2_000, "stack_bytes": 64},
        "head": {
            "name": "main_dispatch_0_matmul_128x768x768_f32",
            "executable": "main_dispatch_0",
            "kind": "matmul",
            "sites": 4,
            "code_bytes": 4_000,
            "stack_bytes": 128,
            "stack_kind": "static",
        },
    }
    assert (added["base"], added["matched"], removed["head"], removed["name"]) == (
        None,
        "added",
        None,
        "main_dispatch_41_elementwise_128x768x768_f32",
    )
    assert (cell["unchanged"], cell["rebased"]) == (24, 2)
    assert cell["components"][0] == {
        "name": "encoder.layer.*",
        "base": {"dispatch_sites": 4, "code_bytes": 20_000, "stack_bytes": 64},
        "head": {"dispatch_sites": 4, "code_bytes": 40_000, "stack_bytes": 128},
    }
    assert [part["name"] for part in cell["tree"]][:2] == ["encoder", "encoder.layer.0"]
    assert cell["phases_ms"].keys() == {"base", "head"} and isinstance(cell["arguments"], list)
    (family,) = cell["families"]
    assert (family["kind"], len(family["members"])) == ("constants", 6)
    assert family["varying"] == ["arith.constant i32 → arith.muli: 3, 5, 7, 11"]


def test_the_overview_is_whole() -> None:
    overview = told()["overview"]
    assert [one["model"] for one in overview["fusion"]] == ["bert", "mobilenet"]
    assert overview["fusion"][0]["head"]["memory_bound_sites"] == 96
    fold = overview["folding"][0]
    assert (fold["model"], fold["target"], fold["head"]["surplus_bytes"]) == ("bert", "llvm-cpu-x86_64", None)
    assert fold["base"] == {
        "regions": 64,
        "executables": 31,
        "families": 4,
        "surplus_executables": 12,
        "surplus_bytes": 18_400,
        "folded": 33 / 64,
    }
    assert overview["pairs"][0]["head"]["static"]["executables"] == 32
