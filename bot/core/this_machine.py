"""Mark results that hold on this machine only.

The reason of such a result begins with HERE, wherever it is shown. A cell with such a
reason is never stored, nor is a cell that a timeout or a signal ended. On another
machine it may end in another way.
"""

from __future__ import annotations

from bot.core.snapshot import Cell

HERE = "on this machine: "
# in the first line of the reason where a compile needed more memory than there was
RAN_OUT = "memory ran out"


def here(reason: str) -> str:
    """Return a reason that holds on this machine only."""
    if is_local(reason):
        return reason
    return HERE + reason


def is_local(reason: str) -> bool:
    """Return whether the reason, or one that it quotes, holds on this machine only."""
    return HERE in reason


def lasts(cell: Cell) -> bool:
    """Return whether the cell depends only on its compiler, its model and its flags."""
    failure = cell.failure
    if failure and (
        failure.stage == "timeout"
        or failure.signal is not None
        or is_local(failure.message)
    ):
        return False
    return not any(map(is_local, cell.reasons.values()))
