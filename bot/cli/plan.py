"""`plan`: the matrix of several runners."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_selectors, positive

EXAMPLES = ("code-size-bot plan --shards 4 --config quick",)


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "--shards", type=positive, required=True, metavar="N", help="number of shards"
    )
    add_selectors(parser)
    parser.set_defaults(compiles=False)


def run(arguments: Arguments) -> None:
    from bot.cli.work import work_of
    from bot.core.json_text import canonical
    from bot.core.sharding import matrix

    print(
        canonical(matrix(work_of(arguments).planned().cells, arguments.shards)).decode()
    )
