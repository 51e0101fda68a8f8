"""Selectors, shards that keep models whole, and commands that a shell reads as they were meant."""

from __future__ import annotations

import random
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from strategies import planned_models, planned_targets

from bot.core.planned import COMMON_FLAGS, LIFTED_LIMIT_FLAG, Model, PlannedCell, Target, plan
from bot.core.sharding import shard

CPU = Target("llvm-cpu-x86_64", "llvm-cpu", ("--iree-llvmcpu-target-cpu=x86-64-v3",))
VMVX = Target("vmvx", "vmvx")
ROCM = Target("rocm", "rocm", ("--iree-rocm-target=gfx942",))


def model(name: str, size_bytes: int = 100, suffix: str = ".mlir") -> Model:
    return Model(name, f"/elsewhere/{name}{suffix}", f"configs/models/{name}{suffix}", "d" * 64, size_bytes)


BERT, GPT2, RESNET = model("bert"), model("gpt2"), model("resnet")


# Selectors.


# The plan.


def test_every_model_on_every_target_sorted_by_key() -> None:
    cells = plan((RESNET, BERT), (VMVX, CPU), ("--user",))
    assert [str(cell.key) for cell in cells] == [
        "bert on llvm-cpu-x86_64",
        "bert on vmvx",
        "resnet on llvm-cpu-x86_64",
        "resnet on vmvx",
    ]
    assert {cell.flags for cell in cells} == {(*COMMON_FLAGS, "--user")}


def test_every_cell_has_aggressive_fusion_and_the_flags_that_make_sizes_independent_of_paths() -> None:
    assert set(COMMON_FLAGS) == {
        "--iree-dispatch-creation-enable-aggressive-fusion",
        "--iree-llvmcpu-debug-symbols=false",
        "--iree-vm-bytecode-module-strip-source-map",
        "--iree-vm-emit-polyglot-zip=false",
    }
    (cell,) = plan((BERT,), (CPU,))
    assert sorted(cell.argv) == sorted([*COMMON_FLAGS, "--iree-hal-target-backends=llvm-cpu", *CPU.flags])


@given(planned_models(), planned_targets, st.randoms(use_true_random=False))
def test_the_order_of_models_and_targets_does_not_matter(
    models: tuple[Model, ...], targets: tuple[Target, ...], chance: random.Random
) -> None:
    shuffled = chance.sample(models, len(models)), chance.sample(targets, len(targets))
    assert plan(*shuffled) == plan(models, targets)


# Commands.


def words(command: str) -> list[str]:
    """The command as a shell splits it; redirections and `&&` are words of their own."""
    return list(shlex.shlex(command, posix=True, punctuation_chars=True))


def test_the_command_feeds_the_model_on_standard_input_so_that_its_path_cannot_change_the_artifact() -> None:
    (cell,) = plan((BERT,), (CPU,), ("--user",))
    assert cell.command() == (
        "iree-compile - --iree-dispatch-creation-enable-aggressive-fusion --iree-llvmcpu-debug-symbols=false "
        "--iree-vm-bytecode-module-strip-source-map --iree-vm-emit-polyglot-zip=false "
        "--iree-hal-target-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 --user "
        "-o bert.vmfb < configs/models/bert.mlir"
    )


def test_a_lifted_command_has_the_one_flag_more_that_the_artifact_needs() -> None:
    (cell,) = plan((BERT,), (CPU,))
    more = [word for word in words(cell.command(lifted=True)) if word not in words(cell.command())]
    assert more == [LIFTED_LIMIT_FLAG]
    limit_bytes = int(LIFTED_LIMIT_FLAG.partition("=")[2])
    assert limit_bytes > 1 << 20 and limit_bytes & (limit_bytes - 1) == 0


def test_an_onnx_model_is_imported_first() -> None:
    (cell,) = plan((model("resnet 50", suffix=".onnx"),), (VMVX,))
    first, second = cell.command().split(" && ")
    assert words(first) == ["iree-import-onnx", "configs/models/resnet 50.onnx", "-o", "resnet 50.mlir"]
    assert words(second)[-4:] == ["-o", "resnet 50.vmfb", "<", "resnet 50.mlir"]
    (raised,) = plan((replace(model("resnet 50", suffix=".onnx"), import_flags=("--opset-version=17",)),), (VMVX,))
    first, second = raised.command().split(" && ")
    assert words(first)[1:] == ["configs/models/resnet 50.onnx", "--opset-version=17", "-o", "resnet 50.mlir"]


@given(st.sampled_from([".mlir", ".mlirbc", ".onnx"]), st.text(" ab'\"$`;&|<>*\\", min_size=1))
def test_no_name_escapes_its_word_in_the_shell(suffix: str, name: str) -> None:
    (cell,) = plan((model(name, suffix=suffix),), (VMVX,))
    found = words(cell.command())
    assert f"configs/models/{name}{suffix}" in found
    assert f"{name}.vmfb" in found
    assert sum(word in ("&&", "<", ";", "|", ">") for word in found) == (2 if suffix == ".onnx" else 1)


def test_the_command_prints_no_path_of_this_machine() -> None:
    assert "/elsewhere" not in "".join(cell.command(lifted=True) for cell in plan((BERT,), (CPU, VMVX)))


# Costs and shards.


def test_larger_models_and_slower_backends_cost_more() -> None:
    small, large = model("small", 10_000), model("large", 1_000_000)
    costs = [PlannedCell(one, target, ()).cost for one in (small, large) for target in (VMVX, CPU, ROCM)]
    assert costs == sorted(costs) and len(set(costs)) == len(costs)
    ratios = [more / less for less, more in zip(costs[:3], costs[3:], strict=True)]
    assert ratios == pytest.approx([ratios[0]] * 3) and 50 < ratios[0] < 100, "to start the compiler costs, too"


@given(planned_models(), planned_targets, st.integers(1, 10))
def test_shards_are_a_partition_that_keeps_models_whole_up_to_a_fair_part(
    models: tuple[Model, ...], targets: tuple[Target, ...], count: int
) -> None:
    cells = plan(models, targets)
    parts = [shard(cells, index, count) for index in range(1, count + 1)]
    assert sorted(cell.key for part in parts for cell in part) == [cell.key for cell in cells]
    fair = sum(cell.cost for cell in cells) / count
    for name in {cell.model.name for cell in cells}:
        homes = sum(any(cell.model.name == name for cell in part) for part in parts)
        assert homes == 1 or sum(cell.cost for cell in cells if cell.model.name == name) > fair
    assert all(list(part) == sorted(part, key=lambda cell: cell.key) for part in parts)


@given(planned_models(), st.integers(1, 10))
def test_no_shard_is_empty_while_another_has_two_models(models: tuple[Model, ...], count: int) -> None:
    sizes = sorted(len(shard(plan(models, (VMVX,)), index, count)) for index in range(1, count + 1))
    assert sizes[0] > 0 or sizes[-1] <= 1


@given(planned_models(), st.integers(1, 10))
def test_no_shard_is_heavier_than_the_mean_and_one_model(models: tuple[Model, ...], count: int) -> None:
    cells = plan(models, (VMVX, ROCM))
    loads = [sum(cell.cost for cell in shard(cells, index, count)) for index in range(1, count + 1)]
    heaviest = max((VMVX_AND_ROCM * one.size_bytes for one in models), default=0.0)
    assert max(loads) <= (sum(loads) / count + heaviest) * (1 + 1e-9)


VMVX_AND_ROCM = PlannedCell(model("one", 1), VMVX, ()).cost + PlannedCell(model("one", 1), ROCM, ()).cost
