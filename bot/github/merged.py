"""After a merge: what a push to the default branch did to the code, against the baseline that was stored before it.

A pull request is compared with its base as that was then. What it does together with what was merged meanwhile is seen
here first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.core.publication import Acceptance, Conclusion, accept
from bot.core.report import Baseline, Report
from bot.core.snapshot import Snapshot
from bot.errors import NetworkError
from bot.github.baselines import newest_first, with_gap
from bot.github.checks import publish_check, results
from bot.github.delivering import Destination, deliver, recalled
from bot.github.opening import Opened
from bot.github.repository import merged_pull
from bot.github.services import Services
from bot.show.comment import check_name, check_run, model_paths
from bot.store.entries import Store, by_commit
from bot.system.hub import Hub


@dataclass(frozen=True, slots=True)
class Before:
    """What was stored before a commit.

    Attributes:
        baseline: its distance is 0 where it is of the commit's first parent.
    """

    snapshot: Snapshot
    baseline: Baseline


def stored_before(services: Services, store: Store, side: Opened) -> Before | None:
    """The newest snapshot of the nearest ancestor of a pushed commit; None for what is no push, and without any."""
    if services.context.event != "push":
        return None
    line = services.git.ancestors(services.context.sha, side.config.baseline.ancestors)
    entries = by_commit(store, side.config.report_id) if line else {}
    for sha in line:
        for _, snapshot in newest_first(services, store, entries.get(sha, ())):
            baseline = Baseline("parent of the pushed commit; stored snapshot", line[0], 0)
            return Before(snapshot, baseline if sha == line[0] else with_gap(services, side.config, baseline, sha))
    return None


@dataclass(frozen=True, slots=True)
class _Merged:
    """The pull request that a push merged, and what it was told.

    Attributes:
        result: of its own check; None where it has none.
        notes: what could not be asked.
    """

    number: int | None = None
    result: Conclusion | None = None
    acceptances: tuple[Acceptance, ...] = ()
    notes: tuple[str, ...] = ()


def deliver_push(report: Report, services: Services, head: Opened) -> int:
    """The report of a push: files and summary, a check on the commit, and a comment where that is wanted.

    A comment is written only where the merge is what broke a limit: the pull request's own check had let it pass,
    its acceptances count here too, and nothing but the merge lies between the two snapshots.
    Returns the exit code; what GitHub refuses is said, as the baseline is stored by then.
    """
    config, context = head.config, services.context
    wish, branch = config.baseline.after_merge, context.default_branch
    hub = services.hub if wish != "summary" and not context.read_only else None
    merged = _merged(hub, services, head) if hub else _Merged()
    report = replace(report, notes=(*report.notes, *merged.notes))
    verdict = accept(report.verdict, merged.acceptances)
    broke = verdict.status == "fail" and merged.result in ("success", "neutral") and not report.baseline.distance
    number = merged.number if wish == "comment" and broke else None
    if number:
        passed = f"The check of this pull request passed; the limits broke with its merge into {branch}."
        report = replace(report, notes=(passed, *report.notes))
    own = replace(config, report_id=f"{config.report_id}.merged")
    to = Destination(number, "", context.run_id, own, head.config_name, branch)
    try:
        code = deliver(report, services, to, merged.acceptances)
        if hub:
            final = replace(report, verdict=verdict, report_id=config.report_id)
            check = check_run(final, config_path=head.config_name, model_paths=model_paths(final), base_ref=branch)
            publish_check(hub, context.sha, replace(check, name=f"{check.name}, merged"), context.run_url)
        return code
    except NetworkError as error:
        services.show.say(f"told in the job summary only: {error.line}")
        return 0


def _merged(hub: Hub, services: Services, head: Opened) -> _Merged:
    config, branch = head.config, services.context.default_branch
    problems: list[NetworkError] = []
    number: int | None = None
    result: Conclusion | None = None
    acceptances: tuple[Acceptance, ...] = ()
    try:
        pull = merged_pull(hub, services.context.sha, branch)
        if pull:
            to = Destination(pull.number, pull.head.sha, services.context.run_id, config, base_ref=branch)
            memory = recalled(problems, hub, to)
            number, acceptances = pull.number, memory.acceptances if memory else ()
            result = results(hub, pull.head.sha, check_name(config.report_id, branch)).get(pull.number)
    except NetworkError as error:
        problems.append(error)
    notes = tuple(f"what the merged pull request was told is not known: {error.line}" for error in problems)
    return _Merged(number, result, acceptances, notes)
