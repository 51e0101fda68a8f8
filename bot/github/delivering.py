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
from bot.core.asked import Asked
from bot.core.delta import STATES
from bot.core.publication import (
    APPROVAL_LABEL,
    Acceptance,
    CheckRun,
    CommentState,
    Conclusion,
    accept,
    alarms,
    approval_labels,
    decode,
    encode,
    resolves,
    seen,
    wants_comment,
)
from bot.core.report import Report
from bot.errors import BotError, InputError, InternalError, Interrupted, NetworkError
from bot.explain.suspects import github_source, with_suspects
from bot.github.opening import Services, workspace_rules
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
_ID_CHARACTERS = (
    40  # of a report id, which an answer to a command extends by the comment's id
)
_OPTION = re.compile(r"(?<![\w-])--(model|target|out)(?![\w=-]| FILE)")
_Result = TypeVar("_Result")


class Undelivered(NetworkError):
    """A report that was handed out as far as GitHub let us: what it refused, all of it in one line."""


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
    config_name: str = (
        ""  # path of the configuration in the repository; empty for the packaged one
    )
    base_ref: str = (
        ""  # the branch that the pull request goes to, and the report is about
    )
    merge_sha: str = (
        ""  # the merge commit that was measured; empty where no run said so
    )
    # the commit of the base branch that the head was merged onto; empty likewise
    base_sha: str = ""

    @classmethod
    def of(cls, services: Services, config: Config, config_name: str) -> Destination:
        """Where the report of this run goes."""
        context = services.context
        if context.pull:
            pull = context.pull
            return cls(
                pull.number,
                pull.head_sha,
                context.run_id,
                config,
                config_name,
                pull.base_ref,
                merge_sha=context.sha,
                base_sha=_first_parent(services),
            )
        if context.queue:
            return cls(
                None,
                context.sha,
                context.run_id,
                config,
                config_name,
                context.queue.base_ref,
            )
        answered = f"{context.asked.comment_id}" if context.asked else "manual"
        by_hand = structs.replace(
            config, report_id=f"{config.report_id[:_ID_CHARACTERS]}.{answered}"
        )
        return cls(
            services.inputs.pull_request, "", context.run_id, by_hand, config_name
        )

    def result(self, conclusion: Conclusion, has_verdict: bool) -> Result:
        """What the check of this report remembers."""
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
    """The commit that the event's merge commit is onto.

    Empty where the clone does not have the merge commit.
    """
    try:
        parents = services.git.parents(services.context.sha)
    except InputError:
        return ""
    return parents[0] if parents else ""


class Memory(NamedTuple):
    """What the comment that is there remembers, and what the approval label accepts now."""

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
    """What the comment's state has, with the approval label as it is set now; raises NetworkError.

    `asked`: the command of this run. It accepts the findings that the report showed
    when it was written. Its acceptance stands until its comment is deleted, or until
    somebody sets a label later.

    A label accepts the findings that the comment showed, once: one that was set before
    there were any, or before the comment was last written, accepts none, and is
    remembered as such, or it would accept whatever comes later. One that was taken off
    takes its acceptance with it.
    """
    reports = find(hub, number, marker(to.config.report_id))
    report = reports[0] if reports else None
    previous = (decode(report.body or "") or CommentState()) if report else None
    if not to.head_sha:
        return Memory(previous)
    acceptance = previous.acceptance if previous else None
    is_new = (
        command
        and command.typed.verb == "accept"
        and not (acceptance and acceptance.event_id == command.comment_id)
    )
    if not command or not is_new:
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


def _accepted_before(
    hub: Hub,
    number: int,
    to: Destination,
    previous: CommentState | None,
    report: IssueComment | None,
) -> Memory:
    """What the label accepts, or what an earlier command accepted.

    `report`: the comment that has the state.
    """
    acceptance = previous.acceptance if previous else None
    label = labelling(hub, number, *approval_labels(to.config.report_id))
    if acceptance and acceptance.reason and _still_holds(hub, acceptance, label):
        return Memory(previous, acceptance)
    if label is None:
        return Memory(previous)
    if acceptance and acceptance.event_id == label.id:
        return Memory(previous, acceptance, "" if acceptance.seen else _SET_TOO_EARLY)
    who = label.actor.login if label.actor else ""  # the account may be gone
    if not who or not may_write(hub, who):
        return Memory(previous, ignored=_NOT_BY_A_WRITER)
    was_seen = report and report.updated_at < label.created_at
    findings = previous.findings if previous and was_seen else ()
    return Memory(
        previous,
        Acceptance(who, label.id, findings),
        "" if findings else _SET_TOO_EARLY,
    )


