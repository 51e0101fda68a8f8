"""The measurement of one cell: from real products, each also missing, broken or contradicting; merged by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES
from replacing import replace

from bot.core.metrics import ARTIFACT_PARTS, METRIC_IDS
from bot.core.reading import ArtifactReading, EntryPoint, ExecutableFacts, Measurement, Products, ProgramFacts, Reading
from bot.core.snapshot import Dispatch
from bot.readers.assemble import OF_CODE_OBJECTS, OF_MACHINE_CODE, ONLY_AMD, ONLY_NVIDIA, measure, merge_dispatches
from bot.readers.ir_facts import alloca_bytes, program_facts
from bot.readers.object_code import FunctionCode
from bot.readers.reports import Frame

HERE = FIXTURES / "ir"
ANSWERS = json.loads((HERE / "tiny.answers.json").read_text())
PROGRAM = program_facts(json.dumps(ANSWERS["program"]))
MATMUL, SOFTMAX, REDUCTION, CONV = (entry.entry_point for entry in PROGRAM.entry_points)

CPU = Products(
    artifact=(HERE / "tiny.llvm-cpu.vmfb").read_bytes(),
    backend="llvm-cpu",
    objects=((HERE / "tiny.llvm-cpu.o").read_bytes(),),
    stack_usage=(HERE / "tiny.stack-usage.txt").read_text(),
    statistics=(HERE / "tiny.statistics.json").read_text(),
    program=PROGRAM,
    allocas=alloca_bytes(json.dumps(ANSWERS["allocas"])),
    compile_cpu_ms=120,
    compile_peak_rss_kib=90_000,
)


def on(backend: str) -> Products:
    """What a compile for another backend leaves: no objects, no allocas; a stack file full of zeros on rocm."""
    return replace(
        CPU,
        artifact=(HERE / f"tiny.{backend}.vmfb").read_bytes(),
        backend=backend,
        objects=(),
        stack_usage=f"tiny:{MATMUL}\t0\tstatic\n" if backend == "rocm" else None,
        allocas=None,
    )


def check(measurement: Measurement) -> Measurement:
    """What holds of every measurement."""
    assert tuple(measurement.metrics) == METRIC_IDS
    missing = {name for name, value in measurement.metrics.items() if value is None}
    assert missing == set(measurement.reasons) - {"objects", "unread"}
    assert all(measurement.reasons.values())
    parts = [measurement.metrics[name] for name in ARTIFACT_PARTS]
    if None not in parts:
        assert sum(part or 0 for part in parts) == measurement.metrics["artifact_bytes"]
    return measurement


def test_a_real_cpu_cell() -> None:
    found = check(measure(CPU))
    assert found.metrics == {
        "artifact_bytes": 12_616,
        "executable_bytes": 6_536,
        "vm_bytes": found.metrics["vm_bytes"],
        **{name: found.metrics[name] for name in ("rodata_bytes", "unattributed_bytes")},
        "executables": 4,
        "dispatch_sites": 5,
        "dispatch_regions": 5,
        "entry_points": 4,
        "linalg_ops": 13,
        "stack_max_bytes": 152,
        "stack_alloca_bytes": 128,
        "workgroup_memory_max_bytes": None,
        "memory_bound_sites": 2,
        "steady_sites": 5,
        "initializer_sites": 0,
        "submissions": 1,
        "awaits": 1,
        "fills": 0,
        "copies": 0,
        "program_memory_bytes": 26_016,
        "transient_memory_bytes": 10_816,
        "variable_bytes": 0,
        "dynamic_buffers": 0,
        "constant_bytes": 0,
        "compile_cpu_ms": 120,
        "compile_peak_rss_kib": 90_000,
        **dict.fromkeys((*OF_CODE_OBJECTS, *OF_MACHINE_CODE)),
    }
    assert found.reasons == {
        "workgroup_memory_max_bytes": "the target has no workgroup memory",
        **dict.fromkeys(OF_CODE_OBJECTS, ONLY_AMD),
        **dict.fromkeys(OF_MACHINE_CODE, ONLY_NVIDIA),
    }
    matmul, _, _, conv = found.dispatches
    assert (matmul.kind, matmul.sites, matmul.stack_bytes, matmul.alloca_bytes) == ("matmul", 2, 8, 0)
    assert (conv.name, conv.stack_bytes, conv.stack_kind, conv.alloca_bytes) == (CONV, 8, "static", 128)
    assert all(dispatch.code_bytes and dispatch.workgroup_bytes is None for dispatch in found.dispatches)
    assert len({dispatch.code for dispatch in found.dispatches} - {None}) == 4


@pytest.mark.parametrize("backend", ["rocm", "metal-spirv"])
def test_code_and_strategy_reach_the_dispatches(backend: str) -> None:
    found = check(measure(replace(on(backend), strategies={CONV: "tiles 4x4"})))
    assert all(len(dispatch.code or "") == 43 for dispatch in found.dispatches)
    assert [dispatch.strategy for dispatch in found.dispatches] == [None, None, None, "tiles 4x4"]


def test_a_real_rocm_cell_has_registers_from_the_code_object() -> None:
    found = check(measure(on("rocm")))
    assert found.metrics["stack_max_bytes"] == 0
    assert found.metrics["entry_points"] == len(found.dispatches) == 4
    assert found.metrics["workgroup_memory_max_bytes"] == max(
        dispatch.workgroup_bytes or 0 for dispatch in found.dispatches
    )
    assert all(dispatch.vgprs and dispatch.sgprs and dispatch.code_bytes for dispatch in found.dispatches)
    assert "llvm-cpu" in found.reasons["stack_alloca_bytes"]


def test_a_real_metal_cell_finds_kernels_that_cannot_have_a_dollar_in_their_names() -> None:
    found = check(measure(on("metal-spirv")))
    assert [dispatch.name for dispatch in found.dispatches] == [MATMUL, SOFTMAX, REDUCTION, CONV]
    assert all(dispatch.code_bytes for dispatch in found.dispatches)
    assert found.metrics["stack_max_bytes"] is None
    assert "device" in found.reasons["stack_max_bytes"]
    assert found.metrics["workgroup_memory_max_bytes"] is not None


def test_library_functions_are_no_entry_points() -> None:
    usage = f"{CPU.stack_usage}module:powf\t4096\tstatic\n"
    assert measure(replace(CPU, stack_usage=usage)).metrics["stack_max_bytes"] == 152


def test_sources_that_contradict_each_other_are_not_believed() -> None:
    statistics = (CPU.statistics or "").replace('"dispatch-count": 5', '"dispatch-count": 6')
    found = check(measure(replace(CPU, statistics=statistics)))
    assert found.metrics["dispatch_sites"] is None
    assert found.metrics["executables"] == 4
    assert "5" in found.reasons["dispatch_sites"] and "6" in found.reasons["dispatch_sites"]


def test_entry_points_are_checked_against_the_artifact() -> None:
    program = replace(PROGRAM, entry_points=PROGRAM.entry_points[:3])
    found = check(measure(replace(on("rocm"), program=program)))
    assert found.metrics["entry_points"] is None
    assert found.reasons["entry_points"] == "the program's IR has 3, the artifact 4"


def test_either_source_alone_is_enough() -> None:
    assert check(measure(replace(CPU, statistics=None))).metrics["dispatch_sites"] == 5
    found = check(measure(replace(CPU, program=None, reasons={"program": "no bindings"})))
    assert (found.metrics["dispatch_sites"], found.metrics["executables"]) == (5, 4)
    assert found.metrics["linalg_ops"] is None and found.reasons["linalg_ops"] == "no bindings"
    assert found.metrics["stack_max_bytes"] is None  # which functions are entry points is not known
    assert found.dispatches == ()


def test_without_the_programs_ir_a_gpu_artifact_still_lists_its_entry_points() -> None:
    found = check(measure(replace(on("rocm"), program=None)))
    assert found.metrics["entry_points"] == len(found.dispatches) == 4
    assert found.metrics["stack_max_bytes"] == 0
    assert {(dispatch.executable, dispatch.sites) for dispatch in found.dispatches} == {("", None)}


@pytest.mark.parametrize(
    ("missing", "metric", "reason"),
    [
        ({"stack_usage": None}, "stack_max_bytes", "the compile left no stack usage"),
        ({"stack_usage": "torn"}, "stack_max_bytes", "stack usage file, line 1"),
        ({"stack_usage": f"-:1:{MATMUL}\t8\tstatic"}, "stack_max_bytes", f"not known of {SOFTMAX}"),
        ({"allocas": None}, "stack_alloca_bytes", "the compile left no allocas"),
        ({"statistics": "torn"}, "dispatch_sites", "scheduling statistics: is not JSON"),
        ({"statistics": "torn"}, "executables", "scheduling statistics: is not JSON"),
        ({"program": None}, "memory_bound_sites", "the compile left no program"),
        ({"artifact": b"torn"}, "vm_bytes", ""),
        ({"compile_cpu_ms": None}, "compile_cpu_ms", "not measured"),
    ],
)
def test_what_is_missing_has_its_reason(missing: dict[str, Any], metric: str, reason: str) -> None:
    found = check(measure(replace(CPU, **missing)))
    assert found.metrics[metric] is None
    assert reason in found.reasons[metric]


def test_the_given_reason_of_a_missing_product_is_shown() -> None:
    why = "--stack-usage-file is unknown to 3.10.0"
    found = measure(replace(CPU, stack_usage=None, reasons={"stack_usage": why}))
    assert found.reasons["stack_max_bytes"] == why


def test_a_malformed_artifact_still_has_its_size() -> None:
    found = check(measure(replace(CPU, artifact=b"x" * 77)))
    assert found.metrics["artifact_bytes"] == 77
    assert {found.metrics[name] for name in ARTIFACT_PARTS} == {None}


def test_a_malformed_object_is_told_and_costs_only_code_bytes() -> None:
    found = check(measure(replace(CPU, objects=(b"no object",))))
    assert {(dispatch.code_bytes, dispatch.code) for dispatch in found.dispatches} == {(None, None)}
    assert found.reasons["objects"]
    assert found.metrics["stack_max_bytes"] == 152


def test_no_allocation_anywhere_is_zero() -> None:
    found = measure(replace(CPU, allocas={}))
    assert found.metrics["stack_alloca_bytes"] == 0
    assert {dispatch.alloca_bytes for dispatch in found.dispatches} == {0}


def test_an_executable_that_no_reader_knows_leaves_no_maximum() -> None:
    def reader(data: bytes) -> ArtifactReading:
        return ArtifactReading(len(data), len(data), 0, 0, 0, (), ("executable of 9 bytes: unknown format",))

    found = check(measure(on("rocm"), reader))
    for name in ("stack_max_bytes", "workgroup_memory_max_bytes"):
        assert found.metrics[name] is None
        assert found.reasons[name] == "executable of 9 bytes: unknown format"
    assert found.metrics["entry_points"] == 4  # the IR knows, and the artifact cannot contradict


def test_executables_that_hold_too_few_entry_points_are_not_all_there_are() -> None:
    def reader(data: bytes) -> ArtifactReading:
        known = Reading("spirv", 60, {}, (EntryPoint(MATMUL, 8), EntryPoint(SOFTMAX, 8)))
        return ArtifactReading(len(data), 60, 40, len(data) - 100, 0, (known,))

    found = check(measure(replace(on("rocm"), backend="vulkan-spirv"), reader))
    reason = (
        "the executables that a reader knows hold 2 of 4 entry points; the others cannot be told apart from constants"
    )
    for name in ("executable_bytes", "rodata_bytes"):
        assert (found.metrics[name], found.reasons[name]) == (None, reason)
    assert found.metrics["artifact_bytes"] == len(on("rocm").artifact)
    assert found.metrics["vm_bytes"] == 40


def test_the_statistics_alone_tell_that_executables_are_hidden() -> None:
    def reader(data: bytes) -> ArtifactReading:
        return ArtifactReading(len(data), 60, 40, len(data) - 100, 0, (Reading("spirv", 60, {}, (EntryPoint("k"),)),))

    found = check(measure(replace(on("rocm"), backend="vulkan-spirv", program=None), reader))
    assert found.metrics["executable_bytes"] is None
    assert "hold 1 of at least 4 entry points" in found.reasons["executable_bytes"]
    assert check(measure(replace(on("rocm"), program=None))).metrics["executable_bytes"] is not None


def test_executables_of_an_unknown_format_are_not_known() -> None:
    products = on("rocm")
    found = check(
        measure(replace(products, artifact=products.artifact.replace(b"\x7fELF", b"what").replace(b"HIP1", b"\0" * 4)))
    )
    for name in ("executable_bytes", "rodata_bytes", "stack_max_bytes", "workgroup_memory_max_bytes"):
        assert found.metrics[name] is None
        assert "no reader knows the format of its executables" in found.reasons[name]
    known = measure(products).metrics
    for name in ("artifact_bytes", "vm_bytes", "unattributed_bytes", "dispatch_sites", "entry_points"):
        assert found.metrics[name] == known[name]


def test_the_largest_of_all_entry_points_counts() -> None:
    names = (MATMUL, SOFTMAX, REDUCTION, CONV)

    def reader(data: bytes) -> ArtifactReading:
        entries = tuple(
            EntryPoint(name, stack_bytes=16 * at, workgroup_bytes=100 - at) for at, name in enumerate(names)
        )
        return ArtifactReading(len(data), len(data), 0, 0, 0, (Reading("spirv", len(data), {}, entries),))

    found = check(measure(replace(on("rocm"), backend="vulkan-spirv"), reader))
    assert found.metrics["stack_max_bytes"] == 48
    assert found.metrics["workgroup_memory_max_bytes"] == 100


@given(st.binary(max_size=200), st.text(), st.text(), st.binary(max_size=80), st.booleans())
def test_any_products_give_a_complete_measurement(
    artifact: bytes, stack_usage: str, statistics: str, object_bytes: bytes, with_program: bool
) -> None:
    products = Products(
        artifact,
        "llvm-cpu",
        objects=(object_bytes,),
        stack_usage=stack_usage,
        statistics=statistics,
        program=PROGRAM if with_program else None,
    )
    check(measure(products))


def program(*names: str) -> ProgramFacts:
    rows = tuple(ExecutableFacts(f"exe_{name}", name, "conv", False, 2) for name in names)
    return ProgramFacts(len(names), len(names), len(names), rows)


def merged(program: ProgramFacts | None, *in_artifact: EntryPoint, **known: Any) -> tuple[Dispatch, ...]:
    nothing: dict[str, Any] = {"frames": {}, "allocas": None, "functions": {}, "strategies": {}, "machine": {}}
    return merge_dispatches(program, in_artifact, **{**nothing, **known})


def code_bytes(program_names: list[str], artifact_names: list[str]) -> list[int | None]:
    """What each name of the program finds, the artifact's entry points being numbered from one."""
    described = tuple(EntryPoint(name, code_bytes=number) for number, name in enumerate(artifact_names, 1))
    rows = merged(program(*program_names), *described)
    assert [dispatch.name for dispatch in rows] == program_names
    return [dispatch.code_bytes for dispatch in rows]


