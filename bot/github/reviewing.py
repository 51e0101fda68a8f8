"""The runs on GitHub that measure: reviews, baselines and shards.

review: open both sides of the event, measure the head, find or measure the base, compare, deliver.
baseline: measure the pushed commit, unless a stored one stands for it, and store it.
part: measure one shard of the head, for a review that joins them.
"""

from __future__ import annotations

import glob
from dataclasses import replace

from msgspec import structs

from bot.core.baseline import Entry
from bot.core.json_text import decoded
from bot.core.publication import Acceptance, accept
from bot.core.report import Adoption, Baseline, Report
from bot.core.sharding import Matrix, assigned, matrix, merge_snapshots
from bot.core.snapshot import CompilerInfo, Snapshot, SourceInfo
from bot.errors import BotError, InputError, Interrupted, NetworkError, UsageError
from bot.github.baselines import Base, nearest, nearest_costs, older_note, standing_for, stored
from bot.github.delivering import Destination, deliver, failure_delivered, recalled, suspected
from bot.github.opening import Opened, Services, Wanted, judging_rules, named_compiler, opened, store_of, wanted_sides
from bot.github.publishing import publish_check
from bot.github.repository import merged_pull
from bot.show.comment import check_run, model_paths, write_snapshot
from bot.show.filters import plural
from bot.store.entries import Store
from bot.study.comparison import adopting, reported
from bot.study.prepare import Work, load_snapshot, plan_digest, require_writable
from bot.study.run import SidePlan, suspects
from bot.study.tracing import traced, with_largest_traced


def review(services: Services) -> int:
    """Measure and compare the two sides of the event, and deliver the report, or what broke."""
    require_writable(services.out)
    with failure_delivered(services, lambda: [Destination.of(services, *judging_rules(services))]):
        base, head = wanted_sides(services)
        with opened(services, head, base) as (left, right):  # until the report is drawn: its templates may be theirs
            judge = left if services.context.pull else right
            report = _compared(services, left, right, judge)
            return deliver(report, services, Destination.of(services, judge.config, judge.config_name))


def baseline(services: Services) -> int:
    """Measure the pushed commit, store it and say what it changed, unless what is stored would give the same."""
    require_writable(services.out)
    code = 0
    with opened(services, _pushed(services)) as (_, head):
        plan, say = head.plan("head"), services.show.say
        entry = Entry(head.config.report_id, services.context.sha, plan_digest(plan))
        store = store_of(services, head.config)
        if standing := standing_for(services, store, head, entry.digest):
            older = f"{plural(standing.distance, 'commit')} older" if standing.distance else "of that very commit"
            say(f"nothing to measure: {standing.entry.sha[:10]} ({older}) gives the same")
        else:
            snapshot, before = _whole(services, head, plan), stored_before(services, store, head)
            if before:
                sides = {"base": before[1], "head": snapshot}
                snapshot = _asked_twice(head.work, head, sides)["head"]
            snapshot = with_largest_traced(plan, snapshot, head.work)
            write_snapshot(services.out / "head.json", snapshot)
            say("stored" if store.save(entry, snapshot) else "was stored already")
            if before:
                report = reported(head.config, before[1], snapshot, before[0], head.work.texts)
                report = suspected(report, services, head.config)
                if distance := before[0].distance:
                    report = structs.replace(report, notes=(older_note(distance), *report.notes))
                code = deliver_push(report, services, head)
        return code


def part(services: Services) -> None:
    """Measure one shard of the head into `head-I-of-N.json`."""
    require_writable(services.out)
    if services.inputs.shard is None:
        raise UsageError("is missing", where="input shard", hint="use a row's `shard` of the plan")
    index, count = services.inputs.shard
    with opened(services, _head(services)) as (_, head):
        request = replace(services.request, shard=(index, count), plan=services.inputs.plan or None)
        head = replace(head, work=replace(head.work, request=request))
        snapshot = head.work.measured([head.plan("head")])["head"]
    path = services.out / f"head-{index}-of-{count}.json"
    write_snapshot(path, snapshot)
    head.work.say_failed(snapshot)
    services.show.say(f"wrote {path}")


def shards(services: Services) -> Matrix:
    """The matrix of a sharded run, dealt out by the costs of the nearest stored snapshot."""
    if services.inputs.shards is None:
        raise UsageError("is missing", where="input shards", hint="say how many runners measure")
    with opened(services, _head(services)) as (_, head):
        cells, costs = head.work.planned().cells, nearest_costs(services, store_of(services, head.config), head)
        return matrix(cells, services.inputs.shards, costs, head.moving())


