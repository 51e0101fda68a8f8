"""Plans of one side or two, through a fake compiler and a real cache, to snapshots.

Cells of cuda with an assembler.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import needs
import pytest
from fake_compiler import (
    ROCM,
    TARGETS,
    TEMPLATES,
    VMVX,
    X86,
    FakeCompiler,
    cells_of,
    install,
    is_alive,
    wait_until,
    write_model,
)
from json_texts import to_json
from places import FIXTURES, ROOT
from reader_checks import fixture
from replacing import replace

from bot.compiler.cell_cache import CellCache
from bot.compiler.compiler import Compiled
from bot.compiler.compiling import ARTIFACT
from bot.compiler.iree import Iree, check_flags
from bot.compiler.ptxas import MISSING, Assembler, Ptxas, installed
from bot.core.comparable import ASSEMBLED
from bot.core.delta import diff
from bot.core.metrics import METRIC_IDS
from bot.core.planned import LIFTED, LIFTED_LIMIT_FLAG, PlannedCell, Target, plan
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot, SourceInfo
from bot.core.snapshot_json import from_json
from bot.core.this_machine import lasts
from bot.errors import OutputError, UsageError
from bot.study.cell import cell_of
from bot.study.measuring import measure_sides
from bot.study.model_files import load_models
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.system.cancel import Cancel

SOURCE = SourceInfo("12" * 20, "main", False)
REASON = "no MLIR Python bindings beside this compiler"
MODELS = ("alpha", "beta")


@dataclass
class Heard:
    """A progress that remembers what it was told."""

    plans: list[tuple[int, int, float]] = field(default_factory=list)
    cells: list[tuple[str, CellKey, float]] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    stages: list[tuple[str, int]] = field(default_factory=list)
    cpu_ms: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, cells: int, cached: int, cost: float, *_words: str) -> None:
        self.plans.append((cells, cached, cost))

    def stage(self, about: str, tasks: int, _noun: str) -> None:
        self.stages.append((about, tasks))

    def started(self, name: str) -> None:
        with self.lock:
            self.running.append(name)

    def ended(self, name: str) -> None:
        with self.lock:
            self.running.remove(name)

    def measured(self, side: str, cell: Cell, cost: float) -> None:
        with self.lock:
            self.cells.append((side, cell.key, cost))

    def spent(self, cpu_ms: Mapping[str, int], _jobs: int) -> None:
        self.cpu_ms = dict(cpu_ms)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go in these tests."""
    path = tmp_path / "tmp"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def fake_in(
    home: Path,
    *rules: dict[str, str],
    version: str = "3.13.0rc1",
    unknown: Sequence[str] = (),
) -> FakeCompiler:
    return install(home, rules, version=version, unknown=unknown, templates=TEMPLATES)


def open_resources(
    root: Path, *, timeout_seconds: float = 30
) -> tuple[Resources, Heard]:
    heard = Heard()
    return (
        Resources(
            cache=CellCache(root / "cache"),
            jobs=2,
            timeout_seconds=timeout_seconds,
            cancel=Cancel(),
            progress=heard,
        ),
        heard,
    )


def side_plan(label: str, fake: FakeCompiler, cells: Sequence[PlannedCell]) -> SidePlan:
    models = {cell.model.name: cell.model for cell in cells}
    targets = {cell.target.name: cell.target for cell in cells}
    return SidePlan(
        label=label,
        compiler=Iree(fake.toolchain),
        cells=tuple(cells),
        source=SOURCE,
        models=tuple(models.values()),
        targets=tuple(targets.values()),
    )


def measured(
    root: Path, *sides: tuple[str, FakeCompiler, Sequence[PlannedCell]]
) -> tuple[dict[str, Snapshot], Heard]:
    """Measure with the cache under `root`."""
    room, heard = open_resources(root)
    snapshots = measure_sides(
        [side_plan(label, fake, cells) for label, fake, cells in sides], room
    )
    assert heard.running == []
    return snapshots, heard


def by_key(snapshot: Snapshot) -> dict[CellKey, Cell]:
    return {cell.key: cell for cell in snapshot.cells}


