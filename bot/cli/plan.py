"""`plan`: the matrix of several runners."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_selectors, path, positive

EXAMPLES = ("--shards 4",)


def arguments(parser: Parser) -> None:
    parser.add_argument("--shards", type=positive, required=True, metavar="N", help="how many")
    about = "an earlier snapshot: spread the builds by what each cost to compile then"
    parser.add_argument("--costs", type=path, metavar="FILE", help=about)
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    from bot.cli.work import work_of
    from bot.core.json_text import canonical
    from bot.core.sharding import known_costs, matrix
    from bot.study.prepare import load_snapshot

    cells = work_of(arguments).planned().cells
    costs = known_costs(load_snapshot(arguments.costs).cells) if arguments.costs else None
    print(canonical(matrix(cells, arguments.shards, costs)).decode())
