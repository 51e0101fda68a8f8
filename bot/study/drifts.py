"""Find the builds of a branch that grew most since an older baseline.

Each has the steps in which it grew, and its main cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.config.configuration import Config
from bot.core.delta import value_of
from bot.core.drift import Drift, DriftStep
from bot.core.explanation import RootCause
from bot.core.report import Baseline
from bot.core.snapshot import CellKey, Snapshot
from bot.study.comparison import reported

MOST_DRIFTS = 5
_MOST_STEPS = 3
Sizes = Mapping[CellKey, int]  # build → its artifact in bytes, of builds with one size


def sizes_of(snapshot: Snapshot) -> Sizes:
    """Return the artifact of each build that has one size."""
    sizes = {}
    for cell in snapshot.cells:
        if cell.measured:
            value = value_of(cell, "artifact_bytes")
            if isinstance(value, int):
                sizes[cell.key] = value
    return sizes


def grown_builds(base: Snapshot, head: Snapshot) -> list[CellKey]:
    """Return the builds whose artifact is larger on head, the largest growth first."""
    before = sizes_of(base)
    after = sizes_of(head)
    growths = {}
    for key in after.keys() & before.keys():
        growth_bytes = after[key] - before[key]
        if growth_bytes > 0:
            growths[key] = growth_bytes
    return sorted(growths, key=lambda key: (-growths[key], key))


def largest_drifts(
    config: Config,
    base: tuple[str, Snapshot],
    between: Sequence[tuple[str, Snapshot]],
    week_ago: Snapshot | None,
) -> tuple[Drift, ...]:
    """Return the builds that grew most, with their causes.

    `base`: commit and snapshot of the older baseline; `between`: the baselines from it
    to the newest one, the oldest first; `week_ago`: the baseline of a week before the
    newest one, None if it is not known.
    """
    _, head = between[-1]
    keys = grown_builds(base[1], head)[:MOST_DRIFTS]
    if not keys:
        return ()
    report = reported(
        config,
        base=base[1],
        head=head,
        baseline=Baseline(f"baseline of {base[0]}", base[0]),
    )
    before = sizes_of(base[1])
    after = sizes_of(head)
    last_week = sizes_of(week_ago) if week_ago else {}
    sizes = [(sha, sizes_of(snapshot)) for sha, snapshot in between]
    drifts = []
    for key in keys:
        root = _main_cause(key, report.root_causes)
        drift = Drift(
            key=key,
            base=before[key],
            head=after[key],
            week=after[key] - last_week[key] if key in last_week else None,
            cause=root.cause if root else None,
            what=root.what if root else "",
            steps=_steps(key, before[key], sizes),
        )
        drifts.append(drift)
    return tuple(drifts)


def _main_cause(key: CellKey, roots: Sequence[RootCause]) -> RootCause | None:
    """Return the root cause that holds most of a build's change."""
    with_part = [root for root in roots if root.by_cell.get(key)]
    return max(with_part, key=lambda root: root.by_cell[key], default=None)


def _steps(
    key: CellKey, base: int, sizes: Sequence[tuple[str, Sizes]]
) -> tuple[DriftStep, ...]:
    """Return the baselines that added most to a build; each of them has a size."""
    steps = list[DriftStep]()
    last = base
    for sha, of_commit in sizes:
        if key in of_commit:
            steps.append(DriftStep(sha, of_commit[key] - last))
            last = of_commit[key]
    added = [step for step in steps if step.change_bytes > 0]
    return tuple(
        sorted(added, key=lambda step: (-step.change_bytes, step.commit))[:_MOST_STEPS]
    )
