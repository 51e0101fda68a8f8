"""Executables that look alike and are not: no level has them, and who asks for them all the same is told why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flow_regions import adding, generic, padding, reducing, slicing
from flow_texts import Region, program
from fold_stage import FoldStage, stage

from bot.compiler.bindings import IR_WORKER, Bindings
from bot.compiler.rewriting import Group
from bot.errors import MalformedBinary

pytestmark = pytest.mark.compiler

TYPE = "tensor<8x8xi32>"
ALIKE = "they differ in more than constants, offsets and static dimensions"
BROKEN_WORKER = """
import sys
sys.path.insert(0, {folder!r})
from ir_worker import ir_fold, ir_worker
{patch}
sys.exit(ir_worker.main(sys.argv[1]))
"""


@pytest.fixture(scope="module", params=["3.13.0", "3.11.0"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldStage]:
    with stage(request.param, tmp_path_factory.mktemp("release")) as found:
        yield found


def of(name: str, operation: str, maps: str = "", kinds: str = "") -> Region:
    """Elements through one operation, which sees `%in` and the constant `%c`."""
    body = f"        %c = arith.constant 3 : i32\n        {operation}\n        linalg.yield %1 : i32\n"
    return Region(name, [TYPE], TYPE, generic("%x0", "%y", TYPE, body, maps, kinds))


def of_two(name: str, operands: str) -> Region:
    """Two matrices, one less the other."""
    same = "affine_map<(d0, d1) -> (d0, d1)>"
    body = f"""      %e = tensor.empty() : {TYPE}
      %y = linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = ["parallel", "parallel"]}}
          ins(%x0, %x1 : {TYPE}, {TYPE}) outs(%e : {TYPE}) {{
      ^bb0(%p: i32, %q: i32, %before: i32):
        %1 = arith.subi {operands} : i32
        linalg.yield %1 : i32
      }} -> {TYPE}
"""
    return Region(name, [TYPE, TYPE], TYPE, body)


def shaped(name: str, rows: int) -> Region:
    """A constant says the shape of what is filled; it is in no type."""
    body = f"""      %n = arith.constant {rows} : index
      %seven = arith.constant 7 : i32
      %e = tensor.empty(%n) : tensor<?x8xi32>
      %f = linalg.fill ins(%seven : i32) outs(%e : tensor<?x8xi32>) -> tensor<?x8xi32>
      %y = tensor.insert_slice %f into %x0[0, 0] [%n, 8] [1, 1] : tensor<?x8xi32> into {TYPE}
"""
    return Region(name, [TYPE], TYPE, body)


def partly_loaded(name: str, rows: int) -> Region:
    """A constant says how much is loaded."""
    body = f"""      %n = arith.constant {rows} : index
      %part = iree_tensor_ext.dispatch.tensor.load %a0, offsets = [0, 0], sizes = [%n, 8], strides = [1, 1] : \
!iree_tensor_ext.dispatch.tensor<readonly:{TYPE}> -> tensor<?x8xi32>
      %y = tensor.insert_slice %part into %x0[0, 0] [%n, 8] [1, 1] : tensor<?x8xi32> into {TYPE}
"""
    return Region(name, [TYPE], TYPE, body)


def counted(name: str, workgroups: int) -> Region:
    """A constant is a part of the number of workgroups."""
    count = f"""      %c = arith.constant {workgroups} : index
      %x = arith.addi %c, %c : index
      %y = arith.constant 1 : index
      %z = arith.constant 1 : index
