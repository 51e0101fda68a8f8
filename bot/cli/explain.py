"""`explain`: what a report says of one cell."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_cell, path

EXAMPLES = ("out/report.json --model bert_l4_f32_s128 --target x86_64 --dispatch dispatch_4",)


def arguments(parser: Parser) -> None:
    parser.add_argument("report", type=path, metavar="report.json", help="what a compare has written, or its directory")
    add_cell(parser)
    about = "only this dispatch, with all that is known of it: its name as it is shown, its beginning, or a glob"
    parser.add_argument("--dispatch", metavar="D", help=about)


def run(arguments: Arguments) -> None:
    from bot.show.explained import explain

    wanted = arguments.report, arguments.model, arguments.target, arguments.dispatch
    arguments.show.answer(lambda out: explain(*wanted, out))
