"""The measurement of one cell: from real products, each also missing, broken or contradicting.

Merged by name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES
from reader_checks import check_golden
from replacing import replace

from bot.core.metrics import ARTIFACT_PARTS, METRIC_IDS
from bot.core.reading import (
    ArtifactReading,
    Assembled,
    EntryPoint,
    ExecutableFacts,
    Measurement,
    Products,
    ProgramFacts,
    Reading,
)
from bot.core.snapshot import Dispatch
from bot.errors import MalformedBinary
from bot.readers.assemble import NO_ENTRY, OF_MACHINE_CODE, measure
from bot.readers.compiler_reports import read_stack_usage, read_statistics
from bot.readers.ir_facts import alloca_bytes, program_facts

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
    """What a compile for another backend leaves: no objects, no allocas.

    A stack file full of zeros on rocm.
    """
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


BINARIES = FIXTURES / "binaries"
ASSEMBLED = Assembled(
    (BINARIES / "dense.cuda.cubin").read_bytes(),
    (BINARIES / "dense.cuda.ptxas.txt").read_text(),
)
CUDA = Products(
    (BINARIES / "dense.cuda.vmfb").read_bytes(), "cuda", assembled=(ASSEMBLED,)
)
CELLS = {
    "llvm-cpu": CPU,
    "rocm": on("rocm"),
    "rocm-alone": replace(on("rocm"), program=None),
    "metal-spirv": replace(on("metal-spirv"), strategies={CONV: "tiles 4x4"}),
    "cuda": CUDA,
}


@pytest.mark.parametrize("name", CELLS)
def test_real_cells(name: str) -> None:
    """With or without the program's IR.

    Metal's kernels, too, which cannot have a dollar in their names.
    """
    measurement = check(measure(CELLS[name]))
    check_golden(f"../ir/measured.{name}", measurement)
    rows = measurement.dispatches
    assert all(row.code_bytes and len(row.code or "") == 16 for row in rows)
    assert len({row.code for row in rows}) == len(rows) == (2 if name == "cuda" else 4)


def test_what_ptxas_did_not_say_has_its_reason() -> None:
    unknown = check(measure(replace(CUDA, assembled=())))
    assert {
        (unknown.metrics[name], unknown.reasons[name]) for name in OF_MACHINE_CODE
    } == {(None, NO_ENTRY)}
    missing = check(
        measure(replace(CUDA, assembled=None, reasons={"assembled": "no ptxas"}))
    )
    assert {missing.reasons[name] for name in OF_MACHINE_CODE} == {"no ptxas"}


def test_sources_that_contradict_each_other_are_not_believed() -> None:
    statistics = (CPU.statistics or "").replace(
        '"dispatch-count": 5', '"dispatch-count": 6'
    )
    cell = check(measure(replace(CPU, statistics=statistics)))
    assert (cell.metrics["dispatch_sites"], cell.metrics["executables"]) == (None, 4)
    assert (
        "5" in cell.reasons["dispatch_sites"] and "6" in cell.reasons["dispatch_sites"]
    )
    program = replace(PROGRAM, entry_points=PROGRAM.entry_points[:3])
    cell = check(measure(replace(on("rocm"), program=program)))
    assert cell.metrics["entry_points"] is None
    assert cell.reasons["entry_points"] == "the program's IR has 3, the artifact 4"


def test_either_source_alone_is_enough() -> None:
    assert check(measure(replace(CPU, statistics=None))).metrics["dispatch_sites"] == 5
    cell = check(
        measure(replace(CPU, program=None, reasons={"program": "no bindings"}))
    )
    assert (cell.metrics["dispatch_sites"], cell.metrics["executables"]) == (5, 4)
    assert (
        cell.metrics["linalg_ops"] is None
        and cell.reasons["linalg_ops"] == "no bindings"
    )
    # which functions are entry points is not known
    assert cell.metrics["stack_max_bytes"] is None
    assert cell.dispatches == ()


WHY = "--stack-usage-file is unknown to 3.10.0"


@pytest.mark.parametrize(
    ("missing", "metric", "reason"),
    [
        ({"stack_usage": None}, "stack_max_bytes", "the compile wrote no stack usage"),
        (
            {"stack_usage": None, "reasons": {"stack_usage": WHY}},
            "stack_max_bytes",
            WHY,
        ),
        ({"stack_usage": "torn"}, "stack_max_bytes", "stack usage file, line 1"),
        (
            {"stack_usage": f"-:1:{MATMUL}\t8\tstatic"},
            "stack_max_bytes",
            f"unknown for {SOFTMAX}",
        ),
        ({"allocas": None}, "stack_alloca_bytes", "the compile wrote no allocas"),
        (
            {"statistics": "torn"},
            "dispatch_sites",
            "scheduling statistics: is not JSON",
        ),
        ({"statistics": "torn"}, "executables", "scheduling statistics: is not JSON"),
        ({"program": None}, "memory_bound_sites", "the compile wrote no program"),
        ({"artifact": b"torn"}, "vm_bytes", ""),
        ({"compile_cpu_ms": None}, "compile_cpu_ms", "not measured"),
    ],
)
def test_what_is_missing_has_its_reason(
    missing: dict[str, Any], metric: str, reason: str
) -> None:
    cell = check(measure(replace(CPU, **missing)))
    assert cell.metrics[metric] is None
    assert reason in cell.reasons[metric]


def test_what_is_malformed_costs_only_what_it_says() -> None:
    cell = check(measure(replace(CPU, artifact=b"x" * 77)))
    assert cell.metrics["artifact_bytes"] == 77
    assert {cell.metrics[name] for name in ARTIFACT_PARTS} == {None}
    cell = check(measure(replace(CPU, objects=(b"no object",))))
    assert {(dispatch.code_bytes, dispatch.code) for dispatch in cell.dispatches} == {
        (None, None)
    }
    assert cell.reasons["objects"]
    usage = f"{CPU.stack_usage}module:powf\t4096\tstatic\n"
    for products in (
        replace(CPU, objects=(b"no object",)),
        replace(CPU, stack_usage=usage),
    ):
        assert measure(products).metrics["stack_max_bytes"] == 152, (
            "library functions are no entry points"
        )


def read_as(executables: Sequence[Reading], *unread: str, size: int = 60) -> Any:
    """A reader to which an artifact is these executables, of so many bytes together, and little more."""
    return lambda data: ArtifactReading(
        artifact_bytes=len(data),
        executable_bytes=size,
        vm_bytes=40,
        rodata_bytes=len(data) - size - 40,
        unattributed_bytes=0,
        executables=tuple(executables),
        unread=unread,
    )


def test_an_executable_that_no_reader_knows_leaves_no_maximum() -> None:
    cell = check(
        measure(on("rocm"), read_as((), "executable of 9 bytes: unknown format"))
    )
    for name in ("stack_max_bytes", "workgroup_memory_max_bytes"):
        assert (cell.metrics[name], cell.reasons[name]) == (
            None,
            "executable of 9 bytes: unknown format",
        )
    # the IR knows, and the artifact cannot contradict
    assert cell.metrics["entry_points"] == 4


def test_executables_that_hold_too_few_entry_points_are_not_all_there_are() -> None:
    two = Reading(
        "spirv",
        60,
        {},
        (EntryPoint(MATMUL, code_bytes=8), EntryPoint(SOFTMAX, code_bytes=8)),
    )
    products = replace(on("rocm"), backend="vulkan-spirv")
    caution = "the others cannot be separated from constants"
    for program, reading, count in (
        (PROGRAM, two, "2 of 4"),
        # by the statistics
        (
            None,
            Reading("spirv", 60, {}, (EntryPoint("k"),)),
            "1 of at least 4",
        ),
    ):
        cell = check(measure(replace(products, program=program), read_as([reading])))
        reason = f"the readable executables have {count} entry points; {caution}"
        for name in ("executable_bytes", "rodata_bytes"):
            assert (cell.metrics[name], cell.reasons[name]) == (None, reason)
        assert (cell.metrics["artifact_bytes"], cell.metrics["vm_bytes"]) == (
            len(products.artifact),
            40,
        )


def test_executables_of_an_unknown_format_are_not_known() -> None:
    products = on("rocm")
    artifact = products.artifact.replace(b"\x7fELF", b"what").replace(
        b"HIP1", b"\0" * 4
    )
    cell = check(measure(replace(products, artifact=artifact)))
    expected = measure(products).metrics
    for name in (
        "executable_bytes",
        "rodata_bytes",
        "stack_max_bytes",
        "workgroup_memory_max_bytes",
    ):
        assert cell.metrics[name] is None
        assert "the bot cannot read its executables" in cell.reasons[name]
    for name in (
        "artifact_bytes",
        "vm_bytes",
        "unattributed_bytes",
        "dispatch_sites",
        "entry_points",
    ):
        assert cell.metrics[name] == expected[name]


@given(
    st.binary(max_size=200), st.text(), st.text(), st.binary(max_size=80), st.booleans()
)
def test_any_products_give_a_complete_measurement(
    artifact: bytes,
    stack_usage: str,
    statistics: str,
    object_bytes: bytes,
    with_program: bool,
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


# Entry points by name.


def merged(
    names: Sequence[str] | None, *in_artifact: EntryPoint, **products: Any
) -> tuple[Dispatch, ...]:
    """The dispatches of a program with these names, whose artifact says this of its entry points."""
    rows = tuple(
        ExecutableFacts(
            executable=f"exe_{name}",
            entry_point=name,
            kind="conv",
            memory_bound=False,
            sites=2,
        )
        for name in names or ()
    )
    program = (
        None if names is None else ProgramFacts(len(rows), len(rows), len(rows), rows)
    )
    reading = Reading("hsaco", 60, {}, in_artifact)
    return measure(
        Products(bytes(200), "llvm-cpu", program=program, **products),
        read_as([reading]),
    ).dispatches


@pytest.mark.parametrize(
    ("in_program", "in_artifact", "code_sizes"),
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
    in_program: list[str], in_artifact: list[str], code_sizes: list[int | None]
) -> None:
    described = (
        EntryPoint(name, code_bytes=number)
        for number, name in enumerate(in_artifact, 1)
    )
    rows = merged(in_program, *described)
    assert [(row.name, row.code_bytes) for row in rows] == list(
        zip(in_program, code_sizes, strict=True)
    )


def test_everything_the_artifact_says_is_kept() -> None:
    """Without the program's IR it alone speaks, and entry points of one name stay apart."""
    entry = EntryPoint(
        "f",
        code_bytes=10,
        stack_bytes=20,
        workgroup_bytes=30,
        vgprs=4,
        sgprs=5,
        vgpr_spills=6,
        sgpr_spills=7,
        code="abcd",
    )
    row = Dispatch(
        executable="exe_f",
        name="f",
        kind="conv",
        sites=2,
        code_bytes=10,
        stack_bytes=20,
        alloca_bytes=None,
        workgroup_bytes=30,
        vgprs=4,
        sgprs=5,
        vgpr_spills=6,
        sgpr_spills=7,
        code="abcd",
    )
    assert merged(["f"], entry) == (row,)
    nameless = replace(row, executable="", kind="other", sites=None)
    assert merged(None, entry, replace(entry, code="wxyz")) == (
        nameless,
        replace(nameless, code="wxyz"),
    )


