"""`fold`: merge near-duplicate executables, and measure the saving and its cost."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_compiler, add_flags, add_out, add_selectors, share

EXAMPLES = (
    (
        "code-size-bot fold --compiler 3.13.0 --config quick --model"
        " mobilenet_v1_f32_224 --target x86_64 --no-run"
    ),
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nThe command merges near-duplicate executables that"
        " deduplication did not merge. Their differing values become operands. On the"
        " CPU, it runs the program before and after, and compares outputs and times."
        " It drops a merge that changes outputs or saves nothing, and lists it with"
        " the reason.\n\nThe command writes fold.json, fold.md, fold.html and the"
        " merged modules."
    )
    add_compiler(parser, "compiler to measure (default: compiler.head)")
    about = "largest allowed slowdown, such as 1%% (default: any)"
    parser.add_argument("--max-slowdown", type=share, metavar="MAX", help=about)
    parser.add_argument(
        "--no-run", action="store_true", help="compile only: run and time nothing"
    )
    add_flags(parser)
    add_out(parser, "the files")
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    """Merge near-duplicate executables, and write what that saves.

    Raises:
        UsageError: Nobody names a compiler.
        NoVerdict: Nothing compiled; the files are written all the same.
    """
    from bot.cli.work import place_of_nothing, work_of
    from bot.errors import NoVerdict, UsageError
    from bot.fold.auditing import audited
    from bot.fold.showing import fold_blocks, write_folds
    from bot.show.filters import plural
    from bot.show.renderers import print_blocks
    from bot.show.views import TERMINAL
    from bot.study.named_compilers import with_compiler

    if arguments.max_slowdown is not None and arguments.no_run:
        problem = "needs run times, and --no-run measures none"
        raise UsageError(
            problem, where="--max-slowdown", hint="remove one of the two options"
        )
    work = with_compiler(work_of(arguments, {"head": arguments.compiler}))
    audit = audited(work, arguments.max_slowdown, runs=not arguments.no_run)
    out = work.request.out
    is_empty = all(cell.artifact_bytes.before is None for cell in audit.cells)
    if is_empty:
        out = place_of_nothing(out, "fold.json", work.show.say)
    files = write_folds(audit, work.config.templates, out)
    arguments.show.answer(
        lambda console: print_blocks(fold_blocks(audit, TERMINAL), console), files=files
    )
    if is_empty:
        reason = next((cell.note for cell in audit.cells if cell.note), "")
        where = str(out / "fold.json")
        problem = f"none of {plural(len(audit.cells), 'build')} was measured"
        raise NoVerdict(problem, where=where, hint=reason[:200])
