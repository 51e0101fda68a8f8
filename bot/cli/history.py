"""`history`: what each release of the compiler, or each stored baseline, did to the code of the suite."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_flags, add_format, add_out, add_selectors, positive, spec

EXAMPLES = (
    "--releases 3.8.0..3.13.0 --target 'llvm-cpu-*'",
    "--releases 3.11.0,3.13.0,build/tools/iree-compile --model 'mobilenet*'",
    "--store data-branch --last 50",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}: when each number of each build moved, by how much and why. Measures what the cache "
        "does not have, and writes history.json, history.md and history.html. Where a model does not compile there is "
        "a gap with its reason."
    )
    about = (
        "a range of releases with all that are offered between (3.8.0..3.13.0, 3.11.0..latest), or any SPECs and "
        "snapshots; repeatable, and with commas between"
    )
    parser.add_argument("--releases", type=spec, action="append", default=[], metavar="SPECS", help=about)
    about = (
        "the stored baselines in place of releases: data-branch, or a directory (default: where the configuration "
        "keeps them)"
    )
    parser.add_argument("--store", type=spec, nargs="?", const="configured", metavar="PLACE", help=about)
    about = "with --store: only the last N that were stored (default: %(default)s)"
    parser.add_argument("--last", type=positive, default=100, metavar="N", help=about)
    add_flags(parser)
    add_format(parser, "what history.json has, and nothing else,")
    add_out(parser, "the three files")
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    """A release that cannot be had is a gap with its reason, and the others go on.

    Raises:
        UsageError: releases and a store are named, or neither, or nothing is found.
        CompilerUnavailable: not one release can be had.
        NoVerdict: nothing was measured; the files are written all the same.
    """
    from bot.cli.work import work_of
    from bot.core.history import history_lines
    from bot.errors import NoVerdict, UsageError
    from bot.show.blocks import TERMINAL
    from bot.show.history import history_blocks, write_history
    from bot.show.renderers import print_blocks
    from bot.study.history import explained_history, last_stored, release_study
    from bot.study.specs import releases_of

    if bool(arguments.releases) == bool(arguments.store):
        hint = "such as --releases 3.8.0..3.13.0, or --store for the stored baselines"
        raise UsageError("name releases or a store, one of the two", hint=hint)
    work = work_of(arguments, models=not arguments.store)
    if arguments.store:
        study = last_stored(arguments.store, arguments.last, work)
    else:
        specs = releases_of(tuple(arguments.releases), work.places, work.cancel, work.show.say)
        study = release_study(specs, work)
    answer = explained_history(study, work.config, work.texts)
    files = write_history(answer, work.config.templates, work.request.out)
    arguments.show.answer(
        lambda out: print_blocks(history_blocks(answer, TERMINAL), out), lambda: history_lines(answer), files=files
    )
    if not study.measured:
        of_cells = (row[at].reason for at in range(len(study.variants)) for row in study.rows.values())
        reasons = (*of_cells, *(one.reason for one in study.variants))
        hint = next(filter(None, reasons), "")[:200]
        raise NoVerdict("nothing was measured", where=str(work.request.out / "history.json"), hint=hint)
