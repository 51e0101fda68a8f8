"""Delivers a report: files and job summary first, which GitHub cannot lose; then comment and check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from msgspec import structs

from bot.config.configuration import Config
from bot.core.delta import STATES
from bot.core.policy import Verdict
from bot.core.publication import (
    APPROVAL_LABEL,
    Acceptance,
    CheckRun,
    CommentState,
    Conclusion,
    Seen,
    accept,
    alarms,
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
from bot.github.repository import labelling, may_write, open_pulls_at, pull
from bot.github.runner import annotation_command, write_outputs, write_summary
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
_OPTION = re.compile(r"(?<![\w-])--(model|target|out)(?![\w=-])")
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
        by_hand = structs.replace(config, report_id=f"{config.report_id}.manual")
        return cls(services.inputs.pull_request, "", context.run_id, by_hand, config_name)


@dataclass(frozen=True, slots=True)
class Memory:
    """What the comment that is there already remembers."""

    previous: CommentState | None = None  # None where there is no comment
    acceptances: tuple[Acceptance, ...] = ()
    label_known: bool = True  # False where GitHub did not say whether the approval label is set

    def shown(self, verdict: Verdict) -> tuple[Seen, ...]:
        """The findings that a label may accept later: where it may be set already, not those of this report."""
        if self.label_known:
            return seen(verdict.findings)
        return self.previous.findings if self.previous else ()


def recalled(problems: list[NetworkError], hub: Hub, to: Destination) -> Memory | None:
    """What the comment's state has, with the approval label as it is set now; None where the comments cannot be read.

    A label that cannot be read is taken to be as the comment remembers it.
    """
    number = to.pull
    if number is None:
        return Memory()
    comments = _attempt(problems, lambda: find(hub, number, marker(to.config.report_id)))
    if comments is None:
        return None
    previous = (decode(comments[0].body or "") or CommentState("", 0)) if comments else None
    known = Memory(previous, previous.acceptances if previous else ())
    return _attempt(problems, lambda: _with_label(hub, to, number, known)) or replace(known, label_known=False)


def _with_label(hub: Hub, to: Destination, number: int, memory: Memory) -> Memory:
    """The memory with the approval label as it is set now; one that was taken off takes its acceptance with it.

    A label accepts the findings that the comment shows, once: one that was set before there were any accepts none, and
    is remembered as such, or it would accept whatever comes later.
    """
    label = labelling(hub, number, APPROVAL_LABEL) if to.head_sha else None
    event_id = label.id if label else None
    acceptances = tuple(one for one in memory.acceptances if one.how != "label" or one.event_id == event_id)
    who = label.actor.login if label and label.actor else ""  # the account may be gone
    if label and all(one.how != "label" for one in acceptances) and who and may_write(hub, who):
        shown = memory.previous.findings if memory.previous else ()
        acceptances += (Acceptance(who, f"label {APPROVAL_LABEL}", "label", label.id, shown),)
    return replace(memory, acceptances=acceptances)


def deliver(report: Report | BotError, services: Services, to: Destination, extra: Sequence[Acceptance] = ()) -> int:
    """Hand a report, or why there is none, to everyone who asked; what GitHub refused is raised last, as Undelivered.

    Returns the exit code: 5 where there is no verdict, 1 where it is fail and the configuration lets that fail the job.

    `extra`: acceptances that the comment does not remember yet.
    """
    problems: list[NetworkError] = []
    hub = services.hub if to.pull is not None and not services.context.read_only else None
    known = recalled(problems, hub, to) if hub else None
    memory = known or Memory()
    # Each once: a job that runs again must not accept what has grown since.
    taken = {(one.how, one.event_id) for one in memory.acceptances}
    new = (one for one in extra if (one.how, one.event_id) not in taken)
    memory = replace(memory, acceptances=(*memory.acceptances, *new))
    outputs, error = {"verdict": "unknown", "report-path": services.report_path}, None
    if isinstance(report, BotError):
        state = CommentState(to.head_sha, to.run_id, True, acceptances=memory.acceptances, base_ref=to.base_ref)
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
    if services.outputs and services.context.read_only:
        for annotation in check.annotations[:10]:
            print(annotation_command(annotation))
    if hub:
        # What could not be read is not overwritten: its acceptances would be lost, and nobody would know.
        url = _attempt(problems, lambda: _publish(hub, body, to, create=is_new, services=services)) if known else None
        _attempt(problems, lambda: _check(hub, check, to, services))
        set_outputs(services, {"comment-url": url or ""})
    if problems:
        raise _together(problems)
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


def _together(problems: Sequence[NetworkError]) -> Undelivered:
    """All in one line, the missing permissions last: one run must be enough to learn them."""
    if len(problems) == 1:
        return Undelivered(problems[0].what, where=problems[0].where, hint=problems[0].hint)
    lines = [one.what if one.permission else one.line for one in problems]
    missing = list(dict.fromkeys(one.permission for one in problems if one.permission))
    permission = f"{{{', '.join(missing)}}}" if len(missing) > 1 else "".join(missing)
    return Undelivered("; ".join(dict.fromkeys(lines)), permission=permission)


def _links(services: Services) -> tuple[tuple[str, str], ...]:
    return (("workflow run", services.context.run_url),) if services.context.run_id else ()


def _final(report: Report, services: Services, to: Destination, memory: Memory) -> Report:
    """The report after acceptances, with what its comment has to remember."""
    status = "unknown" if report.broke else report.verdict.status
    verdict = accept(structs.replace(report.verdict, status=status), memory.acceptances)
    sha = to.head_sha or report.head.source.sha or ""
    page = to.config.page_url.replace("{sha}", sha).replace("{run_id}", str(to.run_id))
    final = structs.replace(report, verdict=verdict, report_id=to.config.report_id, links=_links(services), page=page)
    state = CommentState(to.head_sha, to.run_id, alarms(final), memory.shown(verdict), memory.acceptances, to.base_ref)
    state_line = encode(state) if to.head_sha else ""
    return structs.replace(final, state_line=state_line, resolved=resolves(final, memory.previous))


def _publish(hub: Hub, body: str, to: Destination, *, create: bool, services: Services) -> str:
    number = to.pull
    if number is None:
        return ""

    def still_current() -> bool:
        now = pull(hub, number) if to.head_sha else None
        return now is None or (now.head.sha, now.base.ref) == (to.head_sha, to.base_ref)

    done = publish(hub, number, marker(to.config.report_id), body, create=create, still_current=still_current)
    words = (
        f"comment {done.action}: {done.url}"
        if done
        else "no comment: nothing to say, or the pull request has a newer head or another base"
    )
    services.show.say(words)
    return done.url if done else ""


def _check(hub: Hub, check: CheckRun, to: Destination, services: Services) -> None:
    """The check of the commit; where other pull requests share it, and the base, it says the worst of their results.

    One more look after it is written finds those that wrote at the same time: whoever is last sees the others.
    """
    if not to.head_sha or to.pull is None:
        return
    written = None
    for _ in range(_LOOKS):
        other = None if check.conclusion == "failure" else _worst_other(hub, check, to, services)
        wished = overruled_check(check, *other) if other else check
        if wished == written:
            break
        url, written = services.context.run_url, wished
        publish_check(hub, to.head_sha, wished, url, pull_number=to.pull, own=check.conclusion)


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
