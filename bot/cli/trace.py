"""`trace`: one dispatch through the passes of both compilers, and the one after which they are apart."""

from __future__ import annotations

from pathlib import Path

from bot.cli.options import Arguments, Parser, add_cell, add_config, add_format, add_sides, add_work

EXAMPLES = (
    "--model bert_l4_f32_dyn --target x86_64 --dispatch dispatch_1 --base 3.11.0 --head 3.13.0",
    "--model 'mobilenet_v1*f32*' --target riscv64 --dispatch dispatch_9 --format json",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}: it is compiled alone with its IR printed after each pass, and its operations are "
        "counted. Tells the passes, the first after which the sides are apart by a good part of what they are in the "
        "end, and the commands that print all of it."
    )
    add_cell(parser)
    about = "the dispatch: its name on either side, its beginning (dispatch_9), or a glob; base:NAME is base's alone"
    parser.add_argument("--dispatch", required=True, metavar="D", help=about)
    add_sides(parser, "compiler")
    add_format(parser, "the passes as JSON")
    parser.set_defaults(out=Path())
    add_config(parser)
    add_work(parser)


def run(arguments: Arguments) -> None:

    from bot.cli.work import request_of
    from bot.core.json_text import canonical
    from bot.errors import NoVerdict
    from bot.show.renderers import print_blocks
    from bot.show.traces import trace_blocks, trace_json
    from bot.study.trace import trace

    specs = {"base": arguments.base, "head": arguments.head, "both": arguments.compiler}
    result = trace(request_of(arguments, specs), arguments.dispatch, arguments.show, arguments.cancel)
    blocks = list(trace_blocks(result))
    arguments.show.answer(lambda out: print_blocks(blocks, out), lambda: [canonical(trace_json(result)), b"\n"])
    if not result.parting.rows:
        raise NoVerdict(f"was not traced: {result.parting.why}", where=f"{arguments.dispatch} of {result.key}")
