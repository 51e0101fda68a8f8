"""`merge`: the snapshots of shards become the one of an unsharded run."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import path

EXAMPLES = (
    (
        "code-size-bot measure --compiler 3.13.0 --config quick --target vmvx --shard"
        " 1/2 --out part-1.json"
    ),
    (
        "code-size-bot measure --compiler 3.13.0 --config quick --target vmvx --shard"
        " 2/2 --out part-2.json"
    ),
    "code-size-bot merge part-1.json part-2.json --out head.json",
)


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "parts",
        nargs="+",
        type=path,
        metavar="part.json",
        help="snapshots of all shards of a run",
    )
    parser.add_argument(
        "--out", type=path, required=True, metavar="FILE", help="snapshot file to write"
    )


def run(arguments: Arguments) -> None:
    from bot.core.sharding import merge_snapshots
    from bot.show.filters import plural
    from bot.show.report_files import write_snapshot
    from bot.study.snapshot_files import load_snapshot

    merged = merge_snapshots(
        [(str(part), load_snapshot(part)) for part in arguments.parts]
    )
    write_snapshot(arguments.out, merged)
    lost = merged.planned - {cell.key for cell in merged.cells}
    lacks = ""
    if lost:
        lacks = (
            f" ({plural(len(lost), 'planned build')} missing from all parts, such as"
            f" {min(lost)})"
        )
    arguments.show.wrote(
        f"wrote {arguments.out}: {plural(len(merged.cells), 'build')}{lacks}"
    )
