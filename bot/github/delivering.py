"""Delivers a report: files and job summary first, which GitHub cannot lose; then comment and check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from msgspec import structs

from bot.config.configuration import Config
from bot.core.delta import STATES
from bot.core.publication import (
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
from bot.github.publishing import find, publish, publish_check, results
from bot.github.queue import queued_pulls
from bot.github.repository import labelling, may_write, open_pulls_at, pull
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
_OPTION = re.compile(r"(?<![\w-])--(model|target|out)(?![\w=-]| FILE)")
_Result = TypeVar("_Result")


class Undelivered(NetworkError):
    """A report that was handed out as far as GitHub let us: what it refused, all of it in one line."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a report goes, and by whose rules."""

    pull: int | None  # number of the pull request; None: job summary and files only
    # tip of its branch that the report is about, for the check run and against newer heads; empty for a comparison that
    # a person asked for, which is about no particular head
    head_sha: str
    run_id: int  # the run whose artifact holds the report
    config: Config
    config_name: str = ""  # path of the configuration in the repository; empty for the packaged one
    base_ref: str = ""  # the branch that the pull request goes to, and the report is about

    @classmethod
    def of(cls, services: Services, config: Config, config_name: str) -> Destination:
        """Where the report of this run goes."""
        context = services.context
        if context.pull:
            pull = context.pull
            return cls(pull.number, pull.head_sha, context.run_id, config, config_name, pull.base_ref)
        if context.queue:
            return cls(None, context.sha, context.run_id, config, config_name, context.queue.base_ref)
        by_hand = structs.replace(config, report_id=f"{config.report_id}.manual")
        return cls(services.inputs.pull_request, "", context.run_id, by_hand, config_name)


class Memory(NamedTuple):
    """What the comment that is there remembers, and what the approval label accepts now."""

    previous: CommentState | None = None  # None where there is no comment
    acceptance: Acceptance | None = None


def recalled(hub: Hub, number: int, to: Destination) -> Memory:
    """What the comment's state has, with the approval label as it is set now; raises NetworkError.

    A label accepts the findings that the comment showed, once: one that was set before there were any, or before the
    comment was last written, accepts none, and is remembered as such, or it would accept whatever comes later. One that
    was taken off takes its acceptance with it.
    """
    comments = find(hub, number, marker(to.config.report_id))
    previous = (decode(comments[0].body or "") or CommentState()) if comments else None
    label = labelling(hub, number, *approval_labels(to.config.report_id)) if to.head_sha else None
    if label is None:
        return Memory(previous)
    known = previous.acceptance if previous else None
    if known and known.event_id == label.id:
        return Memory(previous, known)
    who = label.actor.login if label.actor else ""  # the account may be gone
    if not who or not may_write(hub, who):
        return Memory(previous)
    was_seen = previous and comments[0].updated_at < label.created_at
    return Memory(previous, Acceptance(who, label.id, previous.findings if previous and was_seen else ()))


def _remembered(hub: Hub, services: Services, to: Destination) -> Memory:
    """What the comment of the pull request remembers; of a merge queue what was accepted on all that are queued."""
    if to.pull is not None:
        return recalled(hub, to.pull, to)
    queue = services.context.queue
    if queue is None:
        return Memory()
    numbers = queued_pulls(hub, services.git, queue, services.context.sha)
    memories = [recalled(hub, number, to) for number in numbers]
    accepted = [memory.acceptance for memory in memories if memory.acceptance]
    if not accepted:
        return Memory()
    who = ", ".join(sorted({acceptance.who for acceptance in accepted}))
    last = max(acceptance.event_id for acceptance in accepted)
    shown = {finding for acceptance in accepted for finding in acceptance.seen}
    return Memory(acceptance=Acceptance(who, last, tuple(sorted(shown))))


