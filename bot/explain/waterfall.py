"""The waterfall of a cell: the change of its artifact by cause, to the byte.

Code counts under the cause of its dispatch, what else is in executables as `container`, the program around them as
`host`, and what the artifact adds of its own as `packaging`. What cannot be told apart is `unknown`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bot.core.explanation import CAUSES, MIXED, UNKNOWN, DispatchDelta, PartDelta, moved_bytes, named_bytes, whole_bytes
from bot.core.metrics import CODE, CONSTANTS, EXECUTABLES, TABLES, VM, part_words
from bot.core.snapshot import Cell

OUTSIDE = "text outside of dispatches"
RENAMED = "names of kernels in their code"
TAKEN = "the rest of executables that one side alone has, counted with their dispatches"
UNSPLIT = EXECUTABLES + "all"
_CAUSE_OF_PART = {VM: "host", CONSTANTS: "host", TABLES: "packaging"}
_UNKNOWN_CODE = "code of dispatches whose size is not known"
_METRIC_PARTS = {VM: "vm_bytes", CONSTANTS: "rodata_bytes", TABLES: "unattributed_bytes", UNSPLIT: "executable_bytes"}


def code_parts(dispatches: Sequence[DispatchDelta]) -> dict[str, int]:
    """Cause, or `unknown`, → bytes of the dispatches that changed."""
    parts: Counter[str] = Counter()
    for delta in dispatches:
        parts[delta.cause or UNKNOWN] += moved_bytes(delta) or 0
    return dict(parts)


def rest_parts(
    base: Cell, head: Cell, dispatches: Sequence[DispatchDelta], renamed_bytes: int = 0
) -> tuple[PartDelta, ...]:
    """What no dispatch's code explains, largest change first; with `code_parts` it sums to the artifact's change.

    `renamed_bytes`: by how much the same code is longer because its kernels have longer names.
    """
    # part → change in bytes; empty where a side's parts are not known. Both sides are split alike
    left, right = dict(base.parts), dict(head.parts)
    if not left or not right:
        left, right = _coarse(base), _coarse(head)
    found = Counter(right)
    found.subtract(left)
    changes = found if left and right else Counter()
    known = all(row.code_bytes is not None for cell in (base, head) for row in cell.dispatches)
    renamed_bytes += sum(map(named_bytes, dispatches))
    code_bytes = sum(code_parts(dispatches).values())
    parts = list(_outside_dispatches(changes, dispatches, code_bytes, renamed_bytes, known))
    parts += [
        PartDelta(_CAUSE_OF_PART.get(part, "container"), part_words(part), size)
        for part, size in changes.items()
        if part not in CODE and part != UNSPLIT
    ]
    rest = (head.value("artifact_bytes") or 0) - (base.value("artifact_bytes") or 0)
    rest -= sum(part.change_bytes for part in parts) + code_bytes
    parts.append(PartDelta(UNKNOWN, "parts of the artifact that could not be told apart", rest))
    return tuple(sorted((p for p in parts if p.change_bytes), key=lambda p: (-abs(p.change_bytes), p.what)))


def _coarse(cell: Cell) -> dict[str, int]:
    values = {part: cell.value(metric) for part, metric in _METRIC_PARTS.items()}
    known = {part: value for part, value in values.items() if value is not None}
    return known if len(known) == len(values) else {}


def _outside_dispatches(
    changes: Mapping[str, int], dispatches: Sequence[DispatchDelta], code_bytes: int, renamed_bytes: int, known: bool
) -> Iterator[PartDelta]:
    """The text of executables beyond the code of the dispatches that changed."""
    if not changes:
        return
    taken = sum(_container_bytes(delta) for delta in dispatches)
    text = sum(size for part, size in changes.items() if part in CODE or part == UNSPLIT) - code_bytes + taken
    what = part_words("executables") if UNSPLIT in changes else OUTSIDE
    if known:
        yield PartDelta("container", what, text - renamed_bytes)
        yield PartDelta("container", RENAMED, renamed_bytes)
    else:
        yield PartDelta(UNKNOWN, _UNKNOWN_CODE, text)
    yield PartDelta("container", TAKEN, -taken)


def _container_bytes(delta: DispatchDelta) -> int:
    """Of an executable that a side alone has, what is not its dispatch's code, signed."""
    if delta.base is not None and delta.head is not None:
        return 0
    row, sign = (delta.head, 1) if delta.head else (delta.base, -1)
    return sign * ((whole_bytes(row) or 0) - ((row.code_bytes if row else 0) or 0))


def waterfall(dispatches: Sequence[DispatchDelta], parts: Sequence[PartDelta]) -> dict[str, int]:
    """Cause, or `unknown`, → bytes, in the order of the phases; without those of 0."""
    amounts = Counter(code_parts(dispatches))
    for part in parts:
        amounts[part.cause] += part.change_bytes
    return {cause: amounts[cause] for cause in (*CAUSES, UNKNOWN) if amounts[cause]}


def largest(falls: Mapping[str, int]) -> tuple[str, ...]:
    """The causes, largest absolute part first; of equal ones that of the earlier phase."""
    return tuple(sorted(falls, key=lambda cause: -abs(falls[cause])))


def headline(falls: Mapping[str, int]) -> str | None:
    """The largest part's cause, `mixed` where that is under half of them all; None where there is no part."""
    if not falls:
        return None
    first = largest(falls)[0]
    return first if 2 * abs(falls[first]) >= sum(map(abs, falls.values())) else MIXED
