"""A pull request that moves the pin: the releases between the two are measured where the input `steps` asks for it."""

from __future__ import annotations

from dataclasses import replace

from bot.compiler.caches.cell_cache import TextStore
from bot.config.configuration import Config
from bot.core.rules.spec import release_in
from bot.core.values.whole_report import Report
from bot.errors import BotError, Interrupted
from bot.github.opening import Opened
from bot.github.services import Services
from bot.measurement.between import way_between
from bot.measurement.run import SidePlan
from bot.render.view.changes import changes
from bot.render.view.facts import build_facts
from bot.reporting.steps import stepped


def told_as_pin(made: Report, services: Services, head: Opened, rules: Config) -> Report:
    """The report with root causes first, and the steps between, where two releases are all that differs.

    What goes wrong on the way is a note: the report of the two ends is whole without it.
    """
    ends = [release_in(side.compiler.spec) for side in (made.base, made.head)]
    if services.inputs.steps == 0 or None in ends or ends[0] == ends[1] or len(changes(build_facts(made))) != 1:
        return made
    pinned = replace(made, pin=True)
    try:
        return _stepped(pinned, services, head, rules)
    except Interrupted:
        raise
    except BotError as error:
        return replace(pinned, notes=(*pinned.notes, f"releases between the two were not measured: {error.line}"))


def _stepped(made: Report, services: Services, head: Opened, rules: Config) -> Report:
    sides, show, cancel = {"base": made.base, "head": made.head}, services.show, services.cancel

    def plan(release: str) -> SidePlan:
        return head.plan("head", services, release=release)

    way, offered = way_between(sides, services.inputs.steps, head.places, plan, services.request, rules, show, cancel)
    return stepped(made, way, offered, rules, TextStore(services.request.cache).load)
