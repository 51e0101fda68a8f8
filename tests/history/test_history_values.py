"""A history as values: what came twice, totals over what every release has, where numbers moved, and its JSON."""

from __future__ import annotations

import json

import history_factory as make
import pytest
from history_factory import BERT, BERT_CUDA, MOBILENET, RELEASES
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from report_factory import snapshot

from bot.core.history import TRACKED, History, history_lines, totals_of
from bot.core.metrics import METRIC_BY_ID
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Snapshot, SourceInfo
from bot.core.study import Study, Variant, named_apart, united
from bot.errors import InputError


def text(history: History) -> bytes:
    return b"".join(history_lines(history))


def sized(size: int, version: str = "3.13.0") -> Snapshot:
    """One release with two cells."""
    return make.side(version, {BERT: size, MOBILENET: 50_438})


def artifacts(history: History, key: CellKey) -> list[int | None]:
    return [cell.value("artifact_bytes") for cell in history.rows[key]]


# What is known to be there.


def test_the_steps_that_are_known_are_found_in_their_release_with_their_cause() -> None:
    history = make.measured()
    assert [one.name for one in history.study.variants] == list(RELEASES)
    assert artifacts(history, BERT)[2:] == [47_832, 74_296, 64_872, 64_920]
    assert artifacts(history, MOBILENET)[3:] == [50_438, 83_878, 83_990]
    moves = history.number_moves
    bert, mobilenet = (moves[key]["artifact_bytes"].largest for key in (BERT, MOBILENET))
    assert (bert.release, bert.change) == ("3.11.0", 74_296 - 47_832)
    assert (mobilenet.release, mobilenet.change) == ("3.12.0", 83_878 - 50_438)
    for one in (bert, mobilenet):
        assert one.move.cause == "strategy" and "configuration" in one.move.why
    first = moves[MOBILENET]["executables"].first
    assert (first.release, first.change) == ("3.9.0", -10)
    step = next(step for step in history.steps if step.name == "3.11.0 → 3.12.0")
    assert step.causes and MOBILENET.model in step.causes[0].models and step.fixed == 1


def test_a_release_that_does_not_compile_a_model_is_a_gap_and_the_next_is_held_against_the_one_before() -> None:
    history = make.measured()
    gap = history.rows[BERT_CUDA][3]
    assert gap.status == "failed" and not gap.metrics and "failed to distribute" in gap.reason
    assert (RELEASES[3], BERT_CUDA) not in history.moves
    after = history.moves[RELEASES[4], BERT_CUDA]
    assert after.since == "3.10.0"
    assert after.changes["artifact_bytes"] == artifacts(make.measured(), BERT_CUDA)[4] - 280_876  # type: ignore[operator]


# What came twice.


def test_a_snapshot_and_a_release_that_are_the_same_compiler_are_one_point_with_the_cells_of_both() -> None:
    whole, part = sized(64_920), make.side("3.13.0", {BERT: 64_920, BERT_CUDA: 282_332})
    (found,) = united([Variant("3.13.0", "3.13.0", whole), Variant("3.13.0", "part.json", part)]).variants
    assert found.repeats == ("part.json",) and found.snapshot
    assert [cell.key for cell in found.snapshot.cells] == sorted({BERT, MOBILENET, BERT_CUDA})


def test_where_the_compiler_does_not_repeat_itself_both_are_shown_and_that_is_said() -> None:
    twice = [Variant("3.13.0", "3.13.0", sized(64_920)), Variant("3.13.0", "head.json", sized(64_984))]
    found = united(twice).variants
    assert [one.name for one in found] == ["3.13.0", "3.13.0 (2)"]
    assert not found[0].notes
    assert found[1].notes == (f"the same compiler as 3.13.0 gave something else for {BERT}: it does not repeat itself",)


def _with_cells(found: Snapshot, **changes: object) -> Snapshot:
    cells: list[Cell] = [replace(cell, **changes) for cell in found.cells]
    return replace(found, cells=tuple(cells))


