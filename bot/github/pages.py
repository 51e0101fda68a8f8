"""The site of the stored baselines: static files, for a later job to publish.

Nothing is measured and nothing of a pull request is read: configuration and line of commits are the default branch's,
and all numbers come from the store of the same repository.
"""

from __future__ import annotations

from itertools import islice

from bot.core.report import Baseline, report_lines
from bot.core.study import named_apart, of_commit
from bot.errors import NoVerdict, UsageError
from bot.github.baselines import stored
from bot.github.opening import Services, configuration_of, require_configuration, store_of
from bot.show.history import write_history
from bot.show.page import html_pieces
from bot.show.site import site_page
from bot.study.comparison import reported
from bot.study.history import explained_history
from bot.system.files import write_atomically

MOST_BASELINES = 100  # So many baselines are on the page of history at most: the newest
_SHOWN_DIGITS = 10


def pages(services: Services) -> None:
    """Write the site to `out`.

    Raises:
        ConfigError: the branch has no configuration.
        UsageError: the run is of another branch than the default one, or of a pull request.
        NoVerdict: no baseline is stored for any of the branch's commits that are looked through.
    """
    context = services.context
    # The token may read only, but what the site says is published under the repository's name.
    is_default = bool(context.default_branch) and context.ref == f"refs/heads/{context.default_branch}"
    if context.pull or not is_default:
        what = f"pages are made only for the default branch, not for {context.ref or context.event}"
        raise UsageError(
            what,
            where="event",
            hint="start the workflow on the default branch by push, schedule, workflow_run or by hand",
        )
    config, name = configuration_of(services, services.at(""))
    if not name:
        require_configuration(services.inputs.config)
    line = stored(services, store_of(services, config), config, context.sha, a_commit=1)
    sides = [(one.entry.sha, one.snapshot) for one in islice(line, MOST_BASELINES)]
    if not sides:
        hint = "a push to the default branch stores one; check `report_id` in the configuration"
        raise NoVerdict("no baseline is stored", where=context.default_branch, hint=hint)
    # The newest against the one before, the history of all, and a page that leads there.
    (old, base), (_, head) = sides[1] if len(sides) > 1 else sides[0], sides[0]
    report = reported(config, base, head, Baseline(f"baseline of {old[:_SHOWN_DIGITS]}", old))
    out, templates, names = services.out, config.templates, [sha for sha, _ in reversed(sides)]
    write_atomically(out / "report.html", (piece.encode() for piece in html_pieces(report, templates)))
    write_atomically(out / "report.json", report_lines(report))
    study = named_apart([of_commit(sha, side) for sha, side in reversed(sides)])
    histories = write_history(explained_history(study, config), templates, out)
    files = [out / "report.html", out / "report.json", *histories]
    write_atomically(out / "index.html", site_page(report, names, files, templates).encode())
    services.show.say(f"written to {out}: {', '.join(file.name for file in (out / 'index.html', *files))}")
