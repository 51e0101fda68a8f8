"""`explain`: what a report says of one cell."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_cell, path

EXAMPLES = (
    "code-size-bot compare 3.11.0 3.13.0 --config quick --target x86_64",
    "code-size-bot explain out/report.json --model bert_l4_f32_s128 --target x86_64",
)


def arguments(parser: Parser) -> None:
    about = "report that `compare` or `report` wrote, or its directory"
    parser.add_argument("report", type=path, metavar="report.json", help=about)
    add_cell(parser)
    about = "show one dispatch: its name, its first letters, or a glob"
    parser.add_argument("--dispatch", metavar="D", help=about)


def run(arguments: Arguments) -> None:
    from bot.show.explained import explain

    names = arguments.report, arguments.model, arguments.target, arguments.dispatch
    arguments.show.answer(lambda out: explain(*names, out))
