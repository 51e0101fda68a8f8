"""The program of a model with executables made one, by real compilers: of each kind, of none, and odd ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flow_regions import WRITTEN, adding, generic, padding, reducing, slicing
from flow_texts import Region, program
from fold_programs import FOLDABLE
from fold_stage import RUN, FoldStage, stage
from places import ROOT

from bot.compiler.bindings import IR_WORKER, Bindings
from bot.errors import MalformedBinary
from bot.fold.audit import FOLD_KINDS
from bot.fold.rewriting import Group, Groups, Rewritten, groups_of, rewritten
from bot.running.runner import Runtime
from bot.study.flow_program import missing_resource
from bot.system.cancel import Cancel

pytestmark = pytest.mark.compiler
NEW = "3.13.0"
OLD = "3.11.0"
VALUE = re.compile(r"%[\w$.-]+")
PASSED = re.compile(rf"({VALUE.pattern}) = arith\.constant (.+)(?= : \S+ loc\()")
"""A constant beside a site: name, value."""


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldStage]:
    with stage(NEW, tmp_path_factory.mktemp("new")) as fold_stage:
        yield fold_stage


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldStage]:
    with stage(OLD, tmp_path_factory.mktemp("old")) as fold_stage:
        yield fold_stage


@pytest.fixture(scope="module", params=["new", "old"])
def each_stage(request: pytest.FixtureRequest) -> FoldStage:
    """Each of the two."""
    fold_stage: FoldStage = request.getfixturevalue(request.param)
    return fold_stage


def executables(program: Path) -> int:
    return program.read_text(encoding="utf-8").count("flow.executable private")


def made_one(
    each_stage: FoldStage, flow: Path, level: str, operands: tuple[str, ...]
) -> Path:
    """The folded program: all its executables are one group at this level, and none at a stricter one."""
    candidates = each_stage.groups(flow)
    names = tuple(candidates.entries)
    expected = {
        kind: () if FOLD_KINDS.index(kind) < FOLD_KINDS.index(level) else (names,)
        for kind in FOLD_KINDS
    }
    assert candidates.groups == expected and candidates.unfit == {} and len(names) >= 2
    folded, rewritten = each_stage.fold(flow, names)
    assert [(group.members, group.operands) for group in rewritten.folded] == [
        (names, operands)
    ] and rewritten.left == ()
    assert (executables(flow), executables(folded)) == (len(names), 1)
    again = each_stage.groups(folded)
    entries = {names[0]: candidates.entries[names[0]]}
    assert again == Groups(entries, {}, dict.fromkeys(FOLD_KINDS, ()), again.elements)
    return folded


def told_equal(
    each_stage: FoldStage, runtime: Runtime, before: Path, after: Path
) -> None:
    equal, note = each_stage.equal(runtime, before, after)
    assert equal is True and "prove nothing" not in note, note


@pytest.mark.parametrize("target", RUN)
@pytest.mark.parametrize("name", FOLDABLE)
def test_what_a_model_is_compiled_to_is_made_one_and_each_site_keeps_its_values(
    new: FoldStage, runtime: Runtime, name: str, target: str
) -> None:
    case = FOLDABLE[name]
    target_stage = new.on(target, *case.flags)
    flow = target_stage.flow(case.source)
    folded = made_one(target_stage, flow, case.level, case.operands)
    told_equal(target_stage, runtime, flow, folded)
    if case.level != "static-shapes":
        # With the values of its sites exchanged it is another program: what is told
        # equal could have differed.
        swapped = target_stage.written(
            exchanged(folded.read_text(encoding="utf-8"), len(case.operands))
        )
        equal, note = target_stage.equal(runtime, flow, swapped)
        assert equal is False and "differs in" in note


@pytest.mark.parametrize("target", RUN)
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_at_the_end_of_flow_is_made_one_and_gives_the_same(
    new: FoldStage, runtime: Runtime, name: str, target: str
) -> None:
    case = WRITTEN[name]
    target_stage = new.on(target)
    flow = target_stage.written(program(target_stage.header, case.regions))
    told_equal(
        target_stage,
        runtime,
        flow,
        made_one(target_stage, flow, case.level, case.operands),
    )


@pytest.mark.parametrize("name", [*FOLDABLE, *WRITTEN])
def test_an_older_release_folds_and_compiles_the_same(
    old: FoldStage, name: str
) -> None:
    case = FOLDABLE.get(name)
    target_stage = old.on("here", *case.flags if case else ())
    flow = (
        target_stage.flow(case.source)
        if case
        else target_stage.written(program(target_stage.header, WRITTEN[name].regions))
    )
    level, operands = (
        (case.level, case.operands)
        if case
        else (WRITTEN[name].level, WRITTEN[name].operands)
    )
    assert (
        target_stage.artifact(made_one(target_stage, flow, level, operands))
        .stat()
        .st_size
        > 0
    )


def exchanged(text: str, count: int) -> str:
    """The program, each site with the values that the next passes, the last with those of the first."""
    head, main, tail = text.partition("util.func public @main")
    launches = [
        line.partition(") : ")[0]
        for line in tail.splitlines()
        if "flow.dispatch" in line
    ]
    names = [name for line in launches for name in VALUE.findall(line)[-count:]]
    values = {name: value for name, value in PASSED.findall(tail) if name in names}
    assert len(values) == len(names) >= 2 * count
    passed = dict(
        zip(
            names, [values[name] for name in names[count:] + names[:count]], strict=True
        )
    )
    return (
        head
        + main
        + PASSED.sub(
            lambda match: (
                f"{match[1]} = arith.constant {passed.get(match[1], match[2])}"
            ),
            tail,
        )
    )


# Executables that look alike and are not: no level has them, and who asks for them all
# the same is told why not.


TYPE = "tensor<8x8xi32>"
ALIKE = "they differ in more than constants, offsets and static dimensions"
BROKEN_WORKER = """
import sys
sys.path.insert(0, {folder!r})
from ir_worker import ir_fold, ir_worker
{patch}
sys.exit(ir_worker.main(sys.argv[1]))
"""


def of(name: str, operation: str, maps: str = "", kinds: str = "") -> Region:
    """Elements through one operation, which sees `%in` and the constant `%c`."""
    body = (
        f"        %c = arith.constant 3 : i32\n        {operation}\n       "
        " linalg.yield %1 : i32\n"
    )
    return Region(
        name,
        [TYPE],
        TYPE,
        generic("%x0", result="%y", type_=TYPE, body=body, maps=maps, kinds=kinds),
    )


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
    "permutation": (
        of("a", "%1 = arith.addi %in, %c : i32"),
        of("b", "%1 = arith.addi %in, %c : i32", SWAPPED),
    ),
    "iterator": (
        of("a", "%1 = arith.addi %in, %before : i32"),
        of("b", "%1 = arith.addi %in, %before : i32", "", '"parallel", "reduction"'),
    ),
    "predicate": (of("a", COMPARED.format("slt")), of("b", COMPARED.format("sle"))),
    "overflow": (
        of("a", "%1 = arith.addi %in, %c : i32"),
        of("b", "%1 = arith.addi %in, %c overflow<nsw> : i32"),
    ),
    "operation": (
        of("a", "%1 = arith.addi %in, %c : i32"),
        of("b", "%1 = arith.subi %in, %c : i32"),
    ),
    "order-of-constant": (
        of("a", "%1 = arith.subi %in, %c : i32"),
        of("b", "%1 = arith.subi %c, %in : i32"),
    ),
    "order": (of_two("a", "%p, %q"), of_two("b", "%q, %p")),
    "tied": (adding("a"), adding("b", tied=True)),
    "shape": (shaped("a", 2), shaped("b", 5)),
    "load": (partly_loaded("a", 2), partly_loaded("b", 5)),
    "workgroups": (counted("a", 1), counted("b", 2)),
    "padding-value": (
        padding("a", 8, (1, 1), (1, 1)),
        padding("b", 8, (1, 1), (1, 1))._replace(
            body=padding("b", 8, (1, 1), (1, 1)).body.replace(
                "constant 0", "constant 9"
            )
        ),
    ),
}
"""Pairs that differ in one thing, which no operand can take the place of."""


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_that_differs_in_what_it_means_is_in_no_group(
    each_stage: FoldStage, name: str
) -> None:
    first, second = PAIRS[name]
    flow = each_stage.written(program(each_stage.header, [first, second]))
    candidates = each_stage.groups(flow)
    assert set(candidates.entries) == {"a", "b"} and not any(candidates.groups.values())
    reasons = left(each_stage, flow, ("a", "b"))
    assert len(reasons) == 1 and reasons[0][0] == ("a", "b") and reasons[0][1] == ALIKE
    same_program = each_stage.written(
        program(each_stage.header, [first, first._replace(name="b")])
    )
    assert each_stage.groups(same_program).groups["identical"] == (("a", "b"),), (
        "the pair differs in nothing else"
    )


def left(each_stage: FoldStage, flow: Path, *groups: Group) -> list[tuple[Group, str]]:
    """What is left of a request that folds nothing: the program stays, to the byte."""
    out, rewritten = each_stage.fold(flow, *groups)
    assert rewritten.folded == () and out.read_bytes() == flow.read_bytes()
    return [(group.members, group.why) for group in rewritten.left]


def test_groups_of_a_request_that_do_not_match_are_left_with_a_reason(
    each_stage: FoldStage,
) -> None:
    regions = [
        adding("a"),
        adding("b", 5),
        slicing("s", 16, (0, 3), (8, 4)),
        of_two("t", "%p, %q"),
    ]
    flow = each_stage.written(program(each_stage.header, regions))
    few = "they are not at least two different executables"
    requested = [
        ("a", "s"),
        ("a", "t"),
        ("s", "a", "b"),
        ("a",),
        ("a", "a"),
        ("a", "x"),
        (),
    ]
    whys = [ALIKE, ALIKE, ALIKE, few, few, "the program has no such executable", few]
    assert left(each_stage, flow, *requested) == list(zip(requested, whys, strict=True))


def test_an_executable_that_is_gone_by_then_is_left_and_the_rest_is_folded(
    each_stage: FoldStage,
) -> None:
    flow = each_stage.written(
        program(each_stage.header, [adding("a"), adding("b", 5), adding("c", 7)])
    )
    out, rewritten = each_stage.fold(flow, ("a", "b"), ("b", "c"), ("a", "c"))
    assert [group.members for group in rewritten.folded] == [("a", "b")]
    assert [group.members for group in rewritten.left] == [("b", "c"), ("a", "c")]
    assert (
        rewritten.left[0].why == "the program has no such executable"
        and rewritten.left[1].why == ALIKE
    )
    assert each_stage.groups(out).entries == {"a": "a_entry", "c": "c_entry"}


def test_an_executable_of_two_functions_or_exports_is_unfit(
    each_stage: FoldStage,
) -> None:
    text = program(each_stage.header, [adding("a"), adding("b", 5)])
    helper = "      func.func private @helper() { return }\n"
    export = """    flow.executable.export public @other workgroups() -> (index, index, index) {
      %x, %y, %z = iree_tensor_ext.dispatch.workgroup_count_from_slice()
      flow.return %x, %y, %z : index, index, index
    }
