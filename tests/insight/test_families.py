"""Families of executables: real IR with known differences, synthetic variations, and texts that are none."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from family_texts import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FIXTURES

from bot.core.program import FAMILY_KINDS, IDENTICAL, Family
from bot.core.reading import SourceText
from bot.explain.families.families import families
from bot.explain.texts import Reader

HERE = FIXTURES / "families"
MODELS = ("constants", "static_shapes", "offsets", "operand_order", "extra_operation", "different_fusion")
SCALAR = """"func.func"() <{{function_type = ({types}) -> (), sym_name = "@"}}> ({{
^bb0({arguments}):
{body}
  "func.return"() : () -> ()
}}) : () -> ()"""


def recorded(name: str) -> list[SourceText]:
    """The executables of one small model."""
    entries = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return [SourceText(entry["executable"], entry["generic"], entry["shown"]) for entry in entries]


def whole_model(name: str) -> list[SourceText]:
    """The executables of a whole model."""
    entries = json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))
    return [SourceText(entry["executable"], entry["generic"], "") for entry in entries]


def function(name: str, body: list[str], arguments: int = 4) -> SourceText:
    """An executable of f32 operations on its arguments, ending in a store of the last result."""
    names = ", ".join(f"%arg{at}: f32" for at in range(arguments))
    text = SCALAR.format(types=", ".join(["f32"] * arguments), arguments=names, body="\n".join(body))
    return SourceText(name, text, "")


def binary(result: int, operation: str, left: str, right: str) -> str:
    """One line of the generic form."""
    return f'  %{result} = "{operation}"({left}, {right}) : (f32, f32) -> f32'


def only(found: tuple[Family, ...]) -> Family:
    """The one family."""
    assert len(found) == 1, found
    return found[0]


def test_six_quantised_matmuls_are_one_family_with_their_four_constants() -> None:
    family = only(families(recorded("constants")))
    assert family.kind == "constants"
    assert family.members == tuple(f"quantized_chain_dispatch_{at}" for at in range(6))
    assert family.varying == (
        "multiplier (arith.muli, i64): 1340891776, 1208374016, 1610612736, 1099511627, 1888888888, 1500000001",
        "rounding (arith.addi, i64): 34359738368, 68719476736, 17179869184, 137438953472, 8589934592",
        "shift (arith.shrsi, i64): 36, 37, 35, 38, 34",
        "zero point (arith.addi, i32): 3, -5, 11, 7, -12, 1",
    )


def test_a_conv_cascade_differs_in_static_shapes() -> None:
    family = only(families(recorded("static_shapes")))
    assert (family.kind, len(family.members)) == ("static-shapes", 3)
    assert family.varying == ("argument 0: 34x34x16, 32x32x16, 30x30x16", "argument 2: 32x32x16, 30x30x16, 28x28x16")


def test_slices_differ_in_offsets() -> None:
    family = only(families(recorded("offsets")))
    assert (family.kind, len(family.members)) == ("offsets", 3)
    assert family.varying == ("static_offsets of iree_tensor_ext.dispatch.tensor.load: [0, 0], [16, 0], [32, 16]",)


def test_permuted_operands_and_arguments() -> None:
    family = only(families(recorded("operand_order")))
    assert (family.kind, len(family.members)) == ("operand-order", 3)
    assert family.varying == (
        "@orders_dispatch_1: operands of arith.subf (f32) in another order",
        "@orders_dispatch_2: arguments 0 and 1 exchanged",
    )


def test_an_extra_subtraction_is_named() -> None:
    family = only(families(recorded("extra_operation")))
    assert (family.kind, len(family.members)) == ("extra-operation", 2)
    assert family.varying == (
        "@extra_operation_dispatch_1 has one more arith.subf (f32) of arith.addf and block argument 1",
    )


def test_one_matmul_with_other_epilogues() -> None:
    family = only(families(recorded("different_fusion")))
    assert (family.kind, len(family.members)) == ("different-fusion", 3)
    assert family.varying == (
        "@different_fusion_dispatch_0: + arith.addf, arith.maximumf",
        "@different_fusion_dispatch_1: + arith.addf, arith.mulf, math.tanh",
        "@different_fusion_dispatch_2: + arith.divf, arith.mulf, math.exp",
    )


def test_all_together_each_keeps_its_family() -> None:
    found = families([text for name in MODELS for text in recorded(name)])
    kinds = {
        name: [one for one in found if one.members[0].startswith(name)] for name in ("quantized", "conv", "slices")
    }
    assert [family.kind for (family,) in kinds.values()] == ["constants", "static-shapes", "offsets"]
    assert [FAMILY_KINDS.index(one.kind) for one in found] == sorted(FAMILY_KINDS.index(one.kind) for one in found)


@pytest.mark.parametrize("name", ["mobilenet_v1_int8", "mobilebert_l6_int8"])
def test_whole_models_are_partitioned_into_short_lines(name: str) -> None:
    texts = whole_model(name)
    found = families(texts)
    members = [member for family in found for member in family.members]
    assert len(members) == len(set(members)) <= len(texts)
    assert all(len(family.members) > 1 and family.kind in FAMILY_KINDS for family in found)
    lines = [line for family in found for line in family.varying]
    assert all(family.varying and len(family.varying) <= 5 for family in found)
    assert all(len(line) <= 160 and line.isprintable() for line in lines)


def test_mobilebert_attention_stores_go_to_three_offsets_of_one_buffer() -> None:
    stores = [family for family in families(whole_model("mobilebert_l6_int8")) if family.kind == "offsets"]
    assert stores[0].members == ("main_dispatch_3", "main_dispatch_4", "main_dispatch_5")
    assert stores[0].varying == (
        "static_offsets of iree_tensor_ext.dispatch.tensor.store: [0, 0, 0], [0, 0, 128], [0, 0, 256]",
    )


def with_constant(text: SourceText, name: str, value: int) -> SourceText:
    """The same with another multiplier."""
    generic, count = re.subn(r"value = 1340891776 : i64", f"value = {value} : i64", text.generic)
    assert count == 1
    return SourceText(name, generic, "")


@given(st.lists(st.integers(2, 2**62), min_size=2, max_size=12, unique=True))
@settings(max_examples=40, deadline=None)
def test_different_constants_are_always_a_family_of_constants(values: list[int]) -> None:
    model = recorded("constants")[0]
    family = only(families([with_constant(model, f"d{at}", value) for at, value in enumerate(values)]))
    assert family.kind == "constants"
    assert family.members == tuple(f"d{at}" for at in range(len(values)))
    shown = ", ".join(map(str, values[:8])) + (f", … ({len(values)} values)" if len(values) > 8 else "")
    whole = f"multiplier (arith.muli, i64): {shown}"
    assert family.varying == (whole,) or (len(whole) > 160 and family.varying[0].endswith(f"({len(values)} values)"))


def test_a_constant_that_another_use_shares_is_told_apart_all_the_same() -> None:
    """Constants of equal value are one operation in the IR: 36 as the shift and as the zero point's stand-in."""
    shared = ['  %0 = "arith.constant"() <{value = 2.0 : f32}> : () -> f32', binary(1, "arith.mulf", "%arg0", "%0")]
    shared.append(binary(2, "arith.addf", "%1", "%0"))
    apart = ['  %9 = "arith.constant"() <{value = 3.0 : f32}> : () -> f32', *shared[:2]]
    apart.append(binary(2, "arith.addf", "%1", "%9"))
    family = only(families([function("a", shared), function("b", apart)]))
    assert (family.kind, family.varying) == ("constants", ("f32 constant of arith.addf: 2.0, 3.0",))


