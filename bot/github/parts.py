"""Measure one shard of the head, and join the parts that all shards left.

These jobs run compilers, so they have no token, and write nothing but files.
"""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from bot.core.sharding import Matrix, dealt, matrix, merge_snapshots
from bot.core.snapshot import Snapshot
from bot.errors import InputError, UsageError
from bot.github.base_side import plan_or_reason
from bot.github.baselines import nearest_costs
from bot.github.opening import Opened, opened
from bot.github.services import Services
from bot.github.sides import Wanted, pushed, wanted_sides
from bot.github.stores import store_of
from bot.show.filters import plural
from bot.show.report_files import write_snapshot
from bot.study.prepare import Work
from bot.study.rechecking import doubtful
from bot.study.side_plan import SidePlan
from bot.study.snapshot_files import load_snapshot
from bot.system.files import require_writable


def part(services: Services) -> None:
    """Measure one shard of the head into `head-I-of-N.json`."""
    require_writable(services.out)
    if services.inputs.shard is None:
        raise UsageError(
            "is missing", where="input shard", hint="use a row's `shard` of the plan"
        )
    index, count = services.inputs.shard
    with opened(services, _head(services)) as (_, head):
        request = replace(
            head.work.request, shard=(index, count), plan=services.inputs.plan or None
        )
        head = replace(head, work=replace(head.work, request=request))
        snapshot = head.work.measured([head.plan("head")])["head"]
    path = services.out / f"head-{index}-of-{count}.json"
    write_snapshot(path, snapshot)
    head.work.say_failed(snapshot)
    services.show.say(f"wrote {path}")


def shards(services: Services) -> Matrix:
    """Return the matrix of a sharded run.

    Builds are dealt out by the costs of the nearest stored snapshot.
    """
    if services.inputs.shards is None:
        raise UsageError(
            "is missing",
            where="input shards",
            hint="give the number of runners that measure",
        )
    with opened(services, _head(services)) as (_, head):
        cells = head.work.planned().cells
        costs = nearest_costs(services, store_of(services, head.config), head)
        return matrix(
            cells,
            count=services.inputs.shards,
            last_costs=costs,
            releases=head.moving(),
        )


def _head(services: Services) -> Wanted:
    if services.context.story == "baseline":
        return pushed(services)
    return wanted_sides(services)[1]


def asked_twice(
    work: Work, head: Opened, sides: dict[str, Snapshot]
) -> dict[str, Snapshot]:
    """Compile changed builds of a matrix again.

    The runners of a matrix do not know the base. So builds that fail or differ from
    the base are checked here.
    """
    if "base" not in sides or not doubtful(sides["base"], sides["head"], work.config):
        return sides
    plan, reason = plan_or_reason("head", head)
    if plan is None:
        work.show.say(f"changed builds are not compiled twice: {reason}")
        return sides
    _require_compiler(plan, sides["head"])
    return work.measured([plan], sides)


def whole_side(services: Services, head: Opened, plan: SidePlan) -> Snapshot:
    """Return the head with all its builds, from its parts or measured here."""
    joined = joined_parts(services, head)
    if joined is None:
        return head.work.measured([plan])["head"]
    _require_compiler(plan, joined)
    if lost := {cell.key for cell in plan.cells} - {cell.key for cell in joined.cells}:
        problem = f"lack {len(lost)} of {len(plan.cells)} builds, such as {min(lost)}"
        raise InputError(
            problem,
            where="input parts",
            hint="run the lost shards again: the bot stores only complete baselines",
        )
    return joined


def _require_compiler(plan: SidePlan, parts: Snapshot) -> None:
    """Raise InputError if parts are of another compiler than the plan.

    `nightly` may have become another compiler.
    """
    theirs = parts.compiler
    compiler_here = plan.compiler.info
    if theirs.digest != compiler_here.digest:
        names = (
            f"{theirs.version} ({theirs.digest[:10]}), and here it is {compiler_here.version}"
            f" ({compiler_here.digest[:10]})"
        )
        hint = "give the input plan that the shards had, or run all of them again"
        raise InputError(f"are of compiler {names}", where="input parts", hint=hint)


def joined_parts(services: Services, head: Opened) -> Snapshot | None:
    """Return the head's snapshot, merged of its parts; None if there are none."""
    if not services.inputs.parts:
        return None
    parts = [(path.name, load_snapshot(path)) for path in _part_files(services)]
    merged = merge_snapshots(parts)
    wanted_sha = head.wanted.sha
    if merged.source.sha != wanted_sha:
        problem = (
            f"are of commit {(merged.source.sha or 'unknown')[:10]}, but {wanted_sha[:10]}"
            " is needed"
        )
        raise InputError(
            problem, where="input parts", hint="give the parts of this run"
        )
    if services.inputs.plan:
        return _with_lost_shards(services.inputs.plan, head, merged)
    return merged


def _part_files(services: Services) -> list[Path]:
    """Return the files that the input parts matches; raises InputError for none."""
    names: set[str] = set()
    for pattern in services.inputs.parts:
        names.update(
            glob.glob(pattern, root_dir=services.git.directory, recursive=True)
        )
    if not names:
        raise InputError(
            "match no file",
            where="input parts",
            hint="every shard is lost: see the jobs of the matrix",
        )
    return sorted(services.at(name) for name in names)


def _with_lost_shards(plan: str, head: Opened, merged: Snapshot) -> Snapshot:
    """Return the snapshot with a note for each shard of the plan that left no part."""
    parts = dealt(head.work.planned().cells, plan, "input plan")
    arrived = {cell.key for cell in merged.cells}
    notes = set(merged.notes)
    for name, part_cells in parts.items():
        part_keys = [cell.key for cell in part_cells]
        if arrived.isdisjoint(part_keys):
            lost_builds = plural(len(part_cells), "build")
            notes.add(f"shard {name} is lost, with its {lost_builds}")
    return structs.replace(merged, notes=tuple(sorted(notes)))
