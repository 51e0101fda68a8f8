"""Deliver a report to everyone who asked for it.

The files and the job summary come first, because GitHub cannot lose them. The comment
and the check come after them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

from msgspec import structs

from bot.core.acceptance import (
    accept,
    seen,
)
from bot.core.check_run import CheckRun
from bot.core.comment_state import CommentState, encode
from bot.core.delta import STATES
from bot.core.publication import alarms, resolves, wants_comment
from bot.core.report import Report
from bot.errors import BotError, InputError, InternalError, Interrupted, NetworkError
from bot.github.acceptance import Memory, remembered
from bot.github.configurations import workspace_rules
from bot.github.destination import Destination
from bot.github.publication import (
    Publication,
    publish_comment,
    publish_own_check,
)
from bot.github.runner import write_summary
from bot.github.services import Services
from bot.show.annotations import model_paths
from bot.show.check import broken_check, check_run
from bot.show.comment import render_broken, render_summary
from bot.show.report_files import write_report
from bot.study.comparison import no_verdict

_OPTION = re.compile(r"(?<![\w-])--(model|target|out)(?![\w=-]| FILE)")
_Result = TypeVar("_Result")


class Undelivered(NetworkError):
    """What GitHub refused, in one line; the rest of the report was delivered."""


def deliver(report: Report | BotError, services: Services, to: Destination) -> int:
    """Hand a report, or why there is none, to everyone who asked.

    Returns the exit code. It is 5 if there is no verdict. It is 1 if the verdict is
    fail and the configuration lets that fail the job.

    Raises Undelivered, last of all, if GitHub refused something.
    """
    problems: list[NetworkError] = []
    hub = services.hub
    is_published = to.pull is not None or services.context.queue
    if services.context.read_only or not is_published:
        hub = None
    memory: Memory | None = None
    if hub:
        memory = _attempt(problems, partial(remembered, hub, services, to))
    if isinstance(report, BotError):
        written = _written_broken(report, services, to, memory or Memory())
    else:
        written = _written(report, services, to, memory or Memory())
    if services.summary:
        write_summary(services.summary, written.summary)
    services.set_outputs(written.outputs)
    if hub:
        has_verdict = written.outputs["verdict"] != "unknown"
        result = to.result(written.check.conclusion, has_verdict)
        publication = Publication(
            hub=hub, services=services, to=to, result=result, check=written.check
        )
        # What could not be read is not overwritten: its acceptance would be lost, and
        # nobody would know.
        may_comment = memory is not None
        _published(publication, written, problems, may_comment=may_comment)
    if problems:
        lines = dict.fromkeys(problem.line for problem in problems)
        raise Undelivered("; ".join(lines))
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


def report_outputs(report: Report, services: Services) -> dict[str, str]:
    """Return the outputs of the action for a report."""
    counts = Counter(delta.state for delta in report.deltas)
    return {
        "verdict": report.verdict.status,
        "report-path": services.report_path,
        "findings": str(len(report.verdict.news)),
        **{state: str(counts[state]) for state in STATES},
    }


def _written(
    report: Report, services: Services, to: Destination, memory: Memory
) -> _Written:
    """Write a report below the output directory, and show it."""
    final = _final(report, services=services, to=to, memory=memory)
    services.show.report(final, write_report(final, to.config.templates, services.out))
    status = final.verdict.status
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
        outputs=report_outputs(final, services),
        is_new=wants_comment(
            final, memory.previous, to.config.comment == "always" or not to.head_sha
        ),
        is_failure=status == "fail" and to.config.fail_job,
        error=no_verdict(final, services.out) if status == "unknown" else None,
    )


def _published(
    publication: Publication,
    written: _Written,
    problems: list[NetworkError],
    *,
    may_comment: bool,
) -> None:
    """Write the comment and the check; collect what GitHub refused as problems."""
    number = publication.to.pull
    if number is None:
        _attempt(problems, lambda: publication.write_check(written.check))
        return
    url: str | None = None
    if may_comment:
        url = _attempt(
            problems,
            lambda: publish_comment(
                publication, number=number, body=written.body, create=written.is_new
            ),
        )
    if publication.to.head_sha:
        _attempt(problems, lambda: publish_own_check(publication))
    publication.services.set_outputs({"comment-url": url or ""})


@contextmanager
def failure_delivered(
    services: Services, to: Callable[[], Sequence[Destination]], reason: str = ""
) -> Iterator[None]:
    """Deliver an error that is raised inside to the places of the report.

    The error is raised again. One of ours then names inputs in place of options.

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
