"""The releases between the compilers of two sides: which there are, which are looked at, and their snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from bot.compiler.tools.offered import between
from bot.config.configuration import Config
from bot.core.rules.spec import Places, release_in
from bot.core.values.snapshot import Snapshot
from bot.errors import CompilerUnavailable, UsageError
from bot.measurement.prepare import Request, Show, measured
from bot.measurement.run import SidePlan
from bot.measurement.tracing.moved_dispatches import traced
from bot.render.text.filters import plural
from bot.system.processes import Cancel

Steps = int | None
"""How many of them are looked at; None for all."""


def spread(names: Sequence[str], most: Steps) -> tuple[str, ...]:
    """All, or as many as are wanted, with like distances."""
    if most is None or most >= len(names):
        return tuple(names)
    return tuple(names[(number + 1) * (len(names) + 1) // (most + 1) - 1] for number in range(most))


Release = tuple[str, Snapshot]
Way = list[tuple[Release, Release]]
"""Each step from base to head: a release and the next that is looked at, with what was traced of what moved."""


def way_between(
    sides: Mapping[str, Snapshot],
    most: Steps,
    places: Places,
    plan: Callable[[str], SidePlan],
    request: Request,
    rules: Config,
    show: Show,
    cancel: Cancel,
) -> tuple[Way, tuple[str, ...]]:
    """The steps from base to head over the releases that are looked at, and all that are offered between the two.

    Args:
        sides: both of a release (`release_in`).
        plan: a release → the side, ready to be measured, as `head`.

    Raises CompilerUnavailable where there is no list of releases.
    """
    first, last = (release_in(sides[side].compiler.spec) or "" for side in ("base", "head"))
    offered = between(first, last, places, cancel)
    names = spread(offered, most)
    show.say(f"{plural(len(offered), 'release')} between {first} and {last}, {len(names)} measured")
    middle: list[tuple[str, Snapshot]] = []
    for name in names:
        before = middle[-1][1] if middle else sides["base"]  # each is doubted against the one before
        try:
            ready = plan(name)
        except (CompilerUnavailable, UsageError) as error:  # gone from the page, or without an option of the flags
            show.say(f"left out: {error.line}")
            continue
        middle.append((name, measured([ready], {"base": before}, request, rules, show, cancel)["head"]))
    way = [(first, sides["base"]), *middle, (last, sides["head"])]
    if not middle:
        return [(way[0], way[1])], offered
    plans: dict[str, SidePlan] = {}
    for name, _ in way:
        with suppress(CompilerUnavailable, UsageError):  # a snapshot at an end, whose compiler is gone
            plans[name] = plan(name)
    steps = Way()
    for (old, base), (new, head) in pairwise(way):
        named = {"base": old, "head": new}
        here = [replace(plans[name], label=side) for side, name in named.items() if name in plans]
        pair = traced(here, {"base": base, "head": head}, rules, request, show, cancel)
        steps.append(((old, pair["base"]), (new, pair["head"])))
    return steps, offered
