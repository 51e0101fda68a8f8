"""bot.core.sharding: shards give the unsharded snapshot byte for byte, and what is not of one run is refused."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_texts import to_json
from replacing import replace
from strategies import plain_snapshot, planned_models, planned_targets, snapshots

from bot.core.planned import Model, PlannedCell, Target, plan
from bot.core.sharding import merge_snapshots, nothing_in_common, shard, unmeasured_models
from bot.core.snapshot import Cell, CompilerInfo, Failure, Snapshot
from bot.errors import InputError

RUN = plain_snapshot(
    ("a", "cuda", "ok"),
    ("a", "vmvx", "failed"),
    ("b", "cuda", "over-stack-limit"),
    ("b", "vmvx", "ok"),
    notes=("one", "two"),
)


def part_of(snapshot: Snapshot, models: set[str], notes: Sequence[str] = ()) -> Snapshot:
    """What the shard with these models measured."""
    return replace(
        snapshot,
        cells=tuple(cell for cell in snapshot.cells if cell.key.model in models),
        models={name: digest for name, digest in snapshot.models.items() if name in models},
        notes=tuple(notes),
    )


A, B = part_of(RUN, {"a"}, ["one"]), part_of(RUN, {"b"}, ["two", "one"])


def refusal(*parts: Snapshot) -> str:
    with pytest.raises(InputError) as caught:
        merge_snapshots([(f"part-{number}.json", part) for number, part in enumerate(parts, 1)])
    return caught.value.line


# Merging.


def measured(cells: Sequence[PlannedCell]) -> Snapshot:
    """What a run over these cells would write; `flags` and the tables come from the cells, as in a real run."""
    return replace(
        plain_snapshot(),
        cells=tuple(Cell(one.key, "ok", {"vm_bytes": one.model.size_bytes}, command=one.command()) for one in cells),
        flags=cells[0].flags if cells else (),
        targets={cell.target.name: cell.target.backend for cell in cells},
        models={cell.model.name: cell.model.digest for cell in cells},
    )


@given(planned_models(), planned_targets, st.integers(1, 5), st.randoms(use_true_random=False))
def test_merged_shards_are_the_unsharded_run_byte_for_byte_in_any_order(
    models: tuple[Model, ...], targets: tuple[Target, ...], count: int, chance: random.Random
) -> None:
    cells = plan(models, targets)
    parts = [(str(index), measured(shard(cells, index, count))) for index in range(1, count + 1)]
    merged = merge_snapshots(chance.sample(parts, count))
    assert to_json(merged) == to_json(measured(cells))


@given(snapshots())
def test_a_single_part_is_itself(snapshot: Snapshot) -> None:
    assert merge_snapshots([("only", snapshot)]) == snapshot


@given(snapshots(), st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_the_order_of_parts(snapshot: Snapshot, chance: random.Random) -> None:
    parts = [(name, part_of(snapshot, {name}, [name])) for name in snapshot.models] or [("all", snapshot)]
    texts = {to_json(merge_snapshots(chance.sample(parts, len(parts)))) for _ in range(3)}
    assert len(texts) == 1


def test_a_shard_without_cells_adds_nothing_and_need_not_know_the_flags() -> None:
    empty = replace(part_of(RUN, set()), flags=(), targets={})
    assert merge_snapshots([("0", empty), ("1", A), ("2", B)]) == RUN
    assert "a different compiler" in refusal(A, replace(empty, compiler=CompilerInfo("3.11.0", "", "e" * 64)))


# Before two snapshots are compared.


def test_snapshots_without_a_common_cell_are_named() -> None:
    assert nothing_in_common(A, part_of(RUN, {"b"})) == (
        "measure both sides with the same suite: base has a on cuda and others, head b on cuda and others"
    )


@pytest.mark.parametrize(
    ("base", "head"),
    [(RUN, RUN), (A, RUN), (RUN, B), (part_of(RUN, set()), RUN), (RUN, part_of(RUN, set()))],
    ids=["same", "fewer on base", "fewer on head", "none on base", "none on head"],
)
def test_nothing_is_said_of_snapshots_that_can_be_compared(base: Snapshot, head: Snapshot) -> None:
    assert nothing_in_common(base, head) == ""


def test_a_model_that_compiles_nowhere_gets_one_line_with_its_first_diagnostic() -> None:
    rows = [(model, target, "failed") for model in ("dead", "half") for target in ("cuda", "vmvx")]
    base = plain_snapshot(*rows)
    head = plain_snapshot(*rows[:3], ("half", "vmvx", "over-stack-limit"), ("void", "vmvx", "timeout"))
    first, *rest = base.cells
    wordy = replace(first, failure=Failure("compile", "no such op\nmore\nand more"))
    assert unmeasured_models(replace(base, cells=(wordy, *rest)), head) == (
        "dead compiles on no target: no such op",
        "void compiles on no target: void is refused",
    )


@pytest.mark.parametrize("message", ["", "\n", "\nsecond"])
def test_a_failure_without_words_does_no_harm(message: str) -> None:
    cell = Cell(RUN.cells[0].key, "failed", failure=Failure("compile", message))
    assert unmeasured_models(RUN, part_of(RUN, set())) == ()
    found = unmeasured_models(replace(RUN, cells=(cell,)), part_of(RUN, set()))
    assert found == ("a compiles on no target: ",)


def test_a_model_without_any_supported_target_is_no_news() -> None:
    snapshot = plain_snapshot(("a", "vmvx-inline", "unsupported"))
    assert unmeasured_models(snapshot, snapshot) == ()
