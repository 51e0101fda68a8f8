"""What the IR worker says of programs: the real child process, with the bindings of a real compiler."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_child import Child, compiled
from places import FIXTURES

from bot.readers.configurations import configurations as configurations_of
from bot.readers.ir_worker.ir_component import COMPONENT_CHARACTERS, component_of

HERE = FIXTURES / "ir"
FLAGS = (
    *(
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    ),
    *(
        "--iree-llvmcpu-target-cpu=x86-64-v3",
        "--iree-dispatch-creation-enable-aggressive-fusion",
    ),
    "--mlir-disable-threading",
)
CUDA = (
    "--iree-hal-target-backends=cuda",
    "--iree-cuda-target=sm_80",
    "--mlir-disable-threading",
)
TINY = {
    "dispatch_creation": str(HERE / "tiny.5.dispatch-creation.mlir"),
    "stream": str(HERE / "tiny.7.stream.mlir"),
}


ANSWERS = json.loads((HERE / "named.answers.json").read_text())


PHASES = {
    "input": "1.input",
    "global_optimization": "4.global-optimization",
    "dispatch_creation": "5.dispatch-creation",
    "flow": "6.flow",
    "stream": "7.stream",
}


OPTIONAL = ("input", "global_optimization", "flow")


@pytest.fixture(scope="module")
def dumps(compiler_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dumps of the very compiler whose bindings read them: releases do not read each other's."""
    folder = tmp_path_factory.mktemp("x86")
    text = (HERE / "named.mlir").read_text()
    assert (
        compiled(
            compiler_root, text, folder, *FLAGS, "--mlir-print-debuginfo"
        ).returncode
        == 0
    )
    return folder


def paths(folder: Path) -> dict[str, str]:
    return {key: str(folder / f"named.{name}.mlir") for key, name in PHASES.items()}


def ask(child: Child, folder: Path, **changed: str | None) -> Any:
    return child.ask(op="program", **{**paths(folder), **changed})


def edited(dumps: Path, folder: Path, phase: str, old: str, new: str) -> Path:
    """A copy of the dumps with one phase changed."""
    for path in paths(dumps).values():
        shutil.copy(path, folder)
    file = Path(paths(folder)[phase])
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return folder


def written(folder: Path, text: str) -> str:
    path = folder / "written.mlir"
    path.write_text(text)
    return str(path)


def test_the_program_is_the_one_of_the_prepared_answer(
    worker: Child, dumps: Path
) -> None:
    """By whichever release, although their dumps differ in notation: digests and sources do not tell."""
    assert ask(worker, dumps) == ANSWERS["program"]


def test_phases_that_are_not_at_hand_say_nothing(worker: Child, dumps: Path) -> None:
    absent = worker.ask(
        op="program",
        **{key: path for key, path in paths(dumps).items() if key not in OPTIONAL},
    )
    assert absent == ask(worker, dumps, **dict.fromkeys(OPTIONAL))
    unknown: dict[str, Any] = {
        "phases": {},
        "sources": [],
        "sites": [],
        "families": None,
    }
    unknown |= {"operations": None, "places": {}, "linalg_ops_unfused": None}
    assert absent == {**ANSWERS["program"], **unknown}


def test_the_answer_on_prepared_dumps(worker: Child) -> None:
    assert (
        worker.ask(op="program", **TINY)
        == json.loads((HERE / "tiny.answers.json").read_text())["program"]
    )


def test_the_digests_do_not_tell_targets_or_places(
    compiler_root: Path, worker: Child, tmp_path: Path
) -> None:
    compiled(
        compiler_root,
        (HERE / "named.mlir").read_text(),
        tmp_path,
        *CUDA,
        FLAGS[3],
        "--compile-to=stream",
    )
    cuda = ask(worker, tmp_path)
    for key in ("phases", "sources", "operations"):
        assert cuda[key] == ANSWERS["program"][key]
    assert cuda["places"] == {"": sum(ANSWERS["program"]["places"].values())}
    # printed without locations
    assert {site["component"] for site in cuda["sites"]} == {None}