def _still_holds(hub: Hub, acceptance: Acceptance, label: IssueEvent | None) -> bool:
    """Return whether an acceptance by a command counts: its comment is there, and no label was set after it."""
    written_at = comment_written_at(hub, acceptance.event_id)
    return bool(written_at) and (
        label is None or f"{label.created_at:{MOMENT}}" <= written_at
    )


def _remembered(hub: Hub, services: Services, to: Destination) -> Memory:
    """What the comment of the pull request remembers.

    Of a merge queue what was accepted on all that are queued.
    """
    if to.pull is not None:
        return recalled(hub, number=to.pull, to=to, command=services.context.asked)
    queue = services.context.queue
    if queue is None:
        return Memory()
    numbers = queued_pulls(hub, git=services.git, queue=queue, sha=services.context.sha)
    return Memory(acceptance=accepted_on(hub, numbers, to))


def accepted_on(hub: Hub, numbers: Sequence[int], to: Destination) -> Acceptance | None:
    """What was accepted on any of these pull requests, as one acceptance; None if nothing was.

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

    What GitHub refused is raised last, as Undelivered.

    Returns the exit code: 5 where there is no verdict, 1 where it is fail and the
    configuration lets that fail the job.
    """
    problems: list[NetworkError] = []
    hub, number = None if services.context.read_only else services.hub, to.pull
    has_memory = hub and (number is not None or services.context.queue)
    remembered = (
        _attempt(problems, lambda: _remembered(hub, services, to))
        if hub and has_memory
        else None
    )
    memory = remembered or Memory()
    outputs, error = {"verdict": "unknown", "report-path": services.report_path}, None
    if isinstance(report, BotError):
        state = CommentState(True, acceptance=memory.acceptance)
        state_line = encode(state) if to.head_sha else ""
        summary = body = render_broken(
            to.config.report_id,
            error=report,
            links=_links(services),
            state_line=state_line,
        )
        check = broken_check(
            to.config.report_id,
            base_ref=to.base_ref,
            error=report,
            url=services.context.run_url,
        )
        is_new, is_failure = True, False
    else:
        final = _final(report, services=services, to=to, memory=memory)
        services.show.report(
            final, write_report(final, to.config.templates, services.out)
        )
        summary, body = (
            render_summary(final, to.config.templates),
            (services.out / "comment.md").read_text("utf-8"),
        )
        check = check_run(
            final,
            config_path=to.config_name,
            model_paths=model_paths(final),
            base_ref=to.base_ref,
        )
        is_new = wants_comment(
            final, memory.previous, to.config.comment == "always" or not to.head_sha
        )
        counts = Counter(delta.state for delta in final.deltas)
        outputs |= {
            "verdict": final.verdict.status,
            "findings": str(len(final.verdict.news)),
        }
        outputs |= {state: str(counts[state]) for state in STATES}
        error = (
            no_verdict(final, services.out)
            if final.verdict.status == "unknown"
            else None
        )
        is_failure = final.verdict.status == "fail" and to.config.fail_job
    if services.summary:
        write_summary(services.summary, summary)
    set_outputs(services, outputs)
    if hub and number is not None:
        # What could not be read is not overwritten: its acceptance would be lost, and
        # nobody would know.
        result = to.result(check.conclusion, outputs["verdict"] != "unknown")
        publication = _Publication(
            hub=hub, services=services, to=to, result=result, check_name=check.name
        )
        url = (
            _attempt(
                problems,
                lambda: _publish(publication, number=number, body=body, create=is_new),
            )
            if remembered
            else None
        )
        if to.head_sha:
            _attempt(problems, lambda: _check(publication, check))
        set_outputs(services, {"comment-url": url or ""})
    elif hub and services.context.queue:
        result = to.result(check.conclusion, outputs["verdict"] != "unknown")
        publication = _Publication(
            hub=hub, services=services, to=to, result=result, check_name=check.name
        )
        _attempt(problems, lambda: _queue_check(publication, check))
    if problems:
        raise Undelivered(
            "; ".join(dict.fromkeys(problem.line for problem in problems))
        )
    if isinstance(report, BotError):
        return report.exit_code
    if error:
        services.show.say(error.line)
        return error.exit_code
    return int(is_failure)


