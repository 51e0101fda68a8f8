"""Families of executables, as the worker works them out beside a real compiler: real programs, and ones by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from family_texts import HERE, binary, function
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_child import Child, compiled
from places import ROOT
from reader_checks import check_golden

from bot.core.program import FAMILY_KINDS, IDENTICAL

Families = list[dict[str, Any]]
Find = Callable[..., Families]
SMALL = (
    "constants",
    "static_shapes",
    "offsets",
    "operand_order",
    "extra_operation",
    "different_fusion",
    "identical",
)


@pytest.fixture
def find(worker: Child, tmp_path: Path) -> Find:
    """The families of a file at the end of the flow phase, or of functions in generic form."""

    def asked(flow: Path | None, *functions: tuple[str, list[str], int]) -> Families:
        file = flow or tmp_path / "flow.mlir"
        empty = tmp_path / "empty.mlir"
        empty.write_text("module {}")
        if flow is None:
            file.write_text(
                "module {\n"
                + "".join(_executable(*function) for function in functions)
                + "}\n"
            )
        answer = worker.ask(
            op="program",
            dispatch_creation=str(empty),
            stream=str(empty),
            flow=str(file),
        )
        assert answer.get("families") is not None, answer
        families: Families = answer["families"]
        members = [member for family in families for member in family["members"]]
        assert len(members) == len(set(members))
        assert all(
            len(line) <= 160 and line.isprintable()
            for family in families
            for line in family["varying"]
        )
        return families

    return asked


def _executable(name: str, body: list[str], arguments: int = 4) -> str:
    """What the last operation gives is used."""
    last = body[-1].split()[0] if body else "%arg0"
    lines = [*body, f'  "test.use"({last}) : (f32) -> ()']
    text = function(name, lines, arguments).generic.replace('"@"', f'"{name}_entry"')
    export = (
        f'"flow.executable.export"() <{{function_ref = @{name}_entry, sym_name ='
        f' "{name}_entry"}}> ({{}})'
    )
    return (
        f"flow.executable private @{name} {{\n{export} : () -> ()\nbuiltin.module"
        f" {{\n{text}\n}}\n}}\n"
    )


def flow_of(compiler_root: Path, model: Path, folder: Path) -> Path:
    """The program at the end of the flow phase."""
    flags = (
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=x86-64-v3",
        "--compile-to=flow",
    )
    compiled(
        compiler_root,
        model.read_text(),
        folder,
        *flags,
        "--iree-dispatch-creation-enable-aggressive-fusion",
    )
    (flow,) = folder.glob("*.6.flow.mlir")
    return flow


@pytest.mark.parametrize("name", SMALL)
def test_what_keeps_the_executables_of_a_small_model_apart(
    find: Find, compiler_root: Path, tmp_path: Path, name: str
) -> None:
    check_golden(
        f"../families/{name}.families",
        find(flow_of(compiler_root, HERE / f"{name}.mlir", tmp_path)),
    )


def test_layers_of_a_quantised_model_differ_in_constants_and_shapes(
    find: Find, compiler_root: Path, tmp_path: Path
) -> None:
    families = find(
        flow_of(
            compiler_root, ROOT / "configs/models/mobilenet_v1_int8_tosa.mlir", tmp_path
        )
    )
    five = next(family for family in families if "main_dispatch_5" in family["members"])
    assert (five["kind"], five["members"]) == (
        "static-shapes",
        [f"main_dispatch_{number}" for number in (5, 7, 9, 11)],
    )
    shapes, constants, *_, remark = five["varying"]
    assert shapes == "argument 0: 56x56x64, 56x56x128, 28x28x128, 28x28x256"
    assert constants.startswith(
        "tensor<128xi8> constant of linalg.generic: dense<"
    ) and constants.endswith("values)")
    assert len(five["varying"]) == 5 and remark == "… and 3 more"
    order = [
        (FAMILY_KINDS.index(family["kind"]), -len(family["members"]))
        for family in families
    ]
    assert order == sorted(order)


def _scaled(value: int) -> list[str]:
    return [
        f'  %c = "arith.constant"() <{{value = {value}.0 : f32}}> : () -> f32',
        binary(0, "arith.mulf", "%arg0", "%c"),
    ]


@given(st.lists(st.integers(2, 2**20), min_size=2, max_size=12))
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_constants_are_one_family(find: Find, values: list[int]) -> None:
    (family,) = find(
        None,
        *((f"d{number}", _scaled(value), 4) for number, value in enumerate(values)),
    )
    assert (family["kind"], len(family["members"])) == ("constants", len(values))
    assert (family["varying"] == [*IDENTICAL]) == (len(set(values)) == 1)


@given(st.permutations(range(4)))
@settings(
    max_examples=24,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_permutation_of_arguments_is_operand_order(
    find: Find, order: list[int]
) -> None:
    def body(names: Sequence[int]) -> list[str]:
        lines = [
            binary(0, "arith.mulf", f"%arg{names[0]}", f"%arg{names[1]}"),
            binary(1, "math.powf", "%0", "%0"),
        ]
        return [
            *lines,
            binary(2, "arith.addf", "%1", f"%arg{names[2]}"),
            binary(3, "arith.divf", "%2", f"%arg{names[3]}"),
        ]

    (family,) = find(None, ("a", body(range(4)), 4), ("b", body(order), 4))
    assert family["kind"] == (
        "constants" if order == sorted(order) else "operand-order"
    )
    assert (family["varying"] == [*IDENTICAL]) == (order == sorted(order))


FIRST = [
    binary(0, "arith.mulf", "%arg0", "%arg1"),
    binary(1, "arith.addf", "%0", "%arg2"),
]


@pytest.mark.parametrize(
    ("first_lines", "second_lines"),
    [
        # a * a + b is not a * b + b
        (
            [
                binary(0, "arith.mulf", "%arg0", "%arg0"),
                binary(1, "arith.addf", "%0", "%arg1"),
            ],
            [
                binary(0, "arith.mulf", "%arg0", "%arg1"),
                binary(1, "arith.addf", "%0", "%arg1"),
            ],
        ),
        # a chain in another order
        (
            [
                '  %0 = "math.exp"(%arg0) : (f32) -> f32',
                '  %1 = "math.sqrt"(%0) : (f32) -> f32',
            ],
            [
                '  %0 = "math.sqrt"(%arg0) : (f32) -> f32',
                '  %1 = "math.exp"(%0) : (f32) -> f32',
            ],
        ),
        # one operation more, but leaving it out does not give the other
        (
            FIRST,
            [
                binary(0, "arith.addf", "%arg0", "%arg1"),
                binary(1, "arith.mulf", "%0", "%arg2"),
                binary(2, "arith.subf", "%1", "%arg3"),
            ],
        ),
        # two operations more
        (
            FIRST,
            [
                *FIRST,
                binary(2, "arith.subf", "%1", "%arg3"),
                binary(3, "arith.divf", "%2", "%arg3"),
            ],
        ),
        # squares of two values, or the product of two squares
        (
            [
                binary(0, "arith.mulf", "%arg0", "%arg1"),
                binary(1, "arith.mulf", "%0", "%0"),
            ],
            [
                binary(0, "arith.mulf", "%arg0", "%arg0"),
                binary(1, "arith.mulf", "%0", "%arg1"),
            ],
        ),
    ],
)
def test_other_wiring_is_no_family(
    find: Find, first_lines: list[str], second_lines: list[str]
) -> None:
    assert find(None, ("a", first_lines, 4), ("b", second_lines, 4)) == []


@pytest.mark.parametrize("operation", ["arith.mulf", "arith.addf", "math.powf"])
def test_one_more_of_the_same_operation(find: Find, operation: str) -> None:
    small = [binary(0, operation, "%arg0", "%arg1")]
    (family,) = find(
        None, ("a", small, 4), ("b", [*small, binary(1, operation, "%0", "%arg1")], 4)
    )
    assert family["kind"] == "extra-operation"
    assert family["varying"] == [f"@b has one more {operation} (f32)"]
