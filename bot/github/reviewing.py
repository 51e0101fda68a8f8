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
from bot.core.report import Adoption, Baseline, Report
from bot.core.sharding import Matrix, dealt, matrix, merge_snapshots
from bot.core.snapshot import CompilerInfo, Snapshot, SourceInfo
from bot.errors import BotError, InputError, Interrupted, UsageError
from bot.github.baselines import Base, nearest, nearest_costs, older_note, standing_for, stored
from bot.github.delivering import Destination, deliver, failure_delivered, suspected
from bot.github.opening import Opened, Services, Wanted, judging_rules, named_compiler, opened, store_of, wanted_sides
from bot.show.comment import write_snapshot
from bot.show.filters import plural
from bot.study.comparison import adopting, reported
from bot.study.prepare import Work, load_snapshot, plan_digest, require_writable
from bot.study.run import SidePlan, doubtful
from bot.study.tracing import traced, with_largest_traced


def review(services: Services) -> int:
    """Measure and compare the two sides of the event, and deliver the report, or what broke."""
    require_writable(services.out)
    with failure_delivered(services, lambda: [Destination.of(services, *judging_rules(services))]):
        base, head = wanted_sides(services)
        with opened(services, head, base) as (left, right):  # until the report is drawn: its templates may be theirs
            judge = left if services.context.pull and not left.adopts else right
            report = _compared(services, left, right, judge)
            return deliver(report, services, Destination.of(services, judge.config, judge.config_name))


def baseline(services: Services) -> int:
    """Measure the pushed commit, store it and say what it changed, unless what is stored would give the same.

    It is compared with the newest snapshot of its nearest ancestor, in the job's summary: what pull requests do
    together is seen here first. The verdict stops nothing, as all is merged.
    """
    require_writable(services.out)
    with opened(services, _pushed(services)) as (_, head):
        plan, say, config = head.plan("head"), services.show.say, head.config
        sha, store = services.context.sha, store_of(services, config)
        entry = Entry(config.report_id, sha, plan_digest(plan))
        if standing := standing_for(services, store, head, entry.digest, plan):
            older = f"{plural(standing.distance, 'commit')} older" if standing.distance else "of that very commit"
            say(f"nothing to measure: {standing.entry.sha[:10]} ({older}) gives the same")
            return 0
        snapshot, before = _whole(services, head, plan), None
        if services.context.event == "push":
            before = next(stored(services, store, config, sha, lambda entry: entry.sha != sha), None)
        if before:
            snapshot = _asked_twice(head.work, head, {"base": before.snapshot, "head": snapshot})["head"]
        snapshot = with_largest_traced(plan, snapshot, head.work)
        write_snapshot(services.out / "head.json", snapshot)
        say("stored" if store.save(entry, snapshot) else "was stored already")
        if before is None:
            return 0
        rule, distance = "parent of the pushed commit; stored snapshot", before.distance - 1
        compared_with = Baseline(rule, services.git.parents(sha)[0], distance)
        report = reported(config, before.snapshot, snapshot, compared_with, head.work.texts)
        report = suspected(report, services, config)
        if distance:
            report = structs.replace(report, notes=(older_note(distance), *report.notes))
        rules = structs.replace(config, fail_job=False)
        return deliver(report, services, Destination(None, "", services.context.run_id, rules, head.config_name))


def part(services: Services) -> None:
    """Measure one shard of the head into `head-I-of-N.json`."""
    require_writable(services.out)
    if services.inputs.shard is None:
        raise UsageError("is missing", where="input shard", hint="use a row's `shard` of the plan")
    index, count = services.inputs.shard
    with opened(services, _head(services)) as (_, head):
        request = replace(head.work.request, shard=(index, count), plan=services.inputs.plan or None)
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
    snapshot_path, rules = head.wanted.snapshot, judge.config
    with_head = load_snapshot(snapshot_path) if snapshot_path else _joined(services, head)
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
        unknown, models = CompilerInfo("", "", ""), {} if base.adopts else like.models
        source = SourceInfo(base.wanted.sha)
        base_snapshot = Snapshot(unknown, source, (), targets=like.targets, models=models)
    ends = (base.wanted.sha, head.wanted.sha) if services.context.pull else ("", "")
    report = suspected(reported(rules, base_snapshot, like, base_side.baseline, work.texts), services, rules, *ends)
    notes = [*base_side.notes, *report.notes]
    limits = [[structs.replace(one, line=None) for one in side.config.thresholds] for side in (base, head)]
    if services.context.pull and not base.adopts and limits[0] != limits[1]:
        notes.append("This pull request changes the thresholds; it is judged by those of its base until it is merged.")
    report = structs.replace(report, notes=tuple(notes), broke=base_side.broke)
    return adopting(report, Adoption(head.config_name)) if base.adopts else report


