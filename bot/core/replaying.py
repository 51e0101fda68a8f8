"""A replay as values and rules: what thresholds would have said of many changes, and which would have alarmed less.

In prose:

* Of sides in their order each is held against the one before, by the rules of the verdict. An alarm is a finding that
  the older side did not have already.
* What was not measured is a gap (see `gaps`): no alarm by itself, and what follows is held against what was measured
  before it. A cell that nothing is known of before has nothing to be held against.
* The smallest level with at most N alarms is, for the changes of a rule, the absolute growth that so many steps and no
  more exceed, beside whatever else the level asks; for its limits, the value that so many steps exceed. Alarms that
  fail count for the level that warns as well.
* A history has, of each cell, its status, its metrics and all that was seen of them. So a replay of it does not see
  artifacts with other bytes and the same numbers, nor that a model was edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from bot.core.delta import CellDelta, diff, diff_cell
from bot.core.history import HISTORY_SCHEMA, UNMEASURED, PointStatus, is_gap, is_outcome, neighbours
from bot.core.json_text import decoded, require_schema
from bot.core.metrics import METRIC_BY_ID, Unit
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.policy import Finding, Level, Ratio, Rule, VerdictStatus, judge
from bot.core.policy import Status as Weight
from bot.core.record import Count, Name
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Outcome, Snapshot, SourceInfo
from bot.core.spec import release_in
from bot.errors import InputError

LEVELS: tuple[Level, ...] = ("fail", "warn")
_HINT = "give the history.json of: code-size-bot history --out DIR"


class Point(msgspec.Struct, frozen=True):
    """One cell of a history, as far as a replay reads it."""

    compiler: Name
    model: Name
    target: Name
    status: PointStatus
    metrics: Mapping[str, Count | None]
    seen: Mapping[str, tuple[Count, ...]] = {}


class Points(msgspec.Struct, frozen=True):
    """A history, likewise; fields beside these are for others."""

    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """From one side to the next: the verdict, and its alarms, worst first.

    Attributes:
        gaps: sides between the two that could not be had.
        since: cell → the earlier side that it is held against.
        unmeasured: cells of which nothing is known any more: their gap begins here.
    """

    base: str
    head: str
    status: VerdictStatus
    alarms: tuple[Finding, ...]
    gaps: tuple[str, ...]
    since: Mapping[CellKey, str]
    unmeasured: tuple[CellKey, ...]


@dataclass(frozen=True, slots=True)
class RuleCount:
    """What one rule would have said at one level.

    Attributes:
        rule: its name; `states` for the states of cells.
        steps, cells: how many steps it would have alarmed in, and how many alarms that are.
    """

    rule: str
    level: Level
    steps: int
    cells: int


@dataclass(frozen=True, slots=True)
class Least:
    """The smallest level at which a rule alarms in no more steps than are wanted.

    Attributes:
        kind: `change`, for an absolute growth, or `limit`.
        now: in how many steps it alarms.
        least: the level, in `unit`.
    """

    rule: str
    level: Level
    kind: str
    now: int
    least: int
    unit: Unit


def sides_of(text: bytes, where: str) -> list[tuple[str, Snapshot | None]]:
    """The sides of a `history.json`, in the order of its points; None of what could not be had.

    Raises InputError, UnicodeDecodeError.
    """
    require_schema(text, HISTORY_SCHEMA, "history", where, _HINT)
    points = decoded(text, Points, where, _HINT, "history").points
    cells: dict[str, dict[CellKey, Cell]] = {}
    for place, point in enumerate(points):
        key, at = CellKey(point.model, point.target), f"{where}: points[{place}]"
        if unknown := point.metrics.keys() - METRIC_BY_ID.keys():
            raise InputError(f"unknown metric {min(unknown)[:60]!r}", where=at, hint=_HINT)
        if key in cells.setdefault(point.compiler, {}):
            raise InputError(f"{key} stands there twice for {point.compiler}", where=at, hint=_HINT)
        if point.status != UNMEASURED:
            # Which values were seen together is not known: the largest of each stand for them, as ranges have ends.
            largest = {**point.metrics, **{id_: max(values) for id_, values in point.seen.items() if values}}
            others = (Outcome(point.status, largest, "the largest"),) if point.seen else ()
            cells[point.compiler][key] = Cell(key, point.status, point.metrics, others=others)
    # What a compiler has no point of was planned and lost.
    models = dict.fromkeys(sorted({point.model for point in points}), "")
    targets = dict.fromkeys(sorted({point.target for point in points}), "")
    sides: list[tuple[str, Snapshot | None]] = []
    for name, own in cells.items():
        measured, info = tuple(own[key] for key in sorted(own)), CompilerInfo(name, "", "", name)
        sides.append((name, Snapshot(info, SourceInfo(), measured, models=models, targets=targets) if own else None))
    return sides


def replayed(
    sides: Iterable[tuple[str, Snapshot | None]],
    rules: Sequence[Rule],
    states: Mapping[str, Weight],
    noise: Mapping[str, Ratio],
) -> Iterator[Step]:
    """What the rules say of each side against the one before."""
    for (old, base), (new, head), gaps, across in neighbours(sides, is_outcome):
        since = {key: side for side, keys in across for key in keys}
        deltas, unmeasured = list[CellDelta](), list[CellKey]()
        for delta in diff(base, head):
            if is_gap(base, delta.key, delta.base) or delta.key in since:
                continue
            if is_gap(head, delta.key, delta.head):
                unmeasured.append(delta.key)
            else:
                deltas.append(delta)
        for (_, earlier), keys in across:
            known = {cell.key: cell for cell in head.cells if cell.key in keys}
            cells = ((cell, known[cell.key]) for cell in earlier.cells if cell.key in keys)
            deltas += [diff_cell(earlier, head, pair[0].key, pair) for pair in cells]
        verdict = judge(deltas, rules, states, noise)
        names = {key: name for key, (name, _) in since.items()}
        yield Step(old, new, verdict.status, verdict.news, gaps, names, tuple(unmeasured))


def counts(steps: Sequence[Step]) -> list[RuleCount]:
    """What each rule would have said, by its name, fail before warn."""
    result = []
    for rule in sorted({alarm.rule for step in steps for alarm in step.alarms}):
        for level in LEVELS:
            each = [sum((one.rule, one.level) == (rule, level) for one in step.alarms) for step in steps]
            if any(each):
                result.append(RuleCount(rule, level, sum(map(bool, each)), sum(each)))
    return result


def least_levels(steps: Sequence[Step], most: int) -> list[Least]:
    """For each rule, level and kind that alarms in more than `most` steps, the smallest level that does not."""
    result = []
    alarms = [alarm for step in steps for alarm in step.alarms if alarm.kind in ("change", "limit")]
    for rule, kind in sorted({(alarm.rule, alarm.kind) for alarm in alarms}):
        mine = [alarm for alarm in alarms if (alarm.rule, alarm.kind) == (rule, kind)]
        units = {METRIC_BY_ID[alarm.metric or ""].unit for alarm in mine}
        for level in LEVELS:
            # Of each step in which the rule alarms at that level or a worse one, the largest growth or value.
            each = (
                [
                    (one.head or 0) - (one.base or 0 if kind == "change" else 0)
                    for one in step.alarms
                    if (one.rule, one.kind) == (rule, kind) and level in ("warn", one.level)
                ]
                for step in steps
            )
            worst = sorted((max(values) for values in each if values), reverse=True)
            if len(worst) > most and len(units) == 1 and any(alarm.level == level for alarm in mine):
                result.append(Least(rule, level, kind, len(worst), worst[most], min(units)))
    return result


# What was asked for twice: one point where both are the same, both where the compiler does not repeat itself.


_COMMAND = re.compile(r"\biree-compile (.*?) -o ", re.DOTALL)
_NAMED = 3
SHORT = 10
"""Digits of a commit that names a point."""


@dataclass(frozen=True, slots=True)
class Found:
    """One release as it was asked for, and what came of it.

    Attributes:
        spec: as it was asked for, without directories.
        snapshot: None where there is none, with the reason in `reason`.
        repeats: other SPECs that gave the same.
    """

    name: str
    spec: str
    snapshot: Snapshot | None = None
    reason: str = ""
    repeats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def of_commit(sha: str, snapshot: Snapshot) -> Found:
    """A stored baseline: its name is the commit, and its SPEC the release that measured it."""
    compiler = snapshot.compiler
    return Found(sha[:SHORT], release_in(compiler.spec) or compiler.spec or compiler.version, snapshot)


def once(found: Iterable[Found]) -> tuple[Found, ...]:
    """Each compiler once: what a later one repeats of an earlier one is put to it.

    Where both asked the same compiler for the same cells and got other artifacts, both stay, and say so.
    """
    releases: list[Found] = []
    for one in found:
        at = next((at for at, other in enumerate(releases) if _is_repeat(other, one)), None)
        if at is None:
            releases.append(one)
        elif differing := _differing(releases[at], one):
            more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
            what = ", ".join(map(str, differing[:_NAMED])) + more
            note = f"the same compiler as {releases[at].name} gave something else for {what}: it does not repeat itself"
            releases.append(replace(one, notes=(*one.notes, note)))
        else:
            releases[at] = _joined(releases[at], one)
    return named_apart(releases)


def named_apart(found: Sequence[Found]) -> tuple[Found, ...]:
    """All with names of their own: `3.13.0` and `3.13.0 (2)`."""
    taken: set[str] = set()
    named = []
    for one in found:
        number, name = 1, one.name
        while name in taken:
            number += 1
            name = f"{one.name} ({number})"
        taken.add(name)
        named.append(replace(one, name=name))
    return tuple(named)


def _is_repeat(first: Found, second: Found) -> bool:
    """True for the same compiler, where nothing says that the two were asked for something else."""
    left, right = first.snapshot, second.snapshot
    if left is None or right is None:
        return left is right and first.spec == second.spec
    if not left.compiler.digest or left.compiler.digest != right.compiler.digest:
        return False
    models = left.models.keys() & right.models.keys()
    if any(left.models[name] != right.models[name] for name in models):
        return False
    return all(_options(one) == _options(other) for one, other in _pairs(left, right))


def _pairs(left: Snapshot, right: Snapshot) -> Iterable[tuple[Cell, Cell]]:
    cells = {cell.key: cell for cell in right.cells}
    return ((cell, cells[cell.key]) for cell in left.cells if cell.key in cells)


def _options(cell: Cell) -> str:
    """The options of its command, without what lifts the stack gate."""
    words = _COMMAND.search(cell.command)
    return words[1].replace(f" {LIFTED_LIMIT_FLAG}", "") if words else ""


def _differing(first: Found, second: Found) -> list[CellKey]:
    if first.snapshot is None or second.snapshot is None:
        return []
    pairs = _pairs(first.snapshot, second.snapshot)
    return [one.key for one, other in pairs if is_outcome(one) and is_outcome(other) and _result(one) != _result(other)]


def _result(cell: Cell) -> tuple[str, str | None]:
    return cell.status, cell.artifact_digest


def _joined(first: Found, second: Found) -> Found:
    """The cells of both; of two the first, unless only the second says something of the compiler."""
    repeats = (*first.repeats, second.spec, *second.repeats)
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    left, right = first.snapshot, second.snapshot
    if left is None or right is None:
        return replace(first, repeats=repeats, notes=notes)
    cells = {cell.key: cell for cell in right.cells}
    cells |= {cell.key: cell for cell in left.cells if cell.key not in cells or is_outcome(cell)}
    united = replace(
        left,
        cells=tuple(cells[key] for key in sorted(cells)),
        models={**right.models, **left.models},
        targets={**right.targets, **left.targets},
        only={**right.only, **left.only},
    )
    return replace(first, snapshot=united, repeats=repeats, notes=notes)
