"""Write the site of the stored baselines: static files that a later job publishes.

Nothing is measured, and nothing of a pull request is read. Configuration and commits
are the default branch's. All numbers come from the store of the same repository.
"""

from __future__ import annotations

from bot.core.report import Baseline
from bot.core.report_json import report_lines
from bot.core.study import named_apart, of_commit
from bot.github.configurations import configuration_of, require_configuration
from bot.github.services import Services
from bot.github.stored_branch import require_default_branch, stored_branch
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

    Raises ConfigError if the branch has no configuration. Raises UsageError for a
    run of another branch than the default one, or of a pull request. Raises
    NoVerdict if no baseline is stored for the commits that the bot looks at.
    """
    require_default_branch(services, "pages are")
    config, name = configuration_of(services, services.at(""))
    if not name:
        require_configuration(services.inputs.config)
    branch = stored_branch(services, config, MOST_BASELINES)
    sides = branch.sides
    # The newest against the one before, the history of all, and a page that leads
    # there.
    old, base = sides[1] if len(sides) > 1 else sides[0]
    _, head = sides[0]
    report = reported(
        config,
        base=base,
        head=head,
        baseline=Baseline(f"baseline of {old[:_SHOWN_DIGITS]}", old),
    )
    out = services.out
    templates = config.templates
    names = [sha for sha, _ in reversed(sides)]
    write_atomically(
        out / "report.html",
        (piece.encode() for piece in html_pieces(report, templates)),
    )
    write_atomically(out / "report.json", report_lines(report))
    study = named_apart([of_commit(sha, side) for sha, side in reversed(sides)])
    history = explained_history(study, config, growths=branch.growths)
    histories = write_history(history, templates, out)
    files = [out / "report.html", out / "report.json", *histories]
    write_atomically(
        out / "index.html",
        site_page(
            report,
            commits=names,
            files=files,
            growths=branch.growths,
            templates_dir=templates,
        ).encode(),
    )
    services.show.say(
        f"written to {out}:"
        f" {', '.join(file.name for file in (out / 'index.html', *files))}"
    )
