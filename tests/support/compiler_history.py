"""A small history with the layout of the compiler's repository, and the two sides of a report that it explains."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matched_cells
from matched_cells import Row
from replacing import replace
from report_factory import snapshot, with_metrics

from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.trace import LLVM, DispatchTrace, PassStep

LOWERING = "compiler/src/iree/compiler/Codegen/LLVMCPU/LLVMCPULowering.cpp"
CHOICE = "compiler/src/iree/compiler/Codegen/LLVMCPU/KernelDispatch.cpp"
FUSION = "compiler/src/iree/compiler/DispatchCreation/ElementwiseOpFusion.cpp"
REDUCTION = "compiler/src/iree/compiler/Codegen/Dialect/GPU/TargetUtils/ReductionConfigUtils.cpp"
GPU_CHOICE = "compiler/src/iree/compiler/Codegen/LLVMGPU/KernelConfig.cpp"
TEST = "compiler/src/iree/compiler/Codegen/LLVMCPU/test/select.mlir"
_PASSES = {
    "0": (
        "iree-llvmcpu-lowering",
        "LLVMCPULoweringPass",
        "affine.delinearize_index",
        "mlir",
    ),
    "1": ("InstCombinePass", "InstCombinePass", "call", LLVM),
}


class Clone:
    """A small history with the compiler's layout."""

    def __init__(self, directory: Path) -> None:
        self.directory, self._days = directory, 0
        self.git("init", "--quiet", "--initial-branch=main", str(directory))

    def git(self, *arguments: str) -> str:
        date = f"2026-05-{self._days + 1:02}T12:00:00Z"
        names = {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@b.c",
            "GIT_COMMITTER_NAME": "A",
        }
        dates = {
            "GIT_COMMITTER_EMAIL": "a@b.c",
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        where = ["-C", str(self.directory)] if self.directory.exists() else []
        done = subprocess.run(
            ["git", *where, *arguments],
            env={"PATH": "/usr/bin:/bin", **names, **dates},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def commit(self, message: str, llvm: str = "", **files: str) -> str:
        """The new commit; `files`: LOWERING and so on → their text."""
        self._days += 1
        for name, text in files.items():
            places = {
                "lowering": LOWERING,
                "choice": CHOICE,
                "gpu_choice": GPU_CHOICE,
                "test": TEST,
                "fusion": FUSION,
                "reduction": REDUCTION,
            }
            path = self.directory / places[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        if llvm:
            self.git(
                "update-index",
                "--add",
                "--cacheinfo",
                f"160000,{llvm * 40},third_party/llvm-project",
            )
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def _before(level: str, operation: str) -> Iterator[PassStep]:
    """Yield LLVM's first printed pass, which is equal on both sides.

    What this pass did cannot be told from the translation to LLVM's IR.
    """
    if level == LLVM:
        yield PassStep("EarlyCSEPass", "EarlyCSEPass", LLVM, {operation: 40, "ret": 1})


def explained(
    side: str, revision: str, version: str = "3.13.0", **changes: Any
) -> Snapshot:
    """A cell whose three dispatches change from `base` to `head`: by a pass, by a pass of LLVM's, and by a knob."""
    growth = 0 if side == "base" else 30
    old = "Tiling | unroll = [1, 4]"
    new = "Tiling | unroll = [8, 4]"
    rows = [
        Row(name, code=name + side, code_bytes=1_000 + growth * 10, strategy=old)
        for name in "pq"
    ]
    rows.append(
        Row(
            "r",
            code=f"r{side}",
            code_bytes=1_000 + growth,
            strategy=old if side == "base" else new,
        )
    )
    built = matched_cells.made(*rows)
    traces = {
        row.name: DispatchTrace(
            (
                PassStep("cse", "CSEPass", "mlir", {"arith.addi": 50}),
                *_before(level, operation),
                PassStep(name, class_name, level, {operation: 40 + growth, "ret": 1}),
            )
        )
        for row in built.dispatches
        for key, (name, class_name, operation, level) in _PASSES.items()
        if f"dispatch_{key}_" in row.name
    }

    def edit(_key: CellKey, cell: Cell) -> Cell:
        size = sum(row.code_bytes or 0 for row in built.dispatches)
        zeros = dict.fromkeys(("vm_bytes", "rodata_bytes", "unattributed_bytes"), 0)
        cell = with_metrics(cell, artifact_bytes=size, executable_bytes=size, **zeros)
        parts = {"executables/text": size}
        return replace(
            cell,
            dispatches=built.dispatches,
            parts=parts,
            program=built.program,
            traces=traces,
        )

    whole = snapshot(version, edit, ("m",), {"llvm-cpu-x86_64": "llvm-cpu"})
    compiler = replace(
        whole.compiler, revision=revision, digest=("1" if side == "base" else "2") * 64
    )
    return replace(whole, compiler=compiler, **changes)