@pytest.mark.parametrize(
    ("in_program", "in_artifact", "found"),
    [
        (["main$async_0", "main$async_1"], ["main$async_1", "main$async_0"], [2, 1]),
        (["main$async_0"], ["main_async_0"], [1]),
        (["a:b.c$d_0"], ["a_b_c_d_0"], [1]),
        (["main$$x"], ["main_x"], [1]),
        (["main$x", "main_x"], ["main$x", "main_x"], [1, 2]),
        (["main$x", "main_x"], ["main_x", "main_x_1"], [None, 1]),
        (["main$x"], ["main_x", "main.x"], [None]),
        (["main_x"], ["main_x", "main_x"], [None]),
        (["main_x"], [], [None]),
        (["main_x"], ["other"], [None]),
        ([], ["other"], []),
    ],
)
def test_names_match_exactly_or_as_the_only_two_of_one_spelling(
    in_program: list[str], in_artifact: list[str], found: list[int | None]
) -> None:
    assert code_bytes(in_program, in_artifact) == found


def test_everything_the_artifact_says_is_kept() -> None:
    said = EntryPoint("f", 10, 20, "static", 30, vgprs=4, sgprs=5, vgpr_spills=6, sgpr_spills=7, code="abcd")
    assert merged(program("f"), said) == (
        Dispatch("exe_f", "f", "conv", 2, 10, 20, "static", None, 30, 4, 5, 6, 7, "abcd"),
    )


