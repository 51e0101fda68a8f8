"""List the files of printed IR in the order in which a compiler wrote them.

Format: what `--mlir-print-ir-tree-dir` writes, 3.5.0 to 3.13.0: a file for each run of a pass,
`6_0_0_9_62_cse.mlir`, in folders for the operations around it. Numbers count the dumps of the
operation and of those around it, so that one number is the whole program (FileTreeIRPrinterConfig,
mlir/lib/Pass/IRPrinting.cpp).
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from bot.system.trees import files_below


class PrintedFile(NamedTuple):
    """One file, which sorts by its numbers."""

    numbers: tuple[int, ...]
    path: Path


def printed_files(directory: Path) -> list[PrintedFile]:
    """Return the files of all runs of passes, in their order; raises InputError."""
    printed = list[PrintedFile]()
    for entry in files_below(directory):
        path = Path(entry.path)
        if path.suffix == ".mlir":
            digits = takewhile(str.isdecimal, path.name.split("_"))
            printed.append(PrintedFile(tuple(map(int, digits)), path))
    return sorted(printed)
