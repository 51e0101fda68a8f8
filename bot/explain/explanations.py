"""The explanation of every changed cell: dispatches and components, waterfall, and the headline that it gives.

The headline is the cause of most of the cell's bytes, and one sentence that is true of this cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from bot.core.delta import CellDelta
from bot.core.explanation import (
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
from bot.core.metrics import CODE, CONSTANTS, EXECUTABLES, TABLES, VM, part_words
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.explain.causes import broken, explain
from bot.explain.components import Sections, component_of, components, naming, tree
from bot.explain.texts import Texts, no_texts

_NAMED_PARTS = 3


def explanations(
    base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta], sections: Sections = (), texts: Texts = no_texts
) -> dict[CellKey, Explanation]:
    """Why the cells changed that both sides measured, and why those broke that head fails.

    `texts`: as `bot.explain.texts` has it.
    """
    same = base.models.keys() - changed_models(base, head)
    one_compiler = base.compiler.digest == head.compiler.digest
    result = {}
    for delta in deltas:
        has_words = _measured(delta) or broken(delta.base, delta.head) is not None
        if not has_words or delta.state in ("same", "unmeasured") or not delta.explainable:
            continue
        names = naming(delta, sections).components
        same_model, base_cell, head_cell = delta.key.model in same, delta.base, delta.head
        explanation = explain(delta, same_model, texts, partial(component_of, names=names))
        if _measured(delta):
            parts, levels = components(delta, sections), tree(delta, sections)
            explanation = replace(explanation, components=parts, tree=levels, first_compiles=delta.unstable)
        same_command = bool(base_cell and head_cell and base_cell.command == head_cell.command)
        result[delta.key] = headlined(explanation, delta, one_compiler and not same_model and same_command)
    return result


def changed_models(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Models whose text is not known to be the same on both sides."""
    return frozenset(m for m in {*base.models, *head.models} if base.models.get(m) != head.models.get(m))


def _measured(delta: CellDelta) -> bool:
    return delta.base is not None and delta.head is not None and delta.base.measured and delta.head.measured


def headlined(explanation: Explanation, delta: CellDelta, only_model: bool = False) -> Explanation:
    """The explanation with its waterfall, and the cause that the waterfall gives.

    One that moved no byte keeps the cause of the first phase that differs.

    `only_model`: nothing but the model's text differs between the sides: what is no code is its consequence.
    """
    if delta.base is None or delta.head is None or not (delta.base.measured and delta.head.measured):
        return explanation
    parts = rest_parts(delta.base, delta.head, explanation.dispatches, explanation.renamed_bytes)
    if only_model:
        parts = tuple(replace(part, cause="input") for part in parts)
    falls = waterfall(explanation.dispatches, parts)
    fallen = replace(explanation, waterfall=falls, parts=parts)
    cause = headline(falls)
    if cause is None:
        return fallen
    if cause == UNKNOWN:
        unknown = f"{_amounts(falls, (UNKNOWN,))} could not be told apart"
        return replace(fallen, cause=None, why=explanation.why if explanation.cause is None else unknown)
    is_first = cause == explanation.cause and cause not in ("container", "host", "packaging")
    return replace(fallen, cause=cause, why=explanation.why if is_first else _sentence(cause, fallen))


def signed_bytes(size_bytes: int) -> str:
    """`+1,024 B`, `-12 B`."""
    return f"{size_bytes:+,} B"


def _amounts(falls: Mapping[str, int], causes: Sequence[str]) -> str:
    return ", ".join(f"{cause.replace('-', ' ')} {signed_bytes(falls[cause])}" for cause in causes)


def _sentence(cause: str, explanation: Explanation) -> str:
    """What is true of this cell, where most of its bytes have this cause."""
    falls, dispatches = explanation.waterfall, explanation.dispatches
    if cause == MIXED:
        return f"no cause has half of the change: {_amounts(falls, largest(falls)[:2])}"
    if words := _COUNTED.get(cause):
        every = len(dispatches) + explanation.unchanged + explanation.rebased
        return f"{sum(delta.cause == cause for delta in dispatches)} of {every} dispatches {words}"
    parts = [part for part in explanation.parts if part.cause == cause]
    more = f", and {len(parts) - _NAMED_PARTS} more" if len(parts) > _NAMED_PARTS else ""
    return ", ".join(f"{part.what} {signed_bytes(part.change_bytes)}" for part in parts[:_NAMED_PARTS]) + more


_COUNTED = {
    "input": "are of a program that differs from its input on",
    "fusion": "are regions that are formed differently",
    "dedup-lost": "are executables that were folded into others on base",
    "dedup-won": "were executables that are folded into others on head",
    "strategy": "of the same source have a different configuration",
    "codegen": "have the same configuration and different code",
}


# The waterfall of a cell: the change of its artifact by cause, to the byte.
#
# Code counts under the cause of its dispatch, what else is in executables as `container`, the program around them as
# `host`, and what the artifact adds of its own as `packaging`. What cannot be told apart is `unknown`.

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
    left, right = dict(base.parts), dict(head.parts)
    if not left or not right:  # both sides are split alike; where a coarse part is not known, not at all
        left, right = (
            {part: value for part, id_ in _METRIC_PARTS.items() if (value := cell.value(id_)) is not None}
            for cell in (base, head)
        )
        if min(len(left), len(right)) < len(_METRIC_PARTS):
            left, right = {}, {}
    changes = Counter(right)
    changes.subtract(left)
    renamed_bytes += sum(map(named_bytes, dispatches))
    code_bytes, parts = sum(code_parts(dispatches).values()), list[PartDelta]()
    if changes:  # the text of executables beyond the code of the dispatches that changed
        taken = 0  # of executables that a side alone has, what is not their dispatches' code
        for row, other, sign in ((one.head, one.base, 1) if one.head else (one.base, None, -1) for one in dispatches):
            if row is not None and other is None:
                taken += sign * ((whole_bytes(row) or 0) - (row.code_bytes or 0))
        text = sum(size for part, size in changes.items() if part in CODE or part == UNSPLIT) - code_bytes + taken
        if all(row.code_bytes is not None for cell in (base, head) for row in cell.dispatches):
            what = part_words("executables") if UNSPLIT in changes else OUTSIDE
            parts.append(PartDelta("container", what, text - renamed_bytes))
            parts.append(PartDelta("container", RENAMED, renamed_bytes))
        else:
            parts.append(PartDelta(UNKNOWN, _UNKNOWN_CODE, text))
        parts.append(PartDelta("container", TAKEN, -taken))
    parts += [
        PartDelta(_CAUSE_OF_PART.get(part, "container"), part_words(part), size)
        for part, size in changes.items()
        if part not in CODE and part != UNSPLIT
    ]
    rest = (head.value("artifact_bytes") or 0) - (base.value("artifact_bytes") or 0)
    rest -= sum(part.change_bytes for part in parts) + code_bytes
    parts.append(PartDelta(UNKNOWN, "parts of the artifact that could not be told apart", rest))
    return tuple(sorted((p for p in parts if p.change_bytes), key=lambda p: (-abs(p.change_bytes), p.what)))


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
