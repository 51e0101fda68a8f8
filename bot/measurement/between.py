"""The releases between the compilers of two sides: which there are, which are looked at, and their snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bot.compiler.tools.offered import between
from bot.core.rules.spec import Places, release_in
from bot.core.values.snapshot import Snapshot
from bot.errors import CompilerUnavailable, UsageError
from bot.inputs.config import Config
from bot.measurement.prepare import Request, Show, measured
from bot.measurement.run import SidePlan
from bot.system.processes import Cancel

Steps = int | None
"""How many of them are looked at; None for all."""


def offered_between(sides: Mapping[str, Snapshot], places: Places, cancel: Cancel) -> tuple[str, ...]:
    """The releases strictly between base and head, in this order; empty where a side is no release.

    Raises CompilerUnavailable where there is no list of releases.
    """
    ends = [release_in(sides[side].compiler.spec) for side in ("base", "head")]
    return between(ends[0], ends[1], places, cancel) if ends[0] and ends[1] else ()


def spread(names: Sequence[str], most: Steps) -> tuple[str, ...]:
    """All, or as many as are wanted, with like distances."""
    if most is None or most >= len(names):
        return tuple(names)
    return tuple(names[(number + 1) * (len(names) + 1) // (most + 1) - 1] for number in range(most))


def measure_between(
    names: Sequence[str],
    base: Snapshot,
    plan: Callable[[str], SidePlan],
    request: Request,
    rules: Config,
    show: Show,
    cancel: Cancel,
) -> list[tuple[str, Snapshot]]:
    """The snapshots of these releases, each doubted against the one before; one that cannot be had is left out.

    Args:
        plan: a release → the side, ready to be measured, as `head`.
    """
    found: list[tuple[str, Snapshot]] = []
    for name in names:
        before = found[-1][1] if found else base
        try:
            ready = plan(name)
        except (CompilerUnavailable, UsageError) as error:  # gone from the page, or without an option of the flags
            show.say(f"left out: {error.line}")
            continue
        found.append((name, measured([ready], {"base": before}, request, rules, show, cancel)["head"]))
    return found
