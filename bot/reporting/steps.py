"""The way from base to head over the releases between them: a report of each step, and where root causes stand in them.

A root cause is found in a step where that step's own report has one of the same cause, the same words and the same
targets. Its words hold its sums, so that what is made of several steps is in none of them, and that is what is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packaging.version import Version

from bot.config.configuration import Config
from bot.core.values.root_cause import RootCause, Step
from bot.core.values.snapshot import Snapshot
from bot.core.values.whole_report import Baseline, Report
from bot.insight.facts.precision import Texts, no_texts
from bot.render.view.facts import build_facts
from bot.render.view.totals import everything
from bot.reporting.making import reported

_CAUSES = 2
_LEAST = 2
"""Without a release between the two ends the one step is the report itself."""
Release = tuple[str, Snapshot]


def stepped(
    made: Report,
    way: Sequence[tuple[Release, Release]],
    offered: Sequence[str],
    config: Config,
    texts: Texts = no_texts,
) -> Report:
    """The report, with what each step of the way adds to it.

    Args:
        way: each step over the releases measured between, in order.
        offered: all releases that there are between base and head.
    """
    if len(way) < _LEAST:
        return made
    steps, seen = list[Step](), list[tuple[str, set[tuple[object, ...]]]]()
    for (old, base), (new, head) in way:
        one = reported(config, base, head, Baseline(old), texts)
        first, last = sorted((Version(old), Version(new)))
        skipped = sum(first < Version(name) < last for name in offered)
        steps.append(_step(old, new, skipped, one))
        seen.append((steps[-1].name, {_key(root) for root in one.root_causes}))
    roots = (replace(r, seen=tuple(name for name, keys in seen if _key(r) in keys)) for r in made.root_causes)
    return replace(made, root_causes=tuple(roots), steps=tuple(steps))


def _key(root: RootCause) -> tuple[object, ...]:
    return root.cause, root.what, root.targets


def _step(old: str, new: str, skipped: int, one: Report) -> Step:
    total = everything(build_facts(one))
    broken = sum(delta.state == "newly-broken" for delta in one.deltas)
    causes = tuple((root.what, root.total.net_bytes) for root in one.root_causes[:_CAUSES] if root.total.absolute_bytes)
    return Step(old, new, skipped, total.base, total.head, total.larger, total.smaller, broken, causes)