@pytest.mark.parametrize(
    "other",
    [
        sized(64_920, "3.12.0"),
        replace(sized(64_920), models=dict.fromkeys(make.MODELS, "f" * 64)),
        _with_cells(sized(64_920), command="iree-compile - --iree-opt-level=O3 -o x.vmfb < x.mlir"),
        replace(sized(64_920), compiler=replace(sized(64_920).compiler, digest="")),
    ],
    ids=["another compiler", "another model", "other flags", "no digest"],
)
def test_what_was_asked_for_something_else_is_no_repeat(other: Snapshot) -> None:
    found = united([Variant("a", "a", sized(64_920)), Variant("b", "b", other)]).variants
    assert [(one.name, one.repeats, one.notes) for one in found] == [("a", (), ()), ("b", (), ())]


def test_a_timeout_is_nobodys_word_against_a_measurement() -> None:
    late = _with_cells(sized(64_920), status="timeout", metrics={}, artifact_digest=None)
    for order in ((late, sized(64_920)), (sized(64_920), late)):
        (found,) = united(Variant("x", "x", one) for one in order).variants
        assert found.snapshot and all(cell.measured for cell in found.snapshot.cells)


@given(st.lists(st.sampled_from(["a", "b", "a (2)"]), max_size=8))
def test_names_are_told_apart(names: list[str]) -> None:
    told = [one.name for one in named_apart([Variant(name) for name in names]).variants]
    assert len(set(told)) == len(told) == len(names)
    assert all(new.startswith(old) for new, old in zip(told, names, strict=True))


# Totals.


def test_totals_are_over_the_cells_that_every_release_has() -> None:
    history = make.eventful()
    sums = {(total.target, total.compiler): total for total in history.totals}
    assert {name for _, name in sums} == {"3.10.0", "3.11.0", "3.13.0", "3.13.0 (2)"}, "no total of a gap"
    assert sums[None, "3.11.0"].metrics["artifact_bytes"] == 74_296 + 50_438
    assert sums[None, "3.13.0"].metrics["artifact_bytes"] == 64_920 + 83_990
    assert sums["cuda", "3.10.0"].metrics["artifact_bytes"] is None, "3.11.0 does not have its one cell"
    assert {total.cells["artifact_bytes"] for (target, _), total in sums.items() if target is None} == {2}
    assert {total.cells["artifact_bytes"] for (target, _), total in sums.items() if target == "cuda"} == {0}


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 1_000)), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_totals_add_up_and_take_nothing_from_gaps(rows: list[list[int | None]]) -> None:
    variants = []
    for at in range(3):
        cells = (
            Cell(CellKey(f"m{index}", "t"), "failed" if row[at] is None else "ok", dict.fromkeys(TRACKED, row[at]))
            for index, row in enumerate(rows)
        )
        variants.append(Variant(str(at), "", Snapshot(CompilerInfo("", "", ""), SourceInfo(), tuple(cells))))
    columns = [at for at in range(3) if any(row[at] is not None for row in rows)]
    whole = [row for row in rows if all(row[at] is not None for at in columns)]
    found = totals_of(Study(tuple(variants)))
    assert {int(total.compiler) for total in found} == set(columns), "what measured nothing has no part in it"
    for total in found:
        for metric in TRACKED:
            values = [value for row in whole if (value := row[int(total.compiler)]) is not None]
            wanted = None if not values else max(values) if METRIC_BY_ID[metric].over == "largest" else sum(values)
            assert total.metrics[metric] == wanted and total.cells[metric] == len(whole)


# JSON.


def test_the_contract() -> None:
    plain = json.loads(text(make.eventful()))
    assert plain["schema"] == "code-size-history/1"
    for point in plain["points"]:
        assert {"compiler", "model", "target", "status", "metrics"} <= point.keys()
        assert point["status"] in ("ok", "failed", "unmeasured") and (point["status"] == "ok") == bool(point["metrics"])
    assert [release["order"] for release in plain["releases"]] == list(range(5)) and "/tmp" not in str(plain)
    missing = [point for point in plain["points"] if point["compiler"] == "3.12.0"]
    assert len(missing) == 4 and all("no such release" in point["reason"] for point in missing)


def test_a_snapshot_is_told_from_a_history() -> None:
    from bot.core.snapshot import from_json

    with pytest.raises(InputError, match="is a history, a snapshot is wanted"):
        from_json(text(make.eventful()).decode())
    assert snapshot("1").cells