@pytest.mark.parametrize(
    "change",
    [
        ("input", "arith.subf %in, %in_", "arith.subf %in_0, %in_"),
        ("input", '"model"::"w"', '"model"::"u"'),
        ("global_optimization", "math.sqrt", "math.rsqrt"),
    ],
)
def test_the_digest_tells_one_changed_operand(
    worker: Child, dumps: Path, tmp_path: Path, change: tuple[str, str, str]
) -> None:
    phases = ask(worker, edited(dumps, tmp_path, *change))["phases"]
    changed = {
        name
        for name, digest in ANSWERS["program"]["phases"].items()
        if phases[name] != digest
    }
    assert changed == {change[0].replace("_", "-")}


def test_sources_do_not_know_their_names(
    worker: Child, dumps: Path, tmp_path: Path
) -> None:
    renumbered = edited(
        dumps,
        folder=tmp_path,
        phase="flow",
        old="net_dispatch_2",
        new="net_dispatch_0_twin$1",
    )
    before = ANSWERS["program"]["sources"]
    after = ask(worker, renumbered)["sources"]
    assert [row["executable"] for row in after][1:] == [
        "net_dispatch_0",
        "net_dispatch_0_twin$1",
    ]
    assert [{**row, "executable": ""} for row in before] == [
        {**row, "executable": ""} for row in after
    ]
    for row in after:
        assert row["shown"].startswith("func.func @(%arg0")
        assert (
            row["generic"].startswith('"func.func"() <{')
            and 'sym_name = "@"' in row["generic"]
        )
        assert not re.search(r"dispatch_\d|loc\(|#map", row["shown"] + row["generic"])


def test_a_name_in_another_name_stays(
    worker: Child, dumps: Path, tmp_path: Path
) -> None:
    """An executable may refer to symbols that begin like its own."""
    old = "@net_dispatch_2_reduction_16x48_f32(%arg0"
    new = (
        "@net_dispatch_2_reduction_16x48_f32_but_longer() { return }\n      func.func "
        + old
    )
    sources = ask(
        worker,
        edited(
            dumps,
            folder=tmp_path,
            phase="flow",
            old=f"func.func {old}",
            new=f"func.func private {new}",
        ),
    )["sources"]
    # The function that was added is one of the executable's own.
    assert sources[2]["shown"].startswith(
        "func.func private @() {\n  return\n}\nfunc.func @(%arg0"
    )
    new = (
        "attributes {like = @net_dispatch_2_reduction_16x48_f32_but_longer, as ="
        ' "net_dispatch_2.x"} {'
    )
    text = Path(paths(dumps)["flow"]).read_text()
    head = next(line for line in text.split("\n") if f"func.func {old}" in line)
    sources = ask(
        worker,
        edited(
            dumps,
            folder=tmp_path,
            phase="flow",
            old=head,
            new=f"{head.removesuffix(' {')} {new}",
        ),
    )["sources"]
    assert (
        "like = @net_dispatch_2_reduction_16x48_f32_but_longer" in sources[2]["shown"]
    )
    assert 'as = "net_dispatch_2.x"' in sources[2]["shown"]


# What a model consists of, before any of it is a dispatch.


MATRIX = "tensor<4x8xf32>"
GENERIC = f"""%e = tensor.empty() : {MATRIX}
%g = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]}} ins(%x : {MATRIX}) outs(%e : {MATRIX}) {{
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %0 = math.exp %in : f32 loc("inside")
    %1 = arith.addf %0, %in : f32
    linalg.yield %1 : f32
}} -> {MATRIX} loc("net.softmax")"""


def consists(child: Child, folder: Path, body: str, module: str = "") -> Any:
    """What the worker says of a module with one function, by its `input` phase: the others that it needs are empty."""
    text = (
        f"module {{\n{module}\nutil.func public @main(%x: {MATRIX})"
        f" {{\n{body}\nutil.return\n}}\n}}"
    )
    (folder / "empty.mlir").write_text("module {}")
    empty = str(folder / "empty.mlir")
    answer = child.ask(
        op="program", dispatch_creation=empty, stream=empty, input=written(folder, text)
    )
    return answer["operations"], answer["places"]


