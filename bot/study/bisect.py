"""Search for the first bad candidate, and report the step that the bisection finds."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.config.units import parse_amount
from bot.core.bisecting import (
    Bisection,
    Bracket,
    Candidate,
    Judged,
    bracket,
    judged,
    values_of,
)
from bot.core.delta import CellDelta
from bot.core.explanation import Explanation
from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.near import near_or_known
from bot.core.planned import SIDES, narrowed, only_cell
from bot.core.report import Baseline, Report
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.spec import release_in
from bot.core.study import GAPS
from bot.errors import NoVerdict, UsageError
from bot.explain.suspects import with_suspects
from bot.show.bisect import candidate_words
from bot.show.filters import amount, plural
from bot.show.filters import sides as sides_in_words
from bot.study.comparison import reported, source_of
from bot.study.prepare import Work, is_snapshot, load_snapshot
from bot.study.specs import candidates_of
from bot.study.tracing import traced

# So many other metrics are named that changed in the step that was found
_MOST_CHANGES = 4


def metric_of(name: str, metrics_of_command: Mapping[str, Metric]) -> Metric:
    """Return the metric of that id.

    `metrics_of_command`: those that the configuration declares.

    Raises:
        UsageError: there is none, or it varies from run to run.
    """
    metrics = {**METRIC_BY_ID, **metrics_of_command}
    if name not in metrics:
        raise UsageError(
            f"no metric is called {name!r}",
            where="--metric",
            hint=near_or_known(name, tuple(metrics)),
        )
    if not metrics[name].exact:
        problem = f"{name} varies from run to run: it cannot separate good from bad"
        raise UsageError(problem, where="--metric", hint="name another metric")
    return metrics[name]


def limit_of(metric: Metric, text: str | None) -> int | None:
    """Return the limit that was written, if any, in the metric's unit.

    Raises:
        UsageError: it is not an amount of that unit.
    """
    if text is None:
        return None
    try:
        return parse_amount(text).steps(metric.unit)
    except ValueError as error:
        raise UsageError(
            str(error), where="--limit", hint=f"{metric.id} is in {metric.unit}"
        ) from None


def _rule(
    metric: Metric, limit: int | None, good: Sequence[int], bad: Sequence[int]
) -> tuple[int, str]:
    """Return the largest value that is good, and in words what is bad.

    `good`, `bad`: all values of the two ends.

    `limit`: None is half way.

    Raises:
        UsageError: GOOD is not good by it, or BAD not bad.
    """
    position = ""
    if limit is None:
        position = ", halfway from GOOD to BAD"
        limit = (max(good) + min(bad)) // 2
    rule = f"more than {amount(limit, metric.unit)}{position}"
    ends = judged(good, limit), judged(bad, limit)
    figures = f"GOOD has {_amounts(good, metric)}, BAD {_amounts(bad, metric)}"
    if ends == ("bad", "good") or max(bad) < min(good):
        raise UsageError(
            f"GOOD and BAD are swapped: {figures}",
            hint="lower is better: name the side with the lower value first",
        )
    if list(good) == list(bad) and ends[0] == ends[1]:
        raise UsageError(
            f"{metric.id} is the same at both ends: {figures}",
            hint="name two ends with different values",
        )
    for place, result, expected in zip(
        ("GOOD", "BAD"), ends, ("good", "bad"), strict=True
    ):
        if result != expected:
            raise UsageError(
                f"{place} is not {expected}: {figures}, and bad means {rule}",
                hint="name another end or limit",
            )
    return limit, rule


def _amounts(values: Sequence[int], metric: Metric) -> str:
    """Return the values of one end, with their unit."""
    return " or ".join(amount(value, metric.unit) for value in values)


# The search: the first bad one among variants that are measured when they are asked
# for, in as few as there can be.
#
# Both ends are measured, then always the candidate in the middle of those that are
# left. Each is held against the good end, so that what moved is compiled again to see
# whether that holds.


@dataclass
class _Search:
    """One cell's metric over SPECs from GOOD to BAD.

    Each is measured when it is first looked at.
    """

    metric: Metric
    specs: Sequence[str]
    backward: bool  # True where GOOD is the newer end
    work: Work
    # place → what was measured there; of both ends from the start
    snapshots: dict[int, Snapshot]
    key: CellKey = field(init=False)
    limit: int = 0  # the largest value that is good
    # place → how the one there is judged
    candidates: dict[int, Candidate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UsageError where more or less than one cell is meant."""
        self.key = only_cell(
            {cell.key for side in self.snapshots.values() for cell in side.cells}
        )

    def name(self, place: int) -> str:
        """Return a release by its version alone, anything else as it was named."""
        return release_in(self.specs[place]) or self.specs[place]

    def snapshot(self, place: int) -> Snapshot:
        """Return what was measured at a place; measure it where that is not yet done."""
        if place not in self.snapshots:
            self.snapshots[place] = self._measured(self.specs[place])
        return self.snapshots[place]

    def _measured(self, spec: str) -> Snapshot:
        base = {"base": self.snapshots[0]}
        if is_snapshot(spec):
            return load_snapshot(Path(spec))
        return self.work.measured([self.work.prepare("head", spec)], base)["head"]

    def values(self, place: int) -> tuple[tuple[int, ...], str]:
        """Return all values at a place, and why there are none."""
        good = self._cell(0)
        cell = self._cell(place)
        return values_of(cell, good, self.metric.id)

    def _cell(self, place: int) -> Cell | None:
        cells = self.snapshot(place).cells
        return next((cell for cell in cells if cell.key == self.key), None)

    def judge(self, place: int) -> Judged:
        """Judge the variant at a place, with a line of news."""
        result: Judged = "skipped"
        values: tuple[int, ...] = ()
        try:
            values, reason = self.values(place)
        except GAPS as error:
            reason = error.line
        if values:
            result = judged(values, self.limit)
            if result == "skipped":
                reason = (
                    "the build is non-deterministic: its values lie on both sides of"
                    " the limit"
                )
        self.candidates[place] = Candidate(
            name=self.name(place), judged=result, values=values, reason=reason
        )
        self.work.show.say(candidate_words(self.candidates[place], self.metric.unit))
        return result


