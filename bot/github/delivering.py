"""Delivers a report: files and job summary first, which GitHub cannot lose.

Then comment and check.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from github.IssueComment import IssueComment
from github.IssueEvent import IssueEvent
from github.PullRequest import PullRequest
from msgspec import structs

from bot.config.configuration import Config
from bot.core.acceptance import (
    APPROVAL_LABEL,
    Acceptance,
    Seen,
    accept,
    approval_labels,
    seen,
)
from bot.core.asked import Asked
from bot.core.check_run import CheckRun, Conclusion
from bot.core.comment_state import CommentState, decode, encode
from bot.core.delta import STATES
from bot.core.publication import alarms, resolves, wants_comment
from bot.core.report import Report
from bot.errors import BotError, InputError, InternalError, Interrupted, NetworkError
from bot.explain.suspects import github_source, with_suspects
from bot.github.opening import Services, judging_rules, workspace_rules
from bot.github.publishing import Result, find, publish, publish_check, results
from bot.github.queue import queued_pulls
from bot.github.repository import (
    MOMENT,
    comment_written_at,
    labelling,
    may_write,
    open_pulls_at,
    pull,
)
from bot.github.runner import write_outputs, write_summary
from bot.show.comment import (
    broken_check,
    check_run,
    marker,
    model_paths,
    overruled_check,
    render_broken,
    render_summary,
    write_report,
)
from bot.study.comparison import no_verdict
from bot.system.hub import Hub

_LOOKS = 3
_CONFIG_DIGITS = 8
# of a report id, which an answer to a command extends by the comment's id
_ID_CHARACTERS = 40
_OPTION = re.compile(r"(?<![\w-])--(model|target|out)(?![\w=-]| FILE)")
_Result = TypeVar("_Result")


class Undelivered(NetworkError):
    """Say what GitHub refused, in one line.

    The rest of the report was delivered.
    """


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a report goes, and by whose rules."""

    pull: int | None  # number of the pull request; None: job summary and files only
    # tip of its branch that the report is about, for the check run and against newer
    # heads; empty for a comparison that a person asked for, which is about no
    # particular head
    head_sha: str
    run_id: int  # the run whose artifact holds the report
    config: Config
    # path of the configuration in the repository; empty for the packaged one
    config_name: str = ""
    # the branch that the pull request goes to, and the report is about
    base_ref: str = ""
    # the merge commit that was measured; empty where no run said so
    merge_sha: str = ""
    # the commit of the base branch that the head was merged onto; empty likewise
    base_sha: str = ""

    @classmethod
    def by_judging_rules(cls, services: Services) -> Destination:
        """Return the destination of the event, named by the rules that judge it."""
        return cls.of(services, *judging_rules(services))

    @classmethod
    def of(cls, services: Services, config: Config, config_name: str) -> Destination:
        """Return where the report of this run goes."""
        context = services.context
        if context.pull:
            pull = context.pull
            return cls(
                pull.number,
                head_sha=pull.head_sha,
                run_id=context.run_id,
                config=config,
                config_name=config_name,
                base_ref=pull.base_ref,
                merge_sha=context.sha,
                base_sha=_first_parent(services),
            )
        if context.queue:
            return cls(
                None,
                head_sha=context.sha,
                run_id=context.run_id,
                config=config,
                config_name=config_name,
                base_ref=context.queue.base_ref,
            )
        if context.asked:
            answered = f"{context.asked.comment_id}"
        else:
            answered = "manual"
        by_hand = structs.replace(
            config, report_id=f"{config.report_id[:_ID_CHARACTERS]}.{answered}"
        )
        return cls(
            services.inputs.pull_request,
            head_sha="",
            run_id=context.run_id,
            config=by_hand,
            config_name=config_name,
        )

    def result(self, conclusion: Conclusion, has_verdict: bool) -> Result:
        """Return what the check of this report remembers."""
        name = hashlib.sha256(self.config_name.encode()).hexdigest()
        return Result(
            self.pull or 0,
            conclusion,
            has_verdict=has_verdict,
            merge_sha=self.merge_sha,
            base_sha=self.base_sha,
            run_id=self.run_id,
            config=name[:_CONFIG_DIGITS],
        )


def _first_parent(services: Services) -> str:
    """Return the commit that the event's merge commit is onto.

    Empty where the clone does not have the merge commit.
    """
    try:
        parents = services.git.parents(services.context.sha)
    except InputError:
        return ""
    if parents:
        return parents[0]
    return ""


