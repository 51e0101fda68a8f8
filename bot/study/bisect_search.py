"""Measure and judge the candidates of a bisection one by one.

Each candidate is compared with the good end, so doubtful builds are compiled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.core.bisecting import Candidate, Judged, judged, values_of
from bot.core.metrics import Metric
from bot.core.planned import only_cell
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.spec import release_in
from bot.core.study import GAPS
from bot.show.bisect import candidate_words
from bot.study.prepare import Work


@dataclass
class Search:
    """One cell's metric over SPECs from GOOD to BAD.

    Each is measured when it is first looked at.
    """

    metric: Metric
    specs: Sequence[str]
    backward: bool  # True if GOOD is the newer end
    work: Work
    # place → what was measured there; of both ends from the start
    snapshots: dict[int, Snapshot]
    key: CellKey = field(init=False)
    limit: int = 0  # the largest value that is good
    # place → how the one there is judged
    candidates: dict[int, Candidate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UsageError if more or less than one cell is meant."""
        keys = set[CellKey]()
        for side in self.snapshots.values():
            keys.update(cell.key for cell in side.cells)
        self.key = only_cell(keys)

    def name(self, place: int) -> str:
        """Return the version of a release; another SPEC stays as it was named."""
        return release_in(self.specs[place]) or self.specs[place]

    def snapshot(self, place: int) -> Snapshot:
        """Return the snapshot of a place, which is measured if it has none yet."""
        if place not in self.snapshots:
            good = {"base": self.snapshots[0]}
            sides = self.work.sides({"head": self.specs[place]}, good)
            self.snapshots[place] = sides["head"]
        return self.snapshots[place]

    def values(self, place: int) -> tuple[tuple[int, ...], str]:
        """Return all values at a place, or an empty tuple and the reason."""
        good = self._cell(0)
        cell = self._cell(place)
        return values_of(cell, good, self.metric.id)

    def _cell(self, place: int) -> Cell | None:
        cells = self.snapshot(place).cells
        return next((cell for cell in cells if cell.key == self.key), None)

    def judge(self, place: int) -> Judged:
        """Judge the variant at a place, with a line of news."""
        result: Judged = "skipped"
        values: tuple[int, ...] = ()
        try:
            values, reason = self.values(place)
        except GAPS as error:
            reason = error.line
        if values:
            result = judged(values, self.limit)
            if result == "skipped":
                reason = (
                    "the build is non-deterministic: its values lie on both sides of"
                    " the limit"
                )
        self.candidates[place] = Candidate(
            name=self.name(place), judged=result, values=values, reason=reason
        )
        self.work.show.say(candidate_words(self.candidates[place], self.metric.unit))
        return result
