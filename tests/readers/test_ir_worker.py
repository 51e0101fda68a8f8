"""The IR worker as the real child process it is, with the bindings of a real compiler."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ir_child import Child
from places import FIXTURES

HERE = FIXTURES / "ir"
FLAGS = (
    *("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu"),
    *("--iree-llvmcpu-target-cpu=x86-64-v3", "--iree-dispatch-creation-enable-aggressive-fusion"),
    "--mlir-disable-threading",
)


@pytest.fixture(scope="module")
def dumps(compiler_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The phase dumps of `tiny.mlir`, made by the very compiler whose bindings read them."""
    folder = tmp_path_factory.mktemp("dumps")
    compile_tiny(compiler_root, f"--dump-compilation-phases-to={folder}", "-o", str(folder / "tiny.vmfb"))
    return folder


def compile_tiny(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    binary = root / "iree/compiler/_mlir_libs/iree-compile"
    with (HERE / "tiny.mlir").open() as model:
        return subprocess.run(
            [str(binary), "-", *FLAGS, *options], stdin=model, capture_output=True, text=True, check=False
        )


def phase(folder: Path, number: int) -> str:
    (found,) = folder.glob(f"*.{number}.*.mlir")
    return str(found)


def program(child: Child, folder: Path) -> Any:
    return child.ask(op="program", dispatch_creation=phase(folder, 5), stream=phase(folder, 7))


def test_the_worker_is_ready_first(worker: Child) -> None:
    assert worker.first == {"ready": True}


def test_the_program_of_the_compilers_own_dumps(worker: Child, dumps: Path) -> None:
    answer = program(worker, dumps)
    assert (answer["dispatch_regions"], answer["linalg_ops"], answer["executables"]) == (5, 13, 4)
    rows = {row["entry_point"]: (row["kind"], row["sites"]) for row in answer["entry_points"]}
    assert [*rows.values()] == [("matmul", 2), ("softmax", 1), ("reduction", 1), ("conv", 1)]
    # The compiler's own name suffix is an independent opinion.
    assert all(f"_{kind}_" in name for name, (kind, _) in rows.items())


def test_regions_minus_folded_ones_are_executables(worker: Child, dumps: Path) -> None:
    answer = program(worker, dumps)
    sites = sum(row["sites"] for row in answer["entry_points"])
    assert sites == answer["dispatch_regions"]
    assert [row["memory_bound"] for row in answer["entry_points"]] == [False, True, True, False]


def test_the_answers_on_prepared_dumps(worker: Child) -> None:
    expected = json.loads((HERE / "tiny.answers.json").read_text())
    stream = worker.ask(
        op="program",
        dispatch_creation=str(HERE / "tiny.5.dispatch-creation.mlir"),
        stream=str(HERE / "tiny.7.stream.mlir"),
    )
    assert stream == expected["program"]


def test_stack_allocations_equal_the_compilers_diagnostic(worker: Child, dumps: Path, compiler_root: Path) -> None:
    refused = compile_tiny(compiler_root, "--iree-llvmcpu-stack-allocation-limit=1", "-o", "/dev/null")
    said = [int(figure) for figure in re.findall(r"Got (\d+) bytes", refused.stderr)]
    functions = worker.ask(op="allocas", executable_targets=phase(dumps, 10))["functions"]
    assert said and sorted(size for size in functions.values() if size) == sorted(said)


KIND_NAMES = re.findall(r"func\.func @(\w+)", (HERE / "kinds.mlir").read_text())


@pytest.fixture(scope="module")
def kinds(worker: Child) -> dict[str, Any]:
    path = str(HERE / "kinds.mlir")
    answer = worker.ask(op="program", dispatch_creation=path, stream=path)
    return {row["entry_point"]: row for row in answer["entry_points"]}


@pytest.mark.parametrize("name", KIND_NAMES)
def test_the_kind_of_an_executable(kinds: dict[str, Any], name: str) -> None:
    kind = name.partition("_")[0]
    assert kinds[name]["kind"] == kind
    assert kinds[name]["memory_bound"] == (kind not in ("attention", "matmul", "conv", "other"))
    assert kinds[name]["sites"] == 0  # nothing launches them


def test_the_rules_of_the_stack_allocation_gate(worker: Child) -> None:
    functions = worker.ask(op="allocas", executable_targets=str(HERE / "allocas.mlir"))["functions"]
    assert len(functions) == 11  # declarations are not listed
    assert {name: name.partition("_")[0] for name in functions} == {
        name: json.dumps(size) for name, size in functions.items()
    }


def test_without_allocations_no_function_is_listed(worker: Child, tmp_path: Path) -> None:
    path = tmp_path / "none.mlir"
    path.write_text("llvm.func @f() { not even parsed")
    assert worker.ask(op="allocas", executable_targets=str(path)) == {"functions": {}}


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
    ]
    assert [[*answer] for answer in bad] == [["error"]] * len(bad)
    assert not any("\n" in answer["error"] or str(tmp_path) in answer["error"] for answer in bad)
    assert "missing.mlir: No such file" in bad[4]["error"]


def test_a_launch_of_what_is_not_exported_is_an_error(worker: Child, tmp_path: Path) -> None:
    text = (HERE / "tiny.7.stream.mlir").read_text()
    name = "tiny$net_dispatch_3_reduction_16x48_f32"
    stream = tmp_path / "stream.mlir"
    stream.write_text(text.replace(f"export public @{name} ", "export public @other "))
    prepared = str(HERE / "tiny.5.dispatch-creation.mlir")
    assert name in worker.ask(op="program", dispatch_creation=prepared, stream=str(stream))["error"]


def test_a_folder_without_bindings_is_said_first(tmp_path: Path) -> None:
    child = Child(tmp_path)
    assert "iree" in child.first["error"]
    assert child.end() == 1


def test_memory_stays_flat(compiler_root: Path, dumps: Path) -> None:
    child = Child(compiler_root)
    status = Path(f"/proc/{child.process.pid}/status")
    if not status.exists():
        pytest.skip("memory is read from /proc")

    def rss_kib() -> int:
        for _ in range(20):
            program(child, dumps)
        return int(re.findall(r"VmRSS:\s+(\d+)", status.read_text())[0])

    before = rss_kib()
    assert rss_kib() - before < 8 * 1024
    assert child.end() == 0
