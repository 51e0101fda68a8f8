"""`compare`: measure what is not known yet of both sides, and report what changed."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import (
    add_format,
    add_out,
    add_selectors,
    add_sides,
    add_suspects,
    named_sides,
    path,
    spec,
)

EXAMPLES = (
    "code-size-bot compare 3.11.0 3.13.0 --config quick",
    (
        "code-size-bot compare --compiler 3.13.0 --flags='--iree-opt-level=O2' --config"
        " quick --model 'bert*s128'"
    ),
    (
        "code-size-bot compare out/base.json 3.13.0 --config quick --model 'bert*s128'"
        " --format json"
    ),
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nA side without a SPEC gets the compiler that the"
        " configuration names. With --flags or --head-config, one SPEC is the compiler"
        " of both sides. The thresholds always come from --config."
    )
    parser.add_argument(
        "sides", nargs="*", type=spec, metavar="SPEC", help="base side, then head side"
    )
    add_sides(parser, "compiler or snapshot")
    about = "models, targets and flags of the head side only"
    parser.add_argument("--head-config", type=path, metavar="FILE", help=about)
    add_suspects(parser)
    about = "run artifacts of failing builds in pairs, and time them"
    parser.add_argument("--run", action="store_true", dest="run_failing", help=about)
    add_format(parser, "the JSON of report.json")
    add_out(parser)
    add_selectors(parser)


def run(arguments: Arguments) -> int:
    specs = {**named_sides(arguments), "both": arguments.compiler}

    from dataclasses import replace

    from msgspec import structs

    from bot.cli.report import publish
    from bot.cli.work import request_of
    from bot.config.configuration import chosen_config
    from bot.study.both_sides import both_sides
    from bot.study.changed_defaults import changed_defaults
    from bot.study.comparison import reported
    from bot.study.laddering import laddered
    from bot.study.reproducing import commands_here
    from bot.study.run_times import run_times
    from bot.study.tracing import traced
    from bot.study.trying_flags import tried_flags

    request = request_of(arguments, specs)
    if arguments.head_config:
        config = chosen_config(arguments.head_config, arguments.show.say)
        request = replace(request, configs={"head": config})
    work, notes, baseline, plans = both_sides(request, arguments.show, arguments.cancel)
    sides = traced(plans, laddered(plans, notes, work), work)
    report = reported(
        work.config,
        base=sides["base"],
        head=sides["head"],
        baseline=baseline,
        texts=work.texts,
    )
    report = structs.replace(
        report,
        changed_flags=tried_flags(plans, report, work),
        changed_defaults=changed_defaults(plans, sides, work),
    )
    if arguments.run_failing or work.config.run == "failing":
        ran = run_times(plans, sides=sides, report=report, work=work)
        report = structs.replace(report, run_times=ran)
    arguments.show.reproduce_with(commands_here(plans, report))
    return publish(report, work)