class Memory(NamedTuple):
    """What the comment remembers, and what the approval label accepts now."""

    previous: CommentState | None = None  # None where there is no comment
    acceptance: Acceptance | None = None
    # why the label accepts nothing, for the reader of the report; empty where it
    # accepts something
    ignored: str = ""


_SET_TOO_EARLY = (
    f"The label {APPROVAL_LABEL} accepts none of these findings. It was set before this"
    " comment was written, or the comment that it accepted was deleted or edited. To"
    " accept them, remove the label and add it again."
)
_NOT_BY_A_WRITER = (
    f"The label {APPROVAL_LABEL} accepts nothing, because nobody with write access set"
    " it. Ask a maintainer to remove it and add it again."
)


_CHANGED_SINCE = (
    "The command accepts none of these findings, because the report changed after it."
    " To accept them, write it again."
)


def recalled(
    hub: Hub, number: int, to: Destination, command: Asked | None = None
) -> Memory:
    """Return what the comment's state has, with the approval label as it is set now.

    `command`: the command of this run. It accepts the findings that the report showed
    when it was written. Its acceptance stands until its comment is deleted, or until
    somebody sets a label later.

    A label accepts the findings that the comment showed, once: one that was set before
    there were any, or before the comment was last written, accepts none, and is
    remembered as such, or it would accept whatever comes later. One that was taken off
    takes its acceptance with it.

    Raises:
        NetworkError: where GitHub does not answer.
    """
    reports = find(hub, number, marker(to.config.report_id))
    report = reports[0] if reports else None
    previous = None
    if report:
        previous = decode(report.body or "") or CommentState()
    if not to.head_sha:
        return Memory(previous)
    if not command or not _is_new_acceptance(command, previous):
        return _accepted_before(
            hub, number=number, to=to, previous=previous, report=report
        )
    if (
        report
        and previous
        and previous.findings
        and f"{report.updated_at:{MOMENT}}" < command.written_at
    ):
        accepted = Acceptance(
            who=command.who,
            event_id=command.comment_id,
            seen=previous.findings,
            reason=command.typed.reason,
        )
        return Memory(previous, accepted)
    return _accepted_before(
        hub, number=number, to=to, previous=previous, report=report
    )._replace(ignored=_CHANGED_SINCE)


def _is_new_acceptance(command: Asked, previous: CommentState | None) -> bool:
    """Return whether a command accepts, and the comment does not remember it yet."""
    if command.typed.verb != "accept":
        return False
    acceptance = previous.acceptance if previous else None
    return not acceptance or acceptance.event_id != command.comment_id


def _accepted_before(
    hub: Hub,
    number: int,
    to: Destination,
    previous: CommentState | None,
    report: IssueComment | None,
) -> Memory:
    """Return what the label accepts, or what an earlier command accepted.

    `report`: the comment that has the state.
    """
    acceptance = previous.acceptance if previous else None
    label = labelling(hub, number, *approval_labels(to.config.report_id))
    if acceptance and acceptance.reason and _still_holds(hub, acceptance, label):
        return Memory(previous, acceptance)
    if label is None:
        return Memory(previous)
    if acceptance is None or acceptance.event_id != label.id:
        if not label.actor:  # the account is gone
            return Memory(previous, ignored=_NOT_BY_A_WRITER)
        who = label.actor.login
        if not who or not may_write(hub, who):
            return Memory(previous, ignored=_NOT_BY_A_WRITER)
        findings = _findings_before(label, previous, report)
        acceptance = Acceptance(who, label.id, findings)
    if acceptance.seen:
        return Memory(previous, acceptance)
    return Memory(previous, acceptance, _SET_TOO_EARLY)


def _findings_before(
    label: IssueEvent, previous: CommentState | None, report: IssueComment | None
) -> tuple[Seen, ...]:
    """Return the findings that the comment showed when the label was set."""
    if previous and report and report.updated_at < label.created_at:
        return previous.findings
    return ()


def _still_holds(hub: Hub, acceptance: Acceptance, label: IssueEvent | None) -> bool:
    """Return whether an acceptance by a command still counts.

    Its comment must be there, and no label may be set after it.
    """
    written_at = comment_written_at(hub, acceptance.event_id)
    return bool(written_at) and (
        label is None or f"{label.created_at:{MOMENT}}" <= written_at
    )