def _asked_twice(work: Work, head: Opened, sides: dict[str, Snapshot]) -> dict[str, Snapshot]:
    """The runners of a matrix do not know the base, so that what it shows to alarm or to be changed is doubted here."""
    if "base" not in sides or not doubtful(sides["base"], sides["head"], work.config):
        return sides
    plan, why = _plan_or_reason("head", head)
    if plan is None:
        work.show.say(f"changed builds are not compiled twice: {why}")
        return sides
    _require_compiler(plan, sides["head"])
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
    baseline, notes = Baseline(wanted.rule, wanted.sha), tuple[str, ...]()
    if base.adopts:
        return Base(baseline)
    plan, why = _plan_or_reason("base", base)
    if wanted.spec is None:
        try:
            store, digest = store_of(services, base.config), plan_digest(plan) if plan else None
            if standing := standing_for(services, store, base, digest, plan):
                baseline = Baseline(f"{wanted.rule}; stored snapshot", wanted.sha, standing.distance)
                return Base(baseline, standing.snapshot)
            keys = base.config.compiler
            # where neither the event nor the commit says which compiler it is, another run has built it
            is_named = not wanted.unknown and (keys.requirements or keys.head or keys.base)
            if not is_named and (near := nearest(services, store, base)):
                return near
        except Interrupted:
            raise
        except BotError as error:
            notes = (f"stored baselines could not be read: {error.line}",)
            services.show.say(notes[0])
    if plan:
        return Base(Baseline(f"{wanted.rule}; measured in this run", wanted.sha), plan=plan, notes=notes)
    return Base(baseline, notes=notes, broke=f"No baseline: {why}")


def _plan_or_reason(label: str, side: Opened) -> tuple[SidePlan | None, str]:
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
    _require_compiler(plan, joined)
    if lost := {cell.key for cell in plan.cells} - {cell.key for cell in joined.cells}:
        what = f"lack {len(lost)} of {len(plan.cells)} cells, such as {min(lost)}"
        raise InputError(what, where="input parts", hint="run the lost shards again: only a whole baseline is stored")
    return joined


def _require_compiler(plan: SidePlan, parts: Snapshot) -> None:
    """Raise InputError where parts are of another compiler than the plan: `nightly` may have become another one."""
    theirs, here = parts.compiler, plan.compiler.info
    if theirs.digest != here.digest:
        names = f"{theirs.version} ({theirs.digest[:10]}), and here it is {here.version} ({here.digest[:10]})"
        hint = "give the input plan that the shards had, or run all of them again"
        raise InputError(f"are of compiler {names}", where="input parts", hint=hint)


def _joined(services: Services, head: Opened) -> Snapshot | None:
    if not services.inputs.parts:
        return None
    top, patterns = services.git.directory, services.inputs.parts
    names = {name for pattern in patterns for name in glob.glob(pattern, root_dir=top, recursive=True)}
    paths = sorted(services.at(name) for name in names)
    if not paths:
        raise InputError("match no file", where="input parts", hint="every shard is lost: see the matrix' jobs")
    merged = merge_snapshots([(path.name, load_snapshot(path)) for path in paths])
    if merged.source.sha != (wanted := head.wanted.sha):
        what = f"are of commit {(merged.source.sha or 'unknown')[:10]}, and {wanted[:10]} is wanted"
        raise InputError(what, where="input parts", hint="give the parts of this run")
    text, where = services.inputs.plan, "input plan"
    if not text:
        return merged
    parts, arrived = dealt(head.work.planned().cells, text, where), {cell.key for cell in merged.cells}
    lost = {name: len(part) for name, part in parts.items() if not arrived & {cell.key for cell in part}}
    notes = (f"shard {name} is lost, and with it {plural(count, 'build')}" for name, count in lost.items())
    return structs.replace(merged, notes=tuple(sorted({*merged.notes, *notes})))
