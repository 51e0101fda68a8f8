"""A suite in the layout of IREE's `torch_models`, written for tests: folders, modules, compstat and other tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from places import FIXTURES

TINY = (FIXTURES / "e2e/models/tiny.mlir").read_bytes()
CPU = (
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-hal-target-device=local",
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    "--iree-llvmcpu-target-cpu=x86-64-v3",
    "--iree-opt-level=O1",
    "--iree-scheduling-dump-statistics-format=json",
    "--iree-scheduling-dump-statistics-file=compilation_info.json",
)
"""As a module of theirs has it, the statistics that its runner asks for once more among them."""
VMVX = ("--iree-hal-local-target-device-backends=vmvx", "--iree-hal-target-device=local")
HIP = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942", "--iree-opt-level=O3")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def module(top: Path, name: str, mlir: str, flags: tuple[str, ...] = CPU) -> Path:
    """`small/modules/tiny_cpu`, written as they write it."""
    return write(top / f"{name}.json", json.dumps({"mlir": mlir, "compiler_flags": flags}, indent=4) + "\n")


def compstat(top: Path, path: str, module: str, **goldens: Any) -> Path:
    """A compstat test of a module."""
    data = {"type": "compstat", "markers": ["cpu"], "module": module, **goldens}
    return write(top / path, json.dumps(data, indent=2) + "\n")


def suite(top: Path, mlir: str = "small/tiny.mlir") -> Path:
    """Two modules of one model, their goldens, and tests that say nothing of size."""
    module(top, "small/modules/tiny_cpu", mlir)
    module(top, "small/modules/tiny_vmvx", mlir, VMVX)
    compstat(top, "small/compstat_cpu.json", "small/modules/tiny_cpu", golden_dispatch_count=4, golden_binary_size=100)
    compstat(top, "small/compstat_vmvx.json", "small/modules/tiny_vmvx", golden_dispatch_count=90)
    write(top / "small/quality_cpu.json", '{"type": "quality", "modules": ["small/modules/tiny_cpu"]}')
    (top / "small/tiny.mlir").write_bytes(TINY)
    return top


def configuration(folder: Path, entry: str = "{torch_models: suite}", more: str = "") -> Path:
    """A configuration of this suite, which stands beside it."""
    return write(folder / "code-size.yml", f"schema: code-size-config/1\nsuites: [{entry}]\n{more}")
