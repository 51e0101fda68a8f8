"""A bisection: what it calls bad, which candidates it looks at, and the report of the step that it finds."""

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
from bot.core.snapshot import CellKey, Snapshot
from bot.core.spec import release_in
from bot.errors import CompilerUnavailable, InputError, NoVerdict, UsageError
from bot.explain.suspects import with_suspects
from bot.show.bisect import candidate_words
from bot.show.filters import amount, plural
from bot.show.filters import sides as sides_in_words
from bot.study.comparison import reported, source_of
from bot.study.prepare import Work, is_snapshot, load_snapshot
from bot.study.specs import candidates_of
from bot.study.tracing import traced

_MOST_CHANGES = (
    4  # So many other metrics are named that changed in the step that was found
)


def metric_of(name: str, metrics_of_command: Mapping[str, Metric]) -> Metric:
    """The metric of that id; `own`: those that the configuration declares. Raises UsageError."""
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
    """The limit that was written, if any, in the metric's unit. Raises UsageError."""
    try:
        return None if text is None else parse_amount(text).steps(metric.unit)
    except ValueError as error:
        raise UsageError(
            str(error), where="--limit", hint=f"{metric.id} is in {metric.unit}"
        ) from None


def _rule(
    metric: Metric, limit: int | None, good: Sequence[int], bad: Sequence[int]
) -> tuple[int, str]:
    """The largest value that is good, and in words what is bad.

    `good`, `bad`: all values of the two ends.

    `limit`: None is half way. Raises UsageError where GOOD is not good by it, or BAD
    not bad.
    """
    position = "" if limit is not None else ", halfway from GOOD to BAD"
    limit = (max(good) + min(bad)) // 2 if limit is None else limit
    rule = f"more than {amount(limit, metric.unit)}{position}"
    ends = judged(good, limit), judged(bad, limit)
    texts = (
        " or ".join(amount(value, metric.unit) for value in values)
        for values in (good, bad)
    )
    figures = "GOOD has {}, BAD {}".format(*texts)
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


# The search: the first bad one among variants that are measured when they are asked
# for, in as few as there can be.
#
# Both ends are measured, then always the candidate in the middle of those that are
# left. Each is held against the good end, so that what moved is compiled again to see
# whether that holds.


@dataclass
class _Search:
    """One cell's metric over SPECs from GOOD to BAD, each measured when it is first looked at."""

    metric: Metric
    specs: Sequence[str]
    backward: bool  # True where GOOD is the newer end
    work: Work
    snapshots: dict[
        int, Snapshot
    ]  # place → what was measured there; of both ends from the start
    key: CellKey = field(init=False)
    limit: int = 0  # the largest value that is good
    candidates: dict[int, Candidate] = field(
        default_factory=dict
    )  # place → how the one there is judged

    def __post_init__(self) -> None:
        """Raise UsageError where more or less than one cell is meant."""
        self.key = only_cell(
            {cell.key for side in self.snapshots.values() for cell in side.cells}
        )

    def name(self, place: int) -> str:
        """A release by its version alone, anything else as it was named."""
        return release_in(self.specs[place]) or self.specs[place]

    def snapshot(self, place: int) -> Snapshot:
        """What was measured at a place; measures it where that is not yet done."""
        if place not in self.snapshots:
            spec, base = self.specs[place], {"base": self.snapshots[0]}
            self.snapshots[place] = (
                load_snapshot(Path(spec))
                if is_snapshot(spec)
                else self.work.measured([self.work.prepare("head", spec)], base)["head"]
            )
        return self.snapshots[place]

    def values(self, place: int) -> tuple[tuple[int, ...], str]:
        """All values at a place, and why there are none."""
        good, cell = (
            next(
                (cell for cell in self.snapshot(index).cells if cell.key == self.key),
                None,
            )
            for index in (0, place)
        )
        return values_of(cell, good, self.metric.id)

    def judge(self, place: int) -> Judged:
        """How a variant is judged, with a line of news."""
        result: Judged = "skipped"
        values: tuple[int, ...] = ()
        try:
            values, reason = self.values(place)
        except (
            CompilerUnavailable,
            UsageError,
            InputError,
        ) as error:  # gone, without an option, a damaged file
            reason = error.line
        if values and (result := judged(values, self.limit)) == "skipped":
            reason = (
                "the build is non-deterministic: its values lie on both sides of the"
                " limit"
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
    """The first bad candidate, and the report of its step.

    `good_bad`: SPECs of both ends; `limit`: what is bad is above it; `among`: what lies
    between, in order, nothing where that can be found out.

    Raises:
        UsageError: the ends are the same, swapped, or of no row; or not one cell is selected.
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
    sides, last = work.sides(ends), len(specs) - 1
    search = _Search(
        metric=metric,
        specs=specs,
        backward=backward,
        work=work,
        snapshots={0: sides["base"], last: sides["head"]},
    )
    (good, why_good), (bad, why_bad) = search.values(0), search.values(last)
    for word, values, reason, place in (
        ("GOOD", good, why_good, 0),
        ("BAD", bad, why_bad, last),
    ):
        if not values:
            raise NoVerdict(
                f"{word} has no value: {reason[:200]}",
                where=search.name(place),
                hint="name another one",
            )
    search.limit, rule = _rule(metric, limit=limit, good=good, bad=bad)
    for place in (0, last):
        search.judge(place)
    step = bracket(len(specs), search.judge)
    plans = [
        work.prepare(side, specs[index])
        for side, index in zip(SIDES, step, strict=True)
        if not is_snapshot(specs[index])
    ]
    sides = traced(
        plans,
        {side: search.snapshot(index) for side, index in zip(SIDES, step, strict=True)},
        work,
    )
    search.snapshots |= {
        index: sides[side] for side, index in zip(SIDES, step, strict=True)
    }
    return _result(search, step, rule)


def _result(search: _Search, step: Bracket, rule: str) -> tuple[Bisection, Report]:
    """The last good candidate compared with the first bad one."""
    key, work, (good, bad) = search.key, search.work, step
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
    base, head, out = search.specs[older], search.specs[newer], work.request.out
    cell = ["--model", key.model, "--target", key.target]
    again = [
        "report" if is_snapshot(base) and is_snapshot(head) else "compare",
        "--base",
        base,
        "--head",
        head,
        *cell,
    ]
    again += ["--config", str(work.request.config or "default"), "--out", str(out)]
    commands = again, ["explain", str(out / "report.json"), *cell]
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
        could_be=(
            tuple(map(search.name, range(good + 1, bad + 1))) if bad - good > 1 else ()
        ),
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
    """The cause of the step and the words for it.

    Of another metric than the artifact's size, what changed with it.

    An explanation is of the artifact's bytes: it can name a cause that has nothing to
    do with another metric.
    """
    if metric.id == "artifact_bytes":
        return (explanation.cause, explanation.why) if explanation else (None, "")
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
    changed = (
        f"; changed with it: {', '.join(changes[:_MOST_CHANGES])}" if changes else ""
    )
    return (
        None,
        (
            "only changes of artifact_bytes have a cause, not those of"
            f" {metric.id}{changed}"
        ),
    )


def _notes(search: _Search, step: Bracket) -> Iterator[str]:
    if search.backward:
        yield "GOOD is newer than BAD: the first bad candidate is the newest bad one"
    stored_snapshot = (
        sum(candidate.judged != "skipped" for candidate in search.candidates.values())
        + step.bad
        - step.good
        - 1
    )
    if unknown := len(search.specs) - stored_snapshot:
        of = f"{unknown} of {plural(len(search.specs), 'candidate')}"
        yield f"{of} have no known value: good may also turn to bad at another place"
