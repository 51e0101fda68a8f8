"""The command `pages`: the stored baselines of the default branch as static files, for a later job to publish.

Nothing is measured and nothing of a pull request is read: configuration and line of commits are the default branch's,
and all numbers come from the store of the same repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from bot.config.configuration import Config, load_config
from bot.core.rules.baseline import Entry
from bot.core.values.snapshot import Snapshot
from bot.errors import NoVerdict, UsageError
from bot.github.baselines import loaded
from bot.github.services import Services, store_of
from bot.github.starting import config_named, require_configuration
from bot.reporting.site_files import write_site
from bot.store.entries import Store, by_commit

MOST = 100
"""So many baselines are on the page of history at most: the newest."""
_BRANCHES = "refs/heads/"


def pages(services: Services) -> None:
    """Write the site to `out`.

    Raises:
        NotConfigured: the branch has no configuration.
        UsageError: the run is of another branch than the default one, or of a pull request.
        NoVerdict: no baseline is stored for any of the branch's commits that are looked through.
    """
    _require_default_branch(services)
    config = _configuration(services)
    sides = list(islice(_line(services, store_of(services, config), config), MOST))
    if not sides:
        hint = "a push to the default branch stores one; is `report_id` that of its configuration?"
        raise NoVerdict("no baseline is stored", where=services.context.default_branch, hint=hint)
    files = write_site(sides[::-1], config, services.out)
    services.show.say(f"written to {services.out}: {', '.join(file.name for file in files)}")


def _configuration(services: Services) -> Config:
    """That of the checkout; raises NotConfigured where there is none, and the packaged one is not asked for."""
    given, top = services.inputs.config, services.git.directory
    if name := config_named(given, top):
        return load_config(services.at(name), models=False)
    require_configuration(given, top, services.cancel, is_named=False)
    return load_config(models=False)


def _require_default_branch(services: Services) -> None:
    """The token may read only, but what the site says is published under the repository's name."""
    context = services.context
    wanted = f"{_BRANCHES}{context.default_branch}"
    if context.pull or context.request or not context.default_branch or context.ref != wanted:
        what = f"pages are made of the default branch alone, not of {context.ref or context.event}"
        raise UsageError(what, where="event", hint="start it by push, schedule, workflow_run or by hand there")


def _line(services: Services, store: Store, config: Config) -> Iterator[tuple[str, Snapshot]]:
    """Commit and baseline of the branch's first parents, the newest first; a damaged one is skipped."""
    at, sha = by_commit(store, config.report_id), services.context.sha
    line: Sequence[str] = (sha, *services.git.ancestors(sha, config.baseline.ancestors)) if at else ()
    for commit in line:
        if snapshot := _newest(services, store, at.get(commit, [])):
            yield commit, snapshot


def _newest(services: Services, store: Store, entries: list[Entry]) -> Snapshot | None:
    """Of one commit, what was stored last and can be read."""
    while entries:
        entry = store.newest(entries) if len(entries) > 1 else entries[0]
        if (found := loaded(services, store, entry)) is not None:
            return found
        entries.remove(entry)
    return None
