"""bot.compiler.bindings: a real child answers line by line.

What goes wrong costs one answer, not the run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest
from fake_compiler import install, is_alive, wait_until
from places import ROOT
from replacing import replace

from bot.compiler import bindings_python
from bot.compiler.bindings import Bindings
from bot.compiler.compiler import Session
from bot.compiler.importing import Importer
from bot.compiler.toolchain import resolve
from bot.core.planned import Model
from bot.core.snapshot import Failure
from bot.core.this_machine import is_local
from bot.errors import Interrupted
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache
from bot.system.meter import Meter

READY = "print(json.dumps({'ready': True}), flush=True)\n"
PRELUDE = """
import json, os, sys, time
home = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(home, "starts"), "a") as file:
    file.write(f"{os.getpid()}\\n")
"""
ECHO = (
    "for line in sys.stdin: print(json.dumps({'got': json.loads(line), 'root':"
    " sys.argv[1]}), flush=True)\n"
)


def bindings(
    home: Path, body: str, timeout_seconds: float = 20, cancel: Cancel | None = None
) -> Bindings:
    script = home / "worker.py"
    script.write_text(PRELUDE + body)
    return Bindings(
        home / "root", "", cancel or Cancel(), timeout_seconds, script=script
    )


def starts(home: Path) -> list[int]:
    file = home / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def error_of(answer: str | None) -> str:
    assert answer is not None
    error = json.loads(answer)["error"]
    assert isinstance(error, str)
    return error


def test_a_worker_is_started_on_first_use_and_only_once(tmp_path: Path) -> None:
    bound = bindings(tmp_path, READY + ECHO)
    assert bound.reason is None and starts(tmp_path) == []
    answers = [bound.ask("program", stream=f"/a b/{i}.mlir") for i in range(3)]
    assert [json.loads(answer or "")["got"] for answer in answers] == [
        {"op": "program", "stream": f"/a b/{i}.mlir"} for i in range(3)
    ]
    assert json.loads(answers[0] or "")["root"] == str(tmp_path / "root")
    assert len(starts(tmp_path)) == 1
    bound.close()
    bound.close()
    assert wait_until(lambda: not any(map(is_alive, starts(tmp_path))))


def test_byte_code_beside_the_bindings_is_not_read(tmp_path: Path) -> None:
    package = tmp_path / "iree/compiler"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "ir.py").write_text("raise ImportError('the source')\n")
    mark = tmp_path / "was-read"
    evil = tmp_path / "evil.py"
    evil.write_text(f"open({str(mark)!r}, 'w').close()\n")
    py_compile.compile(
        str(evil),
        cfile=importlib.util.cache_from_source(str(package / "ir.py")),
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    bound = Bindings(tmp_path, "", Cancel())
    assert "cannot be loaded" in error_of(bound.ask("program", stream="s.mlir"))
    assert not mark.exists()
    argv = [sys.executable, "-c", "import iree.compiler.ir"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    assert mark.exists(), "Python reads this byte code where nothing keeps it from that"


@pytest.mark.parametrize(
    "body",
    [
        *(
            (
                "print(json.dumps({'error': 'no module named iree'}),"
                " flush=True)\nsys.exit(1)"
            ),
            "sys.exit(1)",
            "os.abort()",
        ),
        "print(json.dumps({'error': 'already registered'}), flush=True)\nsys.exit(1)",
    ],
)
def test_bindings_that_do_not_load_are_given_up(tmp_path: Path, body: str) -> None:
    bound = bindings(tmp_path, body)
    assert (
        error_of(bound.ask("program"))
        == "on this machine: this compiler's MLIR bindings cannot be loaded"
    )
    assert (
        bound.reason
        == "on this machine: this compiler's MLIR bindings cannot be loaded"
    )
    assert bound.ask("program") is None
    assert len(starts(tmp_path)) == 1


@pytest.mark.parametrize(
    ("deed", "timeout_seconds"),
    [
        ("print('{\"half\": ', end='', flush=True); os.abort()", 20),
        ("time.sleep(600)", 3),
    ],
)
def test_a_crash_or_a_hang_costs_one_answer(
    tmp_path: Path, deed: str, timeout_seconds: float
) -> None:
    body = (
        f"for line in sys.stdin:\n    if 'deadly' in line: {deed}\n    print('{{}}',"
        " flush=True)\n"
    )
    bound = bindings(tmp_path, READY + body, timeout_seconds)
    assert bound.ask("program", stream="fine") == "{}"
    assert (
        error_of(bound.ask("program", stream="deadly"))
        == "on this machine: the IR reader ended without an answer"
    )
    assert bound.ask("program", stream="fine again") == "{}" and bound.reason is None
    first, second = starts(tmp_path)
    assert not is_alive(first) and is_alive(second)
    bound.close()


def test_threads_get_their_own_answers(tmp_path: Path) -> None:
    bound = bindings(tmp_path, READY + ECHO)
    wrong = []

    def ask(name: str) -> None:
        for i in range(30):
            if (
                json.loads(bound.ask("program", stream=f"{name}{i}") or "")["got"][
                    "stream"
                ]
                != f"{name}{i}"
            ):
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(starts(tmp_path)) <= len(threads)
    bound.close()
    assert wait_until(lambda: not any(map(is_alive, starts(tmp_path))))


def test_two_threads_are_answered_at_the_same_time(tmp_path: Path) -> None:
    """Each worker answers only after a second one was asked, too."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    body = f"""