def files_in(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


# One side


def test_a_shard_knows_the_whole_plan_so_that_a_lost_one_is_noticed(
    tmp_path: Path,
) -> None:
    fake = fake_in(tmp_path / "fake")
    cells = cells_of(tmp_path, MODELS)
    room, _ = open_resources(tmp_path)
    whole = side_plan("head", fake, cells)
    part = replace(
        whole, cells=tuple(cell for cell in cells if cell.model.name == "alpha")
    )
    head = measure_sides([part], room)["head"]
    assert set(head.models) == set(MODELS)
    lost = [
        delta for delta in diff(head, head) if delta.reason.startswith("not measured")
    ]
    assert {delta.key for delta in lost} == {
        cell.key for cell in cells if cell.model.name == "beta"
    }


def test_a_side_becomes_a_snapshot(tmp_path: Path, scratch: Path) -> None:
    fake = fake_in(tmp_path / "fake")
    cells = cells_of(tmp_path, MODELS)
    snapshots, heard = measured(tmp_path, ("head", fake, cells))
    head = snapshots["head"]
    assert list(snapshots) == ["head"]
    assert [cell.key for cell in head.cells] == sorted(cell.key for cell in cells)
    assert (head.compiler, head.source) == (fake.toolchain.info, SOURCE)
    assert head.flags == cells[0].flags
    assert head.targets == {
        "llvm-cpu-x86_64": "llvm-cpu",
        "rocm": "rocm",
        "vmvx": "vmvx",
    }
    assert head.models == {cell.model.name: cell.model.digest for cell in cells}
    assert head.notes == ()
    for planned in cells:
        cell = by_key(head)[planned.key]
        artifact = fake.artifact(planned)
        assert (cell.status, cell.failure, cell.command) == (
            "ok",
            None,
            planned.command(),
        )
        assert cell.artifact_digest == hashlib.sha256(artifact).hexdigest()
        assert cell.metrics["artifact_bytes"] == len(artifact)
        assert set(cell.metrics) == set(METRIC_IDS)
        unknown = {metric for metric, value in cell.metrics.items() if value is None}
        assert "*" in cell.reasons or unknown <= set(cell.reasons)
    assert from_json(to_json(head)) == head
    assert str(tmp_path) not in to_json(head)
    assert heard.plans == [(6, 0, sum(cell.cost for cell in cells))]
    assert Counter(key for _, key, _ in heard.cells) == Counter(
        cell.key for cell in cells
    )
    assert sum(cost for _, _, cost in heard.cells) == pytest.approx(heard.plans[0][2])
    assert set(heard.cpu_ms) == set(MODELS) and min(heard.cpu_ms.values()) > 0
    assert list(scratch.iterdir()) == []
    # the model arrives on standard input, and no path reaches the compiler
    for call in fake.calls("direct"):
        assert call["argv"][0] == "-" and not any("/" in word for word in call["argv"])
    turned, _ = measured(tmp_path / "other", ("head", fake, cells[::-1]))
    assert [exact(cell) for cell in turned["head"].cells] == [
        exact(cell) for cell in head.cells
    ]


def exact(cell: Cell) -> Cell:
    """Without what two runs of one compile may differ in."""
    metrics = {
        name: value
        for name, value in cell.metrics.items()
        if not name.startswith("compile_")
    }
    return replace(cell, metrics=metrics)


def test_an_unsupported_target_is_a_row(tmp_path: Path) -> None:
    inline = Target(
        "vmvx-inline", "vmvx-inline", unsupported="needs a module of its own"
    )
    fake = fake_in(tmp_path / "fake")
    cells = cells_of(tmp_path, ["alpha"], [VMVX, inline])
    snapshots, heard = measured(tmp_path, ("head", fake, cells))
    rows = by_key(snapshots["head"])
    failure = Failure("target", "needs a module of its own")
    assert rows[CellKey("alpha", "vmvx-inline")] == Cell(
        "alpha", "vmvx-inline", "unsupported", failure=failure
    )
    assert rows[CellKey("alpha", "vmvx")].status == "ok"
    assert heard.plans[0][:2] == (1, 0)
    assert not any(
        "vmvx-inline" in word for call in fake.calls() for word in call["argv"]
    )


# The cache


def test_only_what_is_not_in_the_cache_is_compiled(tmp_path: Path) -> None:
    fake = fake_in(tmp_path / "fake")
    cells = cells_of(tmp_path, MODELS)
    first, _ = measured(tmp_path, ("head", fake, cells))
    before = len(fake.calls())
    second, heard = measured(tmp_path, ("head", fake, cells))
    assert (second, len(fake.calls())) == (first, before)
    assert heard.plans == [(6, 6, 0)] and heard.cells == []
    entry = files_in(tmp_path / "cache" / "cells")[0]
    entry.write_bytes(entry.read_bytes()[:-9])  # torn
    again, heard = measured(tmp_path, ("head", fake, cells))
    assert heard.plans[0][:2] == (6, 5)
    assert [exact(cell) for cell in again["head"].cells] == [
        exact(cell) for cell in first["head"].cells
    ]
    changed = plan(
        [cells[0].model, write_model(tmp_path, "beta", "another text")], TARGETS
    )
    before = len(fake.calls("direct"))
    third, heard = measured(tmp_path, ("head", fake, changed))
    assert {call["model"] for call in fake.calls("direct")[before:]} == {
        "beta"
    } and heard.plans[0][:2] == (6, 3)
    new = by_key(third["head"])
    assert {
        cell.key.model for cell in again["head"].cells if new[cell.key] != cell
    } == {"beta"}
    renamed = replace(
        cells[0], model=replace(cells[0].model, name="omega", shown="models/omega.mlir")
    )
    before = fake.compiles
    [row] = measured(tmp_path, ("head", fake, [renamed]))[0]["head"].cells
    assert (row.key.model, fake.compiles) == ("omega", before)
    assert row.command.endswith("-o omega.vmfb < models/omega.mlir")
    assert row.metrics == new[cells[0].key].metrics


def test_a_file_in_place_of_the_cache(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "cache").write_text("mine")
    with pytest.raises(OutputError, match="cannot be written"):
        measured(
            tmp_path, ("head", fake_in(tmp_path / "fake"), cells_of(tmp_path, MODELS))
        )
    assert list(scratch.iterdir()) == []


# Two sides


def test_a_cell_that_two_sides_share_is_compiled_once(tmp_path: Path) -> None:
    fake = fake_in(tmp_path / "fake")
    cells = cells_of(tmp_path, MODELS)
    snapshots, heard = measured(tmp_path, ("base", fake, cells), ("head", fake, cells))
    assert (
        snapshots["base"].cells == snapshots["head"].cells
        and len(snapshots["head"].cells) == 6
    )
    assert fake.compiles == 6
    assert heard.plans == [(12, 0, sum(cell.cost for cell in cells))]
    assert Counter(side for side, _, _ in heard.cells) == {"base": 6, "head": 6}
    assert sum(cost for _, _, cost in heard.cells) == pytest.approx(heard.plans[0][2])


# Cells that end badly


def test_one_bad_cell_does_not_stop_the_others(tmp_path: Path) -> None:
    rules = [
        {"do": "crash", "kind": "direct", "model": "alpha", "argv": "=vmvx"},
        {"do": "truncate", "kind": "direct", "model": "alpha", "argv": "=rocm"},
        {"do": "refuse", "kind": "direct", "model": "beta", "argv": "=llvm-cpu"},
        {"do": "fail", "kind": "direct", "model": "beta", "argv": "=vmvx"},
        {"do": "nothing", "kind": "direct", "model": "beta", "argv": "=rocm"},
    ]
    fake = fake_in(tmp_path / "fake", *rules)
    cells = cells_of(tmp_path, MODELS)
    snapshots, _ = measured(tmp_path, ("head", fake, cells))
    rows = by_key(snapshots["head"])
    status = {str(key): cell.status for key, cell in rows.items()}
    assert status == {
        "alpha on llvm-cpu-x86_64": "ok",
        "alpha on rocm": "failed",
        "alpha on vmvx": "failed",
        "beta on llvm-cpu-x86_64": "over-stack-limit",
        "beta on rocm": "failed",
        "beta on vmvx": "failed",
    }
    failures = {str(key): cell.failure for key, cell in rows.items() if cell.failure}
    crashed = failures["alpha on vmvx"]
    torn = failures["alpha on rocm"]
    assert (crashed.signal, crashed.message) == ("SIGSEGV", "ended by SIGSEGV")
    assert torn.stage == "read" and torn.message
    assert failures["beta on rocm"].message == "exit code 0 without a message"
    assert all(cell.command for cell in rows.values())
    assert all(
        not cell.metrics and cell.artifact_digest is None
        for cell in rows.values()
        if not cell.measured
    )
    assert from_json(to_json(snapshots["head"])) == snapshots["head"]


def test_over_the_stack_limit_is_a_measurement(tmp_path: Path) -> None:
    fake = fake_in(
        tmp_path / "fake", {"do": "refuse", "kind": "direct", "argv": "=llvm-cpu"}
    )
    cells = cells_of(tmp_path, ["alpha"], [X86])
    snapshots, _ = measured(tmp_path, ("head", fake, cells))
    [row] = snapshots["head"].cells
    assert (row.status, row.measured) == ("over-stack-limit", True)
    assert row.failure is not None and (
        row.failure.stage,
        row.failure.figure_bytes,
    ) == ("stack-limit", 36864)
    assert LIFTED_LIMIT_FLAG in row.command.split()
    assert (
        row.artifact_digest
        == hashlib.sha256(fake.artifact(cells[0], lifted=True)).hexdigest()
    )
    again, _ = measured(tmp_path, ("head", fake, cells))
    assert again == snapshots


def test_of_many_refusals_the_largest_figure_is_the_cell_s(tmp_path: Path) -> None:
    gate = (
        "<stdin>:3:5: error: exceeded stack allocation limit of 32768 bytes for"
        " function. Got {} bytes\n"
    )
    messages = "".join(gate.format(40_000 + number) for number in range(20))
    rules = [
        {"do": "warn", "argv": LIFTED_LIMIT_FLAG},
        {"do": f"say 1 {messages}", "kind": "direct"},
    ]
    fake = fake_in(tmp_path / "fake", *rules)
    cells = cells_of(tmp_path, ["alpha"], [X86])
    [row] = measured(tmp_path, ("head", fake, cells))[0]["head"].cells
    assert row.status == "over-stack-limit"
    assert row.failure is not None and (
        row.failure.stage,
        row.failure.figure_bytes,
    ) == ("stack-limit", 40_019)


def test_a_cell_that_fails_with_the_gate_lifted_as_well(tmp_path: Path) -> None:
    rules = [
        {"do": "fail", "argv": LIFTED_LIMIT_FLAG},
        {"do": "refuse", "kind": "direct"},
    ]
    fake = fake_in(tmp_path / "fake", *rules)
    cells = cells_of(tmp_path, ["alpha"], [X86])
    [row] = measured(tmp_path, ("head", fake, cells))[0]["head"].cells
    assert row.failure is not None and row.failure.stage == "compile"
    assert row.failure.message.partition("<stdin>")[0] == LIFTED, "the last one stands"
    assert " loc(" not in row.failure.message, "the printed command asks for no places"


def test_a_model_that_cannot_be_imported_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    fake = fake_in(tmp_path / "fake")
    cells = cells_of(tmp_path, MODELS, [VMVX])
    path = Path(f"{cells[0].model.path}.onnx")
    path.write_bytes(b"no protocol buffer")
    onnx = replace(cells[0], model=replace(cells[0].model, path=str(path)))
    rows = measured(tmp_path, ("head", fake, (onnx, cells[1])))[0]["head"].cells
    assert [row.status for row in rows] == ["failed", "ok"]
    assert rows[0].failure == Failure("import", f"cannot import ONNX: {REASON}")


def test_a_hang_is_a_timeout(tmp_path: Path) -> None:
    fake = fake_in(tmp_path / "fake", {"do": "hang", "kind": "direct", "argv": "=vmvx"})
    cells = cells_of(tmp_path, ["alpha"], [VMVX])
    room, _ = open_resources(tmp_path, timeout_seconds=1)
    snapshots = measure_sides(
        [SidePlan("head", Iree(fake.toolchain), cells, SOURCE)], room
    )
    [row] = snapshots["head"].cells
    assert (row.status, row.failure) == (
        "timeout",
        Failure("timeout", "not finished after 1 s"),
    )
    assert wait_until(lambda: not any(map(is_alive, fake.pids))) and len(fake.pids) == 2
    assert files_in(tmp_path / "cache") == []


def test_what_a_compiler_prints_and_a_measuring_option_that_is_missing_are_no_failure(
    tmp_path: Path,
) -> None:
    for action in ("flood", "warn"):
        fake = fake_in(tmp_path / action, {"do": action, "kind": "direct"})
        [row] = measured(
            tmp_path / action, ("head", fake, cells_of(tmp_path, ["alpha"], [VMVX]))
        )[0]["head"].cells
        assert (row.status, row.failure) == ("ok", None)
    fake = fake_in(tmp_path / "fake", unknown=["--stack-usage-file"])
    [row] = measured(tmp_path, ("head", fake, cells_of(tmp_path, ["alpha"], [X86])))[0][
        "head"
    ].cells
    assert row.status == "ok" and row.metrics["stack_max_bytes"] is None
    assert "--stack-usage-file" in row.reasons["stack_max_bytes"]


def test_numbers_that_no_snapshot_can_have_do_not_spoil_it(tmp_path: Path) -> None:
    depot = b".local .align 4 .b8 \t__local_depot0[64];"
    huge = b".local .b64 x[9999999999][999999999];".ljust(len(depot))
    data = fixture("pointwise.cuda.vmfb")
    assert data.count(depot) == 1 and len(huge) == len(depot)
    [planned] = cells_of(tmp_path, ["alpha"], [Target("cuda", "cuda")])
    small = Compiled({ARTIFACT: data}, 1, 1)
    cell = cell_of(planned, replace(small, files={ARTIFACT: data.replace(depot, huge)}))
    assert "stack bytes out of range" in cell.reasons["stack_max_bytes"]
    assert (
        cell.metrics["executable_bytes"]
        == cell_of(planned, small).metrics["executable_bytes"]
    )
    snapshot = Snapshot(CompilerInfo("1", "", ""), SOURCE, (cell,))
    assert from_json(to_json(snapshot)) == snapshot


def test_the_ir_reader_of_a_side_is_ended_with_it(tmp_path: Path) -> None:
    package = tmp_path / "bindings" / "iree" / "compiler"
    package.mkdir(parents=True)
    pids = tmp_path / "pids"
    (package / "ir.py").write_text(
        f"import os\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    )
    fake = fake_in(tmp_path / "fake")
    cells = cells_of(tmp_path, ["alpha"], [X86])
    room, _ = open_resources(tmp_path)
    toolchain = replace(fake.toolchain, bindings=tmp_path / "bindings", no_bindings="")
    snapshots = measure_sides([SidePlan("head", Iree(toolchain), cells, SOURCE)], room)
    [pid] = map(int, pids.read_text().split())
    assert wait_until(lambda: not is_alive(pid))
    [row] = snapshots["head"].cells
    assert row.status == "ok" and row.metrics["dispatch_regions"] is None
    assert "has no attribute 'Context'" in row.reasons["dispatch_regions"]


# Options


def flags_checked(
    fake: FakeCompiler, home: Path, user_flags: Sequence[str] = ()
) -> None:
    check_flags(
        "base",
        toolchain=fake.toolchain,
        cells=cells_of(home, MODELS, TARGETS, user_flags),
        user_flags=user_flags,
        cancel=Cancel(),
    )


def test_an_option_that_one_side_does_not_know(tmp_path: Path, scratch: Path) -> None:
    flags_checked(fake_in(tmp_path / "fake"), tmp_path, ["--iree-opt-level=O2"])
    check_flags(
        "base",
        toolchain=fake_in(tmp_path / "none").toolchain,
        cells=(),
        user_flags=["--x"],
        cancel=Cancel(),
    )
    assert list(scratch.iterdir()) == []
    fake = fake_in(tmp_path / "old", unknown=["--iree-opt-level"], version="3.11.0")
    with pytest.raises(UsageError) as raised:
        flags_checked(fake, tmp_path, ["--iree-fine", "--iree-opt-level=O2"])
    assert (
        raised.value.line
        == "flags: the base compiler (3.11.0, 3.11.0) does not know the option"
        " --iree-opt-level (remove it, or compare releases that both know it)"
    )
    fake = fake_in(
        tmp_path / "older",
        unknown=["--iree-dispatch-creation-enable-aggressive-fusion"],
    )
    common = (
        r"^every cell: the base compiler .*aggressive-fusion \(compare newer releases"
    )
    with pytest.raises(UsageError, match=common):
        flags_checked(fake, tmp_path)


def test_an_option_of_one_target_is_that_targets_failure(tmp_path: Path) -> None:
    fake = fake_in(tmp_path / "fake", unknown=["--iree-rocm-target"])
    cells = cells_of(tmp_path, MODELS)
    flags_checked(fake, tmp_path)
    snapshots, _ = measured(tmp_path, ("head", fake, cells))
    for cell in snapshots["head"].cells:
        assert cell.status == ("failed" if cell.key.target == ROCM.name else "ok")
        if cell.failure:
            message = "this compiler does not know the option --iree-rocm-target"
            assert cell.failure == Failure("option", message, 1)


DENSE = (FIXTURES / "binaries" / "dense.cuda.vmfb").read_bytes()
MODEL = ROOT / "configs" / "models" / "mobilenet_v1_f32_224.mlir"
FLAGS = ("--iree-cuda-target=sm_80",)


def planned_on(backend: str = "cuda") -> PlannedCell:
    (cell,) = plan(
        load_models([MODEL], None),
        (Target(backend, backend, FLAGS if backend == "cuda" else ()),),
    )
    return cell


def assembled(artifact: bytes, ptxas: Ptxas | None, backend: str = "cuda") -> Cell:
    compiled = Compiled({ARTIFACT: artifact}, 120, 90_000)
    return cell_of(
        planned_on(backend), compiled, assembler=Assembler(Cancel(), 60, ptxas)
    )


def real_ptxas() -> Ptxas:
    return installed() or needs.missing("the extra cuda is not installed")


def test_a_cell_has_what_the_assembler_made() -> None:
    cell = assembled(DENSE, real_ptxas())
    assert [cell.value(name) for name in ASSEMBLED] == [48, 0, 4_992]
    assert (
        cell.assembler == real_ptxas().name
        and cell.status == "ok"
        and cell.value("compile_cpu_ms") == 120
    )
    assert {
        (dispatch.registers, dispatch.spill_bytes, dispatch.sass_bytes)
        for dispatch in cell.dispatches
    } == {
        (48, 0, 3_712),
        (16, 0, 1_280),
    }


def test_without_an_assembler_the_rest_is_measured_and_says_how_to_get_it() -> None:
    cell = assembled(DENSE, None)
    full = assembled(DENSE, real_ptxas())
    assert cell.status == "ok" and cell.assembler is None and lasts(cell)
    assert {cell.reasons[name] for name in ASSEMBLED} == {MISSING}
    assert {
        name for name, value in full.metrics.items() if cell.value(name) != value
    } == set(ASSEMBLED)


def test_a_refusal_is_a_reason_and_no_failure(tmp_path: Path) -> None:
    binary = tmp_path / "ptxas"
    binary.write_text(
        "#!/bin/sh\necho 'ptxas module.ptx, line 3; error   : no such thing' >&2\nexit"
        " 255\n"
    )
    binary.chmod(0o755)
    cell = assembled(DENSE, Ptxas(binary, "1.2.3"))
    message = (
        "ptxas refuses the PTX text: ptxas module.ptx, line 3; error   : no such thing"
    )
    assert cell.status == "ok" and {cell.reasons[name] for name in ASSEMBLED} == {
        message
    }
    assert cell.value("executable_bytes") and cell.assembler == "ptxas 1.2.3 -O3"


@pytest.mark.slow
@pytest.mark.compiler
def test_a_real_model_against_the_assembler_by_hand(
    compiler_root: Path, tmp_path: Path
) -> None:
    """The dumped PTX, assembled here and read by pattern: another way to every figure."""
    command = [
        str(compiler_root / "iree/compiler/_mlir_libs/iree-compile"),
        "-",
        *planned_on().argv,
        "-o",
        "out.vmfb",
    ]
    command += ["--iree-hal-dump-executable-binaries-to=bin"]
    with MODEL.open() as text:
        subprocess.run(
            command, stdin=text, cwd=tmp_path, check=True, capture_output=True
        )
    cell = assembled((tmp_path / "out.vmfb").read_bytes(), real_ptxas())
    (ptx,) = (tmp_path / "bin").glob("*.ptx")
    by_hand = [
        str(real_ptxas().binary),
        "-v",
        "--gpu-name",
        "sm_80",
        "-o",
        "by_hand.cubin",
        str(ptx),
    ]
    process = subprocess.run(
        by_hand, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    printed = process.stdout + process.stderr
    assert cell.value("registers_max") == max(
        map(int, re.findall(r"Used (\d+) registers", printed))
    )
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", printed)
    assert cell.value("spill_bytes") == sum(
        int(size) for pair in spills for size in pair
    )
    # launches ask for theirs
    assert {int(size) for size in re.findall(r"(\d+) bytes smem", printed)} <= {0}
    sections = subprocess.run(
        ["readelf", "-SW", "by_hand.cubin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    ).stdout
    sizes = re.findall(r"\] \.text\.\S+ +PROGBITS +\S+ \S+ (\S+) ", sections)
    assert cell.value("sass_bytes") == sum(int(size, 16) for size in sizes) > 100_000
