"""Add the suspects to a report: commits of the compiler that explain its changes."""

from __future__ import annotations

from msgspec import structs

from bot.config.configuration import Config
from bot.core.report import Report
from bot.errors import BotError, Interrupted
from bot.explain.github_history import github_source
from bot.explain.suspects import with_suspects
from bot.github.services import Services


def suspected(
    report: Report, services: Services, config: Config, base: str = "", head: str = ""
) -> Report:
    """Return the report with suspects, which are commits of the compiler.

    There can be suspects if the compilers of the sides differ and GitHub can be
    asked.

    `base`, `head`: the commits that this repository's pull request is compared by.
    In the compiler's own repository, the files between them are what it changes.
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
