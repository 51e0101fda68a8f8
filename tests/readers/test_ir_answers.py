"""A program is read once for all targets, and each answer is the one that a worker without a memory gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ir_child import WORKER, Child, compiled
from places import FIXTURES

from bot.readers.ir_worker.ir_answers import MOST_REMEMBERED, Answers, without_devices

MODEL = FIXTURES / "ir" / "named.mlir"
TARGETS = {
    "x86_64": (
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
        "--iree-llvmcpu-target-cpu=x86-64-v3",
    ),
    "aarch64": (
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu",
        "--iree-llvmcpu-target-cpu=generic",
    ),
    "cuda": ("--iree-hal-target-backends=cuda", "--iree-cuda-target=sm_80"),
    "vmvx": ("--iree-hal-target-backends=vmvx",),
}
PHASES = {
    "input": "1.input",
    "global_optimization": "4.global-optimization",
    "dispatch_creation": "5.dispatch-creation",
    "flow": "6.flow",
    "stream": "7.stream",
}


def program(child: Child, folder: Path) -> Any:
    files = {key: str(folder / f"named.{name}.mlir") for key, name in PHASES.items()}
    return child.ask(op="program", **files)


@pytest.fixture(scope="module")
def folders(
    compiler_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Target → the phases of one model on it."""
    folders = {}
    for target, flags in TARGETS.items():
        folders[target] = tmp_path_factory.mktemp(target)
        done = compiled(
            compiler_root,
            MODEL.read_text(),
            folders[target],
            *flags,
            "--mlir-print-debuginfo",
            "--compile-to=stream",
        )
        assert done.returncode == 0, done.stderr[-2000:]
    return folders


def test_the_answers_of_one_worker_are_those_of_several(
    compiler_root: Path, worker: Child, folders: dict[str, Path]
) -> None:
    for target, folder in folders.items():
        child = Child(compiler_root)
        assert program(worker, folder) == program(child, folder), target
        assert child.end() == 0


WITH_TYPED_VIEWS = f"""
import sys
sys.path.insert(0, {str(WORKER.parents[1])!r})
from ir_worker import ir_worker
ir_worker._UNUSED_MODULES = ("numpy",)
sys.exit(ir_worker.main(sys.argv[1]))
"""


def test_answers_need_no_typed_views_of_dialects(
    compiler_root: Path, worker: Child, folders: dict[str, Path]
) -> None:
    """The worker refuses the dialects' Python modules, as they take long to compile."""
    child = Child(compiler_root, code=WITH_TYPED_VIEWS)
    for folder in folders.values():
        answer = program(worker, folder)
        assert answer == program(child, folder)
        assert answer["entry_points"]
    assert child.end() == 0


def test_the_phases_of_targets_differ_in_their_devices_alone(
    folders: dict[str, Path],
) -> None:
    """That is what makes remembering worthwhile: each text here is asked about once."""
    for phase in ("1.input", "4.global-optimization", "6.flow"):
        texts = [
            (folder / f"named.{phase}.mlir").read_bytes() for folder in folders.values()
        ]
        assert len(set(map(without_devices, texts))) == 1, phase
        assert phase == "1.input" or len(set(texts)) == len(texts)


def test_a_program_that_names_a_device_elsewhere_is_a_text_of_its_own() -> None:
    lines = (
        b'#executable_target_a = #hal.executable.target<"a", "b">\n'
        b'#device_target_a = #hal.device.target<"a", [#executable_target_a]>\n'
        b"module {\n"
        b"  util.global private @__device_0 = #device_target_a loc(#loc)\n"
    )
    assert without_devices(lines + b"}\n") == b"module {\n}\n"
    named = lines + b"  util.func @f() {target = #executable_target_a}\n}\n"
    assert without_devices(named) == named
    inner = lines + b"    util.global private @__device_0 = #device_target_a\n}\n"
    assert without_devices(inner) == inner


def test_what_was_asked_for_last_is_remembered(tmp_path: Path) -> None:
    parsed: list[bytes] = []

    def parse(text: bytes) -> bytes:
        parsed.append(text)
        return text

    def length(_ir: None, module: bytes) -> dict[str, Any]:
        return {"length": len(module)}

    def first(_ir: None, module: bytes) -> dict[str, Any]:
        return {"first": module[:1]}

    def asked(number: int) -> bool:
        """Return whether the text was parsed for the answer."""
        before = len(parsed)
        assert answers.about(str(files[number]), length) == {"length": 5}
        return len(parsed) > before

    answers = Answers(None, parse)
    files = [tmp_path / str(number) for number in range(MOST_REMEMBERED + 1)]
    for number, file in enumerate(files):
        file.write_text(f"{number:05}")
    assert asked(0) and not asked(0)
    assert answers.about(str(files[0]), first) == {"first": b"0"}
    for number in range(1, MOST_REMEMBERED - 1):
        assert asked(number)
    assert not asked(0)
    assert asked(MOST_REMEMBERED)
    assert not asked(0)


def test_an_error_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "named.mlir"
    file.write_text("text")
    errors = [ValueError("once")]

    def question(_ir: None, module: bytes) -> dict[str, Any]:
        if errors:
            raise errors.pop()
        return {"module": module}

    answers = Answers(None, bytes)
    with pytest.raises(ValueError, match="once"):
        answers.about(str(file), question)
    assert answers.about(str(file), question) == {"module": b"text"}
