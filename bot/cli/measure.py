"""`measure`: one side, or a shard of it, into one snapshot file."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_compiler, add_flags, add_selectors, path, shard

EXAMPLES = (
    (
        "code-size-bot measure --compiler 3.13.0 --out head.json --config quick"
        " --shard 1/4"
    ),
)


def arguments(parser: Parser) -> None:
    add_compiler(parser, "compiler to measure", required=True)
    parser.add_argument(
        "--out", type=path, required=True, metavar="FILE", help="snapshot file to write"
    )
    about = "measure only part I of N, as `plan --shards N` lists them"
    parser.add_argument(
        "--shard", type=shard, default=(1, 1), metavar="I/N", help=about
    )
    add_flags(parser)
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    """Measure a snapshot, and write it.

    Raises:
        NoVerdict: No build was measured. A shard does not raise it, as the other
            shards may have measured some.
    """
    from bot.cli.work import work_of
    from bot.errors import NoVerdict, OutputError
    from bot.show.report_files import write_snapshot
    from bot.system.files import require_writable

    work = work_of(arguments, {"head": arguments.compiler})
    out = arguments.out
    require_writable(out.parent)
    if out.is_dir():
        raise OutputError(
            "is a directory", where=str(out), hint="--out names the snapshot file"
        )
    snapshot = work.measured([work.prepare("head", work.request.specs["head"])])["head"]
    write_snapshot(out, snapshot)
    arguments.show.wrote(f"wrote {out}")
    work.say_failed(snapshot)
    if work.request.shard[1] == 1 and not any(cell.measured for cell in snapshot.cells):
        count = len(snapshot.cells)
        first = [cell.key for cell in snapshot.cells][:1]
        if count == 1:
            problem = f"{first[0]} was not measured"
        else:
            problem = f"none of {count} builds was measured"
        failures = (cell.failure.first_line for cell in snapshot.cells if cell.failure)
        hint = next(filter(None, failures), "")[:200]
        raise NoVerdict(f"nothing compiled: {problem}", where=str(out), hint=hint)
