"""Index a history by build, by release and by target."""

from __future__ import annotations

from bot.core.delta import value_of
from bot.core.history import History, Move
from bot.core.history_totals import TRACKED
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import by
from bot.show.escape import clean
from bot.show.facts import NAME_LIMIT
from bot.show.filters import UNKNOWN
from bot.show.folded_shares import folded_shares
from bot.show.history_words import ARTIFACT, change_words, shown_name
from bot.show.why import cause_words


class HistoryFacts:
    """A history, indexed."""

    def __init__(self, history: History) -> None:
        self.history = history
        # each cell that was tried, in the order of the releases
        self.rows = history.rows
        # totals of a target, or None for all, by release
        self.totals = by(history.totals, lambda total: total.target)
        # names: of all releases, gaps too; shown: of those that measured anything
        self.names = tuple(variant.name for variant in history.study.variants)
        self.shown = tuple(variant.name for variant in history.study.measured)
        # with the cells that have a row
        self.models = by(self.rows, lambda key: key.model)
        self.targets = tuple(sorted({key.target for key in self.rows}))

    def metrics_of(self, key: CellKey) -> tuple[str, ...]:
        """Return the tracked metrics that some release knows of the cell."""
        return tuple(id_ for id_ in TRACKED if self._has_metric(key, id_))

    def _has_metric(self, key: CellKey, metric: str) -> bool:
        return any(value_of(cell, metric) is not None for cell in self.rows[key])

    def folded(self, key: CellKey) -> str:
        """Return the share of regions that deduplication folds: `68 % → 61 %`.

        The shares are those of the first and the last release that know it. Return
        `n/a` if no release knows it.
        """
        shares = [text for text in folded_shares(self.rows[key]) if text != UNKNOWN]
        ends = dict.fromkeys((*shares[:1], *shares[-1:]))
        return " → ".join(ends) or UNKNOWN

    def since(self, release: str, since: str) -> str:
        """Return `since 3.10.0`; empty if that is the neighbour."""
        place = self.names.index(release)
        if place and self.names[place - 1] == since:
            return ""
        return f"since {clean(since, NAME_LIMIT)}"

    def points(self, key: CellKey) -> list[tuple[str, Cell, Move | None]]:
        """Return the cell in each release, with its change there."""
        row = zip(self.names, self.rows[key], strict=True)
        return [(name, cell, self.history.moves.get((name, key))) for name, cell in row]

    def why(self, release: str, move: Move | None) -> list[str]:
        """Return since when and why a cell changed in a release.

        It is empty if the cell did not change.
        """
        if not move:
            return []
        cause = move.cause and cause_words(move.cause)
        reason = ": ".join(filter(None, (cause, move.why)))
        return [self.since(release, move.since), reason]

    def moved(self, key: CellKey) -> list[tuple[str, Cell, Move]]:
        """Return the releases in which the artifact of a cell changed."""
        moved = []
        for name, cell, move in self.points(key):
            if move and ARTIFACT in move.changes:
                moved.append((name, cell, move))
        return moved

    def moved_most(self, key: CellKey) -> str:
        """Return the largest change: `3.11.0: +26,464 (+55.3 %), strategy`.

        It is empty if the artifact never changed.
        """
        moved = self.moved(key)
        if not moved:
            return ""
        release, cell, move = max(
            moved, key=lambda point: abs(point[2].changes[ARTIFACT])
        )
        since = self.since(release, move.since)
        cause = ""
        if move.cause:
            cause = f", {cause_words(move.cause)}"
        change_text = change_words(move.changes[ARTIFACT], cell.value(ARTIFACT))
        since_words = ""
        if since:
            since_words = f" ({since})"
        return f"{shown_name(release)}{since_words}: {change_text}{clean(cause)}"
