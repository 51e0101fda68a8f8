"""`calibrate`: how much the same compile differs from itself on this machine, or what thresholds would have said."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_selectors, count, path, positive, spec
from bot.errors import UsageError

EXAMPLES = (
    "--compiler 3.13.0 --model 'mobilenet*' --target vmvx --runs 10",
    "--replay nightly/*.json --config code-size.yml --alarms 1",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}. Without --model and --target a few cheap builds are taken. "
        "Prints a table, and the lines for the configuration. With --replay: what the thresholds would have said of "
        "changes that were measured before."
    )
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--compiler", type=spec, metavar="SPEC", help="the compiler")
    about = (
        "measure nothing, but hold each of these against the one before, by the configuration's thresholds: snapshots "
        "in their order, or one history.json"
    )
    one.add_argument("--replay", type=path, nargs="+", default=[], metavar="FILE", help=about)
    about = "with --replay: tell for each rule the smallest level that alarms in so many of the steps at most"
    parser.add_argument("--alarms", type=count, metavar="N", help=about)
    about = "compiles of each build, at least 2 (default: %(default)s)"
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help=about)
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    from bot.cli.showing import for_log
    from bot.cli.work import work_of
    from bot.show.renderers import print_blocks
    from bot.study.calibrate import calibrate, replay

    if arguments.alarms is not None and not arguments.replay:
        raise UsageError("is for a replay", where="--alarms", hint="give --replay, too")
    work = work_of(arguments, {"head": arguments.compiler}, models=not arguments.replay)
    if arguments.replay:
        blocks = replay(work, arguments.replay, arguments.alarms)
        arguments.show.answer(lambda out: print_blocks(blocks, out))
    else:
        print(for_log("\n".join(calibrate(work, arguments.runs))))
