"""Executables of one structure are one family: identical ones, and those that differ in several kinds at once."""

from __future__ import annotations

from random import Random

from family_texts import synthetic
from growth import steps
from hypothesis import given, settings
from hypothesis import strategies as st
from test_families import binary, function, only, recorded, whole_model

from bot.core.baseline import kept
from bot.core.program import FAMILY_KINDS, IDENTICAL, Family
from bot.core.reading import SourceText
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Snapshot, SourceInfo
from bot.explain.families.families import OF_ONE_STRUCTURE, families
from bot.explain.families.family_groups import Member
from bot.explain.texts import Reader

WHOLE = ("mobilenet_v1_int8", "mobilebert_l6_int8")
MATMUL = """"func.func"() <{{function_type = () -> (), sym_name = "@"}}> ({{
^bb0(%arg0: tensor<{rows}x64xf32>, %arg1: tensor<64x64xf32>):
  %0 = "arith.constant"() <{{value = {value}.0 : f32}}> : () -> f32
  %1 = "tensor.extract_slice"(%arg0) <{{static_offsets = array<i64: {offset}, 0>}}> : (tensor<{rows}x64xf32>) -> tensor<1x64xf32>
  %2 = "linalg.scale"(%1, %arg1, %0) : (tensor<1x64xf32>, tensor<64x64xf32>, f32) -> tensor<1x64xf32>
  "func.return"(%2) : (tensor<1x64xf32>) -> ()
}}) : () -> ()"""  # noqa: E501


def scaled(name: str, value: int, rows: int, offset: int) -> SourceText:
    """An executable with a constant, a shape and an offset to choose."""
    return SourceText(name, MATMUL.format(value=value, rows=rows, offset=offset), "")


def members_of(texts: list[SourceText]) -> list[Member]:
    """All executables, read."""
    read = [Reader().read(text.generic) for text in texts]
    return [Member(at, texts[at].executable, text) for at, text in enumerate(read) if text is not None]


def homes(found: tuple[Family, ...]) -> dict[str, Family]:
    """Executable → its family."""
    return {name: family for family in found for name in family.members}


def family_of(found: tuple[Family, ...], name: str) -> tuple[str, list[int]]:
    """Kind and ordinals of the family that `main_dispatch_<name>` is in."""
    family = homes(found)[f"main_dispatch_{name}"]
    return family.kind, [int(member.rpartition("_")[2]) for member in family.members]


def test_executables_whose_exports_alone_differ_are_identical() -> None:
    """Other counts of workgroups, which the host computes: deduplication leaves both, their machine code is one."""
    assert families(recorded("identical")) == (Family("constants", ("main_dispatch_0", "main_dispatch_1"), IDENTICAL),)


def test_an_identical_one_is_in_the_family_of_its_twin() -> None:
    texts = recorded("constants")
    family = only(families([*texts, SourceText("twin", texts[2].generic, "")]))
    assert (family.kind, len(family.members), family.identical) == ("constants", 7, False)


def test_a_stored_baseline_still_knows_what_is_identical() -> None:
    """It has no lines of other families, which must not be taken for identical ones."""
    cell = Cell(CellKey("m", "t"), "ok", families=families([*recorded("identical"), *recorded("constants")]))
    (stored,) = kept(Snapshot(CompilerInfo("3", "", "0"), SourceInfo(), (cell,))).cells
    assert sorted((len(family.members), family.identical) for family in stored.families) == [(2, True), (6, False)]
    assert {family.varying for family in stored.families} == {(), IDENTICAL}


def test_mobilenets_layers_that_differ_in_constants_and_shapes_are_families() -> None:
    found = families(whole_model("mobilenet_v1_int8"))
    assert family_of(found, "5") == ("static-shapes", [5, 7, 9, 11])
    assert family_of(found, "6") == ("static-shapes", [6, 10])
    assert family_of(found, "8") == ("static-shapes", [8, 12])
    shapes, constants = homes(found)["main_dispatch_5"].varying[:2]
    assert shapes == "argument 0: 56x56x64, 56x56x128, 28x28x128, 28x28x256"
    assert constants.startswith("tensor<128xi8> constant of linalg.generic: dense<") and constants.endswith("values)")


def test_a_member_of_a_looser_family_goes_to_its_own_structure() -> None:
    found = families(whole_model("mobilebert_l6_int8"))
    assert family_of(found, "144") == ("static-shapes", [20, 66, 135, 144])
    assert family_of(found, "29") == ("different-fusion", [29, 98, 117, 121])
    assert family_of(found, "19")[0] == "static-shapes" and len(family_of(found, "19")[1]) == 19


