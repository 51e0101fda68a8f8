"""Name the builds of a fold audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.core.snapshot import CellKey
from bot.fold.audit import FoldAudit, FoldCell
from bot.show.blocks import Phrase
from bot.show.facts import cells_phrase, short_names


@dataclass(frozen=True)
class AuditNames:
    """The names of the builds of an audit, as Facts has those of a report."""

    audit: FoldAudit

    @cached_property
    def short(self) -> dict[str, str]:
        """Return target → its short name."""
        return short_names({cell.target for cell in self.audit.cells}, {})

    @cached_property
    def measured_targets(self) -> frozenset[str]:
        """Return the targets on which an artifact was measured."""
        return frozenset(cell.target for cell in self._measured)

    @cached_property
    def models(self) -> frozenset[str]:
        """Return the models of which an artifact was measured."""
        return frozenset(cell.model for cell in self._measured)

    @cached_property
    def _measured(self) -> list[FoldCell]:
        cells = self.audit.cells
        return [cell for cell in cells if cell.artifact_bytes.before is not None]

    def cells(self, cells: Sequence[FoldCell], limit: int) -> Phrase:
        """Return builds in words, with about `limit` names."""
        keys = [CellKey(cell.model, cell.target) for cell in cells]
        return cells_phrase(self, keys, limit)
