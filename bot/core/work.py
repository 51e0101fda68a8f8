"""Estimate the cost of compiles and traces.

It is counted from what an artifact holds, never timed.

Budgets count this work, so that the same inputs get the same rechecks and traces on a
fast machine and on a slow one. One unit is about a millisecond of CPU time on one
common machine. The formulas were fitted to IREE 3.11.0 to 3.13.0.
"""

from __future__ import annotations

from typing import NamedTuple

from bot.core.backends import AMD, NVIDIA
from bot.core.snapshot import Cell, Dispatch

_KIB = 1024
_PER_COMPILE = 300
_PER_EXECUTABLE = 50
_PER_SITE = 15
_PER_CODE_KIB = 2
_PER_TRACE = 500
_PER_TRACED_KIB = 140
COMPILES_OF_LADDER = 10
"""So many compiles of one dispatch a ladder takes in one order."""
_BOTH_ORDERS_TENTHS = 14
_LADDERS_PER_STORED_IR = 2  # the IR of one side is half of a ladder


def compile_work(cell: Cell) -> int:
    """Return the work of one compile of a build.

    0 for a build that no compile gave an artifact of. A metric that the build does not
    have counts as 0.
    """
    if not cell.measured:
        return 0
    executables = cell.value("executables") or 0
    sites = cell.value("dispatch_sites") or 0
    code_bytes = cell.value("executable_bytes")
    if code_bytes is None:
        code_bytes = cell.value("artifact_bytes") or 0
    return (
        _PER_COMPILE
        + _PER_EXECUTABLE * executables
        + _PER_SITE * sites
        + _PER_CODE_KIB * code_bytes // _KIB
    )


def trace_work(row: Dispatch) -> int:
    """Return the work of printing all passes over one dispatch.

    Measured from 3.11.0 to 3.13.0 on all targets, in CPU time. MLIR's passes with
    LLVM's milestones take 0.25 s for a small dispatch, 1.6 s for 29 KB of code and 11.7
    s for 146 KB. All of LLVM's passes take 1.3 s more for 38 KB.
    """
    return _PER_TRACE + _PER_TRACED_KIB * (row.code_bytes or 0) // _KIB


class _LadderRate(NamedTuple):
    """The work of a ladder: a fixed part, and one for each KiB of code."""

    fixed: int
    per_kib: int


_MACHINE_CODE = _LadderRate(fixed=800, per_kib=60)
_WITHOUT_LLVM = _LadderRate(fixed=450, per_kib=25)
_LADDER_RATES = {
    AMD: _LadderRate(fixed=1_000, per_kib=100),
    NVIDIA: _LadderRate(fixed=500, per_kib=25),
    "metal-spirv": _WITHOUT_LLVM,
    "vmvx": _WITHOUT_LLVM,
    "vmvx-inline": _WITHOUT_LLVM,
    "vulkan-spirv": _WITHOUT_LLVM,
}
"""Backend → its rate; any other backend has that of machine code.

Measured from 3.9.0 to 3.12.0, base first alone, in CPU time beside other compiles:
6 to 10 ladders of each target of the suite.
"""


def ladder_work(
    base: Dispatch, head: Dispatch, backend: str, *, both_orders: bool
) -> int:
    """Return the work of a ladder: 10 compiles of one dispatch, and 14 for both orders."""
    code_bytes = max(base.code_bytes or 0, head.code_bytes or 0)
    rate = _LADDER_RATES.get(backend, _MACHINE_CODE)
    work = rate.fixed + rate.per_kib * code_bytes // _KIB
    if both_orders:
        return work * _BOTH_ORDERS_TENTHS // 10
    return work


def stored_ir_work(row: Dispatch, backend: str) -> int:
    """Return the work of storing a dispatch's IR: base's half of a ladder."""
    return ladder_work(row, row, backend, both_orders=False) // _LADDERS_PER_STORED_IR


class WorkLeft:
    """The work that is left of a budget; None is without a limit."""

    def __init__(self, work: int | None) -> None:
        self._left = work

    def take(self, work: int) -> bool:
        """Take this work if so much is left; return whether it was taken."""
        if self._left is None:
            return True
        if work > self._left:
            return False
        self._left -= work
        return True