def test_equal_texts_are_a_family_that_nothing_keeps_apart() -> None:
    text = recorded("constants")[0]
    family = only(families([text, SourceText("other", text.generic, "")]))
    assert family == Family("constants", (text.executable, "other"), IDENTICAL) and family.identical


def test_other_wiring_is_not_another_order() -> None:
    """a*a+b is not a*b+b, though the operations are the same."""
    square = [binary(0, "arith.mulf", "%arg0", "%arg0"), binary(1, "arith.addf", "%0", "%arg1")]
    product = [binary(0, "arith.mulf", "%arg0", "%arg1"), binary(1, "arith.addf", "%0", "%arg1")]
    assert families([function("a", square, 2), function("b", product, 2)]) == ()


def test_a_chain_in_another_order_is_not_another_order_of_operands() -> None:
    first = ['  %0 = "math.exp"(%arg0) : (f32) -> f32', '  %1 = "math.sqrt"(%0) : (f32) -> f32']
    second = ['  %0 = "math.sqrt"(%arg0) : (f32) -> f32', '  %1 = "math.exp"(%0) : (f32) -> f32']
    first.append(binary(2, "arith.addf", "%1", "%arg1"))
    second.append(binary(2, "arith.addf", "%1", "%arg1"))
    assert families([function("a", first), function("b", second)]) == ()


