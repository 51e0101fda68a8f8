"""What the program's phases say, as the worker answers; the configurations of its functions."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ir_child import Child
from test_ir_worker import FLAGS, HERE

ANSWERS = json.loads((HERE / "named.answers.json").read_text())
PHASES = {
    "input": "1.input",
    "global_optimization": "4.global-optimization",
    "dispatch_creation": "5.dispatch-creation",
    "flow": "6.flow",
    "stream": "7.stream",
}
OPTIONAL = ("input", "global_optimization", "flow")
CUDA = ("--iree-hal-target-backends=cuda", "--iree-cuda-target=sm_80", "--mlir-disable-threading")


def dumped(compiler_root: Path, folder: Path, *flags: str) -> Path:
    """The folder with the phases up to `9.executable-configurations` of `named.mlir`."""
    binary = compiler_root / "iree/compiler/_mlir_libs/iree-compile"
    until = ["--compile-to=executable-configurations", f"--dump-compilation-phases-to={folder}", "-o", "/dev/null"]
    with (HERE / "named.mlir").open() as model:
        subprocess.run([str(binary), "-", *flags, *until], stdin=model, capture_output=True, check=True)
    return folder


@pytest.fixture(scope="module")
def dumps(compiler_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dumps of the very compiler whose bindings read them: releases do not read each other's."""
    return dumped(compiler_root, tmp_path_factory.mktemp("x86"), *FLAGS, "--mlir-print-debuginfo")


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


def test_the_program_is_the_one_of_the_prepared_answer(worker: Child, dumps: Path) -> None:
    """By whichever release, although their dumps differ in notation: digests and sources do not tell."""
    assert ask(worker, dumps) == ANSWERS["program"]


def test_phases_that_are_not_at_hand_say_nothing(worker: Child, dumps: Path) -> None:
    absent = worker.ask(op="program", **{key: path for key, path in paths(dumps).items() if key not in OPTIONAL})
    assert absent == ask(worker, dumps, **dict.fromkeys(OPTIONAL))
    given: dict[str, Any] = {"linalg_ops_before": None, "phases": {}, "sources": [], "sites": [], "families": None}
    given |= {"operations": None, "places": {}}
    assert absent == {**ANSWERS["program"], **given}


def test_operations_before_fusion(worker: Child, dumps: Path) -> None:
    text = Path(paths(dumps)["global_optimization"]).read_text()
    named = [name for name in re.findall(r"= linalg\.(\w+)", text) if name not in ("index", "yield")]
    assert ask(worker, dumps)["linalg_ops_before"] == len(named) == 6


def test_the_digests_do_not_tell_targets_or_places(compiler_root: Path, worker: Child, tmp_path: Path) -> None:
    cuda = ask(worker, dumped(compiler_root, tmp_path, *CUDA, FLAGS[3]))
    for key in ("phases", "sources", "linalg_ops_before", "operations"):
        assert cuda[key] == ANSWERS["program"][key]
    assert cuda["places"] == {"": sum(ANSWERS["program"]["places"].values())}
    assert {site["component"] for site in cuda["sites"]} == {None}  # printed without locations


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
    changed = {name for name, digest in ANSWERS["program"]["phases"].items() if phases[name] != digest}
    assert changed == {change[0].replace("_", "-")}


def test_sources_do_not_know_their_names(worker: Child, dumps: Path, tmp_path: Path) -> None:
    renumbered = edited(dumps, tmp_path, "flow", "net_dispatch_2", "net_dispatch_0_twin$1")
    before, after = ANSWERS["program"]["sources"], ask(worker, renumbered)["sources"]
    assert [row["executable"] for row in after][1:] == ["net_dispatch_0", "net_dispatch_0_twin$1"]
    assert [{**row, "executable": ""} for row in before] == [{**row, "executable": ""} for row in after]
    for row in after:
        assert row["shown"].startswith("func.func @(%arg0")
        assert row["generic"].startswith('"func.func"() <{') and 'sym_name = "@"' in row["generic"]
        assert not re.search(r"dispatch_\d|loc\(|#map", row["shown"] + row["generic"])