def _head(services: Services) -> Wanted:
    return _pushed(services) if services.context.story == "baseline" else wanted_sides(services)[1]


def _pushed(services: Services) -> Wanted:
    head = services.inputs.head
    return Wanted("the pushed commit", services.context.sha, named_compiler(services, head) or head or None)


def _compared(services: Services, base: Opened, head: Opened, judge: Opened) -> Report:
    given, rules = head.wanted.snapshot, judge.config
    with_head = load_snapshot(given) if given else _joined(services, head)
    plans = [] if with_head else [head.plan("head")]
    base_side = _base(services, base)
    known = {side: one for side, one in (("base", base_side.snapshot), ("head", with_head)) if one is not None}
    plans += [base_side.plan] if base_side.plan and base_side.snapshot is None else []
    work = replace(judge.work, config=structs.replace(rules, timeout_seconds=head.config.timeout_seconds))
    sides = work.measured(plans, known)
    sides = _asked_twice(work, head, sides) if services.inputs.parts else sides
    if "base" in sides:
        tracing = [plan for plan in (*plans, base_side.plan) if plan is not None]
        sides = traced(list({plan.label: plan for plan in tracing}.values()), sides, work)
    base_snapshot, like = sides.get("base"), sides["head"]
    if base_snapshot is None:
        # Of which nothing is known: every cell of the head is planned there, and unmeasured. One without a
        # configuration has planned none.
        unknown, models = CompilerInfo("", "", ""), {} if base.borrows else like.models
        source = SourceInfo(base.wanted.sha)
        base_snapshot = Snapshot(unknown, source, (), targets=like.targets, models=models)
    report = reported(rules, base_snapshot, like, base_side.baseline, work.texts)
    ends = (base.wanted.sha, head.wanted.sha) if services.context.pull else ("", "")
    report = suspected(report, services, rules, *ends)
    notes = [*base_side.notes, *report.notes]
    limits = [[structs.replace(one, line=None) for one in side.config.thresholds] for side in (base, head)]
    if services.context.pull and limits[0] != limits[1]:
        notes.append("This pull request changes the thresholds; it is judged by those of its base until it is merged.")
    report = structs.replace(report, notes=tuple(notes), broke=base_side.broke)
    if base.borrows is None or services.context.pull is None:
        return report
    return adopting(report, Adoption(head.config_name))


def _asked_twice(work: Work, head: Opened, sides: dict[str, Snapshot]) -> dict[str, Snapshot]:
    """The runners of a matrix do not know the base, so that what it shows to alarm or to be changed is doubted here."""
    if "base" not in sides or not suspects(sides["base"], sides["head"], work.config):
        return sides
    plan, why = _plan_or_reason("head", head)
    if plan is None:
        work.show.say(f"changed builds are not compiled twice: {why}")
        return sides
    return work.measured([plan], sides)


def _base(services: Services, base: Opened) -> Base:
    """In this order: a stored snapshot of the base itself, of its nearest ancestor that gives the same, a new one.

    Where nobody knows the base's compiler: of the base itself, or of its nearest ancestor whose models and flags are
    the same, and then with a note.
    """
    wanted = base.wanted
    if wanted.snapshot:
        snapshot = load_snapshot(wanted.snapshot)
        return Base(Baseline(wanted.rule, snapshot.source.sha), snapshot)
    plan, why = _plan_or_reason("base", base)
    baseline, notes = Baseline(wanted.rule, wanted.sha), tuple[str, ...]()
    if wanted.spec is None:
        try:
            store, digest = store_of(services, base.config), plan_digest(plan) if plan else None
            if standing := standing_for(services, store, base, digest):
                baseline = Baseline(f"{wanted.rule}; stored snapshot", wanted.sha, standing.distance)
                return Base(baseline, standing.snapshot)
            if not base.names_compiler and (near := nearest(services, store, base)):
                return near
        except Interrupted:
            raise
        except BotError as error:
            notes = (f"stored baselines could not be read: {error.line}",)
            services.show.say(notes[0])
    if plan:
        return Base(Baseline(f"{wanted.rule}; measured in this run", wanted.sha), plan=plan, notes=notes)
    if base.borrows:
        return Base(baseline, notes=(*notes, f"base is not measured: {why}") if why else notes)
    return Base(baseline, notes=notes, broke=f"No baseline: {why}")


