"""Sum the change of an artifact by cause, to the byte, and name its main cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from bot.core.explanation import (
    CAUSE_WORDS,
    CAUSES,
    MIXED,
    UNKNOWN,
    DispatchDelta,
    Explanation,
    PartDelta,
    moved_bytes,
    named_bytes,
    whole_bytes,
)
from bot.core.json_text import without_zeros
from bot.core.metrics import CODE, CONSTANTS, TABLES, VM, part_words
from bot.core.snapshot import Cell
from bot.explain.clusters import keeps_region
from bot.explain.phases import (
    dispatches_have,
    unnamed_bytes,
)
from bot.explain.sameness import (
    configured_differently,
)

_NAMED_PARTS = 3
_COUNTED = {
    "input": "a program that differs from its input on",
    "fusion": "regions that are formed differently",
    "dedup-lost": "executables that base folds into others",
    "dedup-won": "executables that head folds into others",
    "strategy": "the same source and a different configuration",
    "codegen": "the same configuration and different code",
}
"""The words for each dispatch of a cause.

Other causes have parts that are no dispatch's code.
"""


def headlined(
    explanation: Explanation, base: Cell, head: Cell, only_model: bool = False
) -> Explanation:
    """Return the explanation with its waterfall, and the cause of its largest part.

    The waterfall is the change of the artifact by cause, to the byte. Code counts under
    the cause of its dispatch. The other bytes of executables count as `container`, the
    program around them as `host`, and the artifact's own tables as `packaging`. Bytes
    that cannot be separated are `unknown`.

    The cause is `mixed` if the largest part is under half of all parts. If no byte
    changed, the cell keeps the cause of the first phase that differs. If its size is
    not known on both sides, it has no waterfall.

    `only_model`: only the model, or another file that the build reads, differs between
    the sides, so that it causes all bytes that are no code.
    """
    base_bytes = base.value("artifact_bytes")
    head_bytes = head.value("artifact_bytes")
    if base_bytes is None or head_bytes is None:
        return explanation
    dispatches = explanation.dispatches
    amounts: Counter[str] = Counter()
    for dispatch in dispatches:
        amounts[dispatch.cause or UNKNOWN] += moved_bytes(dispatch) or 0
    parts = _rest(
        base,
        head=head,
        explanation=explanation,
        net_bytes=head_bytes - base_bytes,
        code_bytes=amounts.total(),
    )
    if only_model:
        parts = tuple(replace(part, cause="input") for part in parts)
    for part in parts:
        amounts[part.cause] += part.change_bytes
    falls = without_zeros({cause: amounts[cause] for cause in (*CAUSES, UNKNOWN)})
    fallen = replace(explanation, waterfall=falls, parts=parts)
    if not falls:
        return fallen
    cause, why = _headline(fallen, explanation)
    return replace(fallen, cause=cause, why=why)


def _headline(fallen: Explanation, explanation: Explanation) -> tuple[str | None, str]:
    """Return the cause of a cell, and its reason.

    If causes are equally large, the earlier phase counts. No cause is named if as many
    bytes are not known.

    Args:
        fallen: the explanation with its waterfall, which is not empty.
        explanation: the same with the cause of the first phase that differs.
    """
    falls = fallen.waterfall
    ranked = sorted(falls, key=lambda cause: (-abs(falls[cause]), cause != UNKNOWN))
    cause = ranked[0]
    largest = []
    for name in ranked[:2]:
        cause_words = CAUSE_WORDS.get(name, name.replace("-", " "))
        largest.append(f"{cause_words} {_signed(falls[name])}")
    if 2 * abs(falls[cause]) < sum(map(abs, falls.values())):
        return MIXED, f"no cause has half of the change: {', '.join(largest)}"
    if cause == UNKNOWN:
        if explanation.cause is None:
            return None, explanation.why
        return None, f"{largest[0]} could not be separated"
    if cause in _COUNTED and cause == explanation.cause:
        return cause, explanation.why
    has_dispatch = any(dispatch.cause == cause for dispatch in fallen.dispatches)
    if cause in _COUNTED and has_dispatch:
        return cause, _counted_words(cause, fallen)
    return cause, _parts_of(cause, fallen.parts)


def _counted_words(cause: str, explanation: Explanation) -> str:
    """Return `2 of 3 dispatches have the same configuration and different code`."""
    dispatches = explanation.dispatches
    total = len(dispatches) + (explanation.unchanged or 0) + (explanation.rebased or 0)
    of_cause = [dispatch for dispatch in dispatches if dispatch.cause == cause]
    difference = _COUNTED[cause]
    if cause == "fusion" and all(map(keeps_region, of_cause)):
        difference = "other IR in a region of the same kind"
    if cause == "codegen" and any(map(configured_differently, of_cause)):
        difference = "different code that the configuration does not make"
    return f"{dispatches_have(len(of_cause), total)} {difference}"


def _parts_of(cause: str, parts: Sequence[PartDelta]) -> str:
    """Return the largest parts of a cause with their changes, and how many others."""
    texts = []
    for part in parts:
        if part.cause == cause:
            texts.append(f"{part.what} {_signed(part.change_bytes)}")
    named = ", ".join(texts[:_NAMED_PARTS])
    if len(texts) <= _NAMED_PARTS:
        return named
    return f"{named}, and {len(texts) - _NAMED_PARTS} more"


def _signed(size_bytes: int) -> str:
    return f"{size_bytes:+,} B".replace("-", "−")


OUTSIDE = "text outside of dispatches"
RENAMED = "names of kernels in their code"
TAKEN = "the rest of executables that only one side has, counted with their dispatches"
_CAUSE_OF_PART = {VM: "host", CONSTANTS: "host", TABLES: "packaging"}
_UNNAMED_CODE = "text of functions without a name"
_UNKNOWN_CODE = "code of dispatches whose size is unknown"


def _rest(
    base: Cell, head: Cell, explanation: Explanation, net_bytes: int, code_bytes: int
) -> tuple[PartDelta, ...]:
    """Return the bytes that no dispatch's code explains, largest change first.

    With the change of that code (`code_bytes`), they sum to the artifact's change
    (`net_bytes`).
    """
    changes = Counter[str]()
    # Nothing is separated where the parts of an artifact are not known on a side.
    if base.parts and head.parts:
        changes.update(head.parts)
        changes.subtract(base.parts)
    parts = list[PartDelta]()
    text_bytes = -code_bytes
    for part, size in changes.items():
        if part in CODE:
            text_bytes += size
        else:
            cause = _CAUSE_OF_PART.get(part, "container")
            parts.append(PartDelta(cause, part_words(part), size))
    if changes:
        parts += _text_parts(base, head, explanation, text_bytes)
    unseparated = net_bytes - code_bytes - sum(part.change_bytes for part in parts)
    unknown_part = "parts of the artifact that could not be separated"
    parts.append(PartDelta(UNKNOWN, unknown_part, unseparated))
    changed = [part for part in parts if part.change_bytes]
    return tuple(sorted(changed, key=lambda part: (-abs(part.change_bytes), part.what)))


def _text_parts(
    base: Cell, head: Cell, explanation: Explanation, text_bytes: int
) -> list[PartDelta]:
    """Divide the change of the executables' text beyond the changed dispatches' code.

    Args:
        text_bytes: how much more of that text head has.
    """
    taken_bytes = sum(map(_bytes_around, explanation.dispatches))
    outside_bytes = text_bytes + taken_bytes
    taken_part = PartDelta("container", TAKEN, -taken_bytes)
    if any(not cell.dispatches and unnamed_bytes(cell) for cell in (base, head)):
        return [PartDelta(UNKNOWN, _UNNAMED_CODE, outside_bytes), taken_part]
    rows = (*base.dispatches, *head.dispatches)
    if any(row.code_bytes is None for row in rows):
        return [PartDelta(UNKNOWN, _UNKNOWN_CODE, outside_bytes), taken_part]
    renamed_bytes = explanation.renamed_bytes
    for dispatch in explanation.dispatches:
        renamed_bytes += named_bytes(dispatch.base, dispatch.head)
    return [
        PartDelta("container", OUTSIDE, outside_bytes - renamed_bytes),
        PartDelta("container", RENAMED, renamed_bytes),
        taken_part,
    ]


def _bytes_around(delta: DispatchDelta) -> int:
    """Return the bytes beside the code in the executable of a dispatch on one side.

    They are negative if only base has the dispatch. They are 0 if both sides have it.
    """
    if delta.base is not None and delta.head is not None:
        return 0
    row = delta.head or delta.base
    if row is None:
        return 0
    around_bytes = (whole_bytes(row) or 0) - (row.code_bytes or 0)
    if delta.head:
        return around_bytes
    return -around_bytes
