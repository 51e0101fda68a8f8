"""bot.core.report: `report.json` is the golden one, with the contract's fields, and what lies before its base."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
import report_factory as make
from golden_files import check_golden
from json_texts import report_to_json
from replacing import replace

from bot.core.baseline import between
from bot.core.metrics import METRIC_IDS
from bot.core.policy import Accepted, Amount, LevelSpec, Ratio, Rule, judge
from bot.core.report import REPORT_SCHEMA, Baseline, Between
from bot.core.snapshot import ModelEdit


def test_all_that_a_report_says() -> None:
    """With a budget, an accepted finding, an edited and a new model, and one cell that is explained."""
    small = make.explained_small()
    growth = LevelSpec(relative=Ratio(Fraction(0), "0%"), limit=Amount(90_000, "own", "90000"))
    verdict = judge(small.deltas, [Rule("growth", ("*",), fail=growth, line=7)])
    first, *rest = verdict.findings
    findings = (replace(first, accepted=Accepted("octocat", "better fusion")), *rest)
    edits = ModelEdit("a", None, "2" * 64, {"arith.addf": 1}, {"head": 1}), ModelEdit("b", "1" * 64, "2" * 64)
    gap = between(["docs/a", "compiler/a", "compiler/b/c", "d"], ["compiler/*"])
    baseline = Baseline("--base 3.11.0", "5" * 40, 2, gap)
    told = {"edits": edits, "baseline": baseline, "notes": ("a note",), "broke": "a shard was lost"}
    text = report_to_json(replace(small, verdict=replace(verdict, findings=findings), **told))
    check_golden("report.json", text)
    plain = json.loads(text)
    assert plain["schema"] == REPORT_SCHEMA == "code-size-report/1"
    assert plain.keys() >= {"schema", "base", "head", "baseline", "verdict", "cells", "root_causes"}
    for cell in plain["cells"]:
        assert cell.keys() >= {"model", "target", "state", "metrics", "cause", "first", "waterfall", "dispatches"}
        assert cell["metrics"].keys() == set(METRIC_IDS)


def test_what_lies_between_a_baseline_and_its_base() -> None:
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
