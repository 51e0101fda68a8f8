"""Store the baseline of a pushed commit, and report what the push changed.

This job may write, so it runs no compiler and no file of a pull request. It takes the
snapshot from the job that measured, and checks it as anybody's.
"""

from __future__ import annotations

from msgspec import structs

from bot.config.configuration import Config
from bot.core.acceptance import accept
from bot.core.baseline import Entry
from bot.core.report import Report
from bot.core.snapshot import Accepted, Snapshot
from bot.errors import UsageError
from bot.github.delivering import deliver
from bot.github.destination import Destination
from bot.github.merged_pulls import merges_of
from bot.github.pushes import (
    Push,
    compared_with_before,
    handed_over,
    opened_push,
    push_commits,
    pushed_side,
)
from bot.github.services import Services
from bot.github.stores import other_repository, require_fitting_token, store_of
from bot.show.report_files import write_snapshot
from bot.system.files import require_writable


def store(services: Services) -> int:
    """Store the snapshot of the pushed commit, and report what it changed.

    The job's summary has the report. The commit is compared with the newest
    snapshot of its nearest ancestor: the joint effect of several pull requests is
    seen here first. The verdict stops nothing, as all is merged.

    Raises InputError if the measurement is of another commit, or is not whole.
    Raises UsageError if another repository stores the baselines and there is no
    token for it, or the reverse.
    """
    require_writable(services.out)
    handed = handed_over(services)
    if handed.measured.standing:
        services.show.say(handed.measured.standing)
    with opened_push(services) as head:
        config = head.config
        _require_store_token(services, config)
        store = store_of(services, config)
        push = pushed_side(services, store=store, config=config, handed=handed)
        if push is None:
            return 0
        compared = compared_with_before(
            services, config=config, push=push, texts=handed.texts
        )
        final, snapshot = _with_acceptance(
            services, config=config, push=push, report=compared
        )
        write_snapshot(services.out / "head.json", snapshot)
        entry = Entry(config.report_id, services.context.sha, handed.measured.digest)
        is_new = store.save(entry, snapshot, push.ir)
        services.show.say("stored" if is_new else "was stored already")
        if final is None:
            return 0
        rules = structs.replace(config, fail_job=False)
        return deliver(
            final,
            services,
            Destination(
                pull=None,
                head_sha="",
                run_id=services.context.run_id,
                config=rules,
                config_name=head.config_name,
            ),
        )


def _with_acceptance(
    services: Services, config: Config, push: Push, report: Report | None
) -> tuple[Report | None, Snapshot]:
    """Return the report and the snapshot with what merged pull requests accepted.

    GitHub is asked only if a finding fails the check, and if there is a token.
    """
    if report is None or services.hub is None or not report.verdict.failing:
        return report, push.snapshot
    merges = merges_of(
        services, hub=services.hub, config=config, commits=push_commits(services, push)
    )
    verdict = accept(report.verdict, merges.acceptance)
    people = set[str]()
    reasons = set[str]()
    for finding in verdict.findings:
        if finding.accepted:
            people.add(finding.accepted)
            if finding.reason:
                reasons.add(finding.reason)
    if not people:
        return report, push.snapshot
    accepted = Accepted(", ".join(sorted(people)), "; ".join(sorted(reasons)))
    snapshot = structs.replace(push.snapshot, accepted=accepted)
    return structs.replace(report, verdict=verdict), snapshot


def _require_store_token(services: Services, config: Config) -> None:
    repository = other_repository(services, config)
    if repository and not services.inputs.store_token:
        hint = (
            f"give the action a token that may write to {repository}, such as a deploy"
            " token kept as a secret"
        )
        raise UsageError("is missing", where="input store-token", hint=hint)
    require_fitting_token(services, config)
