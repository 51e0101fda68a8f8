"""Owns the root causes: the deltas of all cells, clustered by what changed and not by where. Each is in exactly one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import UNKNOWN, DispatchDelta, Explanation
from bot.core.values.root_cause import Example, RootCause, Tally
from bot.core.values.snapshot import CellKey
from bot.insight.causes.evidence import ir_explains
from bot.insight.roots.knobs import PIPELINE, turned
from bot.insight.roots.root_words import Moved, described
from bot.insight.roots.waterfall import moved_bytes

Group = tuple[str, ...]
_NO_KNOBS: Mapping[str, str] = {}


def root_causes(
    deltas: Sequence[CellDelta], explanations: Mapping[CellKey, Explanation], changed_models: Collection[str] = ()
) -> tuple[RootCause, ...]:
    """All of them, the largest absolute change first.

    Args:
        changed_models: models whose text differs between the sides.
    """
    cells = {delta.key: delta for delta in deltas}
    told = [(key, explanations[key], key.model not in changed_models) for key in sorted(explanations)]
    moved = [one for cell in told for one in _moved(*cell)]
    whole_bytes = sum(abs(one.change_bytes) for one in moved)
    found = [_root_cause(group, cells, whole_bytes) for group in _clusters(moved)]
    return tuple(sorted(found, key=lambda root: (-root.total.absolute_bytes, root.cause or "", root.what)))


def _moved(key: CellKey, told: Explanation, same_model: bool) -> Iterator[Moved]:
    for delta in told.dispatches:
        cause, size = delta.cause or UNKNOWN, moved_bytes(delta) or 0
        knobs = _turned(delta) if cause == "strategy" else _NO_KNOBS
        yield Moved(key, cause, size, delta, features=knobs, same_model=same_model)
    for part in told.parts:
        yield Moved(key, part.cause, part.change_bytes, what=part.what)


def _turned(delta: DispatchDelta) -> Mapping[str, str]:
    base, head = delta.base, delta.head
    if base is None or head is None or base.strategy is None or head.strategy is None:
        return {}
    return turned(base.strategy, head.strategy)


def _clusters(moved: Sequence[Moved]) -> Iterator[list[Moved]]:
    groups: dict[Group, list[Moved]] = {}
    for one in moved:
        groups.setdefault(_group(one), []).append(one)
    for (cause, *_), members in groups.items():
        yield from _by_knob(members) if cause == "strategy" else [members]


def _group(one: Moved) -> Group:
    delta = one.dispatch
    if one.cause == "input":
        return one.cause, one.key.model
    if delta is None:
        return one.cause, one.what
    return one.cause, *_GROUPS.get(one.cause, _alone)(one, delta)


def _alone(_: Moved, __: DispatchDelta) -> Group:
    return ()


def _of_region(_: Moved, delta: DispatchDelta) -> Group:
    """Regions of one structure have other constants, shapes or offsets; the others are formed differently."""
    return ("same" if "structure" in delta.matched else "formed",)


def _of_ir(_: Moved, delta: DispatchDelta) -> Group:
    """Whether the last IR differs enough to explain the instructions."""
    base, head = delta.base, delta.head
    explains = ir_explains(base, head) if base is not None and head is not None else None
    return (str(explains),)


def _of_note(_: Moved, delta: DispatchDelta) -> Group:
    return (delta.note,)


_GROUPS: Mapping[str, Callable[[Moved, DispatchDelta], Group]] = {
    "fusion": _of_region,
    "codegen": _of_ir,
    UNKNOWN: _of_note,
}
"""Cause → what its dispatches are clustered by."""


def _by_knob(moved: Sequence[Moved]) -> Iterator[list[Moved]]:
    """The knob with most bytes takes all that turned it, then the next one of what is left."""
    left = list(moved)
    while left:
        weights: Counter[str] = Counter()
        for one in left:
            for name in one.features:
                weights[name] += abs(one.change_bytes) + 1
        if not weights:
            yield left
            return
        knob = min(weights, key=lambda name: (name != PIPELINE, -weights[name], name))
        yield [one for one in left if knob in one.features]
        left = [one for one in left if knob not in one.features]


def _root_cause(moved: Sequence[Moved], cells: Mapping[CellKey, CellDelta], whole_bytes: int) -> RootCause:
    total = _tally(moved)
    largest = min(moved, key=lambda one: (-abs(one.change_bytes), one.key, _name(one)))
    targets = sorted({one.key.target for one in moved})
    return RootCause(
        cause=None if largest.cause == UNKNOWN else largest.cause,
        what=described(largest.cause, moved),
        targets=tuple(targets),
        models=tuple(sorted({one.key.model for one in moved})),
        cells=tuple(sorted({one.key for one in moved})),
        dispatches=sum(one.dispatch is not None for one in moved),
        total=total,
        share=total.absolute_bytes / whole_bytes if whole_bytes else None,
        example=_example(largest),
        by_target={target: _tally(one for one in moved if one.key.target == target) for target in targets},
        command=_command(cells[largest.key]),
    )


def _tally(moved: Iterable[Moved]) -> Tally:
    changes = [one.change_bytes for one in moved]
    return Tally(len(changes), sum(changes), sum(map(abs, changes)))


def _name(one: Moved) -> str:
    return one.dispatch.name if one.dispatch else one.what


def _example(one: Moved) -> Example:
    delta = one.dispatch
    if delta is None:
        return Example(one.key, "", "", None, None, one.change_bytes, one.what)
    base, head = (row.code_bytes if row else None for row in (delta.base, delta.head))
    return Example(one.key, delta.name, delta.component, base, head, one.change_bytes, delta.note)


def _command(delta: CellDelta) -> str:
    cell = delta.head if delta.head is not None and delta.head.measured else delta.base
    return cell.command if cell else ""
