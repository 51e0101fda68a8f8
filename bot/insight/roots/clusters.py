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
    by = _GROUPS.get(one.cause)
    return (one.cause, by(delta)) if by else (one.cause,)


def _of_ir(delta: DispatchDelta) -> str:
    """Whether the last IR differs enough to explain the instructions."""
    base, head = delta.base, delta.head
    return str(ir_explains(base, head) if base is not None and head is not None else None)


_GROUPS: Mapping[str, Callable[[DispatchDelta], str]] = {
    # Regions of one structure have other constants, shapes or offsets; the others are formed differently.
    "fusion": lambda delta: "same" if "structure" in delta.matched else "formed",
    "codegen": _of_ir,
    UNKNOWN: lambda delta: delta.note,
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
    largest = min(moved, key=lambda one: (-abs(one.change_bytes), one.key, one.name))
    delta = cells[largest.key]
    compiled = delta.head if delta.head is not None and delta.head.measured else delta.base
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
        by_cell={key: sum(abs(one.change_bytes) for one in group) for key, group in _grouped_by_cell(moved)},
        by_target={target: _tally(one for one in moved if one.key.target == target) for target in targets},
        command=compiled.command if compiled else "",
    )


def _grouped_by_cell(moved: Sequence[Moved]) -> Iterator[tuple[CellKey, list[Moved]]]:
    groups: dict[CellKey, list[Moved]] = {}
    for one in moved:
        groups.setdefault(one.key, []).append(one)
    return iter(groups.items())


def _tally(moved: Iterable[Moved]) -> Tally:
    changes = [one.change_bytes for one in moved]
    return Tally(len(changes), sum(changes), sum(map(abs, changes)))


def _example(one: Moved) -> Example:
    delta = one.dispatch
    if delta is None:
        return Example(one.key, "", "", None, None, one.change_bytes, one.what)
    base, head = (row.code_bytes if row else None for row in (delta.base, delta.head))
    return Example(one.key, delta.name, delta.component, base, head, one.change_bytes, delta.note)