def _remembered(hub: Hub, services: Services, to: Destination) -> Memory:
    """Return what the comment of the pull request remembers.

    For a merge queue, this is what was accepted on all pull requests that are queued.
    """
    if to.pull is not None:
        return recalled(hub, number=to.pull, to=to, command=services.context.asked)
    queue = services.context.queue
    if queue is None:
        return Memory()
    numbers = queued_pulls(hub, git=services.git, queue=queue, sha=services.context.sha)
    return Memory(acceptance=accepted_on(hub, numbers, to))


def accepted_on(hub: Hub, numbers: Sequence[int], to: Destination) -> Acceptance | None:
    """Return what was accepted on any of these pull requests, as one acceptance.

    None if nothing was.

    `to`: has the report, and the commit that was measured.
    """
    memories = [recalled(hub, number, to) for number in numbers]
    accepted = [memory.acceptance for memory in memories if memory.acceptance]
    if not accepted:
        return None
    who = ", ".join(sorted({acceptance.who for acceptance in accepted}))
    last = max(acceptance.event_id for acceptance in accepted)
    findings = {finding for acceptance in accepted for finding in acceptance.seen}
    reasons = sorted({acceptance.reason for acceptance in accepted} - {""})
    return Acceptance(
        who=who, event_id=last, seen=tuple(sorted(findings)), reason="; ".join(reasons)
    )


def deliver(report: Report | BotError, services: Services, to: Destination) -> int:
    """Hand a report, or why there is none, to everyone who asked.

    Returns the exit code: 5 where there is no verdict, 1 where it is fail and the
    configuration lets that fail the job.

    Raises:
        Undelivered: last of all, where GitHub refused something.
    """
    problems: list[NetworkError] = []
    if services.context.read_only:
        hub = None
    else:
        hub = services.hub
    # What could not be read is not overwritten: its acceptance would be lost, and
    # nobody would know.
    remembered: Memory | None = None
    if hub and (to.pull is not None or services.context.queue):
        remembered = _attempt(problems, lambda: _remembered(hub, services, to))
    memory = remembered or Memory()
    if isinstance(report, BotError):
        written = _written_broken(report, services, to, memory)
    else:
        written = _written(report, services, to, memory)
    if services.summary:
        write_summary(services.summary, written.summary)
    set_outputs(services, written.outputs)
    if hub and (to.pull is not None or services.context.queue):
        result = to.result(
            written.check.conclusion, written.outputs["verdict"] != "unknown"
        )
        publication = _Publication(
            hub=hub,
            services=services,
            to=to,
            result=result,
            check_name=written.check.name,
        )
        may_comment = remembered is not None
        _published(publication, written, problems, may_comment=may_comment)
    if problems:
        raise Undelivered(
            "; ".join(dict.fromkeys(problem.line for problem in problems))
        )
    if isinstance(report, BotError):
        return report.exit_code
    if written.error:
        services.show.say(written.error.line)
        return written.error.exit_code
    return int(written.is_failure)


class _Written(NamedTuple):
    """A report as the files, the comment and the check have it."""

    summary: str  # the text of the job summary
    body: str  # the text of the comment
    check: CheckRun
    outputs: dict[str, str]
    is_new: bool  # whether a comment is made where there is none
    is_failure: bool = False
    error: BotError | None = None  # why a report that was made has no verdict


def _written_broken(
    error: BotError, services: Services, to: Destination, memory: Memory
) -> _Written:
    """Write why there is no report."""
    state_line = ""
    if to.head_sha:
        state_line = encode(CommentState(True, acceptance=memory.acceptance))
    text = render_broken(
        to.config.report_id,
        error=error,
        links=_links(services),
        state_line=state_line,
    )
    check = broken_check(
        to.config.report_id,
        base_ref=to.base_ref,
        error=error,
        url=services.context.run_url,
    )
    outputs = {"verdict": "unknown", "report-path": services.report_path}
    return _Written(text, text, check, outputs, is_new=True)


