"""What a schedule says of memory: against the compiler's own statistics, and against sums made by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ir_child import Child

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


def schedule(worker: Child, path: Path) -> Any:
    return worker.ask(op="program", dispatch_creation=str(path), stream=str(path))["schedule"]


@pytest.fixture
def compiled(compiler_root: Path, tmp_path: Path) -> Any:
    """Gives the schedule of a model, and what the compiler counts in it."""

    def compile_(model: str) -> tuple[Path, dict[str, int]]:
        stream, counts = tmp_path / "stream.mlir", tmp_path / "counts.json"
        dump = ["--iree-scheduling-dump-statistics-format=json", f"--iree-scheduling-dump-statistics-file={counts}"]
        binary = compiler_root / "iree/compiler/_mlir_libs/iree-compile"
        flags = ["-", "--iree-hal-target-backends=vmvx", "--compile-to=stream", "-o", str(stream)]
        subprocess.run([str(binary), *flags, *dump], input=model, text=True, capture_output=True, check=True)
        groups = json.loads(counts.read_text())["stream-aggregate"].values()
        return stream, {key: value for group in groups for key, value in group.items()}

    return compile_


@pytest.mark.parametrize("model", [VARIABLE, LOOP])
def test_counts_are_the_compilers_own(worker: Child, compiled: Any, model: str) -> None:
    stream, said = compiled(model)
    found = schedule(worker, stream)
    pairs = {
        "fills": "fill-count",
        "copies": "copy-count",
        "awaits": "await-count",
        "submissions": "submission-count",
        "allocated_bytes": "transient-memory-size",
    }
    assert {key: found[key] for key in pairs} == {key: said[name] for key, name in pairs.items()}


def test_a_variable_counts_once_and_the_compiler_does_not_know_its_size(worker: Child, compiled: Any) -> None:
    stream, said = compiled(VARIABLE)
    assert (schedule(worker, stream)["variable_bytes"], said["variable-size"], said["variable-count"]) == (256, 0, 1)


def test_where_a_loop_allocates_no_sum_is_told(worker: Child, compiled: Any) -> None:
    found = schedule(worker, compiled(LOOP)[0])
    assert (found["program_memory_bytes"], found["dynamic_buffers"]) == (None, 3)


@pytest.mark.parametrize(
    ("old", "new", "most"),
    [
        ("", "", 1_500),  # the initializer needs most
        ("constant 500", "constant 100", 1_400),  # 1,000 kept, 100 of input, 300
        ("constant 200", "constant 900", 2_000),  # the second one is larger than the first, which is free again
        ("  util.global.store %there, @weights : !stream.resource<constant>\n", "", 1_500),  # nothing is kept
    ],
)
def test_the_most_that_is_held_at_once(worker: Child, tmp_path: Path, old: str, new: str, most: int) -> None:
    assert old in SCHEDULE
    path = tmp_path / "schedule.mlir"
    path.write_text(SCHEDULE.replace(old, new) if old else SCHEDULE)
    found = schedule(worker, path)
    assert (found["program_memory_bytes"], found["dynamic_buffers"], found["variable_bytes"]) == (most, 1, 0)


def test_what_is_never_given_back_is_held_to_the_end(worker: Child, tmp_path: Path) -> None:
    lines = [line for line in SCHEDULE.splitlines() if "dealloca" not in line]
    path = tmp_path / "schedule.mlir"
    path.write_text("\n".join(lines))
    assert schedule(worker, path)["program_memory_bytes"] == 1_000 + 100 + 300 + 200
