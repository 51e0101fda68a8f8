"""Prove causes: experiments put a cause of base into head and count the bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Protocol

import msgspec

from bot.core.record import Amount, Count, Record

PROVED, PARTLY, REFUTED, NOT_TRIED = STATUSES = (
    "proved",
    "partly",
    "refuted",
    "not-tried",
)
Status = Literal["proved", "partly", "refuted", "not-tried"]
LEAST_PROVED_PERCENT = 90
"""A cause is proved if undoing it restores at least this share of a change."""
MOST_PROVED_PERCENT = 110
"""A cause is proved if undoing it restores at most this share of a change."""
LEAST_PARTLY_PERCENT = 10
"""A cause is refuted if undoing it restores less than this share of a change."""
MOST_KNOBS = 200
MOST_WORDS = 2_000
Words = Annotated[str, msgspec.Meta(max_length=MOST_WORDS)]
"""Words that a report has of an experiment, such as why it was not made."""
LITTLE_BYTES = 8
LITTLE_PERCENT = 2
"""Two sizes count as one up to the larger of these; the percentage is of a change."""


def little_bytes(moved_bytes: int) -> int:
    """Return by how many bytes two sizes may differ and still count as equal."""
    return max(LITTLE_BYTES, abs(moved_bytes) * LITTLE_PERCENT // 100)


def status_of(restored_bytes: int, moved_bytes: int) -> str:
    """Return the status of an experiment that ran.

    Both numbers of bytes are signed, and `moved_bytes` is not 0.
    """
    if moved_bytes > 0:
        in_direction = restored_bytes
    else:
        in_direction = -restored_bytes
    restored_hundredfold = 100 * in_direction
    whole = abs(moved_bytes)
    if restored_hundredfold < LEAST_PARTLY_PERCENT * whole:
        return REFUTED
    if (
        LEAST_PROVED_PERCENT * whole
        <= restored_hundredfold
        <= MOST_PROVED_PERCENT * whole
    ):
        return PROVED
    return PARTLY


class Experiment(Protocol):
    """The result of an experiment on one dispatch; bytes are as in `KnobProof`."""

    @property
    def status(self) -> str:
        """Return one of STATUSES."""

    @property
    def why(self) -> str:
        """Return why it was not tried; empty if it was."""

    @property
    def moved_bytes(self) -> int | None:
        """Return head − base."""

    @property
    def restored_bytes(self) -> int | None:
        """Return the bytes that go back; None if it was not tried."""


Knob = Annotated[str, msgspec.Meta(max_length=200)]
Knobs = Annotated[tuple[Knob, ...], msgspec.Meta(max_length=MOST_KNOBS)]


class KnobProof(Record, frozen=True, omit_defaults=True):
    """The experiment on one dispatch: head is compiled with base's configuration.

    Bytes are of the dispatch's code, and growth is positive. `restored_bytes` is
    positive if the experiment removes growth.
    """

    status: str
    # why it was not tried; empty if it was
    why: Words = ""
    # head − base; None if a size is not known
    moved_bytes: Amount | None = None
    # head's code with base's values of `knobs`; None if it was not tried
    bytes_after: Count | None = None
    # head compiled alone − `bytes_after`; None if it was not tried
    restored_bytes: Amount | None = None
    # the smallest set of knobs that restores as much as all that differ; all of them if
    # it is refuted
    knobs: Knobs = ()
    others: Knobs = ()  # the knobs that differ, too, and are not needed
    # False if the budget ended before every knob was left out once
    is_smallest: bool = True
    is_exact: bool = False  # True if head then has base's very code
    compiles: Count = 0  # how many compiles of one executable the experiment took

    def __post_init__(self) -> None:
        """Raise ValueError for a status that the bytes do not give."""
        if self.restored_bytes is None:
            if self.status != NOT_TRIED:
                raise ValueError("an experiment without a result was not tried")
        elif not self.moved_bytes:
            raise ValueError("an experiment has a change to restore")
        elif self.status != status_of(self.restored_bytes, self.moved_bytes):
            raise ValueError("the status is not the one of these bytes")

    @property
    def share(self) -> float | None:
        """Return the part of the change that goes back (0.5 is half of it).

        Return None if the experiment was not tried.
        """
        if self.restored_bytes is None or not self.moved_bytes:
            return None
        return self.restored_bytes / self.moved_bytes


class PhaseProof(Record, frozen=True, omit_defaults=True):
    """The result of the ladder of one dispatch for one phase.

    It is the change if head gets base's output of this phase.
    """

    status: str
    moved_bytes: Amount | None = None
    restored_bytes: Amount | None = None
    why: str = ""


class Proof(Record, frozen=True):
    """The experiments on the dispatches of one root cause together.

    Growth and shrinkage do not cancel: the bytes are amounts of all tried dispatches. A
    change in the wrong direction counts as negative.
    """

    status: str
    # None if the experiment counts dispatch regions and not bytes
    restored_bytes: Amount | None
    moved_bytes: Count
    members: Count  # how many dispatches of the root cause were tried themselves
    why: str = ""  # why none was tried; empty if one was


UNPROVED = Proof(status=NOT_TRIED, restored_bytes=0, moved_bytes=0, members=0)
"""The proof of a root cause that has no tried dispatch."""


def joint_proof(proofs: Iterable[Experiment], untried_why: str = "") -> Proof:
    """Return the joint result of the experiments on dispatches of one root cause.

    It is proved if the dispatches with 90 % of the tried bytes are proved. The same
    holds for refuted.

    Args:
        untried_why: the reason if no dispatch was chosen for an experiment.
    """
    restored_bytes = moved_bytes = tried = 0
    first_why = ""
    bytes_by_status = dict.fromkeys(STATUSES, 0)
    for proof in proofs:
        first_why = first_why or proof.why
        if proof.restored_bytes is None or not proof.moved_bytes:
            continue
        tried += 1
        moved_bytes += abs(proof.moved_bytes)
        restored_bytes += (
            proof.restored_bytes if proof.moved_bytes > 0 else -proof.restored_bytes
        )
        bytes_by_status[proof.status] += abs(proof.moved_bytes)
    if not tried:
        return Proof(
            status=NOT_TRIED,
            restored_bytes=0,
            moved_bytes=0,
            members=0,
            why=first_why or untried_why,
        )
    for status in (PROVED, REFUTED):
        if 100 * bytes_by_status[status] >= LEAST_PROVED_PERCENT * moved_bytes:
            return Proof(
                status=status,
                restored_bytes=restored_bytes,
                moved_bytes=moved_bytes,
                members=tried,
            )
    return Proof(
        status=PARTLY,
        restored_bytes=restored_bytes,
        moved_bytes=moved_bytes,
        members=tried,
    )
