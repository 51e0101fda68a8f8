"""`history`: what each release of the compiler, or each stored baseline, did to the code of the suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from bot.commands.history.stored_line import default_line, opened_store
from bot.compiler.caches.cell_cache import TextStore
from bot.config.configuration import BaselineChoice, Config, load_config
from bot.core.history.history_values import History
from bot.core.history.repeats import Found
from bot.core.rules.spec import Places
from bot.errors import NoVerdict, UsageError
from bot.measurement.history.asked_for import asked_for
from bot.measurement.history.many_releases import found_releases
from bot.measurement.history.stored_baselines import found_baselines
from bot.measurement.prepare import Request, Show, require_writable
from bot.reporting.history_telling import told_history
from bot.show.history import write_history
from bot.system.git import Git
from bot.system.processes import Cancel

CONFIGURED = "configured"


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What the history is of: either is given, not both.

    Attributes:
        releases: as they were written: SPECs, ranges, lists.
        store: where baselines are: `data-branch`, `directory`, a directory, or what the configuration says; empty
            where releases are named.
        last: of the stored baselines, how many.
    """

    releases: tuple[str, ...] = ()
    store: str = ""
    last: int = 1


class HistoryShow(Show, Protocol):
    """What the story tells, its outcome included."""

    def history(self, history: History, files: Sequence[Path]) -> None:
        """What a history found, and where it was written."""


def history(request: Request, options: HistoryOptions, show: HistoryShow, cancel: Cancel) -> History:
    """Measure what is missing, and write `history.json`, `history.md` and `history.html` to `request.out`.

    A release that cannot be had is a gap with its reason, and the others go on.

    Raises:
        UsageError: releases and a store are named, or neither, or nothing is found.
        CompilerUnavailable: not one release can be had.
        NoVerdict: nothing was measured; the files are written all the same.
    """
    if bool(options.releases) == bool(options.store):
        hint = "such as --releases 3.8.0..3.13.0, or --store for the stored baselines"
        raise UsageError("name releases or a store, one of the two", hint=hint)
    config = load_config(request.config, models=not options.store)
    require_writable(request.out)
    releases = _releases(request, options, config, show, cancel)
    answer = told_history(releases, config, TextStore(request.cache).load)
    show.history(answer, write_history(answer, config.templates, request.out))
    if not any(point.measured for point in answer.points):
        reasons = (*(point.reason for point in answer.points), *(release.reason for release in answer.releases))
        raise NoVerdict(
            "nothing was measured", where=str(request.out / "history.json"), hint=next(filter(None, reasons), "")[:200]
        )
    return answer


def _releases(
    request: Request, options: HistoryOptions, config: Config, show: Show, cancel: Cancel
) -> tuple[Found, ...]:
    if options.store:
        git = Git(request.config.resolve().parent if request.config else Path.cwd(), cancel)
        with opened_store(_chosen(options.store, config.baseline), git, "--store") as store:
            line = default_line(git, config.baseline.ancestors)
            return found_baselines(store, config.report_id, line, options.last, request, show.say)
    specs = asked_for(options.releases, Places(config.compiler.find_links), cancel, show.say)
    return found_releases(specs, request, config, show, cancel)


def _chosen(where: str, configured: BaselineChoice) -> BaselineChoice:
    if where == CONFIGURED:
        return configured
    if where == "data-branch":
        return replace(configured, store="data-branch")
    directory = configured.directory if where == "directory" else where
    return replace(configured, store="directory", directory=directory)
