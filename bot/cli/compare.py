"""`compare`: both sides measured where they are not known yet, and a report of what changed."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_format, add_out, add_selectors, add_sides, add_suspects, path, spec
from bot.errors import UsageError

EXAMPLES = (
    "3.11.0 3.13.0 --config quick",
    "--base 3.13.0 --head 3.13.0 --flags='--iree-opt-level=O2' --model 'bert*'",
    "--compiler 3.13.0 --head-config edited.yml --format json",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}. With --flags or --head-config it tries them: a compiler that is named for one "
        "side is then both sides'; where none is, each side has the head of its configuration."
    )
    parser.add_argument("sides", nargs="*", type=spec, metavar="SPEC", help="the base and the head side, in this order")
    add_sides(parser, "compiler or snapshot")
    about = "models, targets and flags of the head side alone (default: --config, which has the rules in any case)"
    parser.add_argument("--head-config", type=path, metavar="FILE", help=about)
    add_suspects(parser)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)
    add_selectors(parser)


def run(arguments: Arguments) -> int:
    specs = {"base": arguments.base, "head": arguments.head, "both": arguments.compiler}
    if len(arguments.sides) > 2:
        raise UsageError(
            "two sides are compared", where=" ".join(arguments.sides), hint="`history` takes more releases"
        )
    for side, word in zip(("base", "head"), arguments.sides, strict=False):
        if specs[side]:
            raise UsageError(f"the {side} side is named twice", where=f"{word} and --{side} {specs[side]}")
        specs[side] = word

    from dataclasses import replace

    from bot.cli.report import publish
    from bot.cli.work import request_of
    from bot.config.configuration import chosen_config
    from bot.study.comparison import both_sides, reported
    from bot.study.tracing import traced

    request = request_of(arguments, specs)
    if own := arguments.head_config:
        request = replace(request, configs={"head": chosen_config(own, arguments.show.say)})
    work, known, baseline, plans = both_sides(request, arguments.show, arguments.cancel)
    sides = traced(plans, known, work)
    return publish(reported(work.config, sides["base"], sides["head"], baseline, work.texts), work)