@contextmanager
def failure_delivered(
    services: Services, to: Callable[[], Sequence[Destination]], reason: str = ""
) -> Iterator[None]:
    """Whatever breaks within, an error of ours too, is told where the report was to go, and raised.

    `words`: put before what broke.
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
                try:
                    deliver(
                        InputError(f"{reason}: {bot_error.line}")
                        if reason
                        else bot_error,
                        services,
                        destination,
                    )
                except Undelivered as refused:
                    services.show.say(refused.line)
        except Exception as second:  # the first one is worth more
            services.show.say(as_bot_error(second).line)
        raise


def failure_in_summary(services: Services) -> AbstractContextManager[None]:
    """What breaks within, and was told nowhere else, is told in the job summary alone: there is no verdict, and why."""

    def summary() -> list[Destination]:
        is_delivered = "verdict" in services.outputs_set
        return (
            []
            if is_delivered
            else [
                Destination(
                    None, "", services.context.run_id, *workspace_rules(services)
                )
            ]
        )

    return failure_delivered(services, summary)


def as_bot_error(error: Exception) -> BotError:
    """The error in one line that everyone may read."""
    return (
        error if isinstance(error, BotError) else InternalError.of(error, public=True)
    )


def _attempt(
    problems: list[NetworkError], call: Callable[[], _Result]
) -> _Result | None:
    try:
        return call()
    except NetworkError as error:
        problems.append(error)
        return None


def _links(services: Services) -> tuple[tuple[str, str], ...]:
    return (
        (("workflow run", services.context.run_url),) if services.context.run_id else ()
    )


def _final(
    report: Report, services: Services, to: Destination, memory: Memory
) -> Report:
    """The report after the acceptance, with what its comment has to remember."""
    status = "unknown" if report.broke else report.verdict.status
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
        """True where our merge commit is onto an ancestor of the commit that the other one is onto."""
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
    """The comment's address; empty where there is none, or where it is another run's by now."""
    hub, to, say = publication.hub, publication.to, publication.services.show.say
    reasons = ["there is nothing to report"]

    def still_current() -> bool:
        if not to.head_sha:
            return True
        now = pull(hub, number)
        if (now.head.sha, now.base.ref) != (to.head_sha, to.base_ref):
            reasons.append("the pull request has a newer head or another base")
            return False
        better = publication.better_report(now)
        reasons.extend([better] if better else [])
        return not better

    url = publish(
        hub,
        number=number,
        marker=marker(to.config.report_id),
        body=body,
        create=create,
        still_current=still_current,
    )
    say(f"comment: {url}" if url else f"no comment: {reasons[-1]}")
    return url


def _check(publication: _Publication, check: CheckRun) -> None:
    """The check of the commit.

    Where other pull requests share it, and the base, it says the worst of their
    results.

    One more look after it is written finds those that wrote at the same time: whoever
    is last sees the others.
    """
    hub, to, services = publication.hub, publication.to, publication.services
    try:
        better = publication.better_report(pull(hub, publication.result.pull_number))
    except (
        NetworkError
    ):  # nothing is known to be better, and the check can still be written
        better = ""
    if better:
        services.show.say(f"no check: {better}")
        return
    written = None
    for _ in range(_LOOKS):
        worst_pull = (
            None
            if check.conclusion == "failure"
            else _worst_other(hub, check=check, to=to, services=services)
        )
        new_check = overruled_check(check, *worst_pull) if worst_pull else check
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
    """The check of a merge queue's commit, which no other pull request has."""
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
    """The open pull request with the same commit and base whose result is worst, and worse than this check.

    What a fork measured does not stand for a pull request that has no result yet: that
    is worse than all.
    """
    other_pulls = [
        number
        for number in open_pulls_at(hub, to.head_sha, to.base_ref)
        if number != to.pull
    ]
    published_results = results(hub, to.head_sha, check.name) if other_pulls else {}
    is_ours = services.context.story == "review" and not services.context.is_foreign
    worst: list[Conclusion | None] = [
        "failure",
        *([] if is_ours else [None]),
        "neutral",
    ]
    conclusions = {
        number: published_results[number].conclusion
        if number in published_results
        else None
        for number in other_pulls
    }
    ranked = [
        (number, conclusion)
        for conclusion in worst
        for number in other_pulls
        if conclusions[number] == conclusion
    ]
    return next(
        (
            candidate
            for candidate in ranked
            if check.conclusion == "success" or candidate[1] != "neutral"
        ),
        None,
    )


def set_outputs(services: Services, values: Mapping[str, str]) -> None:
    """Set outputs of the action; nothing outside of GitHub Actions."""
    services.outputs_set.update(values)
    if services.outputs:
        write_outputs(services.outputs, values)


def suspected(
    report: Report, services: Services, config: Config, base: str = "", head: str = ""
) -> Report:
    """The report with suspects: commits of the compiler, where both sides have another one and GitHub is at hand.

    `base`, `head`: what this repository's pull request, if it is one, is compared by;
    in the compiler's own, that is what it changes.
    """
    context, repository, touched = (
        services.context,
        config.compiler.repository,
        list[str](),
    )
    if (
        not repository
        or services.hub is None
        or report.base.compiler.digest in ("", report.head.compiler.digest)
    ):
        return report
    try:
        is_own = (
            base and head and repository.casefold() == context.repository.casefold()
        )
        touched = services.git.touched(base, head) if is_own else []
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
