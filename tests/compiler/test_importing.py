"""bot.compiler.bindings: MLIR as it is, ONNX imported once, and what is said where that fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_compiler import install
from replacing import replace

from bot.compiler.bindings import Importer
from bot.compiler.compiler import Session
from bot.core.planned import Model
from bot.core.policy import is_local
from bot.core.snapshot import Failure
from bot.system.processes import Cancel, Meter

GOOD = """
import pathlib, sys
path, _, output = sys.argv[1:]
pathlib.Path(output).write_text("// imported " + pathlib.Path(path).read_text())
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "scratch"
    path.mkdir()
    yield path


def importer(home: Path, scratch: Path, body: str | None, timeout_seconds: float = 20) -> Importer:
    """With bindings whose importer is a program of ours; without any where `body` is None."""
    toolchain = install(home / "fake").toolchain
    if body is not None:
        tools = home / "bindings" / "iree" / "compiler" / "tools"
        (tools / "import_onnx").mkdir(parents=True)
        counted = f"open({str(home / 'runs')!r}, 'a').write('x')\n"
        (tools / "import_onnx" / "__main__.py").write_text(counted + body)
        toolchain = replace(toolchain, bindings=home / "bindings", no_bindings="")
    return Importer(toolchain, Session(scratch, timeout_seconds, Cancel(), Meter()))


def model(home: Path, name: str) -> Model:
    path = home / name
    path.write_text("a model")
    return Model(path.stem, str(path), name, "0" * 64, 7)


def test_mlir_is_taken_as_it_is(tmp_path: Path, scratch: Path) -> None:
    for name in ("a.mlir", "a.mlirbc"):
        one = model(tmp_path, name)
        assert importer(tmp_path, scratch, None).source(one) == Path(one.path)
    assert list(scratch.iterdir()) == []
    reason = "cannot import ONNX: no MLIR Python bindings beside this compiler"
    assert importer(tmp_path, scratch, None).source(model(tmp_path, "a.onnx")) == Failure("import", reason)


def test_each_onnx_model_is_imported_once(tmp_path: Path, scratch: Path) -> None:
    one, work = model(tmp_path, "a.onnx"), importer(tmp_path, scratch, GOOD)
    sources: list[Path | Failure] = []
    threads = [threading.Thread(target=lambda: sources.append(work.source(one))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(str, sources))) == 1 and (tmp_path / "runs").read_text() == "x"
    assert isinstance(sources[0], Path) and sources[0].name == "a.mlir"
    assert sources[0].read_text() == "// imported a model"
    assert isinstance(other := work.source(model(tmp_path, "b.onnx")), Path) and other != sources[0]


@pytest.mark.parametrize(
    ("body", "stage", "message"),
    [
        ("import sys; sys.exit('error: operator Foo is not known')", "import", "error: operator Foo is not known"),
        (
            "raise ModuleNotFoundError(\"No module named 'onnx'\")",
            "import",
            "on this machine: needs the onnx package: pip install 'code-size-bot[onnx]'",
        ),
        ("pass", "import", "exit code 0 without a message"),
        ("import os; os.abort()", "import", "ended by SIGABRT"),
        ("import time; time.sleep(600)", "timeout", "not finished after 0.5 s"),
    ],
)
def test_an_import_that_fails(tmp_path: Path, scratch: Path, body: str, stage: str, message: str) -> None:
    work, one = importer(tmp_path, scratch, body, 0.5 if stage == "timeout" else 20), model(tmp_path, "a.onnx")
    failure = work.source(one)
    assert isinstance(failure, Failure) and (failure.stage, failure.message) == (stage, message)
    assert work.source(one) == failure and (tmp_path / "runs").read_text() == "x", "a failure is remembered"


@pytest.mark.parametrize(
    ("error", "is_machines"),
    [
        ("ModuleNotFoundError(\"No module named 'numpy'\")", True),
        ("MemoryError()", True),
        ("OSError(28, 'No space left on device')", True),
        ("PermissionError(13, 'Permission denied')", True),
        ("ValueError('unknown operator Foo')", False),
        ("IndexError('list index out of range')", False),
    ],
)
def test_what_the_machine_refuses_is_not_the_models_fault(
    tmp_path: Path, scratch: Path, error: str, is_machines: bool
) -> None:
    found = importer(tmp_path, scratch, f"raise {error}").source(model(tmp_path, "a.onnx"))
    assert isinstance(found, Failure) and is_local(found.message) is is_machines, found