variations = st.tuples(st.integers(1, 3), st.sampled_from([8, 16]), st.integers(0, 2))


@given(st.lists(variations, min_size=2, max_size=8), st.randoms())
@settings(max_examples=60, deadline=None)
def test_any_variation_is_one_family_in_any_order(varied: list[tuple[int, int, int]], random: Random) -> None:
    texts = [scaled(f"e{at}", *one) for at, one in enumerate(varied)]
    family = only(families(texts))
    values, rows, offsets = (len(set(column)) > 1 for column in zip(*varied, strict=True))
    assert family.kind == ("static-shapes" if rows else "offsets" if offsets else "constants")
    said = " ".join(family.varying)
    assert ("f32 constant of linalg.scale" in said, "argument 0" in said) == (values, rows)
    assert ("static_offsets of tensor.extract_slice" in said) == offsets
    assert family.identical == (not (values or rows or offsets))
    random.shuffle(texts)
    again = only(families(texts))
    assert (again.kind, set(again.members)) == (family.kind, set(family.members))


@given(st.randoms())
@settings(max_examples=8, deadline=None)
def test_families_partition_in_any_order(random: Random) -> None:
    texts = synthetic(40)
    groups = {frozenset(family.members) for family in families(texts) if family.kind in OF_ONE_STRUCTURE}
    random.shuffle(texts)
    found = families(texts)
    members = [member for family in found for member in family.members]
    assert len(members) == len(set(members))
    assert {frozenset(family.members) for family in found if family.kind in OF_ONE_STRUCTURE} == groups
    assert [FAMILY_KINDS.index(one.kind) for one in found] == sorted(FAMILY_KINDS.index(one.kind) for one in found)


def test_the_twin_of_the_smallest_is_in_the_family_of_those_with_one_operation_more() -> None:
    small = [binary(0, "arith.mulf", "%arg0", "%arg1"), '  "util.use"(%0) : (f32) -> ()']
    large = [small[0], binary(1, "arith.addf", "%0", "%arg1"), '  "util.use"(%1) : (f32) -> ()']
    family = only(families([function("a", small), function("b", large), function("twin", small)]))
    assert (family.kind, family.members) == ("extra-operation", ("a", "b", "twin"))
    assert family.varying[-1] == "@twin: as @a"


def test_the_only_one_of_another_shape_goes_where_its_structure_is() -> None:
    """Leaving the family of two for it would leave one alone."""
    first, swapped, other = (scaled(name, 1, rows, 0).generic for name, rows in (("a", 8), ("b", 8), ("c", 16)))
    swapped = swapped.replace("(%1, %arg1, %0) : (tensor<1x64xf32>, tensor<64x64xf32>", "(%arg1, %1, %0) : (tensor<64")
    swapped = swapped.replace("(tensor<64, f32)", "(tensor<64x64xf32>, tensor<1x64xf32>, f32)")
    family = only(
        families([SourceText(name, text, "") for name, text in zip("abc", (first, swapped, other), strict=True)])
    )
    assert (family.kind, family.members) == ("operand-order", ("a", "b", "c"))
    assert family.varying[-1] == "@c: as @a with other static shapes"


def test_long_constants_that_begin_alike_are_counted() -> None:
    def text(name: str, last: int) -> SourceText:
        constant = f'  %0 = "arith.constant"() <{{value = dense<"0x{"29" * 40}{last}"> : tensor<41xi8>}}> : () -> f32'
        return function(name, [constant, binary(1, "arith.addf", "%arg0", "%0")])

    family = only(families([text("a", 10), text("b", 11)]))
    assert family.kind == "constants"
    assert family.varying[0].startswith('f32 constant of arith.addf: dense<"0x2929')
    assert family.varying[0].endswith("…, … (2 values)")


def test_what_no_argument_and_no_result_shows_is_named_by_its_operation() -> None:
    def text(name: str, size: int) -> SourceText:
        return function(name, [f'  "a.b"(%arg0) <{{type = tensor<{size}xf32>}}> : (f32) -> ()'])

    family = only(families([text("a", 4), text("b", 8)]))
    assert (family.kind, family.varying) == ("static-shapes", ("types or attributes of a.b: 2 versions",))


def test_the_work_is_linear() -> None:
    assert steps(lambda: families(synthetic(240))) < 2.3 * steps(lambda: families(synthetic(120)))
