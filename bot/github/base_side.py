"""Find the base side: a stored snapshot, or a plan to measure one.

The base's compiler may be unknown. Then the nearest stored ancestor is compared by its
models and flags, whatever compiler made it. The commits in between may have caused a
change, and a note says so.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from msgspec import structs

from bot.compiler.iree import flags_of
from bot.compiler.release_flags import for_release
from bot.core.baseline import Entry
from bot.core.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.report import Baseline
from bot.core.snapshot import Cell, Snapshot
from bot.errors import BotError, Interrupted
from bot.github.baselines import standing_for, stored
from bot.github.missing_pin import missing_pin
from bot.github.opening import Opened
from bot.github.services import Services
from bot.github.stores import store_of
from bot.show.filters import plural
from bot.store.entries import Store
from bot.store.git_refusals import LoginRefused
from bot.study.side_plan import SidePlan, plan_digest
from bot.study.snapshot_files import load_snapshot

_MOST_LOADED = 5
"""How many stored snapshots are looked at.

If so many have nothing in common with the base, older ones have nothing either.
"""


class Base(NamedTuple):
    """The base side: a snapshot, a plan to measure it, or neither.

    `broke` has the reason for neither.
    """

    baseline: Baseline
    snapshot: Snapshot | None = None
    plan: SidePlan | None = None
    notes: tuple[str, ...] = ()  # what a reader must not miss
    broke: str = ""
    # why the base can have no compiler: its pin names a release that does not exist
    no_compiler: str = ""
    # True where stored baselines were not read, as that takes a token
    unread: bool = False
    digest: str = ""  # of the stored snapshot, where it is the base's own; else empty
    # the name of the stored snapshot; None for any other one
    entry: Entry | None = None


def found_base(services: Services, base: Opened) -> Base:
    """Return the base side: a stored snapshot, or a plan to measure it.

    It takes the first of these that there is: a stored snapshot of the base itself,
    one of the nearest ancestor with the same result, a plan.

    If nobody knows the base's compiler, only models and flags have to be the same.
    If that snapshot is an ancestor's, a note says so.
    """
    wanted_base = base.wanted
    if wanted_base.snapshot:
        snapshot = load_snapshot(wanted_base.snapshot)
        return Base(Baseline(wanted_base.rule, snapshot.source.sha), snapshot)
    baseline = Baseline(wanted_base.rule, wanted_base.sha)
    if base.adopts:
        return Base(baseline)
    plan, reason = plan_or_reason("base", base)
    notes: tuple[str, ...] = ()
    refusal = ""
    if wanted_base.spec is None:
        try:
            stored_base = _stored_base(services, base, plan)
            if stored_base is not None:
                return stored_base
        except Interrupted:
            raise
        except LoginRefused as error:
            # of a private repository this job cannot know whether it has any
            refusal = error.line
            services.show.say(f"stored baselines are not read: {refusal}")
        except BotError as error:
            notes = (f"stored baselines could not be read: {error.line}",)
            services.show.say(notes[0])
    if plan:
        rule = f"{wanted_base.rule}; measured in this run"
        return Base(
            Baseline(rule, wanted_base.sha),
            plan=plan,
            notes=notes,
            unread=bool(refusal),
        )
    if refusal:
        notes = (f"stored baselines could not be read: {refusal}",)
    if not notes:  # a store that cannot be read may have a baseline
        no_compiler = _missing_pin_of(services, base)
        if no_compiler:
            return Base(baseline, no_compiler=no_compiler)
    return Base(baseline, notes=notes, broke=f"No baseline: {reason}")


def _stored_base(
    services: Services, base: Opened, plan: SidePlan | None
) -> Base | None:
    """Return a stored snapshot as the base side; None if none fits."""
    wanted_base = base.wanted
    store = store_of(services, base.config)
    digest = plan_digest(plan) if plan else None
    standing = standing_for(services, store=store, side=base, digest=digest, plan=plan)
    if standing:
        rule = f"{wanted_base.rule}; stored snapshot"
        return Base(
            Baseline(rule, wanted_base.sha, standing.distance),
            standing.snapshot,
            digest=standing.entry.digest,
            entry=standing.entry,
        )
    keys = base.config.compiler
    # If neither the event nor the commit names the compiler, another run has built it.
    if not wanted_base.unknown and keys.names_compiler:
        return None
    return _nearest(services, store, base)


def _missing_pin_of(services: Services, base: Opened) -> str:
    """Return why the base's compiler does not exist.

    Empty unless the base's own commit pins a release that does not exist.
    """
    wanted_base = base.wanted
    is_named = wanted_base.spec is not None or wanted_base.unknown
    if is_named or not services.context.is_proposal:
        return ""
    return missing_pin(
        base.config,
        config_name=base.config_name,
        tree=base.tree,
        cancel=services.cancel,
    )


def plan_or_reason(label: str, side: Opened) -> tuple[SidePlan | None, str]:
    """Return the plan that measures a side; None with the reason if there is none."""
    if side.wanted.unknown:
        lacks = "no snapshot of the base commit or of a matching ancestor is stored"
        return (
            None,
            f"{side.wanted.unknown}, {lacks}, and no input names the base compiler",
        )
    try:
        return side.plan(label), ""
    except Interrupted:
        raise
    except BotError as error:
        return None, error.line


def _nearest(services: Services, store: Store, side: Opened) -> Base | None:
    """Return the nearest stored ancestor that has a measured cell in common.

    Only the cells with the side's models and flags are kept. The snapshot then says
    that it was planned as the side is.

    Raises NetworkError if the store cannot be asked.
    """
    chosen = side.work.planned()
    sha = side.wanted.sha
    ancestors = stored(
        services,
        store=store,
        config=side.config,
        sha=sha,
        is_wanted=lambda entry: entry.sha != sha,
    )
    for distance, entry, snapshot in islice(ancestors, _MOST_LOADED):
        cells = side.work.with_inputs(for_release(snapshot.compiler, chosen.cells))
        planned = {cell.key: cell for cell in cells}
        comparable = []
        for cell in snapshot.cells:
            if cell.key in planned and _is_alike(cell, snapshot, planned[cell.key]):
                comparable.append(cell)
        models = {model.name: model.digest for model in chosen.models}
        targets = {target.name: target.backend for target in chosen.targets}
        snapshot = structs.replace(
            snapshot, cells=tuple(comparable), models=models, targets=targets
        )
        if any(cell.measured for cell in snapshot.cells):
            rule = f"{side.wanted.rule}; snapshot stored for an ancestor"
            baseline = Baseline(rule, side.wanted.sha, distance)
            present = {cell.key for cell in snapshot.cells}
            notes = [older_note(distance)]
            supported = (cell for cell in chosen.cells if not cell.target.unsupported)
            if missing := sum(cell.key not in present for cell in supported):
                reason = (
                    "because the stored ancestor has no such build with the base's"
                    " model and flags"
                )
                notes.append(f"{plural(missing, 'build')} not compared, {reason}")
            return Base(baseline, snapshot, notes=tuple(notes), entry=entry)
    return None


def _is_alike(cell: Cell, stored: Snapshot, planned: PlannedCell) -> bool:
    """Return whether the stored cell has the planned cell's model, flags and files."""
    if stored.models.get(cell.key.model) != planned.model.digest:
        return False
    if cell.status == "unsupported" or planned.target.unsupported:
        return cell.status == "unsupported" and bool(planned.target.unsupported)
    if planned.unlisted or cell.inputs != planned.inputs:
        return False
    lifted = LIFTED_LIMIT_FLAG in cell.command
    return flags_of(cell.command) == flags_of(planned.command(lifted=lifted))


def older_note(distance: int | None) -> str:
    """Return the note that changes may come from commits between baseline and base.

    Nobody knows what these commits did.
    """
    if distance:
        commits = plural(distance, "commit")
    else:
        commits = "some commits"
    return (
        f"changes may come from other commits: the baseline is {commits} before the"
        " base"
    )
