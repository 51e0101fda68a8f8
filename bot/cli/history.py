"""`history`: show what each release or stored baseline did to the code of the suite."""

from __future__ import annotations

from itertools import chain

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import (
    add_flags,
    add_format,
    add_out,
    add_selectors,
    positive,
    spec,
)

EXAMPLES = (
    "code-size-bot history --releases 3.11.0..3.13.0 --config quick --target x86_64",
    (
        "code-size-bot history --releases 3.11.0,3.13.0 --config quick --model"
        " 'mobilenet*' --format json"
    ),
)

_LAST = 100


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nA range such as 3.8.0..3.13.0 or 3.11.0..latest has"
        " all releases between its ends. The command measures the builds that are not"
        " in the cache. A build that does not compile becomes a gap with its reason."
        " The command writes history.json, history.md and history.html.\n\n--store"
        " reads stored baselines instead of releases. PLACE is data-branch or a"
        " directory (default: the store that the configuration names)."
    )
    about = "range, or SPECs separated by commas (repeatable)"
    parser.add_argument(
        "--releases",
        type=spec,
        action="append",
        default=[],
        metavar="SPECS",
        help=about,
    )
    about = "read stored baselines from PLACE"
    parser.add_argument(
        "--store", type=spec, nargs="?", const="configured", metavar="PLACE", help=about
    )
    about = f"read only the last N stored baselines (default: {_LAST})"
    parser.add_argument("--last", type=positive, metavar="N", help=about)
    add_flags(parser)
    add_format(parser, "the JSON of history.json")
    add_out(parser, "the three files")
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    """Measure or read the releases; one that cannot be had is a gap with its reason.

    Raises:
        UsageError: releases and a store are named, or neither, or nothing is found.
        CompilerUnavailable: no release is available.
        NoVerdict: nothing was measured; the files are written all the same.
    """
    from bot.cli.work import place_of_nothing, work_of
    from bot.core.history import history_lines
    from bot.core.slow_growth import Growth
    from bot.errors import NoVerdict, UsageError
    from bot.show.history import history_blocks, write_history
    from bot.show.renderers import print_blocks
    from bot.show.views import TERMINAL
    from bot.study.history import explained_history
    from bot.study.release_ranges import releases_of
    from bot.study.releases import release_study
    from bot.study.stored_history import last_stored

    if bool(arguments.releases) == bool(arguments.store):
        hint = (
            "for example --releases 3.8.0..3.13.0, or --store for the stored baselines"
        )
        raise UsageError("expects either --releases or --store", hint=hint)
    if arguments.store and arguments.flags:
        hint = "use it with --releases"
        raise UsageError(
            "stored baselines are not compiled", where="--flags", hint=hint
        )
    if arguments.releases and arguments.last is not None:
        hint = "use it with --store, or name fewer releases"
        raise UsageError("releases are named one by one", where="--last", hint=hint)
    work = work_of(arguments, models=not arguments.store)
    growths: tuple[Growth, ...] = ()
    if arguments.store:
        study, growths = last_stored(arguments.store, arguments.last or _LAST, work)
    else:
        specs = releases_of(
            tuple(arguments.releases),
            places=work.places,
            cancel=work.cancel,
            say=work.show.say,
        )
        study = release_study(specs, work)
    answer = explained_history(
        study, config=work.config, texts=work.texts, growths=growths
    )
    out = work.request.out
    if not study.measured:
        out = place_of_nothing(out, "history.json", work.show.say)
    files = write_history(answer, work.config.templates, out)
    arguments.show.answer(
        lambda console: print_blocks(history_blocks(answer, TERMINAL), console),
        lambda: history_lines(answer),
        files=files,
    )
    if not study.measured:
        columns = zip(*study.rows.values(), strict=True)
        reasons = [cell.reason for cell in chain.from_iterable(columns)]
        reasons += [variant.reason for variant in study.variants]
        hint = next(filter(None, reasons), "")[:200]
        raise NoVerdict(
            "nothing was measured", where=str(out / "history.json"), hint=hint
        )
