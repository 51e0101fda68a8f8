"""Measure both sides of a comparison, each with its configuration and compiler.

A side that is a snapshot is not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from msgspec import structs

from bot.config.configuration import load_config
from bot.core.planned import SIDES, only_cell
from bot.core.report import Baseline
from bot.core.snapshot import CellKey, Snapshot
from bot.core.spec import MOVING, Sought
from bot.errors import UsageError
from bot.study.named_compilers import is_trial, named_compiler
from bot.study.prepare import Work
from bot.study.request import Request, Show
from bot.study.side_plan import SidePlan
from bot.study.snapshot_files import is_snapshot, stored_sides
from bot.system.cancel import Cancel
from bot.system.files import require_writable


class BothSides(NamedTuple):
    """Both sides, measured or read, and the configuration that judges them.

    `plans`: the plans of the sides whose compilers are here.
    """

    work: Work
    sides: Mapping[str, Snapshot]
    baseline: Baseline
    plans: Sequence[SidePlan] = ()


def both_sides(
    request: Request, show: Show, cancel: Cancel, *, one_cell: bool = False
) -> BothSides:
    """Measure both sides, unless they are snapshots.

    All input is validated before a release is fetched. `one_cell`: refuse more than one
    cell.

    Raises:
        UsageError: nobody names the compilers.
    """
    works = _work_of_sides(request, show, cancel)
    named = {side: named_compiler(side, work) for side, work in works.items()}
    rules_of_base = works["base"].config
    require_writable(request.out)
    _refuse_missing(request, works, named)
    _refuse_changed_snapshot(request, named["head"][0].spec)
    snapshots = stored_sides({side: sought.spec for side, (sought, _) in named.items()})
    new = [side for side in SIDES if side not in snapshots]
    for side in new:
        sought, rule = named[side]
        works[side], compiler = works[side].at_commit(
            sought, request.specs.get("both", "")
        )
        named[side] = compiler, rule
    cells = set[CellKey]()
    for side in new:
        cells.update(cell.key for cell in works[side].planned().cells)
    if one_cell and new:
        only_cell(cells)
    specs = {side: named[side][0].spec for side in new}
    # what is here comes first: its faults cost no fetching
    new.sort(
        key=lambda side: (
            specs[side] in MOVING or works[side].places.release(specs[side]) is not None
        )
    )
    plans = [works[side].prepare(side, named[side][0]) for side in new]
    plans.sort(key=lambda plan: plan.label)
    rules = structs.replace(
        rules_of_base, timeout_seconds=works["head"].config.timeout_seconds
    )
    work = Work(request=request, config=rules, show=show, cancel=cancel)
    measured = work.measured(plans, snapshots)
    return BothSides(
        work=work,
        sides=measured,
        baseline=Baseline(named["base"][1], measured["base"].source.sha),
        plans=plans,
    )


def _work_of_sides(request: Request, show: Show, cancel: Cancel) -> dict[str, Work]:
    """Return the work of each side, with its configuration and its flags."""
    read = cache(load_config)
    works: dict[str, Work] = {}
    for side in SIDES:
        path = request.configs.get(side, request.config)
        flags = request.flags
        if side == "head":
            flags = (*flags, *request.tried)
        request_of_side = replace(request, config=path, flags=flags)
        works[side] = Work(
            request=request_of_side, config=read(path), show=show, cancel=cancel
        )
    return works


def _refuse_missing(
    request: Request,
    works: Mapping[str, Work],
    named: Mapping[str, tuple[Sought, str]],
) -> None:
    """Raise UsageError if nobody names the compiler of a side."""
    missing = []
    for side, (sought, _) in named.items():
        if not sought.spec:
            missing.append(side)
    if not missing:
        return
    options = [f"--{side}" for side in missing]
    if is_trial(request):
        options = ["--compiler"]
    option_words = " and ".join(f"{option} SPEC" for option in options)
    hint = (
        f"give {option_words}, such as {options[0]} 3.13.0, or a --config that names"
        f" compiler.{missing[0]}"
    )
    where = str(works[missing[0]].request.config or "")
    raise UsageError(
        f"no compiler for the {' and '.join(missing)} side", where=where, hint=hint
    )


def _refuse_changed_snapshot(request: Request, head: str) -> None:
    """Raise UsageError if flags or configuration are tried on a snapshot."""
    if is_snapshot(head) and (request.tried or "head" in request.configs):
        problem = (
            "is a finished snapshot, so flags and configuration cannot be changed on it"
        )
        raise UsageError(problem, where=head, hint="name a compiler for the head side")