def _written(
    report: Report, services: Services, to: Destination, memory: Memory
) -> _Written:
    """Write a report below the output directory, and show it."""
    final = _final(report, services=services, to=to, memory=memory)
    services.show.report(final, write_report(final, to.config.templates, services.out))
    status = final.verdict.status
    counts = Counter(delta.state for delta in final.deltas)
    summary = render_summary(final, to.config.templates)
    body = (services.out / "comment.md").read_text("utf-8")
    check = check_run(
        final,
        config_path=to.config_name,
        model_paths=model_paths(final),
        base_ref=to.base_ref,
    )
    return _Written(
        summary,
        body,
        check,
        outputs={
            "verdict": status,
            "report-path": services.report_path,
            "findings": str(len(final.verdict.news)),
            **{state: str(counts[state]) for state in STATES},
        },
        is_new=wants_comment(
            final, memory.previous, to.config.comment == "always" or not to.head_sha
        ),
        is_failure=status == "fail" and to.config.fail_job,
        error=no_verdict(final, services.out) if status == "unknown" else None,
    )


def _published(
    publication: _Publication,
    written: _Written,
    problems: list[NetworkError],
    *,
    may_comment: bool,
) -> None:
    """Write the comment and the check; collect what GitHub refused as problems."""
    number = publication.to.pull
    if number is None:
        _attempt(problems, lambda: _queue_check(publication, written.check))
        return
    url: str | None = None
    if may_comment:
        url = _attempt(
            problems,
            lambda: _publish(
                publication, number=number, body=written.body, create=written.is_new
            ),
        )
    if publication.to.head_sha:
        _attempt(problems, lambda: _check(publication, written.check))
    set_outputs(publication.services, {"comment-url": url or ""})


@contextmanager
def failure_delivered(
    services: Services, to: Callable[[], Sequence[Destination]], reason: str = ""
) -> Iterator[None]:
    """Deliver an error that is raised within to where the report was to go.

    The error, which may be one of ours, is raised again.

    `reason`: put before what broke.
    """
    try:
        yield
    except (Interrupted, Undelivered):
        raise
    except Exception as error:
        if isinstance(error, BotError):
            error.rename(
                lambda text: _OPTION.sub(
                    lambda match: f"input {match[1]}{'' if match[1] == 'out' else 's'}",
                    text,
                )
            )
        try:
            bot_error = as_bot_error(error)
            for destination in to():
                shown = bot_error
                if reason:
                    shown = InputError(f"{reason}: {bot_error.line}")
                try:
                    deliver(shown, services, destination)
                except Undelivered as refused:
                    services.show.say(refused.line)
        except Exception as second:  # the first one is worth more
            services.show.say(as_bot_error(second).line)
        raise


def failure_in_summary(services: Services) -> AbstractContextManager[None]:
    """Write an error that is raised within to the job summary alone.

    It says that there is no verdict, and why. An error that was delivered elsewhere is
    not written again.
    """

    def summary() -> list[Destination]:
        if "verdict" in services.outputs_set:
            return []
        run_id = services.context.run_id
        return [Destination(None, "", run_id, *workspace_rules(services))]

    return failure_delivered(services, summary)


def as_bot_error(error: Exception) -> BotError:
    """Return the error in one line that everyone may read."""
    if isinstance(error, BotError):
        return error
    return InternalError.of(error, public=True)


def _attempt(
    problems: list[NetworkError], call: Callable[[], _Result]
) -> _Result | None:
    try:
        return call()
    except NetworkError as error:
        problems.append(error)
        return None


def _links(services: Services) -> tuple[tuple[str, str], ...]:
    if not services.context.run_id:
        return ()
    return (("workflow run", services.context.run_url),)


def _final(
    report: Report, services: Services, to: Destination, memory: Memory
) -> Report:
    """Return the report after the acceptance, with what its comment remembers."""
    if report.broke:
        status = "unknown"
    else:
        status = report.verdict.status
    verdict = accept(structs.replace(report.verdict, status=status), memory.acceptance)
    if memory.ignored and verdict.status == "fail":
        report = structs.replace(report, notes=(*report.notes, memory.ignored))
    sha = to.head_sha or report.head.source.sha or ""
    page = to.config.page_url.replace("{sha}", sha).replace("{run_id}", str(to.run_id))
    final = structs.replace(
        report,
        verdict=verdict,
        report_id=to.config.report_id,
        links=_links(services),
        page=page,
    )
    state = CommentState(alarms(final), seen(verdict.findings), memory.acceptance)
    state_line = encode(state) if to.head_sha else ""
    return structs.replace(
        final, state_line=state_line, resolved=resolves(final, memory.previous)
    )


