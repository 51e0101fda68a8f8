"""`plan`: the matrix of several runners."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_selectors, positive

EXAMPLES = ("--shards 4",)


def arguments(parser: Parser) -> None:
    parser.add_argument("--shards", type=positive, required=True, metavar="N", help="how many")
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    from bot.cli.work import work_of
    from bot.core.json_text import canonical
    from bot.core.sharding import matrix

    print(canonical(matrix(work_of(arguments).planned().cells, arguments.shards)).decode())
