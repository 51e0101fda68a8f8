"""bot.core.report_json: a full report is written as tests expect it."""

from __future__ import annotations

import json
from fractions import Fraction

import report_factory as make
from golden_files import check_golden
from json_texts import report_to_json
from replacing import replace

from bot.core.explanation import PassChange
from bot.core.metrics import METRIC_IDS
from bot.core.policy import judge
from bot.core.program_proof import FORMS_REGIONS
from bot.core.report import Baseline
from bot.core.report_rows import REPORT_SCHEMA, DispatchRow
from bot.core.rules import Amount, LevelSpec, Ratio, Rule
from bot.core.snapshot import ModelEdit
from bot.core.trace import REGION


def test_regions_stay_the_first_operation_of_a_pass() -> None:
    row = DispatchRow(
        None,
        None,
        "added",
        "fusion",
        pass_name="form-regions",
        operations={"linalg.generic": -5, REGION: 1, "tensor.pad": 2},
    )
    passed = row.delta.passed
    assert passed is not None
    assert list(passed.operations) == [REGION, "linalg.generic", "tensor.pad"]
    assert passed.words(1).startswith(f"{REGION} +1")


def test_a_pass_that_an_experiment_names_forms_regions_also_without_a_row() -> None:
    passed = PassChange("form-regions", {}, experiment="proved")
    assert passed.words(3) == FORMS_REGIONS


def test_report_json_is_the_golden_file_and_has_all_keys() -> None:
    """With an accepted finding, an edited and a new model, and one cell that is explained."""
    small = make.explained_small()
    growth = LevelSpec(
        relative=Ratio(Fraction(0), "0%"), limit=Amount(90_000, "own", "90000")
    )
    verdict = judge(small.deltas, [Rule("growth", ("*",), fail=growth, line=7)])
    first, *other_findings = verdict.findings
    findings = (replace(first, accepted="octocat"), *other_findings)
    edits = (
        ModelEdit(
            model="a",
            base=None,
            head="2" * 64,
            operations={"arith.addf": 1},
            components={"head": 1},
        ),
        ModelEdit("b", "1" * 64, "2" * 64),
    )
    baseline = Baseline("--base 3.11.0", "5" * 40, 2)
    fields = {
        "edits": edits,
        "baseline": baseline,
        "notes": ("a note",),
        "broke": "a shard was lost",
    }
    text = report_to_json(
        replace(small, verdict=replace(verdict, findings=findings), **fields)
    )
    check_golden("report.json", text)
    plain = json.loads(text)
    assert plain["schema"] == REPORT_SCHEMA == "code-size-report/1"
    assert [finding["accepted"] for finding in plain["verdict"]["findings"][:2]] == [
        {"who": "octocat"},
        None,
    ]
    assert plain.keys() >= {
        "schema",
        "base",
        "head",
        "baseline",
        "verdict",
        "cells",
        "root_causes",
    }
    for cell in plain["cells"]:
        assert cell.keys() >= {
            "model",
            "target",
            "state",
            "metrics",
            "cause",
            "first",
            "waterfall",
            "dispatches",
        }
        assert cell["metrics"].keys() == set(METRIC_IDS)
