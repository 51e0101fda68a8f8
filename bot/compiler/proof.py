"""Is a resumed compile the direct one? Proved in every run, on one cell, before any resumed artifact is believed.

The sample is compiled directly beside everything else; resumed artifacts are held back until it agrees with its own.
Pure bookkeeping: what to do next is returned, and done by `bot.compiler.side`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from bot.compiler.compiling import Compiled
from bot.core.plan import PlannedCell
from bot.core.snapshot import CellKey, Failure

Result = Compiled | Failure


@dataclass(frozen=True, slots=True)
class Action:
    """What to do with a cell: `finish_with` the result, compile it `direct`, as the `sample`, or that `again`.

    `doubt` is for the end, when all failures are known: compile the cheapest that failed, and compare.
    """

    do: str
    cell: PlannedCell
    result: Result | None = None


class Proof:
    """Goes through the candidates until one of them compiles both ways; may be called from any thread.

    Attributes:
        proved: True where resumed artifacts are the direct ones, False where they are not, None while it is not known.
        alike: True where a resumed compile that failed said what the direct one says, None where none failed yet.
        notes: what a reader of the snapshot should know.
    """

    def __init__(self, candidates: Sequence[PlannedCell]) -> None:
        self._lock = threading.Lock()
        self._candidates = list(candidates)
        self._direct: Compiled | None = None
        self._held: dict[CellKey, tuple[PlannedCell, Compiled]] = {}
        self._never: set[CellKey] = set()
        self._closed: set[CellKey] = set()
        self._failures: dict[CellKey, tuple[PlannedCell, Failure]] = {}
        self.proved: bool | None = None
        self.alike: bool | None = None
        self.notes: list[str] = []

    @property
    def sample(self) -> PlannedCell | None:
        """The cell that everything waits for; None where it is known already."""
        return self._candidates[0] if self._candidates and self.proved is None else None

    def start(self) -> list[Action]:
        """The first sample, if there is a candidate."""
        with self._lock:
            return self._next()

    def skip(self) -> list[Action]:
        """The sample cannot be resumed at all: take another."""
        with self._lock:
            cell = self._candidates.pop(0)
            waited = [Action("direct", cell)] if cell.key in self._never else []
            return [*waited, *self._next()]

    def failed(self, cell: PlannedCell, failure: Failure) -> list[Action]:
        """A cell's back half failed: held back too, until one of them was seen to fail alike both ways."""
        with self._lock:
            if cell is not self.sample and cell.key not in self._closed and self.alike is not False:
                self._failures[cell.key] = (cell, failure)
                if self.alike is None:
                    return [] if len(self._failures) > 1 else [Action("doubt", cell)]
                return self._believe()
        return self.resumed(cell, None)

    def doubted(self) -> PlannedCell:
        """The cheapest cell that failed: it is compiled directly, to compare."""
        with self._lock:
            return min((cell for cell, _ in self._failures.values()), key=lambda cell: (cell.cost, cell.key))

    def compared(self, cell: PlannedCell, direct: Result) -> list[Action]:
        """The direct compile of a cell whose back half failed is done: do the two say the same?"""
        with self._lock:
            self.alike = self._failures.pop(cell.key)[1] == direct
            return [self._close(cell, direct), *self._believe()]

    def _believe(self) -> list[Action]:
        held, self._failures = list(self._failures.values()), {}
        if self.alike and self.proved is not False:
            return [self._close(cell, failure) for cell, failure in held]
        self._never |= {cell.key for cell, _ in held}
        return [Action("direct", cell) for cell, _ in held]

    def resumed(self, cell: PlannedCell, compiled: Compiled | None) -> list[Action]:
        """A cell's back half is done; None where it failed or will never be tried."""
        with self._lock:
            if cell.key in self._closed:
                return []
            if compiled is None:
                self._never.add(cell.key)
            else:
                self._held[cell.key] = (cell, compiled)
            if self.proved is None and self._candidates and self._candidates[0] is cell:
                return self._judge()
            return [Action("direct", cell)] if compiled is None else self._release()

    def sampled(self, cell: PlannedCell, direct: Result) -> list[Action]:
        """The direct compile of the sample is done."""
        with self._lock:
            if isinstance(direct, Failure):
                return [self._close(cell, direct), *self._next()]
            self._direct = direct
            return self._judge()

    def repeated(self, cell: PlannedCell, again: Result) -> list[Action]:
        """The sample differed and was compiled directly once more: does the compiler repeat itself at all?"""
        with self._lock:
            direct = self._direct
            assert direct is not None
            if isinstance(again, Compiled) and again.artifact == direct.artifact:
                self.notes.append(f"front ends were not shared: resumed and direct artifacts of {cell.key} differ")
                self.proved = False
                return [self._close(cell, direct), *self._release()]
            sizes = [len(one.artifact) if isinstance(one, Compiled) else "no" for one in (direct, again)]
            self.notes.append(
                f"not deterministic: the same command for {cell.key} gave {sizes[0]} and {sizes[1]} bytes"
            )
            return [self._close(cell, direct), *self._next()]

    def _next(self) -> list[Action]:
        """Another sample; where there is none left, nothing is proved and nothing resumed is believed."""
        self._direct = None
        settled = self._never | self._closed | self._failures.keys()
        self._candidates = [cell for cell in self._candidates if cell.key not in settled]
        if self._candidates:
            return [Action("sample", self._candidates[0])]
        self.proved = False
        return self._release()

    def _judge(self) -> list[Action]:
        cell, direct = self._candidates[0], self._direct
        if direct is None:
            return []
        if cell.key in self._never:
            return [self._close(cell, direct), *self._next()]
        if cell.key not in self._held:
            return []
        resumed = self._held.pop(cell.key)[1]
        if resumed.artifact != direct.artifact:
            return [Action("again", cell)]
        self.proved = True
        return [self._close(cell, resumed), *self._release()]

    def _close(self, cell: PlannedCell, result: Result) -> Action:
        self._closed.add(cell.key)
        self._held.pop(cell.key, None)
        return Action("finish_with", cell, result)

    def _release(self) -> list[Action]:
        """What was held back, once it is known whether to believe it."""
        if self.proved is None:
            return []
        held, self._held = list(self._held.values()), {}
        return [Action("finish_with", cell, one) if self.proved else Action("direct", cell) for cell, one in held]
