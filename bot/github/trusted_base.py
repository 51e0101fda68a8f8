"""Check a base that another job measured against the stored baselines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from bot.config.configuration import Config
from bot.core.snapshot import Snapshot
from bot.errors import BotError, InputError, Interrupted
from bot.github.baselines import stored
from bot.github.services import Services
from bot.github.stores import store_of

FULL_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""The full name of a commit."""


class TrustedBase(NamedTuple):
    """The base side of a run's artifact, after the check against the store."""

    snapshot: Snapshot
    rule: str  # how it was found, for the report
    notes: tuple[str, ...] = ()
    is_stored: bool = True  # False if it is the artifact's own snapshot


def trusted_base(
    services: Services,
    config: Config,
    sha: str,
    claimed: Snapshot,
    *,
    partly: bool,
    is_older: Callable[[str], bool],
    selected: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
    digest: str = "",
) -> TrustedBase:
    """Return a stored snapshot that is what the artifact says its base is.

    If there is none, return the artifact's own, if it is of the base commit. The
    artifact's base may be an older commit that gives the same cells or, with
    `partly`, some of them. Then it must be in the store. If the store cannot be
    read, a note says so.

    With `partly`, only the cells are taken whose models have the texts that the
    artifact says. They are planned as the artifact's are: cells that it leaves out
    are not measured.

    `is_older`: whether a commit is an ancestor of `sha`; `selected`: what the run's
    selectors leave of a snapshot; `digest`: of the stored one that the run chose,
    empty if nobody says it.
    """

    def facts(snapshot: Snapshot) -> tuple[object, ...]:
        facts = snapshot.compiler.digest, snapshot.flags
        if partly:
            return facts
        return (*facts, snapshot.targets, snapshot.models)

    def matching_snapshot() -> Snapshot | None:
        """Return the stored snapshot with the facts that the artifact says."""
        of_commit = stored(
            services,
            store=store_of(services, config),
            config=config,
            sha=base_sha,
            is_wanted=lambda entry: (
                entry.sha == base_sha and digest in ("", entry.digest)
            ),
        )
        for standing in of_commit:
            snapshot = selected(standing.snapshot)
            if facts(snapshot) == facts(claimed):
                return snapshot
        return None

    rule = "first parent of the merge commit"
    base_sha = claimed.source.sha or ""
    notes: tuple[str, ...] = ()
    stored_snapshot: Snapshot | None = None
    if base_sha == sha or (FULL_SHA.fullmatch(base_sha) and is_older(base_sha)):
        try:
            stored_snapshot = matching_snapshot()
        except Interrupted:
            raise
        except BotError as error:
            notes = (f"stored baselines could not be read: {error.line}",)
    if stored_snapshot is not None:
        if partly:
            stored_snapshot = _same_cells(stored_snapshot, claimed)
        if base_sha == sha:
            older = ""
        else:
            older = f" of its ancestor {base_sha[:10]}"
        return TrustedBase(stored_snapshot, f"{rule}; stored snapshot{older}")
    if base_sha != sha:
        raise InputError(
            "does not belong to the base of the merge commit",
            where="artifact base.json",
            hint="run it again",
        )
    rule = f"{rule}; measured by the pull request's own run"
    return TrustedBase(claimed, rule, notes, is_stored=False)


def _same_cells(snapshot: Snapshot, claimed: Snapshot) -> Snapshot:
    """Return a stored snapshot with the claimed cells whose models are the same."""
    keys = {cell.key for cell in claimed.cells}
    unchanged_models = set()
    for model, digest in snapshot.models.items():
        if claimed.models.get(model) == digest:
            unchanged_models.add(model)
    cells = []
    for cell in snapshot.cells:
        if cell.key in keys and cell.key.model in unchanged_models:
            cells.append(cell)
    return replace(
        snapshot,
        cells=tuple(cells),
        models=claimed.models,
        targets=claimed.targets,
    )