def test_a_name_in_another_name_stays(worker: Child, dumps: Path, tmp_path: Path) -> None:
    """An executable may refer to symbols that begin like its own."""
    old = "@net_dispatch_2_reduction_16x48_f32(%arg0"
    new = "@net_dispatch_2_reduction_16x48_f32_but_longer() { return }\n      func.func " + old
    sources = ask(worker, edited(dumps, tmp_path, "flow", f"func.func {old}", f"func.func private {new}"))["sources"]
    # The function that was added is one of the executable's own.
    assert sources[2]["shown"].startswith("func.func private @() {\n  return\n}\nfunc.func @(%arg0")
    new = 'attributes {like = @net_dispatch_2_reduction_16x48_f32_but_longer, as = "net_dispatch_2.x"} {'
    text = Path(paths(dumps)["flow"]).read_text()
    head = next(line for line in text.split("\n") if f"func.func {old}" in line)
    sources = ask(worker, edited(dumps, tmp_path, "flow", head, f"{head.removesuffix(' {')} {new}"))["sources"]
    assert "like = @net_dispatch_2_reduction_16x48_f32_but_longer" in sources[2]["shown"]
    assert 'as = "net_dispatch_2.x"' in sources[2]["shown"]


def test_sites_name_the_models_own_places() -> None:
    sites, entries = ANSWERS["program"]["sites"], ANSWERS["program"]["entry_points"]
    rows = [(site["component"], site["initializer"]) for site in sites]
    assert rows == [("net/scale", True), ("net/layer.0/dense", False), ('net/layer.1/"dense"', False), (None, False)]
    named = [site["entry_point"] for site in sites]
    assert {name: named.count(name) for name in named} == {row["entry_point"]: row["sites"] for row in entries}


def assumed(stream: str) -> dict[tuple[str, int], list[dict[str, int]]]:
    """(entry point, scalar argument) → what the compiler itself assumes of it, a row per site."""
    found = {}
    for function in re.split(r"(?=func\.func )", stream)[1:]:
        name, signature = re.findall(r"func\.func @([\w$]+)\((.*)\) \{", function)[0]
        scalars = re.findall(r"(%\w+): [a-z]\w+", signature)
        casts = dict(re.findall(r"(%\w+) = arith\.index_castui (%\w+) : i32 to index", function))
        for value, ranges in re.findall(r"(%\w+)(?:<[^<>]*>)?\[\s*((?:<[^<>]*>(?:,\s*)?)+)\]", function):
            rows = [dict(re.findall(r"(\w+) = (\d+)", row)) for row in re.findall(r"<([^<>]*)>", ranges)]
            if casts.get(value, value) in scalars:
                index = scalars.index(casts.get(value, value))
                found[name, index] = [{key: int(figure) for key, figure in row.items()} for row in rows]
    return found


@pytest.mark.parametrize("prepared", ["tiny.7.stream.mlir", None])
def test_arguments_are_what_the_compiler_assumes(worker: Child, dumps: Path, prepared: str | None) -> None:
    stream = HERE / prepared if prepared else Path(paths(dumps)["stream"])
    answer = ask(worker, dumps, stream=str(stream))
    expected = assumed(stream.read_text())
    arguments = {(row["entry_point"], row["index"]): row for row in answer["arguments"]}
    assert expected and arguments.keys() == expected.keys()
    for key, sites in expected.items():
        values = {site["umin"] for site in sites}
        assert all(site["umax"] == site["umin"] == site.get("udiv", 0) for site in sites)
        assert arguments[key]["values"] == sorted(values)
        assert (arguments[key]["distinct"], arguments[key]["type"]) == (len(values), "i32")
        assert (arguments[key]["divisor"], arguments[key]["unknown_sites"]) == (math.gcd(*values), 0)


