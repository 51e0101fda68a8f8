"""Keep the issue about a default branch that fails its thresholds.

While the issue is open, each push is compared with the last good baseline, and not
with the one before the push: the next push would hide the growth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from bot.config.configuration import Config
from bot.core.acceptance import accept, joint_acceptance, seen
from bot.core.after_merge import IssueState, MergedPull, is_same_break, issue_marker
from bot.core.report import Baseline, Report
from bot.errors import InputError, NetworkError
from bot.github.baselines import stored
from bot.github.main_issue import (
    OwnIssue,
    close_younger,
    create_issue,
    own_issues,
    update_issue,
)
from bot.github.merged_pulls import Merges
from bot.github.pushes import Push
from bot.github.services import Services
from bot.github.suspected import suspected
from bot.show.after_merge import MainIssue, issue_body, issue_title
from bot.store.entries import Store
from bot.study.comparison import reported
from bot.system.hub import Hub


class Judged(NamedTuple):
    """A pushed commit with its verdict."""

    push: Push
    # against the baseline before it, with what was accepted on its pull requests
    report: Report
    merges: Merges


def keep_issue(
    services: Services, hub: Hub, config: Config, store: Store, judged: Judged
) -> None:
    """Create, update or close the issue about the default branch.

    Raises:
        NetworkError: GitHub refused it.
    """
    failing = judged.report.verdict.failing
    marker = issue_marker(config.report_id)
    issues = own_issues(hub, marker, "all" if failing else "open")
    open_ones = [issue for issue in issues if issue.is_open]
    if open_ones:
        close_younger(hub, open_ones)
        _update(
            services,
            hub=hub,
            config=config,
            store=store,
            judged=judged,
            own_issue=open_ones[0],
        )
        return
    if not failing:
        return
    reason = _reason_for_no_issue(services, config=config, judged=judged, closed=issues)
    if reason:
        services.show.say(f"no issue: {reason}")
        return
    issue = _new_issue(services, config, judged)
    url = create_issue(
        hub, marker=marker, title=issue_title(issue), body=issue_body(issue)
    )
    services.show.say(f"issue: {url}")


def _reason_for_no_issue(
    services: Services, config: Config, judged: Judged, closed: Sequence[OwnIssue]
) -> str:
    """Return why a failing push opens no issue; empty if it opens one.

    A closed issue may already have the findings of the push. Or the push may be of
    an older commit: it finds again what a later commit has repaired.
    """
    sha = services.context.sha
    findings = seen(judged.report.verdict.failing)
    for issue in closed:
        if issue.state is None:
            continue
        newest_sha = issue.state.newest_sha
        if issue.was_closed_by_a_person and is_same_break(
            issue.state, findings, judged.merges.commits
        ):
            return f"a person closed #{issue.number}, which has these findings"
        if sha == newest_sha or _is_older(
            services, config=config, sha=sha, newest_sha=newest_sha
        ):
            return f"#{issue.number} is closed, and is about this commit or a newer one"
    return ""


def _new_issue(services: Services, config: Config, judged: Judged) -> MainIssue:
    """Return the issue of a push that is the first to fail."""
    sha = services.context.sha
    merges = judged.merges
    if judged.push.before:
        good_sha = judged.push.before.entry.sha
    else:
        good_sha = ""
    state = IssueState(
        good_sha=good_sha,
        first_sha=sha,
        newest_sha=sha,
        findings=seen(judged.report.verdict.failing),
        pulls=merges.asked.pulls,
        unasked=merges.asked.unasked,
        acceptance=merges.acceptance,
    )
    return _issue(
        services, config=config, report=judged.report, state=state, merges=merges
    )


def _issue(
    services: Services,
    config: Config,
    report: Report,
    state: IssueState,
    merges: Merges,
) -> MainIssue:
    context = services.context
    home = f"{context.server_url}/{context.repository}"
    named = structs.replace(report, report_id=config.report_id)
    return MainIssue(
        report=named,
        state=state,
        branch=context.default_branch,
        home=home,
        no_pulls=merges.unknown,
    )


def _update(
    services: Services,
    hub: Hub,
    config: Config,
    store: Store,
    judged: Judged,
    own_issue: OwnIssue,
) -> None:
    """Compare the newest commit with the last good baseline in the issue.

    The issue is closed if the branch is good again.
    """
    say = services.show.say
    sha = services.context.sha
    before = own_issue.state
    if before is None:
        say(f"issue #{own_issue.number} stays as it is: its hidden line was changed")
        return
    if sha != before.newest_sha and _is_older(
        services, config=config, sha=sha, newest_sha=before.newest_sha
    ):
        say(
            f"issue #{own_issue.number} stays as it is: it is about the newer commit"
            f" {before.newest_sha[:10]}"
        )
        return
    merges = judged.merges
    unasked = before.unasked
    if sha != before.newest_sha:
        unasked += merges.asked.unasked
    state = structs.replace(
        before,
        newest_sha=sha,
        pulls=_together(merges.asked.pulls, before.pulls),
        unasked=unasked,
        acceptance=joint_acceptance(
            filter(None, (before.acceptance, merges.acceptance))
        ),
    )
    report = _against_good(
        services, config=config, store=store, judged=judged, state=state
    )
    if report is None:
        say(
            f"issue #{own_issue.number} stays as it is: the baseline of"
            f" {before.good_sha[:10]} is not stored any more"
        )
        return
    if report.verdict.status == "unknown":
        say(
            f"issue #{own_issue.number} stays as it is: nothing could be compared with"
            f" {before.good_sha[:10]}"
        )
        return
    failing = report.verdict.failing
    if before.is_resolved and not failing:
        say(f"issue #{own_issue.number} stays as it is: a person opened it again")
        return
    state = structs.replace(
        state, findings=seen(failing) or before.findings, is_resolved=not failing
    )
    issue = _issue(services, config=config, report=report, state=state, merges=merges)
    is_written = update_issue(
        hub,
        own_issue,
        title=issue_title(issue),
        body=issue_body(issue),
        is_resolved=state.is_resolved,
    )
    if state.is_resolved:
        done = "closed"
    elif is_written:
        done = "updated"
    else:
        done = "up to date"
    say(f"issue #{own_issue.number}: {done}")


def _is_older(services: Services, config: Config, sha: str, newest_sha: str) -> bool:
    """Return whether a commit is before the newest that the issue reports.

    False if that one cannot be found.
    """
    try:
        return sha in services.git.ancestors(newest_sha, config.baseline.ancestors)
    except (InputError, NetworkError):
        return False


def _together(
    newer: tuple[MergedPull, ...], older: tuple[MergedPull, ...]
) -> tuple[MergedPull, ...]:
    """Return all merged pull requests, each once, the newest first."""
    by_number = dict[int, MergedPull]()
    for pull in (*newer, *older):
        by_number.setdefault(pull.number, pull)
    return tuple(by_number.values())


def _against_good(
    services: Services, config: Config, store: Store, judged: Judged, state: IssueState
) -> Report | None:
    """Compare the pushed commit with the last good baseline.

    None if that is not stored any more.
    """
    before = judged.push.before
    if before is not None and before.entry.sha == state.good_sha:
        return judged.report
    of_commit = stored(
        services,
        store=store,
        config=config,
        sha=state.good_sha,
        is_wanted=lambda entry: entry.sha == state.good_sha,
    )
    good = next(of_commit, None)
    if good is None:
        return None
    baseline = Baseline("the last good baseline; stored snapshot", state.good_sha)
    report = reported(
        config, base=good.snapshot, head=judged.push.snapshot, baseline=baseline
    )
    if report.verdict.failing:
        report = suspected(report, services, config)
    return structs.replace(report, verdict=accept(report.verdict, state.acceptance))
