"""`calibrate`: how much the same compile differs from itself on this machine."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_selectors, positive, spec

EXAMPLES = ("--compiler 3.13.0 --model 'mobilenet*' --target vmvx --runs 10",)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}. Without --model and --target a few cheap builds are taken. "
        "Prints a table, and the lines for the configuration."
    )
    parser.add_argument("--compiler", type=spec, required=True, metavar="SPEC", help="the compiler")
    about = "compiles of each build, at least 2 (default: %(default)s)"
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help=about)
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    from bot.cli.showing import for_log
    from bot.cli.work import work_of
    from bot.study.calibrate import calibrate

    work = work_of(arguments, {"head": arguments.compiler})
    print(for_log("\n".join(calibrate(work, arguments.runs))))
