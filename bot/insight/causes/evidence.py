"""What is known of a dispatch whose configuration is the same and whose code is not: its last IR, its instructions.

Counts are evidence, no proof: equal counts of operations may stand in another order or have other constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from bot.core.codec.counts import counts_of
from bot.core.instructions import CLASSES, LOOP, SPILL, TOTAL, VECTOR, VECTOR_BITS, WHOLE_REGISTER
from bot.core.values.snapshot import Dispatch

_DIALECTS = ("llvm.", "spirv.", "vm.")
"""What most operations of a function begin with."""
MORE = (
    (VECTOR, "vector instructions"),
    (SPILL, "stack accesses"),
    (WHOLE_REGISTER, "loads and stores of whole vector registers"),
    (LOOP, "loops"),
)
_IR = "the IR before machine code differs"
_FAR_LESS = 4
_SAME = "the same operations before machine code"


def ir_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """True where the counts of operations differ; None where a side lacks them."""
    if base.operations is None or head.operations is None:
        return None
    return base.operations != head.operations


def ir_explains(base: Dispatch, head: Dispatch) -> bool | None:
    """False where the counts of operations are the same, or differ by far less than those of instructions do.

    None where a side's operations are not known.
    """
    if base.operations is None or head.operations is None:
        return None
    return _explains((base.operations, head.operations), (base.instructions, head.instructions))


@lru_cache(maxsize=4096)
def _explains(operations: tuple[str, str], instructions: tuple[str | None, str | None]) -> bool:
    before, after = (counts(text) or Counter() for text in operations)
    changed = sum(abs(change) for _, change in _moved(before, after, None))
    left, right = map(counts, instructions)
    made = 0 if left is None or right is None else abs(right[TOTAL] - left[TOTAL])
    return changed > 0 and _FAR_LESS * changed >= made


def evidence(base: Dispatch, head: Dispatch) -> str:
    """One sentence without its full stop; empty where nothing is known."""
    differs, made = ir_differs(base, head), _made(base.instructions, head.instructions)
    if differs is None:
        return f"instructions: {made}" if made else ""
    if not differs:
        return _of_back_end(base, head, made)
    before, after = counts(base.operations), counts(head.operations)
    changes = [] if before is None or after is None else _moved(before, after, 3)
    operations = _listed((short_name(name), change) for name, change in changes)
    return "; ".join(filter(None, (f"{_IR}: {operations}" if operations else _IR, made and f"instructions: {made}")))


def _of_back_end(base: Dispatch, head: Dispatch, made: str) -> str:
    if made:
        return f"{_SAME}; instructions: {made}"
    known = base.instructions is not None and base.instructions == head.instructions
    return f"{_SAME}, and as many instructions of each class" if known else _SAME


def _made(base_text: str | None, head_text: str | None) -> str:
    """What changed: classes of instructions, vectors, frame, loops; empty where nothing did, or is known."""
    base, head = counts(base_text), counts(head_text)
    if base is None or head is None or base_text == head_text:
        return ""
    pieces = [_listed(_moved(_only(base, CLASSES), _only(head, CLASSES), 3))]
    pieces.append(_listed((words, head[name] - base[name]) for name, words in MORE if head[name] != base[name]))
    before, after = base[VECTOR_BITS], head[VECTOR_BITS]
    pieces.append("" if before == after else f"vector {_bits(before)} → {_bits(after)} bits")
    return ", ".join(filter(None, pieces))


def _bits(width: int) -> str:
    return f"{width:,}" if width else "no"


@lru_cache(maxsize=1024)
def counts(text: str | None) -> Counter[str] | None:
    """The counts of such a text; None without one, and for a foreign snapshot's that is none. Not to be changed."""
    try:
        return None if text is None else counts_of(text)
    except ValueError:
        return None


def _only(counts: Counter[str], names: Iterable[str]) -> Counter[str]:
    return Counter({name: counts[name] for name in names})


def _moved(base: Counter[str], head: Counter[str], most: int | None) -> list[tuple[str, int]]:
    """Names and signed changes of the counts that changed most, the largest first, ties by name."""
    changes = [(name, head[name] - base[name]) for name in {*base, *head}]
    return sorted((each for each in changes if each[1]), key=lambda each: (-abs(each[1]), each[0]))[:most]


def short_name(operation: str) -> str:
    """Without the dialect that most operations of its function are of."""
    return next((operation[len(each) :] for each in _DIALECTS if operation.startswith(each)), operation)


def _listed(changes: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {change:+,}" for name, change in changes)