def bisect(
    metric: Metric,
    good_bad: tuple[str, str],
    limit: int | None,
    among: Sequence[str],
    work: Work,
) -> tuple[Bisection, Report]:
    """Find the first bad candidate, and report its step.

    `good_bad`: SPECs of both ends; `limit`: what is bad is above it; `among`: what lies
    between, in order, nothing where that can be found out.

    Raises:
        UsageError: the ends are the same, swapped, or of no row; or not one cell is
            selected.
        NoVerdict: an end has no value.
    """
    if not all(map(is_snapshot, good_bad)):
        only_cell({cell.key for cell in work.planned().cells})
    specs, backward = candidates_of(*good_bad, among, work.places, work.cancel)
    ends = {"base": specs[0], "head": specs[-1]}
    work.show.say(
        f"{len(specs)} candidates from {release_in(specs[0]) or specs[0]} to"
        f" {release_in(specs[-1]) or specs[-1]}"
    )
    sides = work.sides(ends)
    last = len(specs) - 1
    search = _Search(
        metric=metric,
        specs=specs,
        backward=backward,
        work=work,
        snapshots={0: sides["base"], last: sides["head"]},
    )
    good, why_good = search.values(0)
    bad, why_bad = search.values(last)
    _require_value("GOOD", search.name(0), good, why_good)
    _require_value("BAD", search.name(last), bad, why_bad)
    search.limit, rule = _rule(metric, limit=limit, good=good, bad=bad)
    for place in (0, last):
        search.judge(place)
    step = bracket(len(specs), search.judge)
    places = dict(zip(SIDES, step, strict=True))
    plans = [
        work.prepare(side, specs[place])
        for side, place in places.items()
        if not is_snapshot(specs[place])
    ]
    snapshots = {side: search.snapshot(place) for side, place in places.items()}
    sides = traced(plans, snapshots, work)
    for side, place in places.items():
        search.snapshots[place] = sides[side]
    return _result(search, step, rule)


