"""bot.compiler.tools.probe: the device that a compiler names, and the options that it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_compiler import ROCM, VMVX, X86, install
from places import FIXTURES

from bot.compiler.tools.probe import (
    MEASURING_OPTIONS,
    Answer,
    ask_device,
    device_of,
    known_measuring_options,
    with_device,
)
from bot.core.values.planned import COMMON_FLAGS
from bot.errors import CompilerUnavailable, Interrupted
from bot.system.processes import Cancel

HERE = FIXTURES / "stream"
CPU = (HERE / "trivial.llvm-cpu-x86_64.mlir").read_text(encoding="utf-8")
BYTECODE = (HERE / "trivial.vmvx.mlir").read_text(encoding="utf-8")
"""What 3.13.0 writes with `--compile-to=stream --mlir-print-debuginfo` for the probe's trivial module."""


def device_line(text: str) -> str:
    [line] = [line for line in text.splitlines() if line.startswith("  util.global private @__device_0 = ")]
    return line


# The device's line


@pytest.mark.parametrize("text", [CPU, BYTECODE])
def test_the_device_of_a_real_module(text: str) -> None:
    device = device_of(text)
    assert device is not None
    assert device_line(text) == f'  util.global private @__device_0 = {device} : !hal.device loc("<stdin>":1:1)'


def test_the_device_is_all_that_differs() -> None:
    cpu, bytecode = device_of(CPU), device_of(BYTECODE)
    assert cpu and bytecode and cpu != bytecode
    assert with_device(CPU, bytecode) == BYTECODE
    assert with_device(BYTECODE, cpu) == CPU
    assert with_device(CPU, cpu) == CPU


def test_a_device_is_taken_literally() -> None:
    assert device_line(with_device(CPU, r"\1 \g<0>")).split(" : ")[0].endswith(r"= \1 \g<0>")


def test_a_module_without_locations() -> None:
    text = CPU.replace(device_line(CPU), device_line(CPU).partition(" loc(")[0])
    assert device_of(text) == device_of(CPU)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "module {}",
        CPU.replace(device_line(CPU), ""),
        CPU.replace(device_line(CPU), f"{device_line(CPU)}\n{device_line(CPU)}"),
        CPU.replace(device_line(CPU), f"{device_line(CPU)}\n{device_line(BYTECODE)}"),
        CPU.replace("stream.executable private", 'stream.executable #hal.executable.target<"vmvx", "x"> private'),
        f'#alias = #hal.executable.target<"vmvx", "x">\n{CPU}',
        CPU.replace(device_line(CPU), "  util.global private @__device_0 = #device_target_local : !hal.device"),
        CPU.replace("@__device_0 = ", "@__device_1 = "),
        CPU.replace("  util.global private @__device_0", "util.global private @__device_0"),
    ],
)
def test_anything_else_has_no_device(text: str) -> None:
    assert text != CPU
    assert device_of(text) is None


# Questions to a compiler


def test_asking_for_a_device(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake")
    for target in (X86, ROCM, VMVX):
        answer = ask_device(fake.toolchain, (*COMMON_FLAGS, *target.argv), tmp_path, Cancel())
        assert answer.unknown is None and answer.device is not None
        assert f'#hal.executable.target<"{target.backend}"' in answer.device
    assert [call["kind"] for call in fake.calls()] == ["ask"] * 3


def test_an_option_that_is_not_known(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--iree-rocm-target"])
    answer = ask_device(fake.toolchain, (*COMMON_FLAGS, *ROCM.argv), tmp_path, Cancel())
    assert answer == Answer(None, "--iree-rocm-target")


@pytest.mark.parametrize("action", ["no-device", "fail", "crash", "nothing"])
def test_no_answer(tmp_path: Path, action: str) -> None:
    fake = install(tmp_path / "fake", [{"do": action}])
    assert ask_device(fake.toolchain, VMVX.argv, tmp_path, Cancel()) == Answer()


def test_an_answer_is_not_that_of_an_earlier_question(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", [{"do": "nothing", "argv": "vmvx"}])
    assert ask_device(fake.toolchain, ROCM.argv, tmp_path, Cancel()).device is not None
    assert ask_device(fake.toolchain, VMVX.argv, tmp_path, Cancel()) == Answer()


def test_all_options_are_known(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake")
    assert known_measuring_options(fake.toolchain, tmp_path, Cancel()) == MEASURING_OPTIONS
    assert len(fake.calls()) == 1


def test_options_that_are_not_known_are_dropped_one_by_one(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--stack-usage-file", "--mlir-disable-threading"])
    known = known_measuring_options(fake.toolchain, tmp_path, Cancel())
    gone = ("--stack-usage-file=stack-usage.txt", "--mlir-disable-threading")
    assert known == tuple(option for option in MEASURING_OPTIONS if option not in gone)
    assert len(known) == len(MEASURING_OPTIONS) - 2
    assert len(fake.calls()) == 3


def test_one_dropped_option_does_not_take_another_along(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--iree-scheduling-dump-statistics-format"])
    known = known_measuring_options(fake.toolchain, tmp_path, Cancel())
    assert "--iree-scheduling-dump-statistics-file=statistics.json" in known
    assert len(known) == len(MEASURING_OPTIONS) - 1


@pytest.mark.parametrize(("action", "said"), [("fail", "error: use of undeclared SSA value"), ("crash", "Stack dump")])
def test_a_compiler_that_cannot_even_do_that(tmp_path: Path, action: str, said: str) -> None:
    fake = install(tmp_path / "fake", [{"do": action}])
    with pytest.raises(CompilerUnavailable, match=f"3.13.0rc1: cannot compile a trivial module: .*{said}"):
        known_measuring_options(fake.toolchain, tmp_path, Cancel())


def test_a_compiler_that_complains_of_an_option_it_was_not_given(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", unknown=["--compile-to"])
    with pytest.raises(CompilerUnavailable, match="Unknown command line argument '--compile-to=input'"):
        known_measuring_options(fake.toolchain, tmp_path, Cancel())


def test_questions_can_be_cancelled(tmp_path: Path) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Interrupted):
        known_measuring_options(install(tmp_path / "fake").toolchain, tmp_path, cancel)
