"""The releases between two sides: which are looked at, and what each step over them adds to a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from msgspec import structs
from packaging.version import Version

from bot.compiler.toolchain import between
from bot.core.explanation import Step
from bot.core.planned import SIDES
from bot.core.report import Baseline, Report
from bot.core.snapshot import Snapshot
from bot.core.spec import Places, release_in
from bot.errors import CompilerUnavailable, UsageError
from bot.show.filters import plural
from bot.study.comparison import reported, step_of
from bot.study.prepare import Work
from bot.study.run import SidePlan
from bot.study.tracing import traced

Steps = int | None  # How many of them are looked at; None for all
_CAUSES = 2


def spread(names: Sequence[str], most: Steps) -> tuple[str, ...]:
    """All, or as many as are wanted, with like distances."""
    if most is None or most >= len(names):
        return tuple(names)
    return tuple(names[(number + 1) * (len(names) + 1) // (most + 1) - 1] for number in range(most))


def with_steps(
    report: Report,
    sides: Mapping[str, Snapshot],
    work: Work,
    most: Steps,
    places: Places,
    plan: Callable[[str], SidePlan],
) -> Report:
    """The report, with what each step over the releases between base and head adds to it; each is traced.

    A root cause is found in a step where that step's own report has one of the same cause, the same words and the same
    targets. Its words hold its sums, so that what is made of several steps is in none of them, and that is told.
    Without a release between that was measured, the one step is the report itself.

    `sides`: both of a release (`release_in`); `plan`: a release → the side, ready to be measured, as `head`.
    Raises CompilerUnavailable where there is no list of releases.
    """
    first, last = (release_in(sides[side].compiler.spec) or "" for side in SIDES)
    offered = between(first, last, places, work.cancel)
    names = spread(offered, most)
    work.show.say(f"{plural(len(offered), 'release')} between {first} and {last}, {len(names)} measured")
    way = [(first, sides["base"])]
    for name in names:
        try:
            ready = plan(name)
        except (CompilerUnavailable, UsageError) as error:  # gone from the page, or without an option of the flags
            work.show.say(f"left out: {error.line}")
            continue
        way.append((name, work.measured([ready], {"base": way[-1][1]})["head"]))  # doubted against the one before
    if len(way) == 1:
        return report
    way.append((last, sides["head"]))
    plans = dict[str, SidePlan]()
    for name, _ in way:
        with suppress(CompilerUnavailable, UsageError):  # a snapshot at an end, whose compiler is gone
            plans[name] = plan(name)
    steps, seen = list[Step](), list[tuple[str, set[tuple[object, ...]]]]()
    for (old, base), (new, head) in pairwise(way):
        here = [replace(plans[name], label=side) for side, name in zip(SIDES, (old, new), strict=True) if name in plans]
        pair = traced(here, {"base": base, "head": head}, work)
        one = reported(work.config, pair["base"], pair["head"], Baseline(old), work.texts)
        low, high = sorted((Version(old), Version(new)))
        gaps = tuple(name for name in offered if low < Version(name) < high)
        steps.append(step_of(one, old, new, gaps, _CAUSES))
        seen.append((steps[-1].name, {(root.cause, root.what, root.targets) for root in one.root_causes}))
    roots = (
        structs.replace(root, seen=tuple(name for name, keys in seen if (root.cause, root.what, root.targets) in keys))
        for root in report.root_causes
    )
    return structs.replace(report, root_causes=tuple(roots), steps=tuple(steps))