@pytest.mark.parametrize(
    ("body", "operations", "whole"),
    [
        ("", {}, 0),
        (GENERIC, {"linalg.generic": 1, "math.exp": 1, "arith.addf": 1}, 1),
        (
            f"%c = arith.constant dense<0.0> : {MATRIX}\n%d = arith.constant 3 : i32",
            {"arith.constant": 2},
            0,
        ),
        (
            f"%n = arith.negf %x : {MATRIX}\n%m = arith.negf %n : {MATRIX}",
            {"arith.negf": 2},
            2,
        ),
        (
            f"""%c = arith.constant 0.0 : f32
            %f = linalg.fill ins(%c : f32) outs(%x : {MATRIX}) -> {MATRIX}
            %e = tensor.empty() : tensor<4x4xf32>
            %t = tensor.empty() : tensor<8x4xf32>
            %u = linalg.transpose ins(%f : {MATRIX}) outs(%t : tensor<8x4xf32>) permutation = [1, 0]
            %m = linalg.matmul ins(%x, %u : {MATRIX}, tensor<8x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>""",
            {
                "arith.constant": 1,
                "linalg.fill": 1,
                "linalg.transpose": 1,
                "linalg.matmul": 1,
            },
            3,
        ),
        (
            f"%s = linalg.map {{ math.exp }} ins(%x : {MATRIX}) outs(%x : {MATRIX})",
            {"linalg.map": 1, "math.exp": 1},
            1,
        ),
        (
            f"""%c = arith.constant 1 : index
            %r = scf.for %i = %c to %c step %c iter_args(%a = %x) -> ({MATRIX}) {{
              %b = math.absf %a : {MATRIX}
              scf.yield %b : {MATRIX}
            }}""",
            {"arith.constant": 1, "scf.for": 1, "math.absf": 1},
            2,
        ),
    ],
)
def test_what_counts(
    worker: Child, tmp_path: Path, body: str, operations: dict[str, int], whole: int
) -> None:
    counts, places = consists(worker, tmp_path, body)
    assert (counts, sum(places.values())) == (operations, whole)


def test_the_places_of_operations(worker: Child, tmp_path: Path) -> None:
    weight = f'util.global private @w = #flow.parameter.named<"model"::"w"> : {MATRIX}'
    assert consists(
        worker, tmp_path, f"%w = util.global.load @w : {MATRIX}", weight
    ) == ({}, {})
    assert consists(worker, tmp_path, GENERIC)[1] == {"net.softmax": 1}
    assert consists(
        worker, tmp_path, GENERIC.replace('loc("net.softmax")', "loc(unknown)")
    )[1] == {"": 1}
    lines = (
        f'%n{i} = arith.negf %x : {MATRIX} loc("layer.{i % 1_100}.neg")'
        for i in range(2_200)
    )
    places = consists(worker, tmp_path, "\n".join(lines))[1]
    assert len(places) == 1_001 and places[""] == 200 and places["layer.999.neg"] == 2


@pytest.mark.parametrize(
    ("location", "component"),
    [
        ("unknown", None),
        ('"net.py":3:14', None),
        ('"net.py":3:14 to 5:2', None),
        ('"net.py":3:14 to :20', None),
        ('"encoder.layer.0"', "encoder.layer.0"),
        ('"encoder.layer.0"("net.py":3:14)', "encoder.layer.0"),
        ('"outer"("inner")', "outer"),
        (r'"a \22quoted\22 \\ name"(unknown)', 'a "quoted" \\ name'),
        (r'"caf\C3\A9"', "café"),
        (r'"line\0Abreak\09tab\1B[0m"', "line?break?tab?[0m"),
        (r'"\FF\FEbytes"', "��bytes"),
        ('"conv1;relu;bias"("m.tflite":0:0)', "conv1"),
        ('";relu"', None),
        ('""', None),
        ('"<root>"', None),
        ('"%0"', None),
        ('"12"', None),
        ('" spaced "', " spaced "),
        ('callsite("layer" at "model")', "layer"),
        ('callsite("net.py":1:1 at "model")', None),
        (
            'callsite(callsite("deep"("a":1:1) at "b") at callsite("c" at unknown))',
            "deep",
        ),
        ('fused["net.py":1:1, unknown, "second", "third"]', "second"),
        (
            (
                'fused["net.py":1:1, callsite("f.py":1:1 at "no"), callsite("yes" at'
                ' "no")]'
            ),
            "yes",
        ),
        ("fused[]", None),
        ('fused[fused["a.py":1:1 to 2:3, "<root>"], fused<1 : i32>["x"], "y"]', "x"),
        ('fused<"meta">["a"]', "a"),
        (
            (
                'fused<{k = "]>\\22", m = affine_map<(d0) -> (d0)>, s = affine_set<(d0)'
                ' : (d0 >= 0)>}>[unknown, "a"]'
            ),
            "a",
        ),
        ('"with, (brackets] <in> it"', "with, (brackets] <in> it"),
        ('fused["f(":1:1, "b"]', "b"),
        ("#alias", None),
    ],
)
def test_the_component_of_a_location(location: str, component: str | None) -> None:
    assert component_of(f"loc({location})") == component


