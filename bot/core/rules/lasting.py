"""What a measurement says of the machine it was made on, and not of the compiler, the model and the flags.

Such a reason begins with HERE, wherever it is shown. A cell that has one, that a timeout or a signal ended, or that was
not fetched is reported and never kept: another machine, another Python or a later hour would say something else.
"""

from __future__ import annotations

from bot.core.values.snapshot import UNFETCHED, Cell

HERE = "on this machine: "
RAN_OUT = "memory ran out"
"""In the first line of the reason where a compile needed more memory than there was."""


def here(reason: str) -> str:
    """A reason that holds on this machine only."""
    return reason if is_local(reason) else HERE + reason


def is_local(reason: str) -> bool:
    """True where the reason, or one that it quotes, holds on this machine only."""
    return HERE in reason


def lasts(cell: Cell) -> bool:
    """True where the cell says nothing but what its compiler, its model and its flags decide."""
    failure = cell.failure
    if failure and (failure.stage in ("timeout", UNFETCHED) or failure.signal is not None or is_local(failure.message)):
        return False
    return not any(map(is_local, cell.reasons.values()))
