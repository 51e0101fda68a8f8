"""Make the commands that compile a build again on this machine.

They have the paths of its compilers and its model.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from bot.compiler.iree import Iree
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.report import Report
from bot.core.snapshot import CellKey, Snapshot
from bot.study.side_plan import SidePlan


def notable_build(report: Report) -> CellKey | None:
    """Return the build of the worst finding, else the one with the largest change."""
    if report.verdict.news:
        return report.verdict.news[0].key
    changed = [delta for delta in report.deltas if delta.state == "changed"]
    if not changed:
        return None
    return max(
        changed, key=lambda delta: abs(delta.metrics["artifact_bytes"].change or 0)
    ).key


def _is_lifted(side: Snapshot, key: CellKey | None) -> bool:
    """Return whether the command of a build lifts the stack limit."""
    for cell in side.cells:
        if cell.key == key:
            return LIFTED_LIMIT_FLAG in cell.command
    return False


def commands_here(plans: Sequence[SidePlan], report: Report) -> list[str]:
    """Return a command of each side for the notable build.

    The commands work in any folder of this machine.

    A side that was measured before has no command, nor has a side whose files this run
    removes, nor one of another compiler than IREE's.
    """
    key = notable_build(report)
    measured = {"base": report.base, "head": report.head}
    commands = []
    for plan in plans:
        if not isinstance(plan.compiler, Iree) or plan.is_temporary:
            continue
        is_lifted = _is_lifted(measured[plan.label], key)
        for cell in plan.cells:
            if cell.key != key or Path(cell.model.path).suffix == ".onnx":
                continue
            if is_lifted:
                flags = (*cell.argv, LIFTED_LIMIT_FLAG)
            else:
                flags = cell.argv
            arguments = [
                str(plan.compiler.toolchain.binary),
                "-",
                *flags,
                "-o",
                f"{plan.label}.vmfb",
            ]
            commands.append(f"{shlex.join(arguments)} < {shlex.quote(cell.model.path)}")
    return commands