"""
    return adding(name)._replace(counting=count)


COMPARED = "%p = arith.cmpi {}, %in, %c : i32\n        %1 = arith.extui %p : i1 to i32"
SWAPPED = "affine_map<(d0, d1) -> (d1, d0)>"
PAIRS = {
    "permutation": (of("a", "%1 = arith.addi %in, %c : i32"), of("b", "%1 = arith.addi %in, %c : i32", SWAPPED)),
    "iterator": (
        of("a", "%1 = arith.addi %in, %before : i32"),
        of("b", "%1 = arith.addi %in, %before : i32", "", '"parallel", "reduction"'),
    ),
    "predicate": (of("a", COMPARED.format("slt")), of("b", COMPARED.format("sle"))),
    "overflow": (of("a", "%1 = arith.addi %in, %c : i32"), of("b", "%1 = arith.addi %in, %c overflow<nsw> : i32")),
    "operation": (of("a", "%1 = arith.addi %in, %c : i32"), of("b", "%1 = arith.subi %in, %c : i32")),
    "order-of-constant": (of("a", "%1 = arith.subi %in, %c : i32"), of("b", "%1 = arith.subi %c, %in : i32")),
    "order": (of_two("a", "%p, %q"), of_two("b", "%q, %p")),
    "tied": (adding("a"), adding("b", tied=True)),
    "shape": (shaped("a", 2), shaped("b", 5)),
    "load": (partly_loaded("a", 2), partly_loaded("b", 5)),
    "workgroups": (counted("a", 1), counted("b", 2)),
    "padding-value": (
        padding("a", 8, (1, 1), (1, 1)),
        padding("b", 8, (1, 1), (1, 1))._replace(
            body=padding("b", 8, (1, 1), (1, 1)).body.replace("constant 0", "constant 9")
        ),
    ),
}
"""Pairs that differ in one thing, which no operand can take the place of."""


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_that_differs_in_what_it_means_is_in_no_group(at: FoldStage, name: str) -> None:
    first, second = PAIRS[name]
    flow = at.written(program(at.header, [first, second]))
    found = at.groups(flow)
    assert set(found.entries) == {"a", "b"} and not any(found.groups.values())
    told = left(at, flow, ("a", "b"))
    assert len(told) == 1 and told[0][0] == ("a", "b") and told[0][1] == ALIKE
    alike = at.written(program(at.header, [first, first._replace(name="b")]))
    assert at.groups(alike).groups["identical"] == (("a", "b"),), "the pair differs in nothing else"


def left(at: FoldStage, flow: Path, *groups: Group) -> list[tuple[Group, str]]:
    """What is left of a request that folds nothing: the program stays, to the byte."""
    out, told = at.fold(flow, *groups)
    assert told.folded == () and out.read_bytes() == flow.read_bytes()
    return [(one.members, one.why) for one in told.left]


def test_groups_of_a_request_that_do_not_match_are_left_with_a_reason(at: FoldStage) -> None:
    regions = [adding("a"), adding("b", 5), slicing("s", 16, (0, 3), (8, 4)), of_two("t", "%p, %q")]
    flow = at.written(program(at.header, regions))
    few = "they are not two executables or more, each named once"
    asked = [("a", "s"), ("a", "t"), ("s", "a", "b"), ("a",), ("a", "a"), ("a", "x"), ()]
    whys = [ALIKE, ALIKE, ALIKE, few, few, "the program has no such executable", few]
    assert left(at, flow, *asked) == list(zip(asked, whys, strict=True))


def test_an_executable_that_is_gone_by_then_is_left_and_the_rest_is_folded(at: FoldStage) -> None:
    flow = at.written(program(at.header, [adding("a"), adding("b", 5), adding("c", 7)]))
    out, told = at.fold(flow, ("a", "b"), ("b", "c"), ("a", "c"))
    assert [one.members for one in told.folded] == [("a", "b")]
    assert [one.members for one in told.left] == [("b", "c"), ("a", "c")]
    assert told.left[0].why == "the program has no such executable" and told.left[1].why == ALIKE
    assert at.groups(out).entries == {"a": "a_entry", "c": "c_entry"}


def test_an_executable_of_two_functions_or_exports_is_unfit(at: FoldStage) -> None:
    text = program(at.header, [adding("a"), adding("b", 5)])
    helper = "      func.func private @helper() { return }\n"
    export = """    flow.executable.export public @other workgroups() -> (index, index, index) {
      %x, %y, %z = iree_tensor_ext.dispatch.workgroup_count_from_slice()
      flow.return %x, %y, %z : index, index, index
    }
"""
    two = text.replace('      func.func @"b_entry"', helper + '      func.func @"b_entry"')
    exports = text.replace(
        '    flow.executable.export public @"b_entry"', export + '    flow.executable.export public @"b_entry"'
    )
    for changed in (two, exports):
        assert changed != text
        flow = at.written(changed)
        found = at.groups(flow)
        assert found.unfit == {"b": "it is not one function of one block"} and not any(found.groups.values())
        assert (found.classes.constants, found.classes.shapes, found.classes.both) == (2, 2, 2)
        assert left(at, flow, ("a", "b")) == [(("a", "b"), "it is not one function of one block")]


def test_a_site_that_may_launch_one_of_several_keeps_them(at: FoldStage) -> None:
    text = program(at.header, [adding("a"), adding("b", 5)])
    one = 'flow.dispatch @"a"::@"a_entry"('
    flow = at.written(text.replace(one, 'flow.dispatch {@"a"::@"a_entry", @"b"::@"b_entry"}('))
    assert at.groups(flow).groups["constants"] == (("a", "b"),)
    assert left(at, flow, ("a", "b")) == [(("a", "b"), "a site may launch one of several executables")]


def test_an_executable_that_nothing_launches_is_not_folded(at: FoldStage) -> None:
    flow = at.written(program(at.header, [adding("a")], adding("b", 5).text))
    assert at.groups(flow).groups["constants"] == (("a", "b"),)
    assert left(at, flow, ("a", "b")) == [(("a", "b"), "an executable is launched nowhere")]


def refused(at: FoldStage, home: Path, regions: list[Region], patch: str) -> str:
    """What a worker that rewrites wrongly says, and that the program it makes is not written."""
    script = home / "broken.py"
    script.write_text(BROKEN_WORKER.format(folder=str(IR_WORKER.parents[1]), patch=patch))
    broken = Bindings(at.kit.toolchain.bindings, "", at.kit.session.cancel, script=script)
    flow = at.written(program(at.header, regions))
    worse = FoldStage(at.kit, broken, at.home)
    before = set(at.home.iterdir())
    try:
        with pytest.raises(MalformedBinary) as error:
            worse.fold(flow, tuple(region.name for region in regions))
    finally:
        broken.close()
    assert set(at.home.iterdir()) == before
    return str(error.value)


def test_a_program_that_does_not_verify_is_refused_with_the_operation_that_broke(at: FoldStage, tmp_path: Path) -> None:
    said = refused(at, tmp_path, [reducing("a", 8, 4), reducing("b", 6, 12)], "ir_fold._merged = lambda *_: []")
    assert said.startswith("folding: ValueError: 'flow.dispatch.tie_shape' op value set has 2 dynamic dimensions")
    assert "\n" not in said


def test_a_site_that_does_not_pass_what_the_function_takes_is_refused_though_the_compiler_does_not_mind(
    at: FoldStage, tmp_path: Path
) -> None:
    said = refused(at, tmp_path, [adding("a"), adding("b", 5)], "ir_fold.argument_places = lambda sites: 0")
    assert said == "folding: ValueError: 'flow.dispatch' op passes tensor<8x8xi32> as operand 0 of @a_entry, a i32"