def _require_value(end: str, name: str, values: Sequence[int], reason: str) -> None:
    """Raise NoVerdict where an end has no value."""
    if not values:
        raise NoVerdict(
            f"{end} has no value: {reason[:200]}", where=name, hint="name another one"
        )


def _result(search: _Search, step: Bracket, rule: str) -> tuple[Bisection, Report]:
    """Compare the last good candidate with the first bad one."""
    key = search.key
    work = search.work
    good, bad = step
    older, newer = reversed(step) if search.backward else step
    snapshots_of_sides = {
        "base": search.snapshot(older),
        "head": search.snapshot(newer),
    }
    sides = narrowed(
        snapshots_of_sides,
        model_globs=(key.model,),
        target_globs=(key.target,),
        must_match=False,
    )
    report = reported(
        work.config,
        base=sides["base"],
        head=sides["head"],
        baseline=Baseline(search.name(older)),
        texts=work.texts,
    )
    if source := source_of(work):
        report = with_suspects(report, source)
    delta = next(delta for delta in report.deltas if delta.key == key)
    cause, reason = _cause(search.metric, delta, report.explanations.get(key))
    # what makes the report of the step again, and what tells all of it
    base = search.specs[older]
    head = search.specs[newer]
    out = work.request.out
    command = "compare"
    if is_snapshot(base) and is_snapshot(head):
        command = "report"
    cell = ["--model", key.model, "--target", key.target]
    again = [command, "--base", base, "--head", head, *cell]
    again += ["--config", str(work.request.config or "default"), "--out", str(out)]
    commands = again, ["explain", str(out / "report.json"), *cell]
    could_be: tuple[str, ...] = ()
    if bad - good > 1:
        could_be = tuple(map(search.name, range(good + 1, bad + 1)))
    result = Bisection(
        metric=search.metric.id,
        model=key.model,
        target=key.target,
        rule=rule,
        limit=search.limit,
        candidates=len(search.specs),
        looks=tuple(search.candidates[place] for place in sorted(search.candidates)),
        last_good=search.name(good),
        first_bad=search.name(bad),
        could_be=could_be,
        state=delta.state,
        cause=cause,
        why=reason,
        notes=(*_notes(search, step), *report.notes),
        commands=tuple(shlex.join(["code-size-bot", *command]) for command in commands),
    )
    return result, report


def _cause(
    metric: Metric, delta: CellDelta, explanation: Explanation | None
) -> tuple[str | None, str]:
    """Return the cause of the step and the words for it.

    Of another metric than the artifact's size, what changed with it.

    An explanation is of the artifact's bytes: it can name a cause that has nothing to
    do with another metric.
    """
    if metric.id == "artifact_bytes":
        if explanation:
            return (explanation.cause, explanation.why)
        return (None, "")
    changes = []
    for metric_id, values in delta.metrics.items():
        quantity = values.quantity
        if (
            metric_id != metric.id
            and quantity.exact
            and quantity.unit == metric.unit
            and values.change
        ):
            changes.append(f"{metric_id} {sides_in_words(*values.sides, metric.unit)}")
    words = f"only changes of artifact_bytes have a cause, not those of {metric.id}"
    if changes:
        words += f"; changed with it: {', '.join(changes[:_MOST_CHANGES])}"
    return None, words


def _notes(search: _Search, step: Bracket) -> Iterator[str]:
    if search.backward:
        yield "GOOD is newer than BAD: the first bad candidate is the newest bad one"
    judged_count = sum(
        candidate.judged != "skipped" for candidate in search.candidates.values()
    )
    known_count = judged_count + step.bad - step.good - 1
    if unknown := len(search.specs) - known_count:
        shown_count = f"{unknown} of {plural(len(search.specs), 'candidate')}"
        yield (
            f"{shown_count} have no known value: good may also turn to bad at another"
            " place"
        )
