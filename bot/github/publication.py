"""Write the comment and the check of a report, unless a better report is there.

Runs of the same head may end in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.check_run import CheckRun, Conclusion
from bot.errors import InputError, NetworkError
from bot.github.checks import Result, publish_check, results
from bot.github.comments import publish
from bot.github.destination import Destination
from bot.github.repository import open_pulls_at, pull
from bot.github.rows import PullRequest
from bot.github.services import Services
from bot.show.check import overruled_check
from bot.show.comment import marker
from bot.system.hub import Hub

_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Publication:
    """A report on its way to a pull request, and the name of its check."""

    hub: Hub
    services: Services
    to: Destination
    result: Result
    check: CheckRun  # of the report by itself

    def write_check(self, check: CheckRun) -> None:
        """Write a check on the commit of the report."""
        publish_check(
            self.hub,
            head_sha=self.to.head_sha,
            check=check,
            details_url=self.services.context.run_url,
            result=self.result,
        )

    def better_report(self, now: PullRequest) -> str:
        """Return which report of the same head stays in place of this one.

        Empty if this one may be written. A report without a verdict replaces no
        verdict of the same merge commit and configuration. A report of an older
        merge commit replaces no newer one. If the checks cannot be read, no
        report counts as better.
        """
        ours = self.result
        try:
            published_results = results(self.hub, self.to.head_sha, self.check.name)
        except NetworkError:
            return ""
        published = published_results.get(ours.pull_number)
        if published is None or not published.merge_sha:
            return ""
        merge_sha = ours.merge_sha or now.merge_commit_sha or ""
        if published.merge_sha == merge_sha:
            if (
                published.has_verdict
                and not ours.has_verdict
                and published.config == ours.config
            ):
                return (
                    f"run {published.run_id} has a verdict of the same merge commit, and"
                    " this run has none"
                )
            return ""
        if merge_sha == now.merge_commit_sha:
            return ""
        if published.run_id > ours.run_id or self._is_onto_older(ours, published):
            return (
                f"run {published.run_id} reported a newer merge commit,"
                f" {published.merge_sha[:10]}"
            )
        return ""

    def _is_onto_older(self, ours: Result, published: Result) -> bool:
        """Return whether our merge commit is onto an older commit of the base.

        That commit is an ancestor of the one that the other merge commit is onto.
        """
        if (
            not ours.base_sha
            or not published.base_sha
            or ours.base_sha == published.base_sha
        ):
            return False
        try:
            line = self.services.git.ancestors(
                published.base_sha, self.to.config.baseline.ancestors
            )
        except (InputError, NetworkError):
            return False
        return ours.base_sha in line


def publish_comment(
    publication: Publication, number: int, body: str, create: bool
) -> str:
    """Write the comment, and return its address.

    Empty if there is none, or if another run owns it by now.
    """
    hub = publication.hub
    to = publication.to
    reasons = ["there is nothing to report"]

    def still_current() -> bool:
        if not to.head_sha:
            return True
        now = pull(hub, number)
        if (now.head.sha, now.base.ref) != (to.head_sha, to.base_ref):
            reasons.append("the pull request has a newer head or another base")
            return False
        better = publication.better_report(now)
        if better:
            reasons.append(better)
        return not better

    url = publish(
        hub,
        number=number,
        marker=marker(to.config.report_id),
        body=body,
        create=create,
        still_current=still_current,
    )
    if url:
        line = f"comment: {url}"
    else:
        line = f"no comment: {reasons[-1]}"
    publication.services.show.say(line)
    return url


def publish_own_check(publication: Publication) -> None:
    """Write the check of the commit.

    If other pull requests share the commit and the base, the check has the worst of
    their results. It is checked once more after writing, to find results that were
    written at the same time: whoever is last sees the others.
    """
    try:
        now = pull(publication.hub, publication.result.pull_number)
        better = publication.better_report(now)
    except NetworkError:
        # nothing is known to be better, and the check can still be written
        better = ""
    if better:
        publication.services.show.say(f"no check: {better}")
        return
    written = None
    for _ in range(_LOOKS):
        check = publication.check
        if check.conclusion != "failure":
            worst_pull = _worst_other(publication)
            if worst_pull:
                check = overruled_check(check, *worst_pull)
        if check == written:
            break
        publication.write_check(check)
        written = check


def _worst_other(publication: Publication) -> tuple[int, Conclusion | None] | None:
    """Return the open pull request with the same commit and base and the worst result.

    None if no result is worse than this check. A fork's measurement does not count
    for a pull request that has no result yet. The missing result then counts as
    worse, but less than a failure.
    """
    hub = publication.hub
    to = publication.to
    context = publication.services.context
    pulls = open_pulls_at(hub, to.head_sha, to.base_ref)
    other_pulls = [number for number in pulls if number != to.pull]
    if not other_pulls:
        return None
    published = results(hub, to.head_sha, publication.check.name)
    conclusions = {number: result.conclusion for number, result in published.items()}
    worse: list[Conclusion | None] = ["failure"]
    if context.story != "review" or context.is_foreign:
        worse.append(None)
    if publication.check.conclusion == "success":
        worse.append("neutral")
    for conclusion in worse:
        for number in other_pulls:
            if conclusions.get(number) == conclusion:
                return number, conclusion
    return None