def deliver(report: Report | BotError, services: Services, to: Destination) -> int:
    """Hand a report, or why there is none, to everyone who asked; what GitHub refused is raised last, as Undelivered.

    Returns the exit code: 5 where there is no verdict, 1 where it is fail and the configuration lets that fail the job.
    """
    problems: list[NetworkError] = []
    hub, number = None if services.context.read_only else services.hub, to.pull
    has_memory = hub and (number is not None or services.context.queue)
    known = _attempt(problems, lambda: _remembered(hub, services, to)) if hub and has_memory else None
    memory = known or Memory()
    outputs, error = {"verdict": "unknown", "report-path": services.report_path}, None
    if isinstance(report, BotError):
        state = CommentState(True, acceptance=memory.acceptance)
        state_line = encode(state) if to.head_sha else ""
        summary = body = render_broken(to.config.report_id, report, _links(services), state_line)
        check = broken_check(to.config.report_id, to.base_ref, report, services.context.run_url)
        is_new, is_failure = True, False
    else:
        final = _final(report, services, to, memory)
        services.show.report(final, write_report(final, to.config.templates, services.out))
        summary, body = render_summary(final, to.config.templates), (services.out / "comment.md").read_text("utf-8")
        check = check_run(final, config_path=to.config_name, model_paths=model_paths(final), base_ref=to.base_ref)
        is_new = wants_comment(final, memory.previous, to.config.comment == "always" or not to.head_sha)
        counts = Counter(delta.state for delta in final.deltas)
        outputs |= {"verdict": final.verdict.status, "findings": str(len(final.verdict.news))}
        outputs |= {state: str(counts[state]) for state in STATES}
        error = no_verdict(final, services.out) if final.verdict.status == "unknown" else None
        is_failure = final.verdict.status == "fail" and to.config.fail_job
    if services.summary:
        write_summary(services.summary, summary)
    set_outputs(services, outputs)
    if hub and number is not None:
        # What could not be read is not overwritten: its acceptance would be lost, and nobody would know.
        url = _attempt(problems, lambda: _publish(hub, number, body, to, is_new, services)) if known else None
        if to.head_sha:
            _attempt(problems, lambda: _check(hub, number, check, to, services))
        set_outputs(services, {"comment-url": url or ""})
    elif hub and services.context.queue:
        _attempt(problems, lambda: _queue_check(hub, check, to, services))
    if problems:
        raise Undelivered("; ".join(dict.fromkeys(one.line for one in problems)))
    if isinstance(report, BotError):
        return report.exit_code
    if error:
        services.show.say(error.line)
        return error.exit_code
    return int(is_failure)


@contextmanager
def failure_delivered(services: Services, to: Callable[[], Sequence[Destination]], words: str = "") -> Iterator[None]:
    """Whatever breaks within, an error of ours too, is told where the report was to go, and raised.

    `words`: put before what broke.
    """
    try:
        yield
    except (Interrupted, Undelivered):
        raise
    except Exception as error:
        if isinstance(error, BotError):
            error.rename(lambda text: _OPTION.sub(lambda one: f"input {one[1]}{'' if one[1] == 'out' else 's'}", text))
        try:
            shown = as_bot_error(error)
            for destination in to():
                try:
                    deliver(InputError(f"{words}: {shown.line}") if words else shown, services, destination)
                except Undelivered as refused:
                    services.show.say(refused.line)
        except Exception as second:  # the first one is worth more
            services.show.say(as_bot_error(second).line)
        raise


def failure_in_summary(services: Services) -> AbstractContextManager[None]:
    """What breaks within, and was told nowhere else, is told in the job summary alone: there is no verdict, and why."""

    def summary() -> list[Destination]:
        is_delivered = "verdict" in services.outputs_set
        return [] if is_delivered else [Destination(None, "", services.context.run_id, *workspace_rules(services))]

    return failure_delivered(services, summary)


def as_bot_error(error: Exception) -> BotError:
    """The error in one line that everyone may read."""
    return error if isinstance(error, BotError) else InternalError.of(error, public=True)


def _attempt(problems: list[NetworkError], call: Callable[[], _Result]) -> _Result | None:
    try:
        return call()
    except NetworkError as error:
        problems.append(error)
        return None


def _links(services: Services) -> tuple[tuple[str, str], ...]:
    return (("workflow run", services.context.run_url),) if services.context.run_id else ()


