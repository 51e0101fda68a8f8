"""The rows of `report.json` that are both written and read: builds and dispatches."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bot.core.cell_story import (
    Both,
)
from bot.core.explanation import (
    DispatchDelta,
    Explanation,
    PassChange,
)
from bot.core.program import Family
from bot.core.record import Amount, Count, Record
from bot.core.snapshot import (
    CellKey,
    Failure,
    Status,
)
from bot.core.trace import REGION

REPORT_SCHEMA = "code-size-report/1"


class PassDetails(Record, frozen=True, omit_defaults=True):
    """The fields of `PassChange` beside its name and the operations."""

    more: Amount = 0
    others: Count | None = 0
    class_name: str = ""
    printed_for: str = ""
    experiment: str = ""


_NO_DETAILS = PassDetails(others=None)
"""The details of a report that has none: older versions did not write them."""


class DispatchRow(DispatchDelta, frozen=True):
    """One entry point that differs; in place of `passed` it names the pass."""

    pass_name: str | None = msgspec.field(default=None, name="pass")
    operations: Mapping[str, Amount] = {}
    pass_details: PassDetails = _NO_DETAILS

    @property
    def delta(self) -> DispatchDelta:
        """Return the entry point with its pass: regions, then the largest change first."""
        fields = {name: getattr(self, name) for name in DispatchDelta.__struct_fields__}
        fields["passed"] = None
        if self.pass_name:
            counts = sorted(
                self.operations.items(),
                key=lambda item: (item[0] != REGION, -abs(item[1]), item[0]),
            )
            fields["passed"] = PassChange(
                name=self.pass_name,
                operations=dict(counts),
                **msgspec.structs.asdict(self.pass_details),
            )
        return DispatchDelta(**fields)


class ReportCellRow(Explanation, frozen=True, kw_only=True):
    """One cell, with its explanation."""

    model: str
    target: str
    state: str
    identical: bool | None = None
    reason: str
    metrics: Mapping[str, Both[Count]]
    status: Both[Status]
    failure: Both[Failure]
    command: Both[str]
    dispatches: tuple[DispatchRow, ...] = ()
    families: tuple[Family, ...] = ()
    seen: Mapping[str, Both[tuple[Count, ...]]] | msgspec.UnsetType = msgspec.UNSET
    noise: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def key(self) -> CellKey:
        """Return the name of the cell."""
        return CellKey(self.model, self.target)

    @property
    def explanation(self) -> Explanation | None:
        """Return the explanation; None of a cell that has none."""
        if self.unchanged is None:
            return None
        fields = {name: getattr(self, name) for name in Explanation.__struct_fields__}
        fields["dispatches"] = tuple(row.delta for row in self.dispatches)
        return Explanation(**fields)
