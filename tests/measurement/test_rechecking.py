"""Alarms are compiled again, and what they say afterwards is true of every compile that was seen."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, VMVX, FakeCompiler, cells_of, install
from json_texts import to_json
from replacing import replace
from test_measuring import SOURCE, Heard

from bot.compiler.cell_cache import CellCache
from bot.compiler.iree import Iree
from bot.config.configuration import Config, load_config
from bot.core.delta import diff
from bot.core.planned import PlannedCell, Target
from bot.core.policy import judge
from bot.core.rules import LevelSpec, Ratio, Rule
from bot.core.snapshot import Cell, CompilerInfo, Failure, Snapshot, SourceInfo
from bot.core.snapshot_json import from_json
from bot.core.work import compile_work
from bot.study.measuring import measure_sides
from bot.study.rechecking import FEW, TIMES, doubtful, recheck
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.system.cancel import Cancel

pytestmark = pytest.mark.slow

RULE = Rule("any growth", ("*",), fail=LevelSpec(relative=Ratio(Fraction(0), "0")))


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


@pytest.fixture(scope="module")
def rules() -> Config:
    return replace(load_config(), thresholds=(RULE,))


def snapshot(sizes: dict[str, int | None]) -> Snapshot:
    cells = [
        (
            Cell(
                name,
                "vmvx",
                "ok",
                {"artifact_bytes": size},
                artifact_digest=str(size),
            )
            if size is not None
            else Cell(name, "vmvx", "failed", failure=Failure("compile", "no"))
        )
        for name, size in sorted(sizes.items())
    ]
    return Snapshot(CompilerInfo("1", "", "0"), SourceInfo(), tuple(cells))


def test_what_is_newly_broken_is_asked_first_then_the_largest_alarm_then_other_changes(
    rules: Config,
) -> None:
    base = snapshot({"a": 100, "b": 100, "c": 100, "d": 100, "e": 100, "f": 100})
    head = snapshot({"a": 100, "b": 110, "c": None, "d": 90, "e": 150, "f": 20})
    assert [key.model for key in doubtful(base, head, rules)] == [
        "c",
        "e",
        "b",
        "f",
        "d",
    ]
    assert doubtful(base, base, rules) == ()


def sides(
    tmp_path: Path, head: FakeCompiler, cells: Sequence[PlannedCell] | None = None
) -> tuple[list[SidePlan], Resources]:
    base = install(tmp_path / "base", version="1.0", templates=TEMPLATES)
    cells = cells_of(tmp_path, ["alpha"]) if cells is None else cells
    models = {cell.model.name: cell.model for cell in cells}
    targets = {cell.target.name: cell.target for cell in cells}
    plans = [
        SidePlan(
            label=label,
            compiler=Iree(fake.toolchain),
            cells=tuple(cells),
            source=SOURCE,
            models=tuple(models.values()),
            targets=tuple(targets.values()),
        )
        for label, fake in (("base", base), ("head", head))
    ]
    return plans, Resources(
        cache=CellCache(tmp_path / "cache"),
        jobs=2,
        timeout_seconds=60,
        cancel=Cancel(),
        progress=Heard(),
    )


def by_target(side: Snapshot) -> dict[str, Cell]:
    return {cell.key.target: cell for cell in side.cells}


GROWS = {"do": "grow", "kind": "direct"}
"""Every artifact is larger than the other side's."""


def test_an_alarm_that_does_not_hold_is_noise_with_both_values(
    tmp_path: Path, rules: Config
) -> None:
    flaky = {"do": "flaky", "kind": "direct", "argv": "backends=rocm"}
    head = install(tmp_path / "head", [flaky], version="2.0", templates=TEMPLATES)
    plans, resources = sides(tmp_path, head)
    measured = measure_sides(plans, resources)
    alarms = judge(diff(measured["base"], measured["head"]), [RULE]).findings
    assert {alarm.key.target for alarm in alarms} == {"rocm"}
    rechecked = recheck(plans, measured, rules, resources)
    cell = by_target(rechecked["head"])["rocm"]
    steady = by_target(rechecked["base"])["rocm"]
    assert (
        cell.compiles == TIMES
        and len(cell.others) == 1
        and (steady.compiles, steady.others) == (TIMES, ())
    )
    [delta] = (
        delta
        for delta in diff(rechecked["base"], rechecked["head"])
        if delta.key.target == "rocm"
    )
    sizes = sorted(
        outcome.metrics["artifact_bytes"] or 0 for outcome in (cell, *cell.others)
    )
    assert (
        delta.noise
        == f"non-deterministic: the same command gives on head {sizes[0]:,} B or"
        f" {sizes[1]:,} B"
    )
    alarms = judge([delta], [RULE]).findings
    assert {(alarm.level, alarm.is_open) for alarm in alarms} == {("warn", True)}, (
        "open, and said so"
    )
    assert from_json(to_json(rechecked["head"])) == rechecked["head"]


