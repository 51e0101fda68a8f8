"""A root cause: what many cells' deltas have in common, over all models and targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.record import Count, Record
from bot.core.spread import Value
from bot.core.values.explanation import PassChange
from bot.core.values.snapshot import CellKey


@dataclass(frozen=True, slots=True)
class Tally:
    """Deltas of one kind, added up.

    Attributes:
        deltas: how many dispatches, or parts of artifacts.
        net_bytes, absolute_bytes: sum of their changes, and of the amounts of these.
    """

    deltas: int
    net_bytes: int
    absolute_bytes: int


@dataclass(frozen=True, slots=True)
class Example:
    """The delta with the largest change.

    Attributes:
        dispatch: its name; empty where it is a part of the artifact.
        base_bytes, head_bytes: its code, or the part; None where a side does not have it or it is not known.
    """

    key: CellKey
    dispatch: str
    component: str
    base_bytes: int | None
    head_bytes: int | None
    change_bytes: int
    note: str


class Suspect(Record, frozen=True):
    """A commit between the two compilers that touched what a root cause names; nothing proves that it is the one.

    Attributes:
        url: its page on GitHub; empty where the clone does not say where it is from.
        why: which words of the root cause its message and its diff have, and which commits belong to it.
    """

    commit: str
    title: str
    date: str
    url: str
    why: str


class LookedUp(Record, frozen=True):
    """Where suspects were looked for.

    Attributes:
        files: where the pass, or the choice of the configuration, is implemented; empty where that is not known.
        commits: how many touched them between the two compilers; None where that is not known.
        note: what there is to say beside these, or in place of them.
        this_pull_request: those of the files that the pull request itself changes.
    """

    files: tuple[str, ...]
    commits: Count | None = None
    note: str = ""
    this_pull_request: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RootCause:
    """Deltas of one cause with the same thing changed.

    Attributes:
        cause: one of `bot.core.values.explanation.CAUSES`; None for what no cause is known of.
        what: what changed, in words that are true of each of the deltas.
        dispatches: how many of the deltas are dispatches; the others are parts of artifacts.
        share: of all bytes that moved, growth and shrinking alike, in all deltas of the report (0.5 is half of them);
            None where none did.
        by_cell: cell → the absolute change of its deltas in bytes.
        command: the command that makes the example's artifact on head, or on base where head has none.
        passed: the pass that parts its largest traced dispatch; None where none was traced.
        traced: how many of its dispatches have such a pass, and the amounts of their changes in bytes.
        seen: the steps between the two compilers whose own report has just this root cause; None: none was looked at.
        looked_up: None where nobody asked the compiler's repository, or this root cause names nothing to ask for.
        suspects: at most three commits that may have done it, the likeliest first.
    """

    cause: str | None
    what: str
    targets: tuple[str, ...]
    models: tuple[str, ...]
    cells: tuple[CellKey, ...]
    dispatches: int
    total: Tally
    share: float | None
    example: Example
    by_target: Mapping[str, Tally]
    by_cell: Mapping[CellKey, int]
    command: str
    passed: PassChange | None = None
    traced: tuple[int, int] = (0, 0)
    seen: tuple[str, ...] | None = None
    looked_up: LookedUp | None = None
    suspects: tuple[Suspect, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """From one release to a later one, on the way from base to head.

    Attributes:
        skipped: how many releases between the two were not measured.
        base_bytes, head_bytes: artifacts of the cells that both measured, a range where some do not repeat themselves;
            None without such a cell.
        larger, smaller, broken: how many cells grew, shrank and are newly refused.
        causes: what and net bytes of the root causes with most bytes.
    """

    base: str
    head: str
    skipped: int
    base_bytes: Value
    head_bytes: Value
    larger: int
    smaller: int
    broken: int
    causes: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """`3.12.0 → 3.13.0`."""
        return f"{self.base} → {self.head}"
