"""End all running children when a person or the system asks for it."""

from __future__ import annotations

import threading

from bot.errors import Interrupted


class Cancel:
    """A flag that ends all running children: set once, by Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask each call of `run` and each worker to end its child and raise Interrupted."""
        self._event.set()

    def check(self) -> None:
        """Raise Interrupted if set."""
        if self._event.is_set():
            raise Interrupted(
                "interrupted",
                hint="run the same command again: finished builds are in the cache",
            )