def _plan_or_reason(label: str, side: Opened) -> tuple[SidePlan | None, str]:
    if side.borrows and not side.config.models:
        return None, ""
    if side.wanted.unknown:
        lacks = "no snapshot of the base commit or of an ancestor like it is stored"
        return None, f"{side.wanted.unknown}, {lacks}, and no input names the base's"
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
    if lost := {cell.key for cell in plan.cells} - {cell.key for cell in joined.cells}:
        what = f"lack {len(lost)} of {len(plan.cells)} cells, such as {min(lost)}"
        raise InputError(what, where="input parts", hint="run the lost shards again: only a whole baseline is stored")
    return joined


def _joined(services: Services, head: Opened) -> Snapshot | None:
    if not services.inputs.parts:
        return None
    top, patterns = services.git.directory, services.inputs.parts
    names = {name for pattern in patterns for name in glob.glob(pattern, root_dir=top, recursive=True)}
    paths = sorted(services.at(name) for name in names)
    if not paths:
        raise InputError("match no file", where="input parts", hint="every shard is lost: see the matrix' jobs")
    merged = merge_snapshots([(path.name, load_snapshot(path)) for path in paths])
    text, where = services.inputs.plan, "input plan"
    if not text:
        return merged
    plan = decoded(text, Matrix, where, "give what the command plan printed", "plan")
    cells, arrived = head.work.planned().cells, {cell.key for cell in merged.cells}
    lost: dict[str, int] = {}
    for one in plan.include:
        index, count = map(int, one.shard.split("/"))
        planned = {cell.key for cell in assigned(cells, text, index, count, where=where)}
        if not arrived & planned:
            lost[one.shard] = len(planned)
    notes = (f"shard {name} is lost: its {count} cells are not measured" for name, count in lost.items())
    return structs.replace(merged, notes=tuple(sorted({*merged.notes, *notes})))


# After a merge: what a push to the default branch did to the code, against the baseline that was stored before it.
#
# A pull request is compared with its base as that was then. What it does together with what was merged meanwhile is
# seen here first.


def stored_before(services: Services, store: Store, side: Opened) -> tuple[Baseline, Snapshot] | None:
    """The newest snapshot of the nearest ancestor of a pushed commit; None for what is no push, and without any.

    Its distance is 0 where it is of the commit's first parent.
    """
    sha, config = services.context.sha, side.config
    if services.context.event != "push":
        return None
    before = next(stored(services, store, config, sha, lambda entry: entry.sha != sha), None)
    if before is None:
        return None
    rule, parent = "parent of the pushed commit; stored snapshot", services.git.parents(sha)[0]
    return Baseline(rule, parent, before.distance - 1), before.snapshot


def deliver_push(report: Report, services: Services, head: Opened) -> int:
    """The report of a push: files and summary, and a check on the commit.

    What was accepted on the pull request that the push merged is accepted here too.
    Returns the exit code; what GitHub refuses is said, as the baseline is stored by then.
    """
    config, context, problems = head.config, services.context, list[NetworkError]()
    branch = context.default_branch
    hub = None if context.read_only else services.hub
    acceptances: tuple[Acceptance, ...] = ()
    try:
        if hub and (pull := merged_pull(hub, context.sha, branch)):
            own = Destination(pull.number, pull.head.sha, context.run_id, config, base_ref=branch)
            memory = recalled(problems, hub, own)
            acceptances = memory.acceptances if memory else ()
    except NetworkError as error:
        problems.append(error)
    notes = (f"what was accepted on the merged pull request is not known: {error.line}" for error in problems)
    report = structs.replace(report, notes=(*report.notes, *notes))
    to = Destination(None, "", context.run_id, config, head.config_name, branch)
    try:
        code = deliver(report, services, to, acceptances)
        if hub:
            verdict = accept(report.verdict, acceptances)
            final = structs.replace(report, verdict=verdict, report_id=config.report_id)
            check = check_run(final, config_path=head.config_name, model_paths=model_paths(final), base_ref=branch)
            publish_check(hub, context.sha, structs.replace(check, name=f"{check.name}, merged"), context.run_url)
        return code
    except NetworkError as error:
        services.show.say(f"told in the job summary only: {error.line}")
        return 0
