"""Repeat a write to GitHub if it is not known whether the first one was done."""

from __future__ import annotations

from bot.system.hub import Hub
from bot.system.refusals import in_doubt


class Doubt:
    """Counts the failures of a write, and waits before the next try.

    Before each try the caller reads what is there: a write that is in doubt may have
    been done.
    """

    def __init__(self, hub: Hub, tries: int) -> None:
        """Allow so many tries."""
        self._hub = hub
        self._tries = tries
        self._failures = 0

    def wait(self, error: Exception) -> None:
        """Wait before the next try.

        Raises the error if GitHub refused the write, or if it was the last try.
        """
        self._failures += 1
        if self._failures == self._tries or not in_doubt(error):
            raise error
        self._hub.pause()

    def forget(self) -> None:
        """Begin to count again, after a write that was done."""
        self._failures = 0