def test_the_cpu_code_generators_files_count_before_the_artifact() -> None:
    f, g = (
        EntryPoint(name, code_bytes=1, stack_bytes=2, code="wxyz")
        for name in (MATMUL, "g")
    )
    first, second = merged(
        [MATMUL, "g"],
        f,
        g,
        objects=CPU.objects,
        stack_usage=f"-:1:{MATMUL}\t64\tdynamic",
        allocas={MATMUL: 48, "helper": 9},
    )
    assert (first.stack_bytes, first.alloca_bytes) == (64, 48)
    assert (first.code_bytes, first.code) == (
        measure(CPU).dispatches[0].code_bytes,
        measure(CPU).dispatches[0].code,
    )
    # A function that the dump does not have is not known, though others allocate.
    assert (
        second.code_bytes,
        second.code,
        second.stack_bytes,
        second.alloca_bytes,
    ) == (1, "wxyz", 2, None)


@pytest.mark.parametrize(
    ("allocas", "expected"), [(None, None), ({}, 0), ({"f": 0}, 0), ({"g": 64}, None)]
)
def test_no_allocation_at_all_is_zero_but_a_missing_function_is_none(
    allocas: dict[str, int] | None, expected: int | None
) -> None:
    assert [row.alloca_bytes for row in merged(["f"], allocas=allocas)] == [expected]


