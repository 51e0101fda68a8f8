"""Measure both sides of a review.

The job measures the head, finds or measures the base, and compares. It runs compilers,
so the bot gets no token here. It writes nothing but files, and
`bot.github.reporting` takes it from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from bot.core.defaults import TriedDefault
from bot.core.report import Adoption, Report
from bot.core.rules import Rule
from bot.core.run_times import RunTimes
from bot.core.snapshot import CompilerInfo, Snapshot, SourceInfo
from bot.core.stored_ir import BaseIr
from bot.errors import BotError, Interrupted
from bot.github.base_side import Base, found_base, plan_or_reason
from bot.github.delivering import as_bot_error, deliver, failure_delivered
from bot.github.destination import Destination
from bot.github.ir_notes import stored_ir_notes
from bot.github.measured import Measured, Recording, write_failure, write_measured
from bot.github.opening import Opened, judging, opened
from bot.github.parts import asked_twice, joined_parts
from bot.github.repository import locked, missing_pull
from bot.github.services import Services
from bot.github.sides import wanted_sides
from bot.github.stores import store_of
from bot.store.ir_files import stored_ir_of
from bot.study.changed_defaults import changed_defaults
from bot.study.comparison import adopting, held_to_limits, reported
from bot.study.laddering import laddered
from bot.study.prepare import Work
from bot.study.run_times import failing_builds, run_times
from bot.study.side_plan import SidePlan
from bot.study.snapshot_files import load_snapshot
from bot.study.tracing import traced
from bot.study.trying_flags import tried_flags
from bot.system.files import require_writable


def review(services: Services) -> int:
    """Measure the two sides of the event, and hand them to the job that reports.

    For a fork's run there may be no such job. Then the run's summary has the
    report, and the exit code is the verdict's.
    """
    require_writable(services.out)
    with (
        failure_handed(services),
        failure_delivered(services, lambda: [Destination.by_judging_rules(services)]),
    ):
        _require_open(services)
        base, head = wanted_sides(services)
        # Both checkouts stay open until the report is drawn: its templates may be in them.
        with (
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
    """Hand an error that is raised inside to the job that reports.

    The error is raised again.
    """
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        write_failure(services.out, as_bot_error(error))
        raise


def _require_open(services: Services) -> None:
    """Raise NetworkError if the pull request is locked or does not exist.

    This is checked before anything is compiled. The event says whether its pull request
    is locked. If a person gave the number, git says whether the pull request exists,
    unless the repository is private. The job `prepare` checks the rest.
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


class Compared(NamedTuple):
    """The result of measuring both sides."""

    report: Report
    measured: Measured
    texts: dict[str, str]  # digest → IR that the report quotes


def _compared(
    services: Services, base: Opened, head: Opened, judge: Opened
) -> Compared:
    rules = judge.config
    work = replace(
        judge.work,
        config=structs.replace(rules, timeout_seconds=head.config.timeout_seconds),
    )
    base_side, plans, sides = _measured(services, base=base, head=head, work=work)
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
        report,
        notes=tuple(notes),
        broke=base_side.broke,
        changed_flags=tried_flags(plans_here, report, work),
        changed_defaults=defaults,
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
        changed_flags=report.changed_flags,
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


def _measured(
    services: Services, base: Opened, head: Opened, work: Work
) -> tuple[Base, list[SidePlan], dict[str, Snapshot]]:
    """Return how the base was found, the plans that were measured, and both sides."""
    plans: list[SidePlan] = []
    ready: dict[str, Snapshot] = {}
    head_snapshot = _head_snapshot(services, head)
    if head_snapshot is None:
        plans.append(head.plan("head"))
    base_side = found_base(services, base)
    if base_side.snapshot is not None:
        ready["base"] = base_side.snapshot
    elif base_side.plan:
        plans.append(base_side.plan)
    if head_snapshot is not None:
        ready["head"] = head_snapshot
    sides = work.measured(plans, ready)
    if services.inputs.parts:
        sides = asked_twice(work, head, sides)
    return base_side, plans, sides


def _head_snapshot(services: Services, head: Opened) -> Snapshot | None:
    """Return the head's snapshot if it was measured before, else None."""
    if head.wanted.snapshot:
        return load_snapshot(head.wanted.snapshot)
    return joined_parts(services, head)


def _run_times(
    plans: Sequence[SidePlan],
    services: Services,
    head: Opened,
    report: Report,
    work: Work,
    sides: Mapping[str, Snapshot],
) -> RunTimes:
    """Run the artifacts of failing builds in this job.

    The bot gets no token in this job. The job that joins the parts of a matrix has
    head's compiler, too.
    """
    ready = list(plans)
    has_head = any(plan.label == "head" for plan in ready)
    if services.inputs.parts and not has_head and failing_builds(report):
        plan, _ = plan_or_reason("head", head)
        if plan is not None:
            ready.append(plan)
    return run_times(ready, sides=sides, report=report, work=work)


def _base_ir(
    services: Services, base: Opened, base_side: Base
) -> tuple[BaseIr | None, tuple[str, ...]]:
    """Return the IR that is stored beside the base's snapshot.

    The second value has a note if it cannot be read.
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

    Every cell of the head is planned there, and unmeasured. If the base has no
    configuration, or no compiler that exists, no cell is planned.
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

    Empty if it does not.
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
