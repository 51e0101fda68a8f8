"""Compare the machine instructions of a function after passes of both code generators.

Both compile the same bitcode. The first pass after which the counts differ is a
measurement, and no proof of a cause.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bot.core.record import Amount, Count, Record


class MachineStage(Record, frozen=True, omit_defaults=True):
    """The instructions of one function after one pass of both code generators."""

    name: str  # argument name of the pass
    base: Count  # instructions in base's code generator
    head: Count  # instructions in head's code generator
    # instruction → head − base, of those whose counts differ
    changes: Mapping[str, Amount] = msgspec.field(default_factory=dict)


class MachinePasses(Record, frozen=True, omit_defaults=True):
    """The counted passes, in their order."""

    # the side whose optimized bitcode both code generators compile; empty if it was
    # not measured
    bitcode: str = ""
    stages: tuple[MachineStage, ...] = ()
    why: str = ""  # why nothing was measured; empty if it was

    @property
    def first_apart(self) -> MachineStage | None:
        """Return the first pass after which the instructions differ."""
        return next((stage for stage in self.stages if stage.changes), None)
