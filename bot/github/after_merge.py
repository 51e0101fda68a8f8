"""Report a push: a check on the commit, and one issue while the branch fails.

The branch fails while it exceeds its thresholds. This is the job `report` of a push.

Everything is merged already, so the check blocks nothing. The issue is a second
message: GitHub may refuse it without any effect on the check.
"""

from __future__ import annotations

from msgspec import structs

from bot.config.configuration import Config
from bot.core.acceptance import accept
from bot.core.report import Report
from bot.errors import NetworkError
from bot.github.checks import Result, publish_check
from bot.github.delivering import report_outputs
from bot.github.kept_issue import Judged, keep_issue
from bot.github.merged_pulls import Merges, merges_of
from bot.github.pushes import (
    Push,
    compared_with_before,
    handed_over,
    opened_push,
    push_commits,
    pushed_side,
)
from bot.github.services import Services, require_token
from bot.github.stores import store_of
from bot.show.annotations import model_paths
from bot.show.check import after_merge_name, check_run
from bot.show.report_files import write_report
from bot.study.comparison import no_verdict
from bot.system.files import require_writable
from bot.system.hub import Hub


def after_merge(services: Services) -> int:
    """Judge a pushed commit against the baseline before it, and publish the result.

    Its check is written, and the issue is kept up to date.

    Raises:
        UsageError: there is no token.
        InputError: what was measured is of another commit.
        NetworkError: GitHub refused the check.
    """
    hub = require_token(services)
    require_writable(services.out)
    say = services.show.say
    sha = services.context.sha
    if services.context.event != "push":
        say("nothing to report: only a push is compared with the baseline before it")
        return 0
    if services.context.read_only:
        say(
            "nothing to report: GitHub gives this run a token that can only read,"
            " because Dependabot started it"
        )
        return 0
    handed = handed_over(services)
    with opened_push(services) as head:
        config = head.config
        store = store_of(services, config)
        push = pushed_side(services, store=store, config=config, handed=handed)
        if push is None:
            say(
                "nothing to report:"
                f" {handed.measured.standing or 'the result is that of the baseline before it'}"
            )
            return 0
        report = compared_with_before(
            services, config=config, push=push, texts=handed.texts
        )
        if report is None:
            say("nothing to report: no baseline is stored for a commit before this one")
            return 0
        judged = _judged(services, hub=hub, config=config, push=push, report=report)
        report = judged.report
        services.show.report(
            report, write_report(report, config.templates, services.out)
        )
        services.set_outputs(report_outputs(report, services))
        refused = _refused_check(
            services, hub=hub, report=report, config_name=head.config_name
        )
        if config.after_merge == "issue":
            try:
                keep_issue(services, hub=hub, config=config, store=store, judged=judged)
            except NetworkError as error:
                say(error.line)
        if refused is not None:
            raise refused
        if report.verdict.status == "unknown":
            unknown = no_verdict(report, services.out)
            say(unknown.line)
            return unknown.exit_code
        say(f"judged {sha[:10]}: {report.verdict.status}")
        return 0


def _judged(
    services: Services, hub: Hub, config: Config, push: Push, report: Report
) -> Judged:
    """Apply what was accepted on the merged pull requests.

    GitHub is asked only if a finding fails the check.
    """
    commits = push_commits(services, push)
    merges = Merges(commits)
    if report.verdict.failing:
        merges = merges_of(services, hub=hub, config=config, commits=commits)
    verdict = accept(report.verdict, merges.acceptance)
    return Judged(push, structs.replace(report, verdict=verdict), merges)


def _refused_check(
    services: Services, hub: Hub, report: Report, config_name: str
) -> NetworkError | None:
    """Write the check of the pushed commit.

    Returns why GitHub refused it; None if GitHub took it.
    """
    context = services.context
    check = check_run(report, config_path=config_name, model_paths=model_paths(report))
    check = structs.replace(
        check, name=after_merge_name(report.report_id, context.default_branch)
    )
    has_verdict = report.verdict.status != "unknown"
    result = Result(
        pull_number=0,  # the check is not about a pull request
        conclusion=check.conclusion,
        has_verdict=has_verdict,
        merge_sha=context.sha,
        run_id=context.run_id,
    )
    try:
        publish_check(
            hub,
            head_sha=context.sha,
            check=check,
            details_url=context.run_url,
            result=result,
        )
    except NetworkError as error:
        return error
    return None