ARGUMENTS = """
stream.executable private @ex {
  stream.executable.export public @entry
  builtin.module { func.func @entry(%a: i32, %b: i1, %c: i64, %d: f32, %e: !stream.binding) { return } }
}
util.func public @main(%r: !stream.resource<transient>, %x: i32) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %minus = arith.constant -8 : i32
  %twelve = arith.constant 12 : i32
  %true = arith.constant true
  %false = arith.constant false
  %wide = arith.constant -9223372036854775808 : i64
  %half = arith.constant 0.5 : f32
  %t = stream.cmd.execute with(%r as %arg: !stream.resource<transient>{%c8}) {
    stream.cmd.dispatch @ex::@entry[%c8, %c0](%twelve, %true, %wide, %half : i32, i1, i64, f32) {
      rw %arg[%c0 for %c8] : !stream.resource<transient>{%c8}
    }
    stream.cmd.dispatch @ex::@entry[%c8, %c0](%FIRST, %false, %wide, %half : i32, i1, i64, f32) {
      rw %arg[%c0 for %c8] : !stream.resource<transient>{%c8}
    }
  } => !stream.timepoint
  util.return
}
"""


def arguments_of(worker: Child, folder: Path, text: str) -> list[tuple[object, ...]]:
    path = folder / "stream.mlir"
    path.write_text(text)
    rows = worker.ask(op="program", dispatch_creation=str(path), stream=str(path))["arguments"]
    assert [row["index"] for row in rows] == [0, 1, 2, 3]
    return [(row["type"], row["values"], row["distinct"], row["divisor"], row["unknown_sites"]) for row in rows]


def test_arguments_of_all_types(worker: Child, tmp_path: Path) -> None:
    assert arguments_of(worker, tmp_path, ARGUMENTS.replace("%FIRST", "%minus")) == [
        ("i32", [12, 2**32 - 8], 2, 4, 0),
        ("i1", [0, 1], 2, 1, 0),
        ("i64", [], 0, None, 2),  # no JSON reader has to hold 2**63 exactly
        ("f32", [], 0, None, 2),
    ]


def test_an_argument_that_is_no_constant_has_no_divisor(worker: Child, tmp_path: Path) -> None:
    first, *_ = arguments_of(worker, tmp_path, ARGUMENTS.replace("%FIRST", "%x"))
    assert first == ("i32", [12], 1, None, 1)


def test_many_values_are_counted_and_the_smallest_listed(worker: Child, tmp_path: Path) -> None:
    before, launch, after = re.split(r"(    stream\.cmd\.dispatch .*?\n    \}\n)", ARGUMENTS, maxsplit=1, flags=re.S)
    constants = "".join(f"  %n{n} = arith.constant {6 * n} : i32\n" for n in range(40))
    launches = "".join(launch.replace("%twelve", f"%n{n}") for n in reversed(range(40)))
    body = before.replace("  %true =", f"{constants}  %true =") + launches + after.replace("%FIRST", "%n0")
    first, *_ = arguments_of(worker, tmp_path, body)
    assert first == ("i32", [6 * n for n in range(16)], 40, 6, 0)


def test_the_asynchronous_form_mixes_resources_and_numbers(worker: Child, tmp_path: Path) -> None:
    head, _, _ = ARGUMENTS.partition("  %t = ")
    launch = """
  %o = stream.async.dispatch @ex::@entry[%c8](%r[%c0 to %c8 for %c8], %twelve, %true, %wide, %half)
      : (!stream.resource<transient>{%c8}, i32, i1, i64, f32) -> !stream.resource<transient>{%c8}
  util.return
}
"""
    rows = arguments_of(worker, tmp_path, head + launch)
    assert [row[:2] for row in rows] == [("i32", [12]), ("i1", [1]), ("i64", []), ("f32", [])]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("%c3072 = arith.constant 3072", "%c3072 = arith.constant 6144", {0}),
        ("<umin = 3072, umax = 3072, udiv = 3072>", "<umin = 64, umax = 64, udiv = 64>", {0}),
        ("<umin = 3072, umax = 3072, udiv = 3072>", "<umin = 3072, umax = 6144, udiv = 3072>", {0, 1}),
        ("stream.alignment = 64 : index", "stream.alignment = 16 : index", {2}),
    ],
)
def test_what_is_bound_is_told_in_parts(worker: Child, tmp_path: Path, old: str, new: str, parts: set[int]) -> None:
    text = (HERE / "tiny.7.stream.mlir").read_text()
    regions = str(HERE / "tiny.5.dispatch-creation.mlir")

    def rows(stream: str) -> Any:
        path = tmp_path / "stream.mlir"
        path.write_text(stream)
        return worker.ask(op="program", dispatch_creation=regions, stream=str(path))["entry_points"]

    assert old in text
    for before, after in zip(rows(text), rows(text.replace(old, new)), strict=True):
        differing = {n for n in range(3) if before["bound_parts"][n] != after["bound_parts"][n]}
        assert differing == (parts if before["bound"] != after["bound"] else set())