"""
    two = text.replace(
        '      func.func @"b_entry"', helper + '      func.func @"b_entry"'
    )
    exports = text.replace(
        '    flow.executable.export public @"b_entry"',
        export + '    flow.executable.export public @"b_entry"',
    )
    for changed in (two, exports):
        assert changed != text
        flow = each_stage.written(changed)
        candidates = each_stage.groups(flow)
        assert candidates.unfit == {
            "b": "it is not one function of one block"
        } and not any(candidates.groups.values())
        assert left(each_stage, flow, ("a", "b")) == [
            (("a", "b"), "it is not one function of one block")
        ]


def test_a_site_that_may_launch_one_of_several_keeps_them(
    each_stage: FoldStage,
) -> None:
    text = program(each_stage.header, [adding("a"), adding("b", 5)])
    single_entry = 'flow.dispatch @"a"::@"a_entry"('
    flow = each_stage.written(
        text.replace(
            single_entry, 'flow.dispatch {@"a"::@"a_entry", @"b"::@"b_entry"}('
        )
    )
    assert each_stage.groups(flow).groups["constants"] == (("a", "b"),)
    assert left(each_stage, flow, ("a", "b")) == [
        (("a", "b"), "a site may launch one of several executables")
    ]


def test_an_executable_that_nothing_launches_is_not_folded(
    each_stage: FoldStage,
) -> None:
    flow = each_stage.written(
        program(each_stage.header, [adding("a")], adding("b", 5).text)
    )
    assert each_stage.groups(flow).groups["constants"] == (("a", "b"),)
    assert left(each_stage, flow, ("a", "b")) == [
        (("a", "b"), "an executable is never launched")
    ]


def refused(
    each_stage: FoldStage, home: Path, regions: list[Region], patch: str
) -> str:
    """What a worker that rewrites wrongly says, and that the program it makes is not written."""
    script = home / "broken.py"
    script.write_text(
        BROKEN_WORKER.format(folder=str(IR_WORKER.parents[1]), patch=patch)
    )
    broken = Bindings(
        each_stage.setup.toolchain.bindings,
        "",
        each_stage.setup.session.cancel,
        script=script,
    )
    flow = each_stage.written(program(each_stage.header, regions))
    worse = FoldStage(each_stage.setup, broken, each_stage.home)
    before = set(each_stage.home.iterdir())
    try:
        with pytest.raises(MalformedBinary) as error:
            worse.fold(flow, tuple(region.name for region in regions))
    finally:
        broken.close()
    assert set(each_stage.home.iterdir()) == before
    return str(error.value)


def test_a_program_that_does_not_verify_is_refused_with_the_operation_that_broke(
    each_stage: FoldStage, tmp_path: Path
) -> None:
    message = refused(
        each_stage,
        tmp_path,
        [reducing("a", 8, 4), reducing("b", 6, 12)],
        "ir_fold._merged = lambda *_: []",
    )
    assert message.startswith(
        "program IR: ValueError: 'flow.dispatch.tie_shape' op value set has 2 dynamic"
        " dimensions"
    )
    assert "\n" not in message


def test_a_site_that_does_not_pass_what_the_function_takes_is_refused_though_the_compiler_does_not_mind(
    each_stage: FoldStage, tmp_path: Path
) -> None:
    message = refused(
        each_stage,
        tmp_path,
        [adding("a"), adding("b", 5)],
        "ir_fold.argument_places = lambda sites: 0",
    )
    assert (
        message
        == "program IR: ValueError: 'flow.dispatch' op passes tensor<8x8xi32> as"
        " operand 0 of @a_entry, a i32"
    )


# Programs and workers that are odd or none: the very bytes, or one clear line.


NONE = dict.fromkeys(FOLD_KINDS, ())
SMALL = ROOT / "tests/fixtures/e2e/models/embedding_norm.mlir"


@pytest.mark.parametrize("name", ["embedding_norm", "mobilenet_v1_f32_224"])
def test_a_program_in_which_nothing_is_asked_for_stays_to_the_byte(
    new: FoldStage, name: str
) -> None:
    source = SMALL if name == SMALL.stem else ROOT / f"configs/models/{name}.mlir"
    flow = new.flow(source.read_text(encoding="utf-8"))
    out, rewritten = new.fold(flow)
    assert out.read_bytes() == flow.read_bytes()
    assert rewritten == Rewritten((), ()) and new.groups(flow).entries
    # of any layout
    text = program(new.header, [adding("a")]).replace("\n", " // ünï\r\n")
    flow.write_bytes(text.encode())
    out, rewritten = new.fold(flow)
    assert out.read_bytes() == flow.read_bytes() and rewritten == Rewritten((), ())


@pytest.mark.parametrize("text", ["", "module {}", "util.global private @g = 3 : i32"])
def test_a_program_without_executables_has_no_groups(new: FoldStage, text: str) -> None:
    flow = new.written(text)
    candidates = new.groups(flow)
    assert (candidates.entries, candidates.unfit, candidates.groups) == ({}, {}, NONE)
    out, rewritten = new.fold(flow, ("a", "b"))
    assert out.read_text() == text
    assert [(group.members, group.why) for group in rewritten.left] == [
        (("a", "b"), "the program has no such executable")
    ]


def test_sites_in_functions_of_another_dialect_and_in_initializers_are_rewritten(
    new: FoldStage,
) -> None:
    a, b, c, d = (
        adding(name, amount)
        for name, amount in (("a", 3), ("b", 5), ("c", 7), ("d", 9))
    )
    initializer = f"""
  util.global private mutable @g : {c.result}
  util.initializer {{
    %zero = arith.constant dense<1> : {c.result}
{c.launch("%made", ["%zero"])}    util.global.store %made, @g : {c.result}
    util.return
  }}
  func.func private @other(%v: {d.result}) -> {d.result} {{
{d.launch("%made", ["%v"])}    return %made : {d.result}
  }}"""
    flow = new.written(program(new.header, [a, b], c.text + d.text + initializer))
    out, rewritten = new.fold(flow, ("a", "b", "c", "d"))
    assert executables(out) == 1 and [group.operands for group in rewritten.folded] == [
        ("i32",)
    ]
    text = out.read_text()
    assert text.count("flow.dispatch @a::@a_entry(") == 4
    for amount in (3, 5, 7, 9):
        assert f"arith.constant {amount} : i32" in text.partition("util.initializer")[2]


@pytest.mark.parametrize(
    "data",
    [
        b"no MLIR {",
        b"\0\xff\xfe",
        b"module {\n  flow.executable private @a {",
        b"\x7fELF",
    ],
)
def test_what_is_no_program_is_one_line(new: FoldStage, data: bytes) -> None:
    flow = new.written("")
    flow.write_bytes(data)
    for ask in (lambda: new.groups(flow), lambda: new.fold(flow, ("a", "b"))):
        with pytest.raises(MalformedBinary) as error:
            ask()
        assert str(error.value).startswith("program IR: ") and "\n" not in str(
            error.value
        )
        assert len(str(error.value)) < 600
    assert new.groups(new.written("module {}")).groups == NONE, "the worker lives on"


def test_a_program_that_is_not_there_is_the_machines_fault(new: FoldStage) -> None:
    with pytest.raises(
        MalformedBinary,
        match=r"^program IR: on this machine: gone\.mlir: No such file or directory",
    ):
        new.groups(new.home / "gone.mlir")


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
        (
            CARRIED.format(
                "torch_tensor_32_torch.float32", "torch_tensor_32_torch.float32"
            ),
            None,
        ),
        (CARRIED.format('"a b"', '"a b"'), None),
    ],
)
def test_a_resource_that_is_named_has_to_be_carried(
    text: str, missing: str | None
) -> None:
    assert missing_resource(text) == missing


@pytest.mark.parametrize(
    "answer",
    [
        "x",
        {"folded": [], "left": [{"members": ["a"], "why": ""}]},
        {"error": "two\nlines" * 400},
    ],
)
def test_an_answer_that_is_none_is_one_line(tmp_path: Path, answer: object) -> None:
    script = tmp_path / "worker.py"
    line = json.dumps(json.dumps(answer))
    script.write_text(
        "import sys\nprint('{\"ready\": true}', flush=True)\nfor _ in sys.stdin:"
        f" print({line}, flush=True)\n"
    )
    bindings = Bindings(tmp_path, "", Cancel(), timeout_seconds=20, script=script)
    with pytest.raises(MalformedBinary) as error:
        rewritten(bindings, tmp_path / "flow.mlir", [("a", "b")], tmp_path / "out.mlir")
    assert (
        str(error.value).startswith("program IR")
        and "\n" not in str(error.value)
        and len(str(error.value)) < 700
    )
    bindings.close()
    with pytest.raises(MalformedBinary, match="its bindings are for another Python"):
        groups_of(
            Bindings(None, "its bindings are for another Python", Cancel()),
            tmp_path / "flow.mlir",
        )
