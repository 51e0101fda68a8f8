"""The commits that may have made the root causes of a report on GitHub; what goes wrong with them is one line in it."""

from __future__ import annotations

from dataclasses import replace

from bot.config.configuration import Config
from bot.core.report import Report
from bot.errors import BotError, Interrupted
from bot.explain.suspects import github_source, with_suspects
from bot.github.services import Services


def suspected(report: Report, services: Services, config: Config, base: str, head: str) -> Report:
    """The report with suspects, where both sides have another compiler and GitHub is at hand.

    `base`, `head`: what this repository's pull request is compared by; in the compiler's own, that is what it changes.
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
        report = replace(report, notes=(*report.notes, note))
    hosts = context.api_url, context.server_url, services.inputs.github_token
    return with_suspects(report, github_source(*hosts, repository, services.request.cache), touched)
