"""`merge`: the snapshots of shards become the one of an unsharded run."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, path

EXAMPLES = ("part-1.json part-2.json --out head.json",)


def arguments(parser: Parser) -> None:
    parser.add_argument("parts", nargs="+", type=path, metavar="part.json", help="snapshots of one run")
    parser.add_argument("--out", type=path, required=True, metavar="FILE", help="the snapshot to write")


def run(arguments: Arguments) -> None:
    from bot.core.sharding import merge_snapshots
    from bot.show.comment import write_snapshot
    from bot.show.filters import plural
    from bot.study.prepare import load_snapshot

    merged = merge_snapshots([(str(part), load_snapshot(part)) for part in arguments.parts])
    write_snapshot(arguments.out, merged)
    lost = merged.planned - {cell.key for cell in merged.cells}
    lacks = f"; in no part: {plural(len(lost), 'build')} of the plan, such as {min(lost)}" if lost else ""
    arguments.show.say(f"wrote {arguments.out}: {plural(len(merged.cells), 'build')}{lacks}")
