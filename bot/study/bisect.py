"""Find the first bad candidate between two ends, and report the step to it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from bot.core.bisecting import Bisection, Bracket, bracket
from bot.core.delta import CellDelta
from bot.core.explanation import Explanation
from bot.core.metrics import Metric
from bot.core.planned import SIDES, narrowed, only_cell
from bot.core.report import Baseline, Report
from bot.core.spec import release_in
from bot.errors import NoVerdict
from bot.explain.suspects import with_suspects
from bot.show.filters import plural
from bot.show.filters import sides as sides_in_words
from bot.study.bisect_rule import rule_of
from bot.study.bisect_search import Search
from bot.study.candidates import candidates_of
from bot.study.commit_source import source_of
from bot.study.comparison import reported
from bot.study.prepare import Work
from bot.study.snapshot_files import is_snapshot
from bot.study.tracing import traced

# So many other metrics are named that changed in the step that was found
_MOST_CHANGES = 4


def bisect(
    metric: Metric,
    good_bad: tuple[str, str],
    limit: int | None,
    among: Sequence[str],
    work: Work,
) -> tuple[Bisection, Report]:
    """Find the first bad candidate, and report its step.

    `good_bad`: SPECs of both ends; `limit`: what is bad is above it; `among`: what lies
    between, in order, nothing if that can be found out.

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
    search = Search(
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
    search.limit, rule = rule_of(metric, limit=limit, good=good, bad=bad)
    for place in (0, last):
        search.judge(place)
    step = bracket(len(specs), search.judge)
    places = dict(zip(SIDES, _older_and_newer(search, step), strict=True))
    plans = []
    for side, place in places.items():
        if not is_snapshot(specs[place]):
            plans.append(work.prepare(side, specs[place]))
    snapshots = {side: search.snapshot(place) for side, place in places.items()}
    sides = traced(plans, snapshots, work)
    for side, place in places.items():
        search.snapshots[place] = sides[side]
    return _result(search, step, rule)


def _require_value(end: str, name: str, values: Sequence[int], reason: str) -> None:
    """Raise NoVerdict if an end has no value."""
    if not values:
        raise NoVerdict(
            f"{end} has no value: {reason[:200]}", where=name, hint="name another one"
        )


def _older_and_newer(search: Search, step: Bracket) -> tuple[int, int]:
    """Return the places of base and head: the older of the two candidates is the base."""
    good, bad = step
    if search.backward:
        return bad, good
    return good, bad


def _result(search: Search, step: Bracket, rule: str) -> tuple[Bisection, Report]:
    """Compare the last good candidate with the first bad one."""
    key = search.key
    work = search.work
    good, bad = step
    older, newer = _older_and_newer(search, step)
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
    # the commands that make the report of the step again, and show all of it
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

    For another metric than the artifact's size, return what changed with it.

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


def _notes(search: Search, step: Bracket) -> Iterator[str]:
    if search.backward:
        yield "GOOD is newer than BAD: the first bad candidate is the newest bad one"
    known_count = step.bad - step.good - 1
    for candidate in search.candidates.values():
        if candidate.judged != "skipped":
            known_count += 1
    if unknown := len(search.specs) - known_count:
        shown_count = f"{unknown} of {plural(len(search.specs), 'candidate')}"
        yield (
            f"{shown_count} have no known value: good may also turn to bad at another"
            " place"
        )
