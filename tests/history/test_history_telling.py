"""What is told of each release: moves since the last one that measured the cell, noise, gaps and their reasons."""

from __future__ import annotations

from fractions import Fraction

import history_factory as make
from history_factory import BERT, BERT_CUDA, MOBILENET
from replacing import replace

from bot.config.configuration import load_config
from bot.core.delta import sizes_of
from bot.core.history import History, Move
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.policy import Ratio
from bot.core.snapshot import CellKey, Outcome, Snapshot
from bot.core.study import Study, Variant
from bot.study.history import explained_history


def study(*sides: Snapshot) -> Study:
    return Study(tuple(Variant(f"3.{at}.0", f"3.{at}.0", side) for at, side in enumerate(sides)))


def three(*sizes: int | None) -> Study:
    return study(*(make.side(f"3.{at}.0", {BERT: size, MOBILENET: 50_000 + at}) for at, size in enumerate(sizes)))


def moves(history: History, key: CellKey) -> list[Move | None]:
    """What moved of a cell, release after release."""
    return [history.moves.get((one.name, key)) for one in history.study.variants]


def test_a_move_across_a_gap_is_told_with_the_release_that_it_is_since() -> None:
    history = make.history_of(three(100_000, None, None, 100_500))
    assert [cell.status for cell in history.rows[BERT]] == ["ok", "failed", "failed", "ok"]
    *none, move = moves(history, BERT)
    assert not any(none) and move and (move.since, move.changes) == ("3.0.0", {"artifact_bytes": 500})


def test_what_is_the_same_on_both_sides_of_a_gap_did_not_move() -> None:
    history = make.history_of(three(100_000, None, 100_000))
    assert not any(moves(history, BERT)) and BERT not in history.number_moves
    assert [step.fixed for step in history.steps] == [0, 1] and [step.broken for step in history.steps] == [1, 0]


def test_first_and_largest_move_of_each_number() -> None:
    moved = make.history_of(three(100, 110, 90, 200)).number_moves[BERT]["artifact_bytes"]
    assert (moved.first.release, moved.first.change) == ("3.1.0", 10)
    assert (moved.largest.release, moved.largest.change) == ("3.3.0", 110)


def test_a_release_that_is_not_there_is_a_gap_and_its_neighbours_a_step() -> None:
    history = make.eventful()
    assert [(step.name, step.gaps) for step in history.steps] == [
        ("3.10.0 → 3.11.0", ()),
        ("3.11.0 → 3.13.0", ("3.12.0",)),
        ("3.13.0 → 3.13.0 (2)", ()),
    ]
    releases = history.study.variants
    assert [one.name for one in releases][2] == "3.12.0" and "no such release" in releases[2].reason
    assert {row[2].status for row in history.study.rows.values()} == {"unmeasured"}
    assert releases[1].repeats == ("old.json",) and releases[4].notes


def test_what_a_snapshot_does_not_have_is_no_failure() -> None:
    cell = make.eventful().study.rows[replace(BERT_CUDA, model=MOBILENET.model)][0]
    assert (cell.status, cell.reason, dict(cell.metrics)) == ("unmeasured", "not in this snapshot", {})


def timed(milliseconds: int, version: str) -> Snapshot:
    found = make.side(version, {BERT: 64_920})
    cells = (replace(cell, metrics={**cell.metrics, "compile_cpu_ms": milliseconds}) for cell in found.cells)
    return replace(found, cells=tuple(cells))


def test_compile_time_moves_where_its_noise_is_known_and_exceeded() -> None:
    sides = study(*(timed(ms, f"3.{at}.0") for at, ms in enumerate((3_000, 3_200, 5_000))))
    unknown = explained_history(sides, load_config())
    assert not unknown.number_moves and "compile CPU time: no move is told" in unknown.notes[0]
    config = replace(load_config(), noise={"compile_cpu_ms": Ratio(Fraction(1, 10), "10%")})
    known = explained_history(sides, config)
    assert not known.notes
    assert [dict(move.changes) if move else {} for move in moves(known, BERT)] == [{}, {}, {"compile_cpu_ms": 1_800}]


def test_a_cell_that_does_not_repeat_itself_has_all_its_sizes() -> None:
    first, second = make.side("3.0.0", {BERT: 82_408}), make.side("3.1.0", {BERT: 86_872})
    cell = second.cells[0]
    other = Outcome("ok", {**cell.metrics, "artifact_bytes": 82_408}, "e" * 64)
    second = replace(second, cells=(replace(cell, compiles=2, others=(other,)),))
    history = make.history_of(study(first, second))
    assert sizes_of(history.rows[BERT][1]) == (82_408, 86_872)
    assert not any(moves(history, BERT)), "the pair that differs least does not"


def with_command(found: Snapshot, command: str) -> Snapshot:
    return replace(found, cells=tuple(replace(cell, command=command) for cell in found.cells))


def test_a_move_says_that_the_flags_are_others_and_not_that_one_has_another_name() -> None:
    commands = (
        "iree-compile - --iree-hip-target=gfx942 --iree-old -o m.vmfb < m.mlir",
        f"iree-compile - --iree-rocm-target=gfx942 --iree-old {LIFTED_LIMIT_FLAG} -o m.vmfb < m.mlir",
        "iree-compile - --iree-rocm-target=gfx942 --iree-new=1 -o m.vmfb < m.mlir",
    )
    sides = [with_command(make.side(f"3.{at}.0", {BERT: 100 + at}), command) for at, command in enumerate(commands)]
    whys = [move.why if move else "" for move in moves(make.history_of(study(*sides)), BERT)]
    assert "flags" not in whys[1]
    assert whys[2].startswith("compiled with other flags (without --iree-old, --iree-new=1)")


def test_one_release_alone_is_a_history_without_steps() -> None:
    history = make.history_of(three(100_000))
    assert not history.steps and len(history.totals) == 2
    assert history.totals[0].metrics["artifact_bytes"] == 150_000


def test_a_release_that_compiles_nothing_keeps_the_reasons_of_its_cells_and_takes_part_in_no_total() -> None:
    sides = [make.side(f"3.{at}.0", {BERT: size, MOBILENET: size}) for at, size in enumerate((100, None, 120))]
    history = make.history_of(study(*sides))
    assert [(cell.status, cell.reason) for cell in history.rows[BERT]][1] == ("failed", "error: failed to distribute")
    move = moves(history, BERT)[2]
    assert move and move.since == "3.0.0"
    assert {total.compiler for total in history.totals} == {"3.0.0", "3.2.0"}
    assert history.totals[0].metrics["artifact_bytes"] == 200
