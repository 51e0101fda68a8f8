"""The weekly summary: the builds whose code grew most over a long time, and why."""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.json_text import lines
from bot.core.record import Amount, Count, Name, Record, Small
from bot.core.slow_growth import Growth
from bot.core.snapshot import CellKey

WEEKLY_SCHEMA = "code-size-weekly/1"


class DriftStep(Record, frozen=True):
    """The bytes that one baseline added to the code of a build."""

    commit: Name
    change_bytes: Amount


class Drift(Small, frozen=True):
    """A build whose artifact is larger than in an older baseline."""

    key: CellKey
    # base, head: of the artifact, in bytes
    base: int
    head: int
    week: int | None  # the change over the last seven days; None if it is not known
    # cause of the root cause that holds most of the change; None if it is not known
    cause: str | None
    what: str  # what changed, in the words of the root cause; empty if none is known
    # the baselines that added most, the largest first
    steps: tuple[DriftStep, ...] = ()


class Weekly(Small, frozen=True):
    """The summary of one week."""

    base: str  # the commit of the older baseline
    head: str  # the commit of the newest baseline
    days: Count  # between the two commits
    compared: Count  # builds with one artifact size in both
    grown: Count  # how many of them grew
    drifts: tuple[Drift, ...]  # the largest growth first
    growths: tuple[Growth, ...]
    notes: tuple[str, ...] = ()


def weekly_lines(weekly: Weekly) -> Iterator[bytes]:
    """Yield the text of `weekly.json`."""
    record = {
        "schema": WEEKLY_SCHEMA,
        "drifts": list(map(_drift_row, weekly.drifts)),
        "base": weekly.base,
        "head": weekly.head,
        "days": weekly.days,
        "compared": weekly.compared,
        "grown": weekly.grown,
        "growths": weekly.growths,
        "notes": weekly.notes,
    }
    return lines(record)


def _drift_row(drift: Drift) -> dict[str, object]:
    return {
        "model": drift.key.model,
        "target": drift.key.target,
        "artifact_bytes": {"base": drift.base, "head": drift.head},
        "week_bytes": drift.week,
        "cause": drift.cause,
        "what": drift.what,
        "steps": drift.steps,
    }
