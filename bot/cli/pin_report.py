"""`pin-report`: what another release of the compiler does, and between which releases each root cause appeared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.options import Arguments, Parser, add_format, add_out, add_selectors, add_suspects, spec, steps

if TYPE_CHECKING:
    from bot.study.run import SidePlan

EXAMPLES = ("--from 3.11.0 --to 3.13.0 --steps all --model 'mobilenet*'",)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}. The root causes lead; with --steps the releases between are measured as well, and each "
        "root cause is told with the step that has the very same. Writes pin.md beside the six files."
    )
    for option, side, text in (("from", "base", "pin before"), ("to", "head", "pin after")):
        parser.add_argument(f"--{option}", dest=side, type=spec, required=True, metavar="SPEC", help=f"the {text}")
    about = "releases between that are measured: all, none, or how many, spread evenly (default: none)"
    parser.add_argument("--steps", type=steps, default=0, metavar="N", help=about)
    add_suspects(parser)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)
    add_selectors(parser)


def run(arguments: Arguments) -> int:
    """Raises UsageError where steps are wanted, and a side is no release."""
    from msgspec.structs import replace

    from bot.cli.report import publish
    from bot.cli.work import request_of
    from bot.compiler.toolchain import offered
    from bot.config.configuration import load_config
    from bot.core.spec import MOVING, Sought, release_in
    from bot.errors import UsageError
    from bot.study.between import with_steps
    from bot.study.comparison import both_sides, reported
    from bot.study.prepare import is_snapshot
    from bot.study.tracing import traced

    most = arguments.steps
    request = request_of(arguments, {"base": arguments.base, "head": arguments.head})
    options = {"base": "--from", "head": "--to"}

    def require_release(side: str, known: bool) -> None:
        if not known:
            what = "is no release, so that there are none between"
            raise UsageError(what, where=options[side], hint="leave out --steps")

    if most != 0:  # found out before the two ends are measured: without releases there are no steps
        places = load_config(request.config, models=False).places
        for side, spec in request.specs.items():
            require_release(side, spec in MOVING or is_snapshot(spec) or bool(places.release(spec)))
        offered(places, arguments.cancel)
    work, known, baseline, plans = both_sides(request, arguments.show, arguments.cancel)
    sides = traced(plans, known, work)
    report = replace(reported(work.config, sides["base"], sides["head"], baseline, work.texts), pin=True)
    if most == 0:
        arguments.show.say("releases between the two were not looked at: --steps all measures them")
        return publish(report, work)
    for side in options:
        require_release(side, release_in(known[side].compiler.spec) is not None)

    def plan(release: str) -> SidePlan:
        return work.prepare("head", Sought(f"{work.places.project}=={release}"))

    return publish(with_steps(report, known, work, most, work.places, plan), work)
