"""The configurations of functions, as a real compiler chose them and in the notations of several releases."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ir_child import Child
from test_ir_program import ANSWERS, dumped
from test_ir_worker import FLAGS


def ask(worker: Child, path: Path) -> Any:
    return worker.ask(op="strategies", executable_configurations=str(path))


def test_strategies_of_the_compilers_own_dumps(compiler_root: Path, worker: Child, tmp_path: Path) -> None:
    path = dumped(compiler_root, tmp_path, *FLAGS) / "named.9.executable-configurations.mlir"
    found, text = ask(worker, path)["functions"], path.read_text()
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
        answer = ask(worker, path)
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
        if "error" not in ask(worker, written(tmp_path, CONFIGURED.replace("PIPELINE", each)))
    )
    text = CONFIGURED.replace(variant, f"{variant}\n{other}").replace("PIPELINE", notation)
    functions = ask(worker, written(tmp_path, text))["functions"]
    first, second = functions["inside"].split(" || ")
    assert first.replace("{thread = [4], workgroup = [128]}", "tile_sizes = [[1, 32], [1, 1]]") == second != first
    assert "||" not in functions["last"]


def written(folder: Path, text: str) -> Path:
    path = folder / "written.mlir"
    path.write_text(text)
    return path


def test_bad_requests_are_answered(worker: Child, tmp_path: Path) -> None:
    assert "none.mlir: No such file" in ask(worker, tmp_path / "none.mlir")["error"]
    assert "executable_configurations" in worker.ask(json.dumps({"op": "strategies"}))["error"]
    assert ask(worker, written(tmp_path, "module {}")) == {"functions": {}}
