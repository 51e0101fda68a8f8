"""Small programs, compiled by a real compiler for this machine or another, with what the IR worker says of them."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ir_child import Child

from bot.readers.ir_facts import Interface, interface

_OTHER_MACHINE = "riscv64" if platform.machine() == "aarch64" else "aarch64"
FLAGS = {
    "vmvx": ("--iree-hal-target-backends=vmvx",),
    "here": (
        "--iree-hal-target-backends=llvm-cpu",
        f"--iree-llvmcpu-target-triple={platform.machine()}-unknown-linux-gnu",
        "--iree-llvmcpu-target-cpu=generic",
    ),
    "there": (
        "--iree-hal-target-backends=llvm-cpu",
        f"--iree-llvmcpu-target-triple={_OTHER_MACHINE}-unknown-linux-gnu",
        "--iree-llvmcpu-target-cpu=generic",
    ),
    "bulldozer": (
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
        "--iree-llvmcpu-target-cpu=bdver4",
    ),
    "cuda": ("--iree-hal-target-backends=cuda", "--iree-cuda-target=sm_80"),
}
"""Name → flags; `bulldozer` has instructions that no later processor has."""


@dataclass(frozen=True, slots=True)
class SmallPrograms:
    """Compiles them below `home`."""

    compiler_root: Path
    worker: Child
    home: Path

    def artifact(self, name: str, source: str, target: str = "here") -> Path:
        """The artifact of a module."""
        return self._compiled(source, f"{name}.{target}.vmfb", target)

    def interface(self, name: str, source: str, target: str = "here") -> Interface:
        """What the module takes and gives."""
        flow = self._compiled(
            source, f"{name}.{target}.mlir", target, "--compile-to=flow"
        )
        return interface(json.dumps(self.worker.ask(op="interface", flow=str(flow))))

    def _compiled(self, source: str, name: str, target: str, *flags: str) -> Path:
        program = self.compiler_root / "iree/compiler/_mlir_libs/iree-compile"
        path = self.home / name
        argv = [str(program), "-", *FLAGS[target], *flags, "-o", str(path)]
        subprocess.run(argv, input=source, text=True, check=True, capture_output=True)
        return path