for line in sys.stdin:
    open(os.path.join({str(meeting)!r}, str(os.getpid())), "w").close()
    while len(os.listdir({str(meeting)!r})) < 2: time.sleep(0.01)
    print("{{}}", flush=True)
"""
    bound = bindings(tmp_path, READY + body)
    answers: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: answers.append(bound.ask("program")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["{}", "{}"] and len(starts(tmp_path)) == 2
    assert bound.ask("program") == "{}", "an idle worker is asked again"
    assert len(starts(tmp_path)) == 2
    bound.close()
    assert wait_until(lambda: not any(map(is_alive, starts(tmp_path))))


def test_cancel_ends_a_question(tmp_path: Path) -> None:
    cancel = Cancel()
    bound = bindings(tmp_path, READY + "time.sleep(600)", cancel=cancel)
    threading.Timer(0.3, cancel.set).start()
    with pytest.raises(Interrupted):
        bound.ask("program")
    bound.close()
    assert not any(map(is_alive, starts(tmp_path)))


# Models: MLIR as it is, ONNX imported once, and what is said where that fails

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


def importer(
    home: Path, scratch: Path, body: str | None, timeout_seconds: float = 20
) -> Importer:
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
    return Model(
        name=path.stem, path=str(path), shown=name, digest="0" * 64, size_bytes=7
    )


def test_mlir_is_taken_as_it_is(tmp_path: Path, scratch: Path) -> None:
    for name in ("a.mlir", "a.mlirbc"):
        source_model = model(tmp_path, name)
        assert importer(tmp_path, scratch, None).source(source_model) == Path(
            source_model.path
        )
    assert list(scratch.iterdir()) == []
    reason = "cannot import ONNX: no MLIR Python bindings beside this compiler"
    assert importer(tmp_path, scratch, None).source(
        model(tmp_path, "a.onnx")
    ) == Failure("import", reason)


def test_each_onnx_model_is_imported_once(tmp_path: Path, scratch: Path) -> None:
    source_model = model(tmp_path, "a.onnx")
    work = importer(tmp_path, scratch, GOOD)
    sources: list[Path | Failure] = []
    threads = [
        threading.Thread(target=lambda: sources.append(work.source(source_model)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(str, sources))) == 1 and (tmp_path / "runs").read_text() == "x"
    assert isinstance(sources[0], Path) and sources[0].name == "a.mlir"
    assert sources[0].read_text() == "// imported a model"
    assert (
        isinstance(other_source := work.source(model(tmp_path, "b.onnx")), Path)
        and other_source != sources[0]
    )


@pytest.mark.parametrize(
    ("body", "stage", "message"),
    [
        (
            "import sys; sys.exit('error: operator Foo is not known')",
            "import",
            "error: operator Foo is not known",
        ),
        (
            "raise ModuleNotFoundError(\"No module named 'onnx'\")",
            "import",
            (
                "on this machine: needs the onnx package: pip install"
                " 'code-size-bot[onnx]'"
            ),
        ),
        ("pass", "import", "exit code 0 without a message"),
        ("import os; os.abort()", "import", "ended by SIGABRT"),
        ("import time; time.sleep(600)", "timeout", "not finished after 3 s"),
    ],
)
def test_an_import_that_fails(
    tmp_path: Path, scratch: Path, body: str, stage: str, message: str
) -> None:
    work = importer(tmp_path, scratch, body, 3 if stage == "timeout" else 20)
    source_model = model(tmp_path, "a.onnx")
    failure = work.source(source_model)
    assert isinstance(failure, Failure) and (failure.stage, failure.message) == (
        stage,
        message,
    )
    assert (
        work.source(source_model) == failure and (tmp_path / "runs").read_text() == "x"
    ), "a failure is remembered"


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
    failure = importer(tmp_path, scratch, f"raise {error}").source(
        model(tmp_path, "a.onnx")
    )
    assert isinstance(failure, Failure) and is_local(failure.message) is is_machines, (
        failure
    )


@pytest.mark.slow
def test_no_python_reads_ir_that_is_too_old_for_the_program() -> None:
    requirement = re.search(
        r'^requires-python = ">=(.+)"', (ROOT / "pyproject.toml").read_text(), re.M
    )
    assert requirement and f"python{requirement[1]}" == bindings_python._PYTHONS[0]


def test_an_interpreter_of_the_wheel_s_tag_reads_its_ir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel that is built for another Python alone, as a compiler's own CI builds it."""
    homes = (
        Path(python).parent
        for python in sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"))
    )
    monkeypatch.setenv("PATH", os.pathsep.join((os.environ["PATH"], *map(str, homes))))
    needs.program("python3.10")
    wheels = default_cache() / "wheels"
    if not (wheel := next(wheels.glob("*-3.13.0-cp310-*.whl"), None)):
        argv = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            f"--dest={wheels}",
        ]
        subprocess.run(
            [*argv, "--python-version=3.10", "iree-base-compiler==3.13.0"], check=True
        )
        wheel = next(wheels.glob("*-3.13.0-cp310-*.whl"))
    toolchain = resolve(str(wheel), tmp_path / "cache", Cancel(), print)
    assert toolchain.bindings == toolchain.binary.parents[3]
    assert toolchain.python.endswith("python3.10")