def test_strategies_are_found_by_name_or_spelling() -> None:
    for strategies, expected in (
        (None, None),
        ({"main$f": "tiles"}, "tiles"),
        ({"main_f": "tiles"}, "tiles"),
    ):
        rows = (
            *merged(["main$f"], strategies=strategies),
            *merged(None, EntryPoint("main$f"), strategies=strategies),
        )
        assert [row.strategy for row in rows] == [expected, expected]


# What the compiler itself reports: real lines, missing keys, and anything else refused.


STATISTICS = (FIXTURES / "ir" / "tiny.statistics.json").read_text()


@pytest.mark.parametrize(
    ("place_and_name", "name"),
    [
        (
            "-:1:a:b_dispatch_0_matmul_64x64x64_f32",
            "a:b_dispatch_0_matmul_64x64x64_f32",
        ),
        ("model.mlir:12:main$async_dispatch_0", "main$async_dispatch_0"),
        ("C:/models/m.mlir:3:main_dispatch_0", "main_dispatch_0"),
        ("a:b_linked:iree_h2f_ieee", "iree_h2f_ieee"),
        ("-:1:f:2:g", "f:2:g"),
        ("-:1:two words", "two words"),
    ],
)
def test_names_may_hold_colons(place_and_name: str, name: str) -> None:
    assert read_stack_usage(f"{place_and_name}\t24\tstatic\n") == {name: 24}