def _final(report: Report, services: Services, to: Destination, memory: Memory) -> Report:
    """The report after the acceptance, with what its comment has to remember."""
    status = "unknown" if report.broke else report.verdict.status
    verdict = accept(structs.replace(report.verdict, status=status), memory.acceptance)
    sha = to.head_sha or report.head.source.sha or ""
    page = to.config.page_url.replace("{sha}", sha).replace("{run_id}", str(to.run_id))
    final = structs.replace(report, verdict=verdict, report_id=to.config.report_id, links=_links(services), page=page)
    state = CommentState(alarms(final), seen(verdict.findings), memory.acceptance)
    state_line = encode(state) if to.head_sha else ""
    return structs.replace(final, state_line=state_line, resolved=resolves(final, memory.previous))


def _publish(hub: Hub, number: int, body: str, to: Destination, create: bool, services: Services) -> str:
    """The comment's address; empty where there is none, or where it is another run's by now."""

    def still_current() -> bool:
        now = pull(hub, number) if to.head_sha else None
        return now is None or (now.head.sha, now.base.ref) == (to.head_sha, to.base_ref)

    url = publish(hub, number, marker(to.config.report_id), body, create=create, still_current=still_current)
    none = "no comment: nothing to say, or the pull request has a newer head or another base"
    services.show.say(f"comment: {url}" if url else none)
    return url


def _check(hub: Hub, number: int, check: CheckRun, to: Destination, services: Services) -> None:
    """The check of the commit; where other pull requests share it, and the base, it says the worst of their results.

    One more look after it is written finds those that wrote at the same time: whoever is last sees the others.
    """
    written = None
    for _ in range(_LOOKS):
        other = None if check.conclusion == "failure" else _worst_other(hub, check, to, services)
        wished = overruled_check(check, *other) if other else check
        if wished == written:
            break
        publish_check(hub, to.head_sha, wished, services.context.run_url, pull_number=number, own=check.conclusion)
        written = wished


def _queue_check(hub: Hub, check: CheckRun, to: Destination, services: Services) -> None:
    """The check of a merge queue's commit, which no other pull request has."""
    url = services.context.run_url
    publish_check(hub, to.head_sha, check, url, pull_number=0, own=check.conclusion)


def _worst_other(
    hub: Hub, check: CheckRun, to: Destination, services: Services
) -> tuple[int, Conclusion | None] | None:
    """The open pull request with the same commit and base whose result is worst, and worse than this check.

    What a fork measured does not stand for a pull request that has no result yet: that is worse than all.
    """
    others = [number for number in open_pulls_at(hub, to.head_sha, to.base_ref) if number != to.pull]
    known = results(hub, to.head_sha, check.name) if others else {}
    worst: list[Conclusion | None] = ["failure", *([] if services.context.story == "review" else [None]), "neutral"]
    ranked = [(number, conclusion) for conclusion in worst for number in others if known.get(number) == conclusion]
    return next((one for one in ranked if check.conclusion == "success" or one[1] != "neutral"), None)


def set_outputs(services: Services, values: Mapping[str, str]) -> None:
    """Set outputs of the action; nothing outside of GitHub Actions."""
    services.outputs_set.update(values)
    if services.outputs:
        write_outputs(services.outputs, values)


def suspected(report: Report, services: Services, config: Config, base: str = "", head: str = "") -> Report:
    """The report with suspects: commits of the compiler, where both sides have another one and GitHub is at hand.

    `base`, `head`: what this repository's pull request, if it is one, is compared by; in the compiler's own, that is
    what it changes.
    """
    context, repository, touched = services.context, config.compiler.repository, list[str]()
    if not repository or services.hub is None or report.base.compiler.digest in ("", report.head.compiler.digest):
        return report
    try:
        is_own = base and head and repository.casefold() == context.repository.casefold()
        touched = services.git.touched(base, head) if is_own else []
    except Interrupted:
        raise
    except BotError as error:
        note = f"what this pull request changes of the compiler is not known: {error.line}"
        report = structs.replace(report, notes=(*report.notes, note))
    hosts = context.api_url, context.server_url, services.inputs.github_token
    return with_suspects(report, github_source(*hosts, repository, services.request.cache), touched)
