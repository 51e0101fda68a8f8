"""bot.core.planned and sharding: what selectors take, the plan, its commands, and shards that join to the whole run."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_texts import to_json
from replacing import replace
from strategies import plain_snapshot, planned_models, planned_targets

from bot.core.json_text import canonical
from bot.core.near import near_or_known, nearest
from bot.core.planned import (
    COMMON_FLAGS,
    LIFTED_LIMIT_FLAG,
    Model,
    PlannedCell,
    Target,
    beginning,
    kept,
    matching,
    plan,
    require_matches,
    short_names,
)
from bot.core.sharding import (
    agreed,
    assigned,
    deal,
    known_costs,
    matrix,
    merge_snapshots,
    nothing_in_common,
    shard,
    unmeasured_models,
)
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot
from bot.errors import InputError, UsageError

# Selectors.

BACKENDS = {name: name for name in ("vmvx", "vulkan-spirv", "cuda")}
BACKENDS = {"llvm-cpu-x86_64": "llvm-cpu", "llvm-cpu-aarch64": "llvm-cpu", **BACKENDS}
NAMES = tuple(BACKENDS)
SHORT = short_names(NAMES, BACKENDS)
CPUS = ["llvm-cpu-x86_64", "llvm-cpu-aarch64"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("vmvx", ["vmvx"]),
        ("x86_64", ["llvm-cpu-x86_64"]),
        *((vulkan, ["vulkan-spirv"]) for vulkan in ("vulkan", "vul*")),
        *((cpus, CPUS) for cpus in ("*64", "[xa]*", "llvm-…64")),
        ("v*", ["vmvx", "vulkan-spirv"]),
        ("[!l]*", ["vmvx", "vulkan-spirv", "cuda"]),
        *((none, []) for none in ("spirv", "")),
    ],
)
def test_a_selector_takes_full_names_and_short_ones_where_no_full_one_fits(
    selector: str, expected: list[str]
) -> None:
    assert matching(NAMES, selector, SHORT) == expected


def test_names_that_could_mean_two_and_several_selectors() -> None:
    assert matching(["a*", "ab"], "a*") == ["a*"] and matching(
        ["x[1]", "x1"], "x[1]"
    ) == ["x[1]"]
    short = short_names(
        ["llvm-cpu-x", "rocm-x"], {"llvm-cpu-x": "llvm-cpu", "rocm-x": "rocm"}
    )
    assert matching(["llvm-cpu-x", "rocm-x"], "x", short) == []
    assert kept(NAMES, ()) == set(NAMES)
    assert kept(NAMES, ("x86_64", "cuda"), SHORT) == {"llvm-cpu-x86_64", "cuda"}


def test_a_beginning_leaves_out_the_function_and_means_no_initializers_where_another_has_it() -> (
    None
):
    names = [
        "_initializer_0_dispatch_0_copy",
        "main_dispatch_0_conv",
        "main_dispatch_1_pool",
        "main_dispatch_10_add",
    ]
    assert (
        beginning(names, "dispatch_0") == beginning(names, "dispatch_0*") == names[1:2]
    )
    assert (
        beginning(names[:1], "dispatch_0") == names[:1]
        and beginning(names, "dispatch_1") == names[2:3]
    )
    assert (
        beginning(names, "dispatch_1*") == names[2:]
        and beginning(names, "dispatch_?_pool") == names[2:3]
    )


def test_what_matches_nothing_is_one_line_with_the_near_names_or_all() -> None:
    models = ("bert_l4_f32_dyn", "bert_l4_f32_s128", "gpt2_f32", "mobilenet_v1_f32_224")
    for pattern, names, near in (
        ("x86-64", NAMES, ["llvm-cpu-x86_64"]),
        ("vulcan", NAMES, ["vulkan-spirv"]),
        ("llvm-cpu-arm64", NAMES, CPUS[::-1]),
        ("CUDA", NAMES, ["cuda"]),
        ("rocm", NAMES, []),
        ("*", NAMES, []),
        ("mobilnet*", models, ["mobilenet_v1_f32_224"]),
        ("brt*", models, ["bert_l4_f32_dyn", "bert_l4_f32_s128"]),
    ):
        assert nearest(pattern, names, SHORT) == near
    require_matches(NAMES, ("x86_64", "v*"), "target", SHORT)
    with pytest.raises(UsageError) as caught:
        require_matches(NAMES, ("vmvx", "x86-64"), "target", SHORT)
    assert (
        caught.value.line
        == "--target x86-64: matches no target (did you mean 'llvm-cpu-x86_64'?)"
    )
    assert (
        near_or_known("resnet", models[2:]) == "known: gpt2_f32, mobilenet_v1_f32_224"
    )
    assert near_or_known("zzz", [f"m{n:02}" for n in range(20)]).endswith(
        "m10, m11, and 8 more"
    )
    assert near_or_known("zzz", []) == "there is none"


# The plan, and its commands.

CPU = Target("llvm-cpu-x86_64", "llvm-cpu", ("--iree-llvmcpu-target-cpu=x86-64-v3",))
VMVX = Target("vmvx", "vmvx")
ROCM = Target("rocm", "rocm", ("--iree-rocm-target=gfx942",))


def model(name: str, size_bytes: int = 100, suffix: str = ".mlir") -> Model:
    return Model(
        name=name,
        path=f"/elsewhere/{name}{suffix}",
        shown=f"configs/models/{name}{suffix}",
        digest="d" * 64,
        size_bytes=size_bytes,
    )


BERT = model("bert")


def words(command: str) -> list[str]:
    """The command as a shell splits it; redirections and `&&` are words of their own."""
    return list(shlex.shlex(command, posix=True, punctuation_chars=True))


@given(planned_models(), planned_targets, st.randoms(use_true_random=False))
def test_every_model_on_every_target_sorted_by_key(
    models: tuple[Model, ...], targets: tuple[Target, ...], chance: random.Random
) -> None:
    cells = plan((model("resnet"), BERT), (VMVX, CPU), ("--user",))
    keys = [
        f"{name} on {target}"
        for name in ("bert", "resnet")
        for target in ("llvm-cpu-x86_64", "vmvx")
    ]
    assert [str(cell.key) for cell in cells] == keys
    assert {cell.flags for cell in cells} == {(*COMMON_FLAGS, "--user")}
    shuffled = chance.sample(models, len(models)), chance.sample(targets, len(targets))
    assert plan(*shuffled) == plan(models, targets)


def test_the_command_feeds_the_model_on_standard_input_so_that_its_path_cannot_change_the_artifact() -> (
    None
):
    (cell,) = plan((BERT,), (CPU,), ("--user",))
    assert (
        cell.command()
        == "iree-compile - --iree-dispatch-creation-enable-aggressive-fusion"
        " --iree-llvmcpu-debug-symbols=false"
        " --iree-vm-bytecode-module-strip-source-map"
        " --iree-vm-emit-polyglot-zip=false --iree-hal-target-backends=llvm-cpu"
        " --iree-llvmcpu-target-cpu=x86-64-v3 --user -o bert.vmfb <"
        " configs/models/bert.mlir"
    )
    added_words = [
        word
        for word in words(cell.command(lifted=True))
        if word not in words(cell.command())
    ]
    limit_bytes = int(LIFTED_LIMIT_FLAG.partition("=")[2])
    assert (
        added_words == [LIFTED_LIMIT_FLAG]
        and limit_bytes > 1 << 20
        and limit_bytes & (limit_bytes - 1) == 0
    )
    assert "/elsewhere" not in "".join(
        cell.command(lifted=True) for cell in plan((BERT,), (CPU, VMVX))
    )


def test_an_onnx_model_is_imported_first() -> None:
    onnx = model("resnet 50", suffix=".onnx")
    for flags in ((), ("--opset-version=17",)):
        (cell,) = plan((replace(onnx, import_flags=flags),), (VMVX,))
        first, second = cell.command().split(" && ")
        assert words(first) == [
            *(
                "iree-import-onnx",
                "configs/models/resnet 50.onnx",
                *flags,
                "-o",
                "resnet 50.mlir",
            ),
        ]
        assert words(second)[-4:] == ["-o", "resnet 50.vmfb", "<", "resnet 50.mlir"]


@given(
    st.sampled_from([".mlir", ".mlirbc", ".onnx"]),
    st.text(" ab'\"$`;&|<>*\\", min_size=1),
)
def test_no_name_escapes_its_word_in_the_shell(suffix: str, name: str) -> None:
    (cell,) = plan((model(name, suffix=suffix),), (VMVX,))
    split = words(cell.command())
    assert f"configs/models/{name}{suffix}" in split and f"{name}.vmfb" in split
    assert sum(word in ("&&", "<", ";", "|", ">") for word in split) == (
        2 if suffix == ".onnx" else 1
    )


# Shards.

SIX = tuple(
    replace(model(name), size_bytes=size)
    for name, size in zip("abcdef", range(10, 70, 10), strict=True)
)
THREE = (Target("cpu", "llvm-cpu"), VMVX, Target("rocm", "rocm"))
CELLS = plan(SIX, THREE)
costs = st.dictionaries(
    st.sampled_from([cell.key for cell in CELLS]), st.integers(0, 10_000)
)


def test_larger_models_and_slower_backends_cost_more() -> None:
    small = model("small", 10_000)
    large = model("large", 1_000_000)
    costs = [
        PlannedCell(model, target, ()).cost
        for model in (small, large)
        for target in (VMVX, CPU, ROCM)
    ]
    assert costs == sorted(costs) and len(set(costs)) == len(costs)
    tiny = tuple(
        replace(SIX[0], name=name, size_bytes=size)
        for name, size in (("a", 79), ("b", 619))
    )
    assert [len(part) for part in deal(plan(tiny, THREE), 2)] == [3, 3]


@given(planned_models(), planned_targets, st.integers(1, 10))
def test_shards_are_an_even_partition_that_keeps_models_whole_up_to_a_fair_part(
    models: tuple[Model, ...], targets: tuple[Target, ...], count: int
) -> None:
    cells = plan(models, targets)
    parts = [shard(cells, index, count) for index in range(1, count + 1)]
    assert sorted(cell.key for part in parts for cell in part) == [
        cell.key for cell in cells
    ]
    of_model = {
        name: sum(c.cost for c in cells if c.model.name == name)
        for name in {c.model.name for c in cells}
    }
    fair = sum(of_model.values()) / count
    for name, cost in of_model.items():
        homes = sum(any(cell.model.name == name for cell in part) for part in parts)
        assert homes == 1 or cost > fair
    assert all(list(part) == sorted(part, key=lambda cell: cell.key) for part in parts)
    heaviest = max(sum(cell.cost for cell in part) for part in parts)
    assert heaviest <= (fair + max(of_model.values(), default=0.0)) * (1 + 1e-9)
    sizes = sorted(
        len(shard(plan(models, (VMVX,)), index, count)) for index in range(1, count + 1)
    )
    assert sizes[0] > 0 or sizes[-1] <= 1, (
        "no shard is empty while another has two models"
    )


def test_known_costs_move_a_model_that_looks_small_and_split_one_that_is_dear() -> None:
    cells = [cell for cell in CELLS if cell.model.name in "abc"]
    costs_by_key = {
        cell.key: {"a": 300, "b": 200, "c": 150}[cell.model.name] for cell in cells
    }
    assert [
        {cell.model.name for cell in part} for part in deal(cells, 2, costs_by_key)
    ] == [
        {"a"},
        {"b", "c"},
    ]
    assert [{cell.model.name for cell in part} for part in deal(cells, 2)] == [
        {"c"},
        {"a", "b"},
    ]
    parts = deal(
        CELLS, 3, {cell.key: 1_000 if cell.model.name == "f" else 1 for cell in CELLS}
    )
    assert [sum(cell.model.name == "f" for cell in part) for part in parts] == [1, 1, 1]
    key = CellKey("a", "cpu")
    other_key = CellKey("a", "vmvx")
    measured_once = [
        Cell(key.model, key.target, "ok", {"compile_cpu_ms": 12}),
        Cell(other_key.model, other_key.target, "ok", {"compile_cpu_ms": None}),
    ]
    assert known_costs(measured_once) == {key: 12}


@given(costs, st.integers(1, 9))
def test_runners_read_the_plan_as_it_was_dealt(
    recorded: dict[CellKey, int], count: int
) -> None:
    text = canonical(matrix(CELLS, count, recorded)).decode()
    parts = deal(CELLS, count, recorded)
    assert (
        sorted(cell.key for part in parts for cell in part)
        == [cell.key for cell in CELLS]
        and len(parts) == count
    )
    read = tuple(
        assigned(CELLS, plan=text, index=index, count=count, where="plan")
        for index in range(1, count + 1)
    )
    assert read == parts
    assert [row["cells"] for row in json.loads(text)["include"]] == [
        len(part) for part in read if part
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"include": 1}',
        '{"include": [{}]}',
        '{"include":[{"shard":"1/1","assigned":[]}]}',
    ],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a plan"):
        assigned(CELLS, plan=text, index=1, count=1, where="--plan")


def test_a_plan_of_other_cells_or_of_another_count_is_refused() -> None:
    def refused(cells: Sequence[PlannedCell], text: str, index: int, count: int) -> str:
        with pytest.raises(InputError) as caught:
            assigned(cells, plan=text, index=index, count=count, where="the plan")
        return caught.value.line

    other_matrix = canonical(matrix(CELLS[3:], 1)).decode()
    assert "has 15 builds, but 15 are planned here: a on cpu is not in both" in refused(
        CELLS[:-3], other_matrix, 1, 1
    )
    assert "has no shards" in refused((), '{"include": []}', 1, 1)
    assert (
        refused(CELLS[:-3], canonical(matrix(CELLS, 2)).decode(), 1, 2)
        == "the plan: has 18 builds, but 15 are planned here: f on cpu is not in both "
        "(plan and measure the same commit, with the same selectors)"
    )
    for index, count in ((1, 8), (4, 8), (1, 2), (3, 3)):
        assert (
            refused(CELLS, canonical(matrix(CELLS, 4)).decode(), index, count)
            == f"the plan: has 4 shards, and {index}/{count} is not among them (measure"
            " the shards that the plan names)"
        )
    wide = canonical(matrix(CELLS, 20)).decode()
    assert (
        len(json.loads(wide)["include"]) == 18
        and assigned(CELLS, plan=wide, index=20, count=20, where="the plan") == ()
    )


def test_a_plan_says_what_nightly_is_for_all_its_runners() -> None:
    plain = matrix(CELLS, 2)
    moving = matrix(CELLS, 2, None, {"nightly": "3.14.0rc20261101"})
    assert (
        b"releases" not in canonical(plain) and agreed(canonical(plain).decode()) == {}
    )
    text = canonical(moving).decode()
    assert agreed(text) == {"nightly": "3.14.0rc20261101"}
    assert assigned(CELLS, plan=text, index=1, count=2, where="the plan") == shard(
        CELLS, 1, 2
    )
    for wrong in (
        {"3.13.0": "3.14.0"},
        {"nightly": "../evil"},
        {"nightly": "evil.whl"},
        {"nightly": 3},
    ):
        row = {"shard": "1/1", "cells": len(CELLS), "assigned": {}, "releases": wrong}
        with pytest.raises(InputError, match="plan"):
            agreed(json.dumps({"include": [row]}))


# Joining what shards measured.

ROWS = (
    ("a", "cuda", "ok"),
    ("a", "vmvx", "failed"),
    ("b", "cuda", "over-stack-limit"),
    ("b", "vmvx", "ok"),
)
RUN = plain_snapshot(*ROWS, notes=("one", "two"))


def part_of(
    snapshot: Snapshot, models: set[str], notes: Sequence[str] = ()
) -> Snapshot:
    """What the shard with these models measured."""
    return replace(
        snapshot,
        cells=tuple(cell for cell in snapshot.cells if cell.key.model in models),
        models={
            name: digest for name, digest in snapshot.models.items() if name in models
        },
        notes=tuple(notes),
    )


A = part_of(RUN, {"a"}, ["one"])
B = part_of(RUN, {"b"}, ["two", "one"])
NONE = part_of(RUN, set())


def measured(cells: Sequence[PlannedCell]) -> Snapshot:
    """What a run over these cells would write.

    `flags` and the tables come from the cells, as in a real run.
    """
    return replace(
        plain_snapshot(),
        cells=tuple(
            Cell(
                cell.model.name,
                cell.target.name,
                "ok",
                {"vm_bytes": cell.model.size_bytes},
                command=cell.command(),
            )
            for cell in cells
        ),
        flags=cells[0].flags if cells else (),
        targets={cell.target.name: cell.target.backend for cell in cells},
        models={cell.model.name: cell.model.digest for cell in cells},
    )


@given(
    planned_models(),
    planned_targets,
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_merged_shards_are_the_unsharded_run_byte_for_byte_in_any_order(
    models: tuple[Model, ...],
    targets: tuple[Target, ...],
    count: int,
    chance: random.Random,
) -> None:
    cells = plan(models, targets)
    parts = [
        (str(index), measured(shard(cells, index, count)))
        for index in range(1, count + 1)
    ]
    assert to_json(merge_snapshots(chance.sample(parts, count))) == to_json(
        measured(cells)
    )


def test_a_shard_without_cells_adds_nothing_and_need_not_know_the_flags() -> None:
    empty = replace(NONE, flags=(), targets={})
    assert merge_snapshots([("0", empty), ("1", A), ("2", B)]) == RUN
    with pytest.raises(InputError, match="a different compiler"):
        merge_snapshots(
            [
                ("1", A),
                ("0", replace(empty, compiler=CompilerInfo("3.11.0", "", "e" * 64))),
            ]
        )


def test_snapshots_without_a_common_cell_are_named() -> None:
    assert (
        nothing_in_common(A, part_of(RUN, {"b"}))
        == "measure both sides with the same suite: base has a on cuda and others, head"
        " b on cuda and others"
    )
    assert {
        nothing_in_common(*pair)
        for pair in ((RUN, RUN), (A, RUN), (RUN, B), (NONE, RUN), (RUN, NONE))
    } == {""}


def test_a_model_that_compiles_nowhere_gets_one_line_with_its_first_diagnostic() -> (
    None
):
    rows = [
        (name, target, "failed")
        for name in ("dead", "half")
        for target in ("cuda", "vmvx")
    ]
    base = plain_snapshot(*rows)
    head = plain_snapshot(
        *rows[:3], ("half", "vmvx", "over-stack-limit"), ("void", "vmvx", "timeout")
    )
    first, *other_cells = base.cells
    wordy = replace(first, failure=Failure("compile", "no such op\nmore\nand more"))
    assert unmeasured_models(replace(base, cells=(wordy, *other_cells)), head) == (
        "dead compiles on no target; on cuda: no such op",
        "void compiles on no target: void is refused",
    )
    for message in ("", "\n", "\nsecond"):
        wordless = Cell(
            RUN.cells[0].model,
            RUN.cells[0].target,
            "failed",
            failure=Failure("compile", message),
        )
        assert unmeasured_models(replace(RUN, cells=(wordless,)), NONE) == (
            "a compiles on no target: ",
        )
    unread = Cell("a", "vmvx", "failed", failure=Failure("read", "too large"))
    assert unmeasured_models(replace(RUN, cells=(unread,)), NONE) == (
        "a is measured on no target: too large",
    )
    unsupported = plain_snapshot(("a", "vmvx-inline", "unsupported"))
    assert (
        unmeasured_models(RUN, NONE)
        == unmeasured_models(unsupported, unsupported)
        == ()
    )