def test_a_long_name_is_cut() -> None:
    assert component_of(f'loc("{"ab" * 500}")') == "ab" * (COMPONENT_CHARACTERS // 2)


@given(st.text() | st.text(alphabet='lcfused"()[]<>at,: 0\\;xn'))
def test_any_text_gives_a_line_or_nothing(text: str) -> None:
    for location in (text, f"loc({text})", f"loc(fused[{text}", f"loc(callsite({text}"):
        component = component_of(location)
        assert component is None or (
            component.isprintable() and 0 < len(component) <= COMPONENT_CHARACTERS
        )


# The schedule: by hand, and against the compiler's own statistics.


VARIABLE = """
util.global private mutable @state = dense<0.0> : tensor<64xf32>
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %s = util.global.load @state : tensor<64xf32>
  %n = arith.addf %s, %x : tensor<64xf32>
  util.global.store %n, @state : tensor<64xf32>
  return %n : tensor<64xf32>
}
"""
LOOP = """
func.func @many(%x: tensor<?x64xf32>, %n: index) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?x64xf32> {
    %b = arith.addf %a, %a : tensor<?x64xf32>
    scf.yield %b : tensor<?x64xf32>
  }
  return %r : tensor<?x64xf32>
}
"""
SCHEDULE = """
util.global private @weights : !stream.resource<constant>
util.initializer {
  %size = arith.constant 1000 : index
  %other = arith.constant 500 : index
  %kept, %t0 = stream.resource.alloca uninitialized : !stream.resource<constant>{%size} => !stream.timepoint
  %used, %t1 = stream.resource.alloca uninitialized : !stream.resource<transient>{%other} => !stream.timepoint
  %t2 = stream.resource.dealloca await(%t1) => %used : !stream.resource<transient>{%other} => !stream.timepoint
  %there = stream.timepoint.await %t0 => %kept : !stream.resource<constant>{%size}
  util.global.store %there, @weights : !stream.resource<constant>
  util.return
}
util.func public @main(%in: !hal.buffer_view, %dynamic: index) {
  util.call @inner(%in, %dynamic) : (!hal.buffer_view, index) -> ()
  util.return
}
util.func private @inner(%in: !hal.buffer_view, %dynamic: index) {
  %size = arith.constant 100 : index
  %first = arith.constant 300 : index
  %second = arith.constant 200 : index
  %0 = stream.tensor.import %in : !hal.buffer_view -> tensor<25xf32> in !stream.resource<external>{%size}
  %a, %t0 = stream.resource.alloca uninitialized : !stream.resource<transient>{%first} => !stream.timepoint
  %t1 = stream.resource.dealloca await(%t0) => %a : !stream.resource<transient>{%first} => !stream.timepoint
  %b, %t2 = stream.resource.alloca uninitialized : !stream.resource<transient>{%second} => !stream.timepoint
  %c, %t3 = stream.resource.alloca uninitialized : !stream.resource<transient>{%dynamic} => !stream.timepoint
  util.return
}
"""


def schedule(worker: Child, path: str) -> Any:
    return worker.ask(op="program", dispatch_creation=path, stream=path)["schedule"]


@pytest.mark.parametrize("model", [VARIABLE, LOOP])
def test_counts_are_the_compilers_own(
    worker: Child, compiler_root: Path, tmp_path: Path, model: str
) -> None:
    counts = tmp_path / "counts.json"
    dump = [
        "--iree-scheduling-dump-statistics-format=json",
        f"--iree-scheduling-dump-statistics-file={counts}",
    ]
    compiled(
        compiler_root,
        model,
        tmp_path,
        "--iree-hal-target-backends=vmvx",
        "--compile-to=stream",
        *dump,
    )
    (stream,) = tmp_path.glob("*.7.stream.mlir")
    groups = json.loads(counts.read_text())["stream-aggregate"].values()
    statistics = {key: value for group in groups for key, value in group.items()}
    program = schedule(worker, str(stream))
    keys = ("fills", "copies", "awaits", "submissions", "allocated_bytes")
    names = (
        "fill-count",
        "copy-count",
        "await-count",
        "submission-count",
        "transient-memory-size",
    )
    assert [program[key] for key in keys] == [statistics[name] for name in names]
    if model == VARIABLE:  # it counts once, and the compiler does not know its size
        assert (
            program["variable_bytes"],
            statistics["variable-size"],
            statistics["variable-count"],
        ) == (256, 0, 1)
    else:
        assert (program["program_memory_bytes"], program["dynamic_buffers"]) == (
            None,
            3,
        )


@pytest.mark.parametrize(
    ("old", "new", "most_bytes"),
    [
        ("", "", 1_500),  # the initializer needs most
        ("constant 500", "constant 100", 1_400),  # 1,000 kept, 100 of input, 300
        # the second one is larger than the first, which is free again
        (
            "constant 200",
            "constant 900",
            2_000,
        ),
        # nothing is kept
        (
            r"  util.global.store %there, @weights : !stream.resource<constant>\n",
            "",
            1_500,
        ),
        # what is never given back is held to the end
        (
            r"[^\n]*dealloca [^\n]*\n",
            "",
            1_600,
        ),
    ],
)
def test_the_most_that_is_held_at_once(
    worker: Child, tmp_path: Path, old: str, new: str, most_bytes: int
) -> None:
    assert re.search(old, SCHEDULE)
    program = schedule(
        worker, written(tmp_path, re.sub(old, new, SCHEDULE) if old else SCHEDULE)
    )
    assert (
        program["program_memory_bytes"],
        program["dynamic_buffers"],
        program["variable_bytes"],
    ) == (most_bytes, 1, 0)


EITHER = """
util.func public @f(%c: i1) -> (!stream.resource<external>) {
  %size = arith.constant 4096 : index
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %r, %t = stream.resource.alloca uninitialized : !stream.resource<external>{%size} => !stream.timepoint
  util.return %r : !stream.resource<external>
^bb2:
  %r2, %t2 = stream.resource.alloca uninitialized : !stream.resource<external>{%size} => !stream.timepoint
  util.return %r2 : !stream.resource<external>
}
"""


def test_what_is_held_in_one_branch_or_the_other_is_not_known(
    worker: Child, tmp_path: Path
) -> None:
    assert schedule(worker, written(tmp_path, EITHER))["program_memory_bytes"] is None


# Strategies, kinds and stack allocations.


def configured(worker: Child, path: str) -> Any:
    return worker.ask(op="strategies", executable_configurations=path)


def test_strategies_of_the_compilers_own_dumps(worker: Child, dumps: Path) -> None:
    path = dumps / "named.9.executable-configurations.mlir"
    strategies = configured(worker, str(path))["functions"]
    text = path.read_text()
    assert [*strategies] == [
        row["entry_point"] for row in ANSWERS["program"]["entry_points"]
    ]
    read = list[list[str]]()
    for line in strategies.values():
        pipeline, *configurations = line.split(" | ")
        assert re.match(
            r"(CPU)?DoubleTilingExpert( \{enable_loop_peeling\})?$", pipeline
        )
        read += [configuration.split(": ", 1) for configuration in configurations]
    # Nothing of them is lost, as another reader says that takes them from the text.
    written = [
        configuration
        for configuration in configurations_of(text)
        if not configuration.is_translation
    ]
    bodies = (
        configuration.written(configuration.values).partition("<")[2].removesuffix(">")
        for configuration in written
    )
    assert read == [
        [configuration.operation, body]
        for configuration, body in zip(written, bodies, strict=True)
    ]
    assert len(read) > len(strategies)


CONFIGURED = """
#info = #iree_codegen.translation_info<pipeline = PIPELINE workgroup_size = [32, 1, 1] subgroup_size = 32, {bank = 1}>
#config = #iree_gpu.lowering_config<{thread = [4], workgroup = [128]}>
#tiles = #iree_codegen.lowering_config<tile_sizes = [[1, 32], [1, 1]]>
module {
  hal.executable private @ex { hal.executable.variant public @fb target(<"cuda", "f">) { builtin.module {
    func.func @inside() attributes {translation_info = #info} {
      "mine.op"() {lowering_config = #config} : () -> ()
      "mine.op"() {lowering_config = #config} : () -> ()
      "mine.op"() {mine.tuning_strategy = "a  b", decomposition_config = {x = 1 : i32}, other = 3 : i8} : () -> ()
      return
    }
    func.func private @helper() {
      "mine.op"() {lowering_config = #tiles} : () -> ()
      return
    }
    func.func @last() attributes {translation_info = #info} {
      "mine.op"() {lowering_config = #tiles} : () -> ()
      return
    }
  } } }
  func.func @outside() attributes {translation_info = #info} { return }
}
"""
PIPELINES = {
    "LLVMGPUTileAndFuse": "TileAndFuse",
    "#iree_gpu.pipeline<TileAndFuse>": "TileAndFuse",
    "#iree_gpu.spirv_pipeline<BaseVectorize>": "BaseVectorize",
    "#iree_codegen.vmvx_pipeline": "vmvx_pipeline",
}
"""As releases up to 3.11.0 write pipelines, and as those from 3.12.0 on → as people read them."""


def test_strategies_in_all_notations(worker: Child, tmp_path: Path) -> None:
    """Of two variants that differ both are told."""
    variant = re.findall(
        r"hal\.executable\.variant .*?\n  \} \}", CONFIGURED, flags=re.S
    )[0]
    understood = 0
    tiled_variant = variant.replace("@fb", "@fc").replace(
        "lowering_config = #config", "lowering_config = #tiles"
    )
    for notation, pipeline in PIPELINES.items():
        answer = configured(
            worker, written(tmp_path, CONFIGURED.replace("PIPELINE", notation))
        )
        if "error" in answer:
            continue
        understood += 1
        head = (
            f"{pipeline} workgroup_size = [32, 1, 1] subgroup_size = 32 {{bank = 1 :"
            " i64}"
        )
        annotations = (
            "mine.op: decomposition_config = {x = 1 : i32} | mine.op:"
            ' mine.tuning_strategy = "a b"'
        )
        size = "mine.op: {thread = [4], workgroup = [128]}"
        tiles = "mine.op: tile_sizes = [[1, 32], [1, 1]]"
        sizes = f"{size} | {size}"
        both_tiles = f"{tiles} | {tiles}"
        assert answer["functions"] == {
            "inside": f"{head} | {sizes} | {annotations}",
            "last": f"{head} | {tiles}",
        }
        joined = CONFIGURED.replace(variant, f"{variant}\n{tiled_variant}").replace(
            "PIPELINE", notation
        )
        functions = configured(worker, written(tmp_path, joined))["functions"]
        assert (
            functions["inside"]
            == f"{head} | {sizes} | {annotations} || {head} | {both_tiles} | {annotations}"
        )
        assert functions["last"] == f"{head} | {tiles}"
    assert understood in (1, 3)


def test_the_kind_of_an_executable(worker: Child) -> None:
    path = str(HERE / "kinds.mlir")
    rows = worker.ask(op="program", dispatch_creation=path, stream=path)["entry_points"]
    assert [row["entry_point"] for row in rows] == re.findall(
        r"func\.func @(\w+)", Path(path).read_text()
    )
    for row in rows:
        kind = row["entry_point"].partition("_")[0]
        memory_bound = kind not in ("attention", "matmul", "conv", "other")
        assert (row["kind"], row["memory_bound"], row["sites"]) == (
            kind,
            memory_bound,
            0,
        ), row


def test_the_rules_of_the_stack_allocation_gate(worker: Child, tmp_path: Path) -> None:
    functions = worker.ask(op="allocas", executable_targets=str(HERE / "allocas.mlir"))[
        "functions"
    ]
    assert len(functions) == 11  # declarations are not listed
    assert {name: name.partition("_")[0] for name in functions} == {
        name: json.dumps(size) for name, size in functions.items()
    }
    path = written(tmp_path, "llvm.func @f() { not even parsed")
    assert worker.ask(op="allocas", executable_targets=path) == {"functions": {}}


def test_stack_allocations_equal_the_compilers_diagnostic(
    worker: Child, compiler_root: Path, tmp_path: Path
) -> None:
    text = (HERE / "tiny.mlir").read_text()
    compiled(compiler_root, text, tmp_path, *FLAGS)
    (targets,) = tmp_path.glob("*.10.*.mlir")
    functions = worker.ask(op="allocas", executable_targets=str(targets))["functions"]
    refused = compiled(
        compiler_root, text, tmp_path, *FLAGS, "--iree-llvmcpu-stack-allocation-limit=1"
    )
    sizes = [int(figure) for figure in re.findall(r"Got (\d+) bytes", refused.stderr)]
    assert sizes and sorted(size for size in functions.values() if size) == sorted(
        sizes
    )


def test_the_worker_survives_every_bad_request(worker: Child, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mlir"
    broken.write_bytes(b"module { llvm.alloca \xff\x00")
    bad = [
        worker.ask("no json"),
        worker.ask("[]"),
        worker.ask("{}"),
        worker.ask(op="sing"),
        worker.ask(op="allocas", executable_targets=str(tmp_path / "missing.mlir")),
        worker.ask(op="allocas", executable_targets=str(broken)),
        worker.ask(op="program", dispatch_creation=str(broken), stream=str(broken)),
        worker.ask(op="strategies"),
    ]
    assert [[*answer] for answer in bad] == [["error"]] * len(bad)
    assert not any(
        "\n" in answer["error"] or str(tmp_path) in answer["error"] for answer in bad
    )
    assert (
        "missing.mlir: No such file" in bad[4]["error"]
        and "executable_configurations" in bad[7]["error"]
    )
    assert configured(worker, written(tmp_path, "module {}")) == {"functions": {}}, (
        "it lives on"
    )


def test_a_launch_of_what_is_not_exported_is_an_error(
    worker: Child, tmp_path: Path
) -> None:
    name = "tiny$net_dispatch_3_reduction_16x48_f32"
    text = (
        Path(TINY["stream"])
        .read_text()
        .replace(f"export public @{name} ", "export public @other ")
    )
    assert (
        name
        in worker.ask(op="program", **{**TINY, "stream": written(tmp_path, text)})[
            "error"
        ]
    )


def test_a_folder_without_bindings_is_said_first(tmp_path: Path) -> None:
    child = Child(tmp_path)
    assert "iree" in child.first["error"]
    assert child.end() == 1


def test_memory_stays_flat(compiler_root: Path, dumps: Path, tmp_path: Path) -> None:
    child = Child(compiler_root)
    status = Path(f"/proc/{child.process.pid}/status")
    if not status.exists():
        pytest.skip("memory is read from /proc")

    numbers = itertools.count()

    def rss_kib() -> int:
        # Each time another text, as the answer to the same one is remembered.
        for _ in range(20):
            for path in paths(dumps).values():
                text = Path(path).read_text()
                written = tmp_path / Path(path).name
                written.write_text(f"// {next(numbers)}\n{text}")
            ask(child, tmp_path)
        return int(re.findall(r"VmRSS:\s+(\d+)", status.read_text())[0])

    before = rss_kib()
    assert rss_kib() - before < 8 * 1024
    assert child.end() == 0
