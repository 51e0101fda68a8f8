"""bot.core.sharding: shards by last known cost, and a matrix that every runner reads alike."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.json_text import canonical
from bot.core.planned import Model, Target, plan
from bot.core.sharding import agreed, assigned, deal, expected, known_costs, matrix, shard
from bot.core.snapshot import Cell, CellKey
from bot.errors import InputError

TARGETS = (Target("cpu", "llvm-cpu"), Target("vmvx", "vmvx"), Target("rocm", "rocm"))
MODELS = tuple(
    Model(name, f"{name}.mlir", f"{name}.mlir", "0" * 64, size)
    for name, size in zip("abcdef", range(10, 70, 10), strict=True)
)
CELLS = plan(MODELS, TARGETS)

costs = st.dictionaries(st.sampled_from([cell.key for cell in CELLS]), st.integers(0, 10_000))


@given(costs, st.integers(1, 9))
def test_every_cell_is_in_one_shard(known: dict[CellKey, int], count: int) -> None:
    parts = deal(CELLS, count, known)
    assert sorted(cell.key for part in parts for cell in part) == [cell.key for cell in CELLS]
    assert len(parts) == count


@given(costs)
def test_what_is_not_known_is_guessed_on_the_scale_of_what_is(known: dict[CellKey, int]) -> None:
    found = expected(CELLS, known)
    assert {key: found[key] for key in known} == known
    unknown = [cell for cell in CELLS if cell.key not in known]
    seen = sum(cell.cost for cell in CELLS if cell.key in known)
    scale = sum(known.values()) / seen if seen else 1
    assert [found[cell.key] for cell in unknown] == pytest.approx([cell.cost * scale for cell in unknown])


def test_known_costs_move_a_model_that_looks_small() -> None:
    """`a` is the smallest file; where it was the dearest to compile, it gets a runner of its own."""
    cells = [cell for cell in CELLS if cell.model.name in "abc"]
    known = {cell.key: {"a": 300, "b": 200, "c": 150}[cell.model.name] for cell in cells}
    assert [{cell.model.name for cell in part} for part in deal(cells, 2, known)] == [{"a"}, {"b", "c"}]
    assert [{cell.model.name for cell in part} for part in deal(cells, 2)] == [{"c"}, {"a", "b"}]


def test_a_model_dearer_than_a_fair_part_is_split_by_cells() -> None:
    known = {cell.key: 1_000 if cell.model.name == "f" else 1 for cell in CELLS}
    parts = deal(CELLS, 3, known)
    assert [sum(cell.model.name == "f" for cell in part) for part in parts] == [1, 1, 1]


def test_small_models_cost_what_starting_the_compiler_does_and_are_dealt_evenly() -> None:
    models = tuple(replace(MODELS[0], name=name, size_bytes=size) for name, size in (("a", 79), ("b", 619)))
    assert [len(part) for part in deal(plan(models, TARGETS), 2)] == [3, 3]


def test_costs_are_those_of_the_snapshot() -> None:
    key = CellKey("a", "cpu")
    cells = [Cell(key, "ok", {"compile_cpu_ms": 12}), Cell(CellKey("a", "vmvx"), "ok", {"compile_cpu_ms": None})]
    assert known_costs(cells) == {key: 12}


@given(costs, st.integers(1, 9))
def test_runners_read_the_plan_as_it_was_dealt(known: dict[CellKey, int], count: int) -> None:
    text = canonical(matrix(CELLS, count, known)).decode()
    read = tuple(assigned(CELLS, text, index, count, "plan") for index in range(1, count + 1))
    assert read == (deal(CELLS, count, known) if known else tuple(shard(CELLS, i, count) for i in range(1, count + 1)))
    assert [row["cells"] for row in json.loads(text)["include"]] == [len(part) for part in read if part]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"include": 1}', '{"include": [{}]}', '{"include":[{"shard":"1/1","assigned":[]}]}']
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a plan"):
        assigned(CELLS, text, 1, 1, "--plan")


def test_a_plan_of_another_commit_is_refused() -> None:
    text = canonical(matrix(CELLS[3:], 1, {cell.key: 1 for cell in CELLS})).decode()
    with pytest.raises(InputError, match="f on cpu, which is not planned here"):
        assigned(CELLS[:-3], text, 1, 1, "the plan")


@pytest.mark.parametrize("known", [None, {cell.key: 1 for cell in CELLS}], ids=["by size", "by cost"])
def test_a_plan_of_more_or_fewer_cells_is_refused(known: dict[CellKey, int] | None) -> None:
    text = canonical(matrix(CELLS, 2, known)).decode()
    with pytest.raises(InputError) as caught:
        assigned(CELLS[:-3], text, 1, 2, "the plan")
    assert caught.value.line == (
        "the plan: is of 18 cells, and 15 are planned here (plan and measure the same commit, with the same selectors)"
    )


@pytest.mark.parametrize("known", [None, {cell.key: 1 for cell in CELLS}], ids=["by size", "by cost"])
@pytest.mark.parametrize(("index", "count"), [(1, 8), (4, 8), (1, 2), (3, 3)])
def test_a_shard_of_another_count_is_refused(known: dict[CellKey, int] | None, index: int, count: int) -> None:
    text = canonical(matrix(CELLS, 4, known)).decode()
    with pytest.raises(InputError) as caught:
        assigned(CELLS, text, index, count, "the plan")
    assert caught.value.line == (
        f"the plan: is over 4 shards, and {index}/{count} is not one of them (measure the shards that the plan names)"
    )


def test_a_shard_of_the_plan_without_cells_has_none() -> None:
    text = canonical(matrix(CELLS, 20)).decode()
    assert len(json.loads(text)["include"]) == 18 and assigned(CELLS, text, 20, 20, "the plan") == ()


def test_a_plan_without_shards_is_refused() -> None:
    with pytest.raises(InputError, match="is over no shards"):
        assigned(CELLS, '{"include": []}', 1, 1, "the plan")


def test_a_plan_says_what_nightly_is_for_all_its_runners() -> None:
    plain, moving = matrix(CELLS, 2), matrix(CELLS, 2, None, {"nightly": "3.14.0rc20261101"})
    assert b"releases" not in canonical(plain) and agreed(canonical(plain).decode()) == {}
    text = canonical(moving).decode()
    assert agreed(text) == {"nightly": "3.14.0rc20261101"}
    assert assigned(CELLS, text, 1, 2, "the plan") == shard(CELLS, 1, 2)
    for wrong in ({"3.13.0": "3.14.0"}, {"nightly": "../evil"}, {"nightly": "evil.whl"}, {"nightly": 3}):
        row = {"shard": "1/1", "cells": len(CELLS), "releases": wrong}
        with pytest.raises(InputError, match="plan"):
            agreed(json.dumps({"include": [row]}))
