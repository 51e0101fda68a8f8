"""What a schedule binds and what it says of memory: by hand, and against the compiler's own statistics."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_child import Child

from bot.readers.ir_worker.ir_stream import parts_of

HEAD = '"func.func"() <{sym_name = "@"}> ({\n^bb0(%arg0: !stream.binding, %arg1: !stream.binding, %arg2: i32):'
TAIL = '  "func.return"() : () -> ()\n}) : () -> ()'
TYPE = ": (!stream.binding, index) -> tensor<4xf32>"


def function(*lines: str) -> str:
    return "\n".join((HEAD, *(f"  {line}" for line in lines), TAIL))


def constant(name: str, value: int) -> str:
    return f'{name} = "arith.constant"() <{{value = {value} : index}}> : () -> index'


def subspan(name: str, offset: str, binding: int = 0) -> str:
    return f'{name} = "stream.binding.subspan"(%arg{binding}, {offset}) {TYPE}'


def assumed(*values: str) -> str:
    listed = ", ".join(f"#util.int.assumption<{value}>" for value in values)
    return f'%a = "util.assume.int"(%i) <{{assumptions = [[{listed}]]}}> : (index) -> index'


CAST = '%i = "arith.index_castui"(%arg2) : (i32) -> index'


def which(left: str, right: str) -> tuple[str, ...]:
    """The parts that differ."""
    parts = zip(("offsets", "assumptions", "rest"), parts_of(left), parts_of(right), strict=True)
    return tuple(name for name, one, other in parts if one != other)


def test_a_constant_offset_is_an_offset() -> None:
    base = function(constant("%0", 0), subspan("%1", "%0"), subspan("%2", "%0", 1))
    head = function(constant("%0", 0), constant("%1", 64), subspan("%2", "%1"), subspan("%3", "%0", 1))
    assert which(base, head) == ("offsets",)


def test_the_order_of_constants_is_nothing() -> None:
    base = function(constant("%0", 0), constant("%1", 64), subspan("%2", "%0"), subspan("%3", "%1", 1))
    head = function(constant("%0", 64), constant("%1", 0), subspan("%2", "%1"), subspan("%3", "%0", 1))
    assert which(base, head) == ()


def test_a_constant_that_is_used_otherwise_is_no_offset() -> None:
    def used(value: int) -> str:
        return function(constant("%0", value), constant("%1", 0), subspan("%2", "%1"), '"x.use"(%0) : (index) -> ()')

    assert which(used(0), used(64)) == ("rest",)


def test_known_offsets_of_several_sites_are_offsets() -> None:
    def at(*values: str) -> str:
        return function(CAST, assumed(*values), subspan("%1", "%a"))

    base = at("umin = 0, umax = 0", "umin = 64, umax = 64, udiv = 64")
    assert which(base, at("umin = 0, umax = 0", "umin = 128, umax = 128, udiv = 128")) == ("offsets",)
    assert which(base, at("umin = 0, umax = 0")) == ("offsets", "assumptions")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("umin = 64, umax = 4096", "umin = 64, umax = 4096, udiv = 64"),
        ("umin = 64, umax = 4096, udiv = 64", "umin = 128, umax = 4096, udiv = 64"),
    ],
)
def test_what_is_known_of_an_offset_is_an_assumption(before: str, after: str) -> None:
    base, head = (function(CAST, assumed(said), subspan("%1", "%a")) for said in (before, after))
    assert which(base, head) == ("assumptions",)


def test_a_divisor_that_is_told_for_a_known_offset_is_an_assumption_too() -> None:
    base, head = (
        function(CAST, assumed(said), subspan("%1", "%a"))
        for said in ("umin = 64, umax = 64", "umin = 64, umax = 64, udiv = 64")
    )
    assert "assumptions" in which(base, head)


def test_an_assumption_more_is_an_assumption() -> None:
    """What a newer release adds to the size of a dynamic dimension."""
    base = function(CAST, subspan("%1", "%i"), '"x.use"(%i, %1) : (index, tensor<4xf32>) -> ()')
    head = function(CAST, assumed("udiv = 16"), subspan("%1", "%a"), '"x.use"(%a, %1) : (index, tensor<4xf32>) -> ()')
    assert which(base, head) == ("assumptions",)


def test_a_value_that_is_used_otherwise_too_is_no_offset() -> None:
    def at(value: str) -> str:
        return function(CAST, assumed(value), subspan("%1", "%a"), '"x.use"(%a) : (index) -> ()')

    assert which(at("umin = 0, umax = 0"), at("umin = 64, umax = 64, udiv = 64")) == ("assumptions",)


def test_several_values_of_one_assumption() -> None:
    def at(offset: int, size: int) -> str:
        lists = ", ".join(f"[#util.int.assumption<umin = {v}, umax = {v}, udiv = {v}>]" for v in (offset, size))
        assume = f'%a:2 = "util.assume.int"(%i, %i) <{{assumptions = [{lists}]}}> : (index, index) -> (index, index)'
        return function(CAST, assume, subspan("%1", "%a#0"), '"x.use"(%a#1) : (index) -> ()')

    assert which(at(64, 8), at(128, 8)) == ("offsets",)
    assert which(at(64, 8), at(64, 16)) == ("assumptions",)


def test_names_of_values_are_nothing() -> None:
    base = function(constant("%0", 0), subspan("%1", "%0"), '"x.use"(%1) : (tensor<4xf32>) -> ()')
    assert which(base, base.replace("%1", "%c7").replace("%0", "%zero")) == ()


@given(st.text(alphabet='%a0:#=<>()[]{}", \numinxstreabdgpcol."_', max_size=200))
def test_any_text_has_parts(text: str) -> None:
    assert len(parts_of(text)) == len(parts_of(function(text))) == 3


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
