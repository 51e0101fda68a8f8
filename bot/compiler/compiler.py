"""Define what the rest of the program needs of a compiler.

It has an identity, options that it refuses, and the result of a compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bot.core.planned import PlannedCell
from bot.core.snapshot import CompilerInfo, Failure
from bot.system.cancel import Cancel
from bot.system.meter import Meter


@dataclass(frozen=True, slots=True)
class Compiled:
    """A finished compile: its files, and its cost."""

    files: Mapping[str, bytes]  # name → contents, still unread
    cpu_ms: int
    peak_rss_kib: int | None
    # the compiler's refusal that was lifted (its stack gate); None for an ordinary
    # compile
    refusal: Failure | None = None
    # what it did not leave → why
    reasons: Mapping[str, str] = field(default_factory=dict)
    # metric id → what the compiler itself says, where no file shows it; None for a
    # declared one of which it says nothing
    facts: Mapping[str, int | None] = field(default_factory=dict)
    # those of the files that ship, where the compiler has no one artifact
    artifacts: tuple[str, ...] = ()
    # SHA-256 (hex) over the files that the command could read, and their paths; empty
    # for any other compiler
    sources_digest: str = ""
    # ends of names of those that are its own IR, in its order
    stages: tuple[str, ...] = ()


Result = Compiled | Failure  # How a compile ended


Compile = Callable[[PlannedCell, int], Result]
"""The function that compiles one cell with a layout of memory, and returns the result.

`bot.system.memory_layout` has the layouts. Any thread may call it. It never raises an
exception for a fault of the cell.
"""


@dataclass(frozen=True, slots=True)
class Session:
    """What compiles of one side need beside the compiler."""

    scratch: Path
    timeout_seconds: float
    cancel: Cancel
    meter: Meter  # adds up what compiling costs


class Compiler(Protocol):
    """A compiler of one side."""

    @property
    def info(self) -> CompilerInfo:
        """Return which compiler this is."""

    @property
    def is_traced(self) -> bool:
        """Return True if its passes can be printed over a dispatch."""

    def in_its_words(
        self, side: str, cells: Sequence[PlannedCell], cancel: Cancel, /
    ) -> tuple[PlannedCell, ...]:
        """Return the cells with their options as this compiler calls them.

        Raises UsageError for an option of every cell that it does not know, and
        CompilerUnavailable.
        """

    def at_work(self, session: Session) -> AbstractContextManager[Compile]:
        """Return the compiler, ready for compiles.

        The processes that it started for them end with the context.
        """
