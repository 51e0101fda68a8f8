"""One dispatch through the compiler's passes, and its operations after each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.core.program_proof import ProgramProof
from bot.core.record import Amount, Record

PROGRAM, MLIR, LLVM, MACHINE = LEVELS = ("program", "mlir", "llvm", "machine")
"""The levels that passes work on.

They are the whole program, MLIR's operations of a dispatch, LLVM's instructions, and
the machine's.
"""


REGION = "flow.dispatch.region"
"""Dispatches that have been formed are counted under this name.

Releases put them in different operations.
"""
SOURCE = "source"
"""The state before the first stage that a compiler writes: it has no operations."""


class PassStep(Record, frozen=True):
    """The changes that one pass made to a function."""

    # the pass's argument (`cse`, `greedy`); for LLVM's passes over its IR the class
    # (`InstCombinePass`)
    name: str
    # what implements it (`CSEPass`), or what it calls itself (`Greedy Register
    # Allocator`)
    class_name: str
    level: str
    # operation with its types (`arith.addf vector<8xf32`) → how many more there are
    # after the pass than after the one before; than none after the first of a level
    changes: Mapping[str, Amount]


class DispatchTrace(Record, frozen=True, omit_defaults=True):
    """One dispatch on one side."""

    # the passes that changed which operations there are, in order
    steps: tuple[PassStep, ...]
    # why there are none, or why they end early; empty if the trace is whole
    why: str = ""
    # whether the traced compile made the code that is in the artifact; None if that
    # is not known
    same_code: bool | None = None
    # if the other side lacks the dispatch: the other side's passes at the same places
    # of the model
    across: tuple[PassStep, ...] = ()
    # the target for which the passes over the program were printed, if it is another
    # one with the same dispatches
    printed_for: str = ""
    # the experiment on the program of a dispatch that is formed otherwise; None if it
    # was not made
    formed: ProgramProof | None = None

    @property
    def is_staged(self) -> bool:
        """Return whether its steps are stages of a command compiler, and not passes."""
        return bool(self.steps) and self.steps[0].name == SOURCE

    @property
    def size(self) -> int:
        """Return the work of reading the trace: steps times different operations.

        Real traces have up to 100,000.
        """
        steps = self.steps + self.across
        names = set[str]().union(*(step.changes for step in steps))
        return len(steps) * len(names)

    @property
    def is_whole(self) -> bool:
        """Return whether the trace is complete, and of the code in the artifact."""
        return bool(self.steps) and not self.why and self.same_code is not False

    def states(self) -> Iterator[PassState]:
        """Yield the function after each step."""
        typed = Counter[str]()
        level = ""
        for step in self.steps:
            if step.level == level:
                typed = Counter(typed)
            else:
                typed = Counter()
            typed.update(step.changes)
            level = step.level
            yield PassState(
                name=step.name, class_name=step.class_name, level=level, typed=+typed
            )


@dataclass(frozen=True, slots=True)
class PassState:
    """A function after one pass: its step, and its operations with their types."""

    name: str
    class_name: str
    level: str
    typed: Mapping[str, int]

    @property
    def operations(self) -> Counter[str]:
        """Return operation → how many there are, of all types."""
        counts = Counter[str]()
        for name, count in self.typed.items():
            counts[name.partition(" ")[0]] += count
        return counts

    @property
    def total(self) -> int:
        """Return how many operations there are."""
        return sum(self.typed.values())


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One pass on both sides."""

    name: str
    # base, head: the function after it; None if it does not run on that side, or
    # changes no operation there
    base: PassState | None
    head: PassState | None
    # operation → how many more head has after this pass, largest first; with its types
    # if only these differ
    apart: Mapping[str, int]
    # how many of the larger side's operations the other does not have (0.5 is half of
    # them)
    share: float

    @property
    def level(self) -> str:
        """Return one of LEVELS."""
        state = self.head or self.base
        if state:
            return state.level
        return MLIR

    @property
    def class_name(self) -> str:
        """Return the class that implements a pass of MLIR; empty for a pass of LLVM."""
        state = self.head or self.base
        if state and state.level in (PROGRAM, MLIR):
            return state.class_name
        return ""


@dataclass(frozen=True, slots=True)
class Parting:
    """The passes of both sides over one dispatch, and where these part."""

    rows: tuple[TraceRow, ...]
    at: int | None  # place of that pass in `rows`; None with the reason in `why`
    why: str = ""
    # True if they part in LLVM's passes, of which only milestones were printed
    is_late: bool = False
    # passes over the program leave another number of dispatches at the same places
    forms_otherwise: bool = False
    # the experiment that names the pass; None if none does. `at` is None if the
    # pass changes no operation here.
    formed: ProgramProof | None = None

    @property
    def row(self) -> TraceRow | None:
        """Return the pass after which the sides have parted."""
        if self.at is None:
            return None
        return self.rows[self.at]

    @property
    def operations(self) -> Mapping[str, int]:
        """Return operation → how many more on head after that pass.

        Operations that differed as much before it are left out. Dispatches that are
        formed come first, then the largest difference.
        """
        if self.at is None:
            return {}
        before = self.rows[self.at - 1].apart if self.at else {}
        now = self.rows[self.at].apart
        regions = {REGION: now[REGION]} if REGION in now else {}
        changed = dict[str, int]()
        for name, count in {**regions, **now}.items():
            if before.get(name) != count:
                changed[name] = count
        return changed

    @property
    def shown(self) -> list[int]:
        """Return the places of the rows that differ from the row shown before.

        `at` is among them.
        """
        places = list[int]()
        last = tuple[object, ...]()
        for place, row in enumerate(self.rows):
            summary = (
                row.level,
                round(row.share, 2),
                next(iter(row.apart.items()), None),
            )
            if summary != last or place == self.at:
                last = summary
                places.append(place)
        return places


def operation_words(
    differences: Mapping[str, int], limit: int, unlisted: int | None = 0
) -> str:
    """Return `affine.delinearize_index −1,440, affine.max +1 and 3 more`.

    The largest difference comes first.

    Args:
        unlisted: how many more differences there are; None if that is not known.
    """
    phrases = []
    for name, count in list(differences.items())[:limit]:
        phrases.append(f"{name} {count:+,}".replace("-", "−"))
    text = ", ".join(phrases)
    remaining = max(0, len(differences) - limit) + (unlisted or 0)
    if not remaining:
        return text
    if unlisted is None:
        return f"{text} and more"
    return f"{text} and {remaining} more"