def test_an_alarm_that_holds_for_every_pair_stays(
    tmp_path: Path, rules: Config
) -> None:
    """1 MB that becomes 10 MB with 16 bytes of jitter is no pass."""
    rule = {"do": "grow random", "kind": "direct", "argv": "backends=rocm"}
    head = install(tmp_path / "head", [rule], version="2.0", templates=TEMPLATES)
    plans, resources = sides(tmp_path, head)
    rechecked = recheck(plans, measure_sides(plans, resources), rules, resources)
    cell = by_target(rechecked["head"])["rocm"]
    assert cell.compiles == TIMES and len(cell.others) == TIMES - 1
    [delta] = (
        delta
        for delta in diff(rechecked["base"], rechecked["head"])
        if delta.key.target == "rocm"
    )
    assert delta.unstable and delta.state == "changed"
    assert {finding.key.target for finding in judge([delta], [RULE]).findings} == {
        "rocm"
    }


def test_steady_alarms_are_compiled_three_times_and_other_changes_twice(
    tmp_path: Path, rules: Config
) -> None:
    grows = {"do": "grow", "kind": "direct", "argv": "backends=rocm"}
    differs = {"do": "differ", "kind": "direct", "argv": "backends=vmvx"}
    head = install(
        tmp_path / "head", [grows, differs], version="2.0", templates=TEMPLATES
    )
    plans, resources = sides(tmp_path, head)
    lax = replace(
        rules,
        thresholds=(
            replace(RULE, fail=LevelSpec(relative=Ratio(Fraction(1, 1000), "0.1%"))),
        ),
    )
    rechecked = recheck(plans, measure_sides(plans, resources), lax, resources)
    compiles = {
        name: cell.compiles for name, cell in by_target(rechecked["head"]).items()
    }
    assert compiles == {"rocm": 3, "vmvx": 2, "llvm-cpu-x86_64": 1}
    assert not any(cell.others for side in rechecked.values() for cell in side.cells)


def test_what_was_found_out_is_kept_and_not_asked_again(
    tmp_path: Path, rules: Config
) -> None:
    head = install(tmp_path / "head", [GROWS], version="2.0", templates=TEMPLATES)
    plans, resources = sides(tmp_path, head)
    rechecked = recheck(plans, measure_sides(plans, resources), rules, resources)
    calls = head.compiles
    cached = measure_sides(plans, resources)
    assert cached == rechecked
    assert recheck(plans, cached, rules, resources) == rechecked
    assert head.compiles == calls


def test_repeating_costs_a_tenth_or_a_few_cells_whatever_changed(
    tmp_path: Path, rules: Config
) -> None:
    head = install(tmp_path / "head", [GROWS], version="2.0", templates=TEMPLATES)
    targets = [
        VMVX,
        *(Target(f"vmvx-{i}", "vmvx", (f"--iree-vmvx-x={i}",)) for i in range(59)),
    ]
    plans, resources = sides(
        tmp_path, head, cells_of(tmp_path, ["alpha", "beta"], targets)
    )
    rechecked = recheck(plans, measure_sides(plans, resources), rules, resources)
    all_cells = [cell for side in rechecked.values() for cell in side.cells]
    spent_work = sum((cell.compiles - 1) * compile_work(cell) for cell in all_cells)
    whole_work = sum(compile_work(cell) for cell in all_cells)
    dearest_work = max(compile_work(cell) for cell in all_cells)
    assert 0.1 * whole_work - 2 * dearest_work < spent_work <= 0.1 * whole_work, (
        "a tenth is used, and no more"
    )
    other_plans, resources = sides(
        tmp_path, head, cells_of(tmp_path, ["gamma"], targets[:6])
    )
    rechecked = recheck(
        other_plans, measure_sides(other_plans, resources), rules, resources
    )
    assert len([cell for cell in rechecked["head"].cells if cell.compiles > 1]) == FEW


def test_a_side_that_was_measured_earlier_is_not_compiled_again(
    tmp_path: Path, rules: Config
) -> None:
    head = install(tmp_path / "head", [GROWS], version="2.0", templates=TEMPLATES)
    plans, resources = sides(tmp_path, head)
    measured = measure_sides(plans, resources)
    rechecked = recheck(plans[1:], measured, rules, resources)
    assert rechecked["base"] == measured["base"]
    assert min(cell.compiles for cell in rechecked["head"].cells) > 1


def test_a_failure_that_does_not_repeat_itself_is_noise(
    tmp_path: Path, rules: Config
) -> None:
    rule = {"do": "once-fails", "kind": "direct", "argv": "backends=rocm"}
    head = install(tmp_path / "head", [rule], version="2.0", templates=TEMPLATES)
    plans, resources = sides(tmp_path, head)
    measured = measure_sides(plans, resources)
    assert {
        delta.key.target
        for delta in diff(measured["base"], measured["head"])
        if delta.state == "newly-broken"
    } == {"rocm"}
    rechecked = recheck(plans, measured, rules, resources)
    [delta] = (
        delta
        for delta in diff(rechecked["base"], rechecked["head"])
        if delta.key.target == "rocm"
    )
    assert delta.state == "same" and "or a failure" in delta.noise
