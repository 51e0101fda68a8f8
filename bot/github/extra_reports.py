"""Reports beside a comparison's: an experiment of the lab, the fold audit, and the site of the stored baselines.

lab: an experiment that somebody asks for by hand, of the head's models and compiler, in the job summary.
folds: the audit of a run that nobody waits for, by hand or on a schedule, never of a pull request.
pages: the stored baselines of the default branch as static files, for a later job to publish. Nothing is measured and
nothing of a pull request is read: configuration and line of commits are the default branch's, and all numbers come from
the store of the same repository.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from bot.config.experiments import chosen_experiment
from bot.core.fold import FoldOptions
from bot.core.report import Baseline, report_lines
from bot.core.study import named_apart, of_commit
from bot.errors import Interrupted, NoVerdict, UsageError
from bot.github.baselines import stored
from bot.github.delivering import as_bot_error
from bot.github.opening import (
    Opened,
    Services,
    configuration_of,
    dispatched_head,
    named_from_top,
    opened,
    require_configuration,
    store_of,
)
from bot.github.runner import write_summary
from bot.show.comment import SUMMARY_LIMIT_BYTES
from bot.show.fold import not_made, write_folds
from bot.show.history import write_history
from bot.show.lab import write_lab
from bot.show.page import html_pieces, site_page
from bot.study.comparison import of_compiler, reported
from bot.study.folding import audited
from bot.study.history import explained_history
from bot.study.lab import experimented, require_measured
from bot.study.prepare import Work, require_writable
from bot.system.files import write_atomically

FOLD_EVENTS = frozenset({"workflow_dispatch", "schedule"})
MOST_BASELINES = 100  # So many baselines are on the page of history at most: the newest
_SHOWN_DIGITS = 10


def lab(services: Services) -> int:
    """Do the experiment that the input lab names; files and job summary have what it gave."""
    require_writable(services.out)
    with opened(services, dispatched_head(services)) as (_, head):
        if head.wanted.snapshot:
            raise UsageError("an experiment needs a compiler, and this is a snapshot", where="input head")
        with named_from_top(head.tree):
            # `NAME` of the packaged experiments, or `FILE:NAME` of the repository's own.
            file, _, name = services.inputs.lab.rpartition(":")
            path = head.tree / file if file else None
            if path and not path.resolve().is_relative_to(head.tree.resolve()):
                raise UsageError(f"{file} is outside of the repository", where="input lab")
            experiment = chosen_experiment(name, path, where="input lab")
            work = _own_work(head)
            if not all(variant.compiler for variant in experiment.variants):
                work = of_compiler(work, head.sought)
            result = experimented(experiment, work)
            written = write_lab(result, work.config.templates, services.out)
        if services.summary:
            write_summary(services.summary, f"\n{(services.out / 'lab.md').read_text(encoding='utf-8')}")
        services.show.say(f"wrote {', '.join(path.name for path in written)}")
        require_measured(result, services.out)
    return 0


def _own_work(head: Opened) -> Work:
    config = head.tree / head.config_name if head.config_name else None
    return replace(head.work, request=replace(head.work.request, config=config), checkout=None)


def folds(services: Services, head: Opened) -> None:
    """Fold the head side where the input or its configuration asks for it; the section follows what was delivered.

    It goes to the job summary, and to `summary.md` where there is one and it stays within GitHub's limit. What breaks
    is told in the section's place, and takes nothing from the report.
    """
    wanted, options = services.inputs.fold, head.config.fold
    if wanted is not None:
        options = (options or FoldOptions()) if wanted else None
    if options is None or services.context.event not in FOLD_EVENTS or (head.wanted.snapshot and not wanted):
        return
    try:
        if head.wanted.snapshot:
            raise UsageError("folding needs a compiler, and this is a snapshot", where="input head")
        with named_from_top(head.tree):
            audit = audited(of_compiler(_own_work(head), head.sought), options)
            written = write_folds(audit, head.config.templates, services.out)
        section = written[-1].read_text(encoding="utf-8")
    except Interrupted:
        raise
    except Exception as error:
        line = as_bot_error(error).line
        services.show.say(f"no fold audit: {line}")
        section = not_made(line)
    if services.summary:
        write_summary(services.summary, f"\n{section}")
    path = services.out / "summary.md"
    if path.exists():
        whole = f"{path.read_text(encoding='utf-8').rstrip()}\n\n{section}".encode()
        if len(whole) <= SUMMARY_LIMIT_BYTES:
            write_atomically(path, whole)


def pages(services: Services) -> None:
    """Write the site to `out`.

    Raises:
        NotConfigured: the branch has no configuration.
        UsageError: the run is of another branch than the default one, or of a pull request.
        NoVerdict: no baseline is stored for any of the branch's commits that are looked through.
    """
    context = services.context
    # The token may read only, but what the site says is published under the repository's name.
    is_default = bool(context.default_branch) and context.ref == f"refs/heads/{context.default_branch}"
    if context.pull or context.command or not is_default:
        what = f"pages are made of the default branch alone, not of {context.ref or context.event}"
        raise UsageError(what, where="event", hint="start it by push, schedule, workflow_run or by hand there")
    config, name = configuration_of(services, services.at(""))
    if not name:
        require_configuration(services.inputs.config, services.git.directory, services.cancel, is_named=False)
    line = stored(services, store_of(services, config), config, context.sha, a_commit=1)
    sides = [(one.entry.sha, one.snapshot) for one in islice(line, MOST_BASELINES)]
    if not sides:
        hint = "a push to the default branch stores one; is `report_id` that of its configuration?"
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