@dataclass(frozen=True, slots=True)
class _Publication:
    """A report on its way to a pull request, and the name of its check."""

    hub: Hub
    services: Services
    to: Destination
    result: Result
    check_name: str

    def better_report(self, now: PullRequest) -> str:
        """Say which report of the same head stays in place of this one.

        Empty where this one may be written.

        A report without a verdict replaces no verdict of the same merge commit and
        configuration. A report of an older merge commit replaces no newer one. Where
        the checks cannot be read, nothing is known to be better.
        """
        ours = self.result
        try:
            published = results(self.hub, self.to.head_sha, self.check_name).get(
                ours.pull_number
            )
        except NetworkError:
            return ""
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

        It is where that commit is an ancestor of the commit that the other merge commit
        is onto.
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


def _publish(publication: _Publication, number: int, body: str, create: bool) -> str:
    """Write the comment, and return its address.

    Empty where there is none, or where it is another run's by now.
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


def _check(publication: _Publication, check: CheckRun) -> None:
    """Write the check of the commit.

    Where other pull requests share the commit and the base, the check says the worst of
    their results.

    One more look after it is written finds those that wrote at the same time: whoever
    is last sees the others.
    """
    hub = publication.hub
    to = publication.to
    services = publication.services
    try:
        better = publication.better_report(pull(hub, publication.result.pull_number))
    except NetworkError:
        # nothing is known to be better, and the check can still be written
        better = ""
    if better:
        services.show.say(f"no check: {better}")
        return
    written = None
    for _ in range(_LOOKS):
        new_check = check
        if check.conclusion != "failure":
            worst_pull = _worst_other(hub, check=check, to=to, services=services)
            if worst_pull:
                new_check = overruled_check(check, *worst_pull)
        if new_check == written:
            break
        publish_check(
            hub,
            head_sha=to.head_sha,
            check=new_check,
            details_url=services.context.run_url,
            result=publication.result,
        )
        written = new_check


def _queue_check(publication: _Publication, check: CheckRun) -> None:
    """Write the check of a merge queue's commit, which no other pull request has."""
    url = publication.services.context.run_url
    publish_check(
        publication.hub,
        head_sha=publication.to.head_sha,
        check=check,
        details_url=url,
        result=publication.result,
    )


def _worst_other(
    hub: Hub, check: CheckRun, to: Destination, services: Services
) -> tuple[int, Conclusion | None] | None:
    """Return the open pull request with the same commit and base and the worst result.

    None where no result is worse than this check.

    What a fork measured does not stand for a pull request that has no result yet: that
    is worse than all.
    """
    other_pulls = [
        number
        for number in open_pulls_at(hub, to.head_sha, to.base_ref)
        if number != to.pull
    ]
    if other_pulls:
        published_results = results(hub, to.head_sha, check.name)
    else:
        published_results = {}
    is_ours = services.context.story == "review" and not services.context.is_foreign
    worst: list[Conclusion | None] = ["failure"]
    if not is_ours:
        worst.append(None)
    if check.conclusion == "success":
        worst.append("neutral")
    conclusions: dict[int, Conclusion | None] = dict.fromkeys(other_pulls)
    for number in other_pulls:
        if number in published_results:
            conclusions[number] = published_results[number].conclusion
    for conclusion in worst:
        for number in other_pulls:
            if conclusions[number] == conclusion:
                return number, conclusion
    return None


def set_outputs(services: Services, values: Mapping[str, str]) -> None:
    """Set outputs of the action; nothing outside of GitHub Actions."""
    services.outputs_set.update(values)
    if services.outputs:
        write_outputs(services.outputs, values)


def suspected(
    report: Report, services: Services, config: Config, base: str = "", head: str = ""
) -> Report:
    """Return the report with suspects, which are commits of the compiler.

    There are some where both sides have another compiler and GitHub is at hand.

    `base`, `head`: what this repository's pull request, if it is one, is compared by;
    in the compiler's own, that is what it changes.
    """
    context = services.context
    repository = config.compiler.repository
    if (
        not repository
        or services.hub is None
        or report.base.compiler.digest in ("", report.head.compiler.digest)
    ):
        return report
    touched: list[str] = []
    try:
        is_own = repository.casefold() == context.repository.casefold()
        if base and head and is_own:
            touched = services.git.touched(base, head)
    except Interrupted:
        raise
    except BotError as error:
        note = (
            "the compiler files that this pull request changes are unknown:"
            f" {error.line}"
        )
        report = structs.replace(report, notes=(*report.notes, note))
    hosts = context.api_url, context.server_url, services.inputs.github_token
    return with_suspects(
        report, github_source(*hosts, repository, services.request.cache), touched
    )
