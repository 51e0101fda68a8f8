"""Owns what stands for a base whose compiler nobody knows: the nearest stored ancestor, as far as it is alike.

What a stored snapshot has of the base's models and flags is compared, whatever compiler made it. So what changed since
may be of the commits in between; these are told with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from msgspec import structs

from bot.compiler.tools.probe import flags_of
from bot.compiler.tools.release_flags import for_release
from bot.config.configuration import Config
from bot.core.rules.baseline import Entry, between
from bot.core.values.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.values.snapshot import Cell, Snapshot
from bot.core.values.whole_report import Baseline
from bot.github.baselines import loaded
from bot.github.opening import Opened
from bot.github.services import Services
from bot.measurement.prepare import Planned
from bot.render.text.filters import plural
from bot.render.text.phrase import plain
from bot.render.view.compilers import gap_words
from bot.store.entries import Store, by_commit

_MOST_LOADED = 5
"""Stored snapshots that are looked at: where so many have nothing in common with the base, older ones have not."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Nearest:
    """The stored snapshot that stands for the base.

    Attributes:
        snapshot: what of it has the base's models and flags; it says that it was planned as the base is.
        notes: what a reader must not miss.
    """

    baseline: Baseline
    snapshot: Snapshot
    notes: tuple[str, ...]


def nearest(services: Services, store: Store, side: Opened) -> Nearest | None:
    """The nearest stored ancestor of the side's commit that has a measured cell in common with it.

    Raises NetworkError where the store cannot be asked.
    """
    chosen = side.selected(services)
    for known, stored in _stored(services, store, side):
        snapshot = _alike(stored, chosen)
        if any(cell.measured for cell in snapshot.cells):
            baseline = Baseline(f"{side.wanted.rule}; snapshot stored for an ancestor", side.wanted.sha)
            baseline = with_gap(services, side.config, baseline, known.sha)
            return Nearest(baseline, snapshot, (*gap_note(baseline), *_others(chosen, snapshot)))
    return None


def _stored(services: Services, store: Store, side: Opened) -> Iterator[tuple[Entry, Snapshot]]:
    """Those of the base's ancestors, nearest first, of one commit the newest first."""
    at = by_commit(store, side.config.report_id)
    left = _MOST_LOADED
    ancestors = services.git.ancestors(side.wanted.sha, side.config.baseline.ancestors) if at else ()
    for sha in ancestors:
        entries = at.get(sha, [])
        while entries and left:
            entry = store.newest(entries) if len(entries) > 1 else entries[0]
            entries.remove(entry)
            if snapshot := loaded(services, store, entry):
                left -= 1
                yield entry, snapshot


def _alike(found: Snapshot, chosen: Planned) -> Snapshot:
    """The cells whose model and flags are the base's, in a snapshot that was planned as the base is."""
    wanted = {cell.key: cell for cell in for_release(found.compiler, chosen.cells)}
    cells = (cell for cell in found.cells if cell.key in wanted and _is_alike(cell, found, wanted[cell.key]))
    models = {model.name: model.digest for model in chosen.models}
    targets = {target.name: target.backend for target in chosen.targets}
    return replace(found, cells=tuple(cells), models=models, targets=targets)


def _is_alike(cell: Cell, found: Snapshot, planned: PlannedCell) -> bool:
    if found.models.get(cell.key.model) != planned.model.digest:
        return False
    if cell.status == "unsupported" or planned.target.unsupported:
        return cell.status == "unsupported" and bool(planned.target.unsupported)
    lifted = LIFTED_LIMIT_FLAG in cell.command
    return flags_of(cell.command) == flags_of(planned.command(lifted=lifted))


def _others(chosen: Planned, snapshot: Snapshot) -> tuple[str, ...]:
    """Which cells of the base the ancestor does not have."""
    known = {cell.key for cell in snapshot.cells}
    lost = [str(cell.key) for cell in chosen.cells if cell.key not in known and not cell.target.unsupported]
    if not lost:
        return ()
    rest = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
    names = f"{', '.join(lost[:_NAMED])}{rest}"
    return (f"not compared, as the stored ancestor has no such cell with the base's model and flags: {names}",)


def with_gap(services: Services, config: Config, baseline: Baseline, measured: str) -> Baseline:
    """The baseline with how far from its base it was measured, at commit `measured`, and what lies between."""
    base = baseline.sha or ""
    line = services.git.ancestors(base, config.baseline.ancestors)
    gap = between(services.git.touched(measured, base), config.baseline.compiler_paths)
    distance = line.index(measured) + 1 if measured in line else None
    return structs.replace(baseline, distance=distance, between=gap)


def gap_note(baseline: Baseline) -> tuple[str, ...]:
    """That what changed may be of other commits, where compiler source was touched in between."""
    gap = baseline.between
    if gap is None or not gap.sources:
        return ()
    commits = plural(baseline.distance, "commit") if baseline.distance else "some commits"
    words = plain(gap_words(gap))
    return (f"what changed may come from other commits: the baseline is {commits} before the base; {words}",)
