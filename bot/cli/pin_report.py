"""`pin-report`: what another release of the compiler does, and between which releases each root cause appeared."""

from __future__ import annotations

from dataclasses import replace

from bot.cli.compare import BothSides, both_sides
from bot.cli.report import suspected
from bot.compiler.cell_cache import TextStore
from bot.compiler.toolchain import offered
from bot.config.configuration import load_config
from bot.core.policy import Verdict
from bot.core.report import Report
from bot.core.spec import MOVING, PROJECT, Places, Sought, release_in, release_of
from bot.errors import UsageError
from bot.render.markdown.comment import render_pin
from bot.reporting.writing import write_report
from bot.study.between import Steps, way_between
from bot.study.comparison import reported, require_verdict, stepped
from bot.study.prepare import Request, Show, is_snapshot, prepare, repository_at
from bot.study.run import SidePlan
from bot.study.tracing import traced
from bot.system.files import write_atomically
from bot.system.processes import Cancel

_OPTIONS = {"base": "--from", "head": "--to"}


def pin_report(request: Request, most: Steps, show: Show, cancel: Cancel) -> Verdict:
    """Compare two releases, and those between as far as they are wanted; writes the six files and `pin.md`.

    `most`: how many releases between are measured; None for all, 0 for the two ends alone.
    Raises UsageError where steps are wanted, and a side is no release.
    """
    if most != 0:  # found out before the two ends are measured: without releases there are no steps
        for side, option in _OPTIONS.items():
            spec = request.specs[side]
            if spec not in MOVING and not is_snapshot(spec) and not release_of(spec):
                raise _no_release(option)
        offered(Places(load_config(request.config, models=False).compiler.find_links), cancel)
    both = both_sides(request, show, cancel)
    texts = TextStore(request.cache).load
    sides = traced(both.plans, both.sides, both.rules, request, show, cancel)
    report = replace(reported(both.rules, sides["base"], sides["head"], both.baseline, texts), pin=True)
    if most == 0:
        show.say("releases between the two were not looked at: --steps all measures them")
    else:
        report = _with_steps(report, both, request, most, show, cancel)
    report = suspected(report, request, both.rules, cancel)
    files = write_report(report, both.rules.templates, request.out)
    write_atomically(request.out / "pin.md", render_pin(report, both.rules.templates).encode())
    show.report(report, [*files, request.out / "pin.md"])
    require_verdict(report, request.out)
    return report.verdict


def _no_release(option: str) -> UsageError:
    return UsageError("is no release, so that there are none between", where=option, hint="leave out --steps")


def _with_steps(report: Report, both: BothSides, request: Request, most: Steps, show: Show, cancel: Cancel) -> Report:
    config = load_config(request.config)
    places, repository = Places(config.compiler.find_links), repository_at(request.config, cancel)
    for side, option in _OPTIONS.items():
        if release_in(both.sides[side].compiler.spec) is None:
            raise _no_release(option)

    def plan(release: str) -> SidePlan:
        sought = Sought(f"{PROJECT}=={release}")
        return prepare("head", sought, request, config, repository, show, cancel)

    way, offered = way_between(both.sides, most, places, plan, request, both.rules, show, cancel)
    return stepped(report, way, offered, both.rules, TextStore(request.cache).load)
