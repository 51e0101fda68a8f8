"""`fold`: make one of the executables that deduplication left apart, and tell what that saves and what it costs."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_compiler, add_flags, add_out, add_selectors, share

EXAMPLES = (
    "--compiler 3.13.0 --model 'mobilenet_v1*' --target x86_64 --out out",
    "--compiler 3.13.0 --model 'mobilebert*int8*' --max-slowdown 1% --out out",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}. Executables that deduplication left apart are made one, with what they differ in as "
        "operands; the result is compiled, and on the CPU run and timed beside the original. Writes fold.json, fold.md "
        "and the folded modules. What is not equal, or has no gain, is left and listed: that is no failure."
    )
    add_compiler(parser, "the compiler (default: compiler.head of the configuration)")
    about = "the most run time that folding may cost a build, such as 1%% (default: every fold with gain is kept)"
    parser.add_argument("--max-slowdown", type=share, metavar="PERCENT", help=about)
    about = "compile only: outputs are not compared, and nothing is timed"
    parser.add_argument("--no-run", action="store_true", help=about)
    add_flags(parser)
    add_out(parser, "the files")
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    """Raises UsageError where nobody names a compiler; NoVerdict, with the files written, where nothing compiled."""
    from bot.cli.work import work_of
    from bot.errors import NoVerdict, UsageError
    from bot.show.blocks import TERMINAL
    from bot.show.filters import plural
    from bot.show.fold import fold_blocks, write_folds
    from bot.show.renderers import print_blocks
    from bot.study.comparison import with_compiler
    from bot.study.folding import audited

    if arguments.max_slowdown is not None and arguments.no_run:
        what = "needs run times, and with --no-run there are none"
        raise UsageError(what, where="--max-slowdown", hint="leave out one of the two")
    work = with_compiler(work_of(arguments, {"head": arguments.compiler}))
    audit = audited(work, arguments.max_slowdown, runs=not arguments.no_run)
    files = write_folds(audit, work.config.templates, work.request.out)
    arguments.show.answer(lambda out: print_blocks(fold_blocks(audit, TERMINAL), out), files=files)
    if all(cell.artifact_bytes.before is None for cell in audit.cells):
        reason = next((cell.note for cell in audit.cells if cell.note), "")
        where, what = str(work.request.out / "fold.json"), f"none of {plural(len(audit.cells), 'build')} was measured"
        raise NoVerdict(what, where=where, hint=reason[:200])
