"""Show the first page of a site: the stored baselines, and links to the other pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.core.report import Report
from bot.core.slow_growth import Growth
from bot.core.snapshot import titled
from bot.show.filters import plural
from bot.show.renderers import draw, load, skeleton
from bot.show.slow_growth import growth_section
from bot.show.totals import everything

SITE_TEMPLATE = "site.html.j2"
_SHOWN_DIGITS = 10
_ABOUT = {
    "report.html": "The newest baseline against the one before",
    "report.json": "The same as JSON",
    "history.html": "All baselines: when each number changed, and why",
    "history.json": "The same as JSON",
    "history.md": "The same as text",
}


def site_page(
    report: Report,
    commits: Sequence[str],
    files: Sequence[Path],
    growths: Sequence[Growth] = (),
    templates_dir: Path | None = None,
) -> str:
    """Return the first page of a site.

    `report`: compares the newest baseline with the one before; `commits`: the commits
    that have a baseline, oldest first; `files`: the other files of the site; `growths`:
    the branch's growth since older baselines.

    Raises:
        TemplateError: a template does not work.
    """
    total = everything(report)
    return draw(
        load(SITE_TEMPLATE, templates_dir),
        skeleton=skeleton(templates_dir),
        commit=commits[-1][:_SHOWN_DIGITS],
        compiler=titled(report.head.compiler.version),
        said=(
            f"{plural(len(commits), 'baseline')},"
            f" {plural(len(report.head.cells), 'build')} in the newest"
        ),
        total=total,
        answer="site",
        blocks=(growth_section(growths),),
        links=[(file.name, _ABOUT[file.name]) for file in files],
    )
