"""Measure on GitHub: the two sides of a review, a push, or a shard of either.

These runs run compilers, so they have no token, and write nothing but files.
`bot.github.reporting` takes it from there.

review: open both sides of the event, measure the head, find or measure the base,
compare. baseline: measure the pushed commit, unless a stored one stands for it. part:
measure one shard of the head, for a run that joins them.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from bot.core.defaults import TriedDefault
from bot.core.report import Adoption, Baseline, Report
from bot.core.rules import Rule
from bot.core.run_times import RunTimes
from bot.core.sharding import Matrix, dealt, matrix, merge_snapshots
from bot.core.snapshot import CompilerInfo, Snapshot, SourceInfo
from bot.core.stored_ir import BaseIr
from bot.errors import BotError, InputError, Interrupted, UsageError
from bot.github.baselines import (
    Base,
    missing_pin,
    nearest,
    nearest_costs,
    standing_for,
    stored_before_push,
)
from bot.github.delivering import Destination, as_bot_error, deliver, failure_delivered
from bot.github.ir_notes import stored_ir_notes
from bot.github.measured import (
    Measured,
    Recording,
    write_failure,
    write_ir,
    write_measured,
)
from bot.github.opening import (
    Opened,
    Services,
    Wanted,
    judging,
    named_compiler,
    opened,
    store_of,
    wanted_sides,
)
from bot.github.repository import locked, missing_pull
from bot.show.comment import write_snapshot
from bot.show.filters import plural
from bot.store.data_branch import LoginRefused
from bot.store.ir_files import stored_ir_of
from bot.study.changed_defaults import changed_defaults
from bot.study.comparison import adopting, held_to_limits, reported
from bot.study.laddering import laddered
from bot.study.prepare import Work, load_snapshot, plan_digest, require_writable
from bot.study.run import SidePlan, doubtful
from bot.study.run_times import failing_builds, run_times
from bot.study.storing_ir import with_stored_ir
from bot.study.tracing import traced, with_largest_traced


def review(services: Services) -> int:
    """Measure the two sides of the event, and hand them to the job that reports.

    Where no such job may follow (a fork's run), the run's summary has the report and
    the exit code is the verdict's.
    """
    require_writable(services.out)
    with (
        failure_handed(services),
        failure_delivered(services, lambda: [Destination.by_judging_rules(services)]),
    ):
        _require_open(services)
        base, head = wanted_sides(services)
        with (  # until the report is drawn: its templates may be theirs
            opened(services, head, base) as (opened_base, opened_head),
            judging(services, opened_base, opened_head) as judge,
        ):
            report, measured, texts = _compared(
                services, base=opened_base, head=opened_head, judge=judge
            )
            read_only = services.context.read_only
            if read_only:
                used_services = services
            else:
                used_services = replace(services, summary=None)
            code = deliver(
                report,
                used_services,
                Destination.of(services, judge.config, judge.config_name),
            )
            write_measured(services.out, measured, texts)
            if read_only:
                return code
            return 0


@contextmanager
def failure_handed(services: Services) -> Iterator[None]:
    """Hand what breaks within to the job that reports, and raise it."""
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        write_failure(services.out, as_bot_error(error))
        raise


def _require_open(services: Services) -> None:
    """Raise NetworkError where it is known that nobody may comment.

    This is checked before anything is compiled.

    The event says that of its own pull request. Of one whose number a person gave, git
    knows whether it exists, where everybody may read the repository. The job that
    prepares knows the rest.
    """
    pull = services.context.pull
    number = services.inputs.pull_request
    if pull is not None and pull.is_locked and not services.context.read_only:
        raise locked(pull.number)
    if (
        pull is None
        and number is not None
        and services.git.has_pull_request(number) is False
    ):
        raise missing_pull(services.context.repository, number)


def baseline(services: Services) -> int:
    """Measure the pushed commit for the job that stores it.

    Nothing is measured where a stored baseline has the same result.
    """
    require_writable(services.out)
    with failure_handed(services), opened(services, pushed(services)) as (_, head):
        plan = head.plan("head")
        config = head.config
        store = store_of(services, config)
        digest = plan_digest(plan)
        if standing := standing_for(
            services, store=store, side=head, digest=digest, plan=plan
        ):
            older = "of the same commit"
            if standing.distance:
                older = f"{plural(standing.distance, 'commit')} older"
            line = (
                f"nothing to measure: the baseline of {standing.entry.sha[:10]}"
                f" ({older}) has the same result"
            )
            services.show.say(line)
            write_measured(services.out, Measured(digest=digest, standing=line))
            return 0
        snapshot = _whole(services, head, plan)
        before = stored_before_push(services, store, config)
        if before:
            snapshot = _asked_twice(
                head.work, head, {"base": before.snapshot, "head": snapshot}
            )["head"]
        snapshot = with_largest_traced(plan, snapshot, head.work)
        snapshot, ir = with_stored_ir(plan, snapshot, head.work)
        write_snapshot(services.out / "head.json", snapshot)
        write_ir(services.out, ir)
        texts = Recording(head.work.texts)
        if before:  # for the IR that the report of the job that stores will quote
            reported(
                config,
                base=before.snapshot,
                head=snapshot,
                baseline=Baseline(""),
                texts=texts,
            )
        write_measured(services.out, Measured(digest=digest), texts.found)
        return 0


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


def pushed(services: Services) -> Wanted:
    """Return the side that a push is about."""
    head = services.inputs.head
    return Wanted(
        "the pushed commit",
        services.context.sha,
        named_compiler(services, head) or head or None,
    )


class Compared(NamedTuple):
    """What measuring found."""

    report: Report
    measured: Measured
    texts: dict[str, str]  # digest → IR that the report quotes


def _compared(
    services: Services, base: Opened, head: Opened, judge: Opened
) -> Compared:
    rules = judge.config
    plans: list[SidePlan] = []
    ready: dict[str, Snapshot] = {}
    head_snapshot = _head_snapshot(services, head)
    if head_snapshot is None:
        plans.append(head.plan("head"))
    base_side = _base(services, base)
    if base_side.snapshot is not None:
        ready["base"] = base_side.snapshot
    elif base_side.plan:
        plans.append(base_side.plan)
    if head_snapshot is not None:
        ready["head"] = head_snapshot
    work = replace(
        judge.work,
        config=structs.replace(rules, timeout_seconds=head.config.timeout_seconds),
    )
    sides = work.measured(plans, ready)
    if services.inputs.parts:
        sides = _asked_twice(work, head, sides)
    defaults: tuple[TriedDefault, ...] = ()
    plans_here = list[SidePlan]()
    base_ir: BaseIr | None = None
    ir_notes: tuple[str, ...] = ()
    if "base" in sides:
        tracing = [plan for plan in (*plans, base_side.plan) if plan is not None]
        plans_here = list({plan.label: plan for plan in tracing}.values())
        base_ir, ir_notes = _base_ir(services, base, base_side)
        sides = laddered(plans_here, sides=sides, work=work, base_ir=base_ir)
        sides = traced(plans_here, sides, work)
        defaults = changed_defaults(plans_here, sides, work)
    base_snapshot = sides.get("base")
    if base_snapshot is None:
        base_snapshot = _unknown_base(
            base, sides["head"], has_compiler=not base_side.no_compiler
        )
    texts = Recording(work.texts)
    report = reported(
        rules,
        base=base_snapshot,
        head=sides["head"],
        baseline=base_side.baseline,
        texts=texts,
    )
    if base_ir is not None:
        ir_notes = stored_ir_notes(report)
    base_notes = (*base_side.notes, *ir_notes)
    notes = [*base_notes, *report.notes, *changed_thresholds(services, base, head)]
    report = structs.replace(
        report, notes=tuple(notes), broke=base_side.broke, changed_defaults=defaults
    )
    if rules.run == "failing" and "base" in sides:
        ran = _run_times(
            plans_here,
            services=services,
            head=head,
            report=report,
            work=work,
            sides=sides,
        )
        report = structs.replace(report, run_times=ran)
    measured = Measured(
        baseline=base_side.baseline,
        notes=base_notes,
        unread=base_side.unread,
        broke=base_side.broke,
        digest=base_side.digest,
        changed_defaults=defaults,
        run_times=report.run_times,
    )
    if base.adopts:
        report = adopting(report, Adoption(head.config_name))
    elif base_side.no_compiler:
        report = held_to_limits(
            report, Adoption(head.config_name, base_side.no_compiler)
        )
    return Compared(report, measured, texts.found)


def _head_snapshot(services: Services, head: Opened) -> Snapshot | None:
    """Return the head's snapshot where it was measured before; None where not."""
    if head.wanted.snapshot:
        return load_snapshot(head.wanted.snapshot)
    return _joined(services, head)


def _run_times(
    plans: Sequence[SidePlan],
    services: Services,
    head: Opened,
    report: Report,
    work: Work,
    sides: Mapping[str, Snapshot],
) -> RunTimes:
    """Run the artifacts of failing builds in this job.

    The job has no token that can write. The job that joins the parts of a matrix has
    head's compiler, too.
    """
    ready = list(plans)
    has_head = any(plan.label == "head" for plan in ready)
    if services.inputs.parts and not has_head and failing_builds(report):
        plan, _ = _plan_or_reason("head", head)
        if plan is not None:
            ready.append(plan)
    return run_times(ready, sides=sides, report=report, work=work)


def _base_ir(
    services: Services, base: Opened, base_side: Base
) -> tuple[BaseIr | None, tuple[str, ...]]:
    """Return the IR that is stored beside the base's snapshot.

    The second value has a note where it cannot be read.
    """
    if base_side.snapshot is None or base_side.entry is None:
        return None, ()
    try:
        store = store_of(services, base.config)
        return stored_ir_of(store, base_side.entry, base_side.snapshot), ()
    except Interrupted:
        raise
    except BotError as error:
        note = f"the base's stored IR is not used: {error.line}"
        services.show.say(note)
        return None, (note,)


def _unknown_base(base: Opened, head: Snapshot, *, has_compiler: bool) -> Snapshot:
    """Return the base side of which nothing is known.

    Every cell of the head is planned there, and unmeasured. A base without a
    configuration, or without a compiler that exists, has planned none.
    """
    models = head.models
    if base.adopts or not has_compiler:
        models = {}
    return Snapshot(
        CompilerInfo("", "", ""),
        SourceInfo(base.wanted.sha),
        (),
        targets=head.targets,
        models=models,
    )


def changed_thresholds(
    services: Services, base: Opened, head: Opened
) -> tuple[str, ...]:
    """Return the note that a pull request changes the rules that judge it.

    Nothing where it does not.
    """
    if not services.context.is_proposal or base.adopts:
        return ()
    if _thresholds(base) == _thresholds(head):
        return ()
    note = (
        "This pull request changes the thresholds. Until it is merged, the thresholds"
        " of its base apply."
    )
    return (note,)


def _thresholds(side: Opened) -> list[Rule]:
    """Return a side's thresholds without their lines in the configuration."""
    return [structs.replace(rule, line=None) for rule in side.config.thresholds]


def _asked_twice(
    work: Work, head: Opened, sides: dict[str, Snapshot]
) -> dict[str, Snapshot]:
    """Compile changed builds of a matrix again.

    The runners of a matrix do not know the base. So what the base shows to fail or to
    be changed is doubted here.
    """
    if "base" not in sides or not doubtful(sides["base"], sides["head"], work.config):
        return sides
    plan, reason = _plan_or_reason("head", head)
    if plan is None:
        work.show.say(f"changed builds are not compiled twice: {reason}")
        return sides
    _require_compiler(plan, sides["head"])
    return work.measured([plan], sides)


def _base(services: Services, base: Opened) -> Base:
    """Return the base side: a stored snapshot, or a plan to measure it.

    In this order: a stored snapshot of the base itself, of its nearest ancestor that
    gives the same, a new one.

    Where nobody knows the base's compiler: of the base itself, or of its nearest
    ancestor whose models and flags are the same, and then with a note.
    """
    wanted_base = base.wanted
    if wanted_base.snapshot:
        snapshot = load_snapshot(wanted_base.snapshot)
        return Base(Baseline(wanted_base.rule, snapshot.source.sha), snapshot)
    baseline = Baseline(wanted_base.rule, wanted_base.sha)
    if base.adopts:
        return Base(baseline)
    plan, reason = _plan_or_reason("base", base)
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
    """Return a stored snapshot as the base side; None where none fits."""
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
    # where neither the event nor the commit says which compiler it is, another run has
    # built it
    if not wanted_base.unknown and (keys.requirements or keys.head or keys.base):
        return None
    return nearest(services, store, base)


def _missing_pin_of(services: Services, base: Opened) -> str:
    """Return why the base's compiler does not exist, where its own commit pins it.

    Empty otherwise.
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


def _plan_or_reason(label: str, side: Opened) -> tuple[SidePlan | None, str]:
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


def _whole(services: Services, head: Opened, plan: SidePlan) -> Snapshot:
    joined = _joined(services, head)
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
    """Raise InputError where parts are of another compiler than the plan.

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


def _joined(services: Services, head: Opened) -> Snapshot | None:
    """Return the head's snapshot, merged of its parts; None where there are none."""
    if not services.inputs.parts:
        return None
    names: set[str] = set()
    for pattern in services.inputs.parts:
        names.update(
            glob.glob(pattern, root_dir=services.git.directory, recursive=True)
        )
    paths = sorted(services.at(name) for name in names)
    if not paths:
        raise InputError(
            "match no file",
            where="input parts",
            hint="every shard is lost: see the jobs of the matrix",
        )
    merged = merge_snapshots([(path.name, load_snapshot(path)) for path in paths])
    wanted_sha = head.wanted.sha
    if merged.source.sha != wanted_sha:
        problem = (
            f"are of commit {(merged.source.sha or 'unknown')[:10]}, but {wanted_sha[:10]}"
            " is needed"
        )
        raise InputError(
            problem, where="input parts", hint="give the parts of this run"
        )
    text = services.inputs.plan
    if not text:
        return merged
    parts = dealt(head.work.planned().cells, text, "input plan")
    arrived = {cell.key for cell in merged.cells}
    notes = set(merged.notes)
    for name, part_cells in parts.items():
        if arrived.isdisjoint(cell.key for cell in part_cells):
            lost_builds = plural(len(part_cells), "build")
            notes.add(f"shard {name} is lost, with its {lost_builds}")
    return structs.replace(merged, notes=tuple(sorted(notes)))
