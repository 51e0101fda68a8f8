"""`trace`: find the phase, the configuration and the pass of a dispatch's change."""

from __future__ import annotations

from pathlib import Path

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_cell, add_config, add_format, add_sides, add_work

EXAMPLES = (
    (
        "code-size-bot trace --base 3.11.0 --head 3.13.0 --config quick --model"
        " bert_l4_f32_dyn --target x86_64 --dispatch dispatch_1"
    ),
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nThe command compiles only this dispatch. It shows how"
        " many bytes of the change each compiler phase carries. If the configurations"
        " differ, it compiles head with base's. It divides the bytes of a large MLIR"
        " part among the passes, and counts the instructions of a code generator. Then"
        " it counts the operations after each pass. It lists the passes, the first"
        " pass after which the two sides clearly differ, and the commands that print"
        " the whole IR.\n\nA side without a SPEC gets the compiler that the"
        " configuration names."
    )
    add_cell(parser)
    about = "name of the dispatch, its first letters, or a glob"
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
    result = trace(
        request_of(arguments, specs),
        dispatch=arguments.dispatch,
        show=arguments.show,
        cancel=arguments.cancel,
    )
    blocks = list(trace_blocks(result))
    arguments.show.answer(
        lambda out: print_blocks(blocks, out),
        lambda: [canonical(trace_json(result)), b"\n"],
    )
    if not result.parting.rows:
        raise NoVerdict(
            f"was not traced: {result.parting.why}",
            where=f"{arguments.dispatch} of {result.key}",
        )