def test_of_two_functions_of_one_name_the_larger_frame_counts() -> None:
    lines = ["a:f\t8\tstatic", "b:f\t32\tdynamic", "c:f\t16\tstatic"]
    assert (
        read_stack_usage("\n".join(lines)) == {"f": 32} and read_stack_usage("") == {}
    )


@pytest.mark.parametrize(
    "line",
    [
        "f\t8\tstatic",
        "-:1:\t8\tstatic",
        "-:1:f\t8",
        "-:1:f\t8\tstatic\t",
        "-:1:f\t-8\tstatic",
        "-:1:f\t8.5\tstatic",
        "-:1:f\t\u0664\tstatic",
        "-:1:f\t8\tsometimes",
        "-:1:f 8 static",
        f"-:1:f\t{'9' * 5000}\tstatic",
        f"-:1:f\t{2**53 + 1}\tstatic",
    ],
)
def test_a_line_that_is_not_of_the_format_is_named_by_its_number(line: str) -> None:
    with pytest.raises(MalformedBinary, match="line 3"):
        read_stack_usage(f"-:1:e\t8\tstatic\n\n{line}\n")


@given(st.text() | st.integers().map(str) | st.lists(st.integers()).map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_stack_usage, read_statistics):
        try:
            read(text)
        except MalformedBinary as error:
            assert "\n" not in error.line


@pytest.mark.parametrize(
    "missing", ["stream-aggregate", "execution", "executable", "dispatch-count"]
)
def test_a_missing_key_is_none_and_never_zero(missing: str) -> None:
    document = json.loads(STATISTICS.replace(f'"{missing}"', '"renamed"'))
    figures = read_statistics(json.dumps(document))
    assert figures["dispatch_sites"] is None or missing == "executable"
    assert figures["executables"] is None or missing in ("execution", "dispatch-count")
    assert 0 not in (figures["dispatch_sites"], figures["executables"])


@pytest.mark.parametrize("value", ["5", 5.0, True, -1, [], {}, 2**53 + 1])
def test_a_count_that_is_no_count_is_refused(value: Any) -> None:
    document = json.loads(STATISTICS)
    document["stream-aggregate"]["execution"]["dispatch-count"] = value
    with pytest.raises(MalformedBinary, match=r"execution\.dispatch-count: expected"):
        read_statistics(json.dumps(document))
    with pytest.raises(MalformedBinary):
        read_statistics("[" * 100_000)
