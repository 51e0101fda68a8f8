"""Baselines: the name of a stored snapshot, and what of a snapshot is stored."""

from __future__ import annotations

import re

from msgspec.structs import replace

from bot.core.record import Small
from bot.core.snapshot import Snapshot

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Entry(Small, frozen=True, order=True):
    """The name of one stored snapshot."""

    report_id: str  # which of several reports of a repository it belongs to
    sha: str  # the commit that was measured, hex
    # SHA-256 (hex) of compiler, suite, targets and flags: equal digests give equal
    # measurements
    digest: str

    def __post_init__(self) -> None:
        """Raise ValueError for a commit or a digest in any other spelling."""
        if not _SHA.fullmatch(self.sha) or not _DIGEST.fullmatch(self.digest):
            raise ValueError(
                "an entry's name has a commit and a digest, both in lower-case hex"
            )


def kept(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as a baseline stores it.

    It lacks all ladders, all traces that are not whole, and the texts of what keeps the
    members of families apart. Reports show these only for the head.
    """
    cells = []
    for cell in snapshot.cells:
        traces = {}
        for name, trace in cell.traces.items():
            if trace.is_whole:
                traces[name] = trace
        families = []
        for family in cell.families:
            if not family.identical:
                family = replace(family, varying=())
            families.append(family)
        cells.append(replace(cell, families=tuple(families), traces=traces, ladders={}))
    return replace(snapshot, cells=tuple(cells))