def configured(worker: Child, path: Path) -> Any:
    return worker.ask(op="strategies", executable_configurations=str(path))


def test_strategies_of_the_compilers_own_dumps(compiler_root: Path, worker: Child, tmp_path: Path) -> None:
    path = dumped(compiler_root, tmp_path, *FLAGS) / "named.9.executable-configurations.mlir"
    found, text = configured(worker, path)["functions"], path.read_text()
    assert [*found] == [row["entry_point"] for row in ANSWERS["program"]["entry_points"]]
    for line in found.values():
        pipeline, *configurations = line.split(" | ")
        assert re.match(r"(CPU)?DoubleTilingExpert( \{enable_loop_peeling\})?$", pipeline)
        assert configurations and len(set(configurations)) == len(configurations)
        assert all(f"lowering_config<{each}>" in text for each in configurations)  # nothing of them is lost


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
"""As releases up to 3.11.0 write pipelines, and as those from 3.13.0 on → as people read them."""


def test_strategies_in_all_notations(worker: Child, tmp_path: Path) -> None:
    path, understood = tmp_path / "configured.mlir", 0
    for notation, pipeline in PIPELINES.items():
        path.write_text(CONFIGURED.replace("PIPELINE", notation))
        answer = configured(worker, path)
        if "error" not in answer:
            understood += 1
            head = f"{pipeline} workgroup_size = [32, 1, 1] subgroup_size = 32 {{bank = 1 : i64}}"
            assert answer["functions"] == {
                "inside": f"{head} | {{thread = [4], workgroup = [128]}} | decomposition_config = {{x = 1 : i32}}"
                ' | mine.tuning_strategy = "a b"',
                "last": f"{head} | tile_sizes = [[1, 32], [1, 1]]",
            }
    assert understood in (1, 3)


def test_variants_that_differ_are_both_told(worker: Child, tmp_path: Path) -> None:
    variant = re.findall(r"hal\.executable\.variant .*?\n  \} \}", CONFIGURED, flags=re.S)[0]
    other = variant.replace("@fb", "@fc").replace("lowering_config = #config", "lowering_config = #tiles")
    notation = next(
        each
        for each in PIPELINES
        if "error" not in configured(worker, written(tmp_path, CONFIGURED.replace("PIPELINE", each)))
    )
    text = CONFIGURED.replace(variant, f"{variant}\n{other}").replace("PIPELINE", notation)
    functions = configured(worker, written(tmp_path, text))["functions"]
    first, second = functions["inside"].split(" || ")
    assert first.replace("{thread = [4], workgroup = [128]}", "tile_sizes = [[1, 32], [1, 1]]") == second != first
    assert "||" not in functions["last"]


def written(folder: Path, text: str) -> Path:
    path = folder / "written.mlir"
    path.write_text(text)
    return path


def test_bad_requests_are_answered(worker: Child, tmp_path: Path) -> None:
    assert "none.mlir: No such file" in configured(worker, tmp_path / "none.mlir")["error"]
    assert "executable_configurations" in worker.ask(json.dumps({"op": "strategies"}))["error"]
    assert configured(worker, written(tmp_path, "module {}")) == {"functions": {}}