@given(st.permutations(range(4)))
def test_any_permutation_of_arguments_is_operand_order(order: list[int]) -> None:
    def body(names: list[str]) -> list[str]:
        lines = [binary(0, "arith.mulf", names[0], names[1]), binary(1, "arith.addf", "%0", names[2])]
        return [*lines, binary(2, "arith.divf", "%1", names[3])]

    straight = function("a", body([f"%arg{at}" for at in range(4)]))
    permuted = function("b", body([f"%arg{at}" for at in order]))
    family = only(families([straight, permuted]))
    assert family.kind == ("constants" if family.identical else "operand-order")
    assert family.identical == (straight.generic == permuted.generic)


def test_an_operation_more_that_is_wired_otherwise_is_not_that_family() -> None:
    """The sums differ by one operation, but leaving it out does not give the other."""
    small = [binary(0, "arith.mulf", "%arg0", "%arg1"), binary(1, "arith.addf", "%0", "%arg2")]
    large = [binary(0, "arith.addf", "%arg0", "%arg1"), binary(1, "arith.mulf", "%0", "%arg2")]
    large.append(binary(2, "arith.subf", "%1", "%arg3"))
    assert families([function("a", small), function("b", large)]) == ()


@pytest.mark.parametrize("operation", ["arith.mulf", "arith.addf", "math.powf"])
def test_one_more_of_the_same_operation_is_found(operation: str) -> None:
    small = [binary(0, operation, "%arg0", "%arg1"), '  "util.use"(%0) : (f32) -> ()']
    large = [small[0], binary(1, operation, "%0", "%arg1"), '  "util.use"(%1) : (f32) -> ()']
    family = only(families([function("a", small), function("b", large)]))
    assert family.kind == "extra-operation"
    assert family.varying == (f"@b has one more {operation} (f32) of argument 0 and argument 1",) or family.varying == (
        f"@b has one more {operation} (f32) of {operation} and argument 1",
    )


def test_a_family_shows_four_lines_and_how_many_more() -> None:
    def body(values: list[int]) -> list[str]:
        return [
            line
            for at, value in enumerate(values)
            for line in (
                f'  %c{at} = "arith.constant"() <{{value = {value}.0 : f32}}> : () -> f32',
                binary(
                    at, ("arith.addf", "arith.mulf", "arith.subf", "arith.divf")[at % 4], f"%arg{at % 4}", f"%c{at}"
                ),
            )
        ]

    texts = [function("a", body([1, 2, 3, 4, 5, 6])), function("b", body([11, 12, 13, 14, 15, 16]))]
    varying = only(families(texts)).varying
    assert len(varying) == 5
    assert varying[0] == "f32 constant of arith.addf: 1.0, 11.0"
    assert varying[-1] == "… and 2 more"


@pytest.mark.parametrize("name", MODELS)
def test_a_text_cut_anywhere_is_in_no_family_and_raises_nothing(name: str) -> None:
    whole = recorded(name)
    for at in range(0, len(whole[0].generic), 97):
        cut = SourceText("cut", whole[0].generic[:at], "")
        assert "cut" not in {member for family in families([cut, *whole[1:]]) for member in family.members}


@given(st.lists(st.text(alphabet='%0a"()<>{}^,:= \\-\n;ijbt', max_size=60), max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_text_is_survived(texts: list[str]) -> None:
    around = ['"a.b"() ({\n' + text + "\n}) : () -> ()" for text in texts]
    families([SourceText(str(at), text, "") for at, text in enumerate(texts + around)])


def test_strings_blobs_and_packs_are_read() -> None:
    lines = [
        '  %0:2 = "a.b"(%arg0) <{value = "}> %x \\" , ("}> {dense = dense<"0x00FF"> : tensor<4xi8>}'
        " : (f32) -> (f32, i8)",
        '  "a.c"(%0#1, %0#0)[^bb1] <{set = affine_set<(d0) : (d0 - 1 >= 0, d0 == 3)>}> : (i8, f32) -> ()',
    ]
    read = Reader().read(function("a", lines, 1).generic)
    assert read is not None
    pack, user = read.operations[1:3]
    assert (pack.results, pack.tail.result_types) == (("%0#0", "%0#1"), ("f32", "i8"))
    assert pack.attribute("value") == '"}> %x \\" , ("' and pack.attribute("dense") == 'dense<"0x00FF"> : tensor<4xi8>'
    assert user.operands == ("%0#1", "%0#0") and user.attribute("set") == "affine_set<(d0) : (d0 - 1 >= 0, d0 == 3)>"


def test_the_work_grows_with_the_number_of_executables_only() -> None:
    """300 synthetic executables: everything is found, nothing twice."""
    found = families(synthetic(300))
    members = [member for family in found for member in family.members]
    assert len(members) == len(set(members))
    assert {"static-shapes", "operand-order"} <= {family.kind for family in found}