def test_the_cpu_code_generators_files_count_before_the_artifact() -> None:
    first, second = merged(
        program("f", "g"),
        EntryPoint("f", code_bytes=1, stack_bytes=2),
        EntryPoint("g", code_bytes=3, stack_bytes=4, code="wxyz"),
        frames={"f": Frame(64, "dynamic")},
        allocas={"f": 48, "helper": 9},
        functions={"f": FunctionCode(100, "abcd")},
    )
    assert (first.code_bytes, first.stack_bytes, first.stack_kind, first.alloca_bytes) == (100, 64, "dynamic", 48)
    assert (first.code, second.code) == ("abcd", "wxyz")
    # A function that the dump does not have is not known, though others allocate.
    assert (second.code_bytes, second.stack_bytes, second.alloca_bytes) == (3, 4, None)


@pytest.mark.parametrize(("allocas", "found"), [(None, None), ({}, 0), ({"f": 0}, 0), ({"g": 64}, None)])
def test_no_allocation_at_all_is_zero_but_a_missing_function_is_none(
    allocas: dict[str, int] | None, found: int | None
) -> None:
    (dispatch,) = merged(program("f"), allocas=allocas)
    assert dispatch.alloca_bytes == found


def test_without_the_programs_ir_the_artifact_alone_speaks() -> None:
    (dispatch,) = merged(None, EntryPoint("f", code_bytes=7))
    assert (dispatch.executable, dispatch.name, dispatch.kind, dispatch.sites) == ("", "f", "other", None)
    assert dispatch.code_bytes == 7
    assert dispatch.code is None


@pytest.mark.parametrize(
    ("strategies", "found"),
    [
        (None, None),
        ({}, None),
        ({"main$f": "tiles"}, "tiles"),
        ({"main_f": "tiles"}, "tiles"),
        ({"main_f": "spelled", "main$f": "exact"}, "exact"),
        ({"main_f": "one", "main.f": "other"}, None),
        ({"g": "tiles"}, None),
    ],
)
def test_strategies_are_found_by_name_or_spelling(strategies: dict[str, str] | None, found: str | None) -> None:
    (dispatch,) = merged(program("main$f"), strategies=strategies or {})
    assert dispatch.strategy == found
    (alone,) = merged(None, EntryPoint("main$f"), strategies=strategies or {})
    assert alone.strategy == found


def test_entry_points_of_one_name_stay_apart_without_the_programs_ir() -> None:
    entries = (EntryPoint("f", code="abcd"), EntryPoint("f", code="wxyz"))
    assert [dispatch.code for dispatch in merged(None, *entries)] == ["abcd", "wxyz"]
