"""Who may share, which targets are compared, and when two front halves are the same program."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_compiler import EIGHT, VMVX, X86, cells_of
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.compiler.sharing.front_halves import (
    LARGEST_PROOF,
    agree,
    front_flags,
    groups_of,
    is_worth_proving,
    may_share,
    missing_resource,
)
from bot.compiler.sharing.places import without_places
from bot.config.configuration import configs_dir, load_config
from bot.core.values.planned import COMMON_FLAGS, LIFTED_LIMIT_FLAG, Model, PlannedCell, Target, plan


def models(*sizes: int) -> list[Model]:
    return [Model(f"m{i:02}", "", "", f"{i:064x}", size) for i, size in enumerate(sizes)]


def test_every_default_cell_may_share() -> None:
    cells = plan(models(1), [target for target in load_config().targets if not target.unsupported])
    assert len(cells) == 8 and all(map(may_share, cells))
    assert {front_flags(cell) for cell in cells} == {COMMON_FLAGS}


@pytest.mark.parametrize(
    "flag",
    [
        "--iree-opt-data-tiling",
        "--iree-dispatch-creation-data-tiling",
        "--iree-opt-level=O2",
        "--iree-llvmcpu-enable-ukernels=all",
        "--iree-dispatch-creation-enable-aggressive-fusion=false",
        "--a-flag-of-the-next-release",
    ],
)
@pytest.mark.parametrize("where", ["user", "target"])
def test_a_flag_that_is_not_known_to_leave_the_front_half_alone_ends_sharing(flag: str, where: str) -> None:
    target = replace(X86, flags=(*X86.flags, flag)) if where == "target" else X86
    assert not may_share(PlannedCell(models(1)[0], target, (flag,) if where == "user" else ()))


def test_derived_targets_share_with_others_of_the_same_flags_alone() -> None:
    targets = load_config(configs_dir() / "wide.yml", models=False).targets
    cells = plan(models(100), [target for target in targets if not target.unsupported])
    alone = {cell.target.name for cell in cells if not may_share(cell)}
    assert alone == {"llvm-cpu-x86_64-O2", "llvm-cpu-x86_64-O3", "llvm-cpu-x86_64-tiled"}
    shares = [cell for cell in cells if may_share(cell)]
    assert {front_flags(cell) for cell in shares} == {COMMON_FLAGS}
    [group] = groups_of(shares)
    derived = {"rocm-gfx950", "rocm-gfx1201", "cuda-sm_89", "vulkan-valhall4", "vulkan-rdna3"}
    assert derived < {cell.target.name for cell in group.cells}


def test_lifting_the_stack_gate_is_the_targets_own() -> None:
    assert may_share(PlannedCell(models(1)[0], X86, (LIFTED_LIMIT_FLAG,)))


def test_over_a_suite_every_target_has_its_front_half_compared_with_one_of_another_kind() -> None:
    groups = groups_of(plan(models(*[100] * 13), EIGHT))
    pairs = [(group.donor.target, group.witness.target) for group in groups]
    assert {target.name for pair in pairs for target in pair} == {target.name for target in EIGHT}
    hosts = {"llvm-cpu", "vmvx"}
    assert all(donor.backend in hosts and witness.backend not in hosts for donor, witness in pairs)


@given(st.integers(1, 6), st.sets(st.integers(0, 7), min_size=1))
def test_donor_and_witness_are_two_targets_of_the_model(count: int, chosen: set[int]) -> None:
    targets = [EIGHT[index] for index in sorted(chosen)]
    for group in groups_of(plan(models(*[50] * count), targets)):
        assert group.donor is not group.witness and {group.donor, group.witness} <= set(group.cells)
        assert group.cost < group.direct_cost
        if len({target.backend for target in targets}) > 1:
            assert group.donor.target.backend != group.witness.target.backend


def test_two_targets_save_nothing() -> None:
    assert groups_of(plan(models(100, 100), [X86, VMVX])) == []


def test_proof_costs_at_most_a_tenth() -> None:
    names = [target.name for target in EIGHT]
    large = groups_of(plan(models(10, *[1000] * 9), EIGHT))
    assert is_worth_proving(large, names)
    even = groups_of(plan(models(*[1000] * 4), EIGHT))
    assert not is_worth_proving(even, names), "one of four models compiled twice is more than a tenth"
    assert is_worth_proving(even, []), "what was proved before costs nothing"
    assert not is_worth_proving(large[:1], [])
    assert LARGEST_PROOF == 0.1


DEVICE = '  util.global private @__device_0 = #hal.device.target<"local", [#hal.executable.target<"{}">]> : !hal.device'
MODULE = """module {{
{device}
  util.func public @main(%arg0: i32 loc("a(b"("x.py":1:2))) {{
    %0 = arith.addi %arg0, {operand} : i32 loc(fused[{places}])
  }} loc(#loc1)
}} loc(unknown)
#loc1 = loc("x.py":3:4)
"""


def module(device: str, places: str = '"p", "q"', operand: str = "%arg0") -> str:
    return MODULE.format(device=DEVICE.format(device), places=places, operand=operand)


def test_two_front_halves_agree_in_all_but_the_device_and_the_order_of_places() -> None:
    assert agree(module("llvm-cpu"), module("rocm"))
    assert agree(module("llvm-cpu"), module("rocm", places='"q"("y.py":7:8), callsite("p" at "q")'))
    assert not agree(module("llvm-cpu"), module("rocm", operand="%arg1"))


def test_places_are_left_out_with_whatever_stands_in_them() -> None:
    assert without_places(module("x")) == (
        f"module {{\n{DEVICE.format('x')}\n  util.func public @main(%arg0: i32) {{\n"
        "    %0 = arith.addi %arg0, %arg0 : i32\n  }\n}\n"
    )
    assert without_places('a loc("never closed') == "a"


CARRIED = """module {{
  %0 = "x"() {{v = dense_resource<{0}> : t}}
}}

{{-#
  dialect_resources: {{
    builtin: {{
      {1}: "0x0400"
"""


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("module {}", None),
        ("module { %0 = dense_resource<blob> : t }", "blob"),
        (CARRIED.format("blob", "blob"), None),
        (CARRIED.format("blob", "other"), "blob"),
        (CARRIED.format("torch_tensor_32_torch.float32", "torch_tensor_32_torch.float32"), None),
        (CARRIED.format('"a b"', '"a b"'), None),
    ],
)
def test_a_resource_that_is_named_has_to_be_carried(text: str, missing: str | None) -> None:
    assert missing_resource(text) == missing


def test_cells_that_share_have_the_same_flags_but_for_their_target(tmp_path: Path) -> None:
    [cell] = cells_of(tmp_path, ["m"], [X86], flags=["--iree-opt-level=O2"])
    assert front_flags(cell) == (*COMMON_FLAGS, "--iree-opt-level=O2")
    other = Target("arm", "llvm-cpu", ("--iree-llvmcpu-target-cpu=generic", "--iree-llvmcpu-target-abi=lp64d"))
    assert front_flags(replace(cell, target=other)) == front_flags(cell)
