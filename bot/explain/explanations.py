"""The explanation of every changed cell: dispatches and components, waterfall, and the headline that it gives.

The headline is the cause of most of the cell's bytes, and one sentence that is true of this cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from bot.core.delta import CellDelta
from bot.core.explanation import (
    CAUSES,
    MIXED,
    UNKNOWN,
    Explanation,
    PartDelta,
    moved_bytes,
    named_bytes,
    whole_bytes,
)
from bot.core.metrics import CODE, CONSTANTS, EXECUTABLES, TABLES, VM, part_words
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.explain.causes import broken, explain
from bot.explain.components import Sections, components, naming, where
from bot.explain.texts import Texts, no_texts


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
        both, same_model = (delta.base, delta.head), delta.key.model in same
        is_measured = all(one is not None and one.measured for one in both)
        has_words = is_measured or broken(*both) is not None
        if not has_words or delta.state in ("same", "unmeasured") or not delta.explainable:
            continue
        names = naming(delta, sections)
        same_command = one_compiler and len({one.command if one else None for one in both}) == 1
        places = [where(one and one.program, names) for one in both]
        explanation = explain(delta, same_model, same_command, texts, places)
        if is_measured:
            moved, tree = components(delta, names)
            explanation = replace(explanation, components=moved, tree=tree, first_compiles=delta.unstable)
        result[delta.key] = headlined(explanation, delta, not same_model and same_command)
    return result


def changed_models(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Models whose text is not known to be the same on both sides."""
    return frozenset(m for m in {*base.models, *head.models} if base.models.get(m) != head.models.get(m))


_NAMED_PARTS = 3
_COUNTED = {
    "input": "are of a program that differs from its input on",
    "fusion": "are regions that are formed differently",
    "dedup-lost": "are executables that were folded into others on base",
    "dedup-won": "were executables that are folded into others on head",
    "strategy": "of the same source have a different configuration",
    "codegen": "have the same configuration and different code",
}
"""What is true of the dispatches of a cause; the others are causes of parts that are no dispatch's code."""


def headlined(explanation: Explanation, delta: CellDelta, only_model: bool = False) -> Explanation:
    """The explanation with its waterfall, the change of the artifact by cause to the byte; and the cause that it gives.

    Code counts under the cause of its dispatch, what else is in executables as `container`, the program around them as
    `host`, and what the artifact adds of its own as `packaging`. What cannot be told apart is `unknown`. The cause is
    the largest part's, `mixed` where that is under half of them all. A cell that moved no byte keeps the cause of the
    first phase that differs.

    `only_model`: nothing but the model's text differs between the sides: what is no code is its consequence.
    """
    base, head, dispatches = delta.base, delta.head, explanation.dispatches
    if base is None or head is None or not (base.measured and head.measured):
        return explanation
    amounts: Counter[str] = Counter()
    for one in dispatches:
        amounts[one.cause or UNKNOWN] += moved_bytes(one) or 0
    parts = _rest(base, head, explanation, amounts.total())
    if only_model:
        parts = tuple(replace(part, cause="input") for part in parts)
    for part in parts:
        amounts[part.cause] += part.change_bytes
    falls = {cause: amounts[cause] for cause in (*CAUSES, UNKNOWN) if amounts[cause]}
    fallen = replace(explanation, waterfall=falls, parts=parts)
    if not falls:
        return fallen
    cause, *others = sorted(falls, key=lambda cause: -abs(falls[cause]))  # of equal ones the earlier phase
    shown = [f"{one.replace('-', ' ')} {falls[one]:+,} B" for one in (cause, *others[:1])]
    if 2 * abs(falls[cause]) < sum(map(abs, falls.values())):
        return replace(fallen, cause=MIXED, why=f"no cause has half of the change: {', '.join(shown)}")
    if cause == UNKNOWN:
        why = explanation.why if explanation.cause is None else f"{shown[0]} could not be told apart"
        return replace(fallen, cause=None, why=why)
    if cause in _COUNTED:
        every = len(dispatches) + (explanation.unchanged or 0) + (explanation.rebased or 0)
        words = f"{sum(one.cause == cause for one in dispatches)} of {every} dispatches {_COUNTED[cause]}"
        return replace(fallen, cause=cause, why=explanation.why if cause == explanation.cause else words)
    own = [f"{part.what} {part.change_bytes:+,} B" for part in parts if part.cause == cause]
    more = f", and {len(own) - _NAMED_PARTS} more" if len(own) > _NAMED_PARTS else ""
    return replace(fallen, cause=cause, why=", ".join(own[:_NAMED_PARTS]) + more)


OUTSIDE = "text outside of dispatches"
RENAMED = "names of kernels in their code"
TAKEN = "the rest of executables that one side alone has, counted with their dispatches"
UNSPLIT = EXECUTABLES + "all"
_CAUSE_OF_PART = {VM: "host", CONSTANTS: "host", TABLES: "packaging"}
_UNKNOWN_CODE = "code of dispatches whose size is not known"
_METRIC_PARTS = {VM: "vm_bytes", CONSTANTS: "rodata_bytes", TABLES: "unattributed_bytes", UNSPLIT: "executable_bytes"}


def _rest(base: Cell, head: Cell, explanation: Explanation, code_bytes: int) -> tuple[PartDelta, ...]:
    """What no dispatch's code explains, largest change first; with that (`code_bytes`) the artifact's change."""
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
    parts = list[PartDelta]()
    if changes:  # the text of executables beyond the code of the dispatches that changed
        taken = 0  # of executables that a side alone has, what is not their dispatches' code
        for one in explanation.dispatches:
            if (one.base is None) != (one.head is None) and (row := one.head or one.base):
                taken += ((whole_bytes(row) or 0) - (row.code_bytes or 0)) * (1 if one.head else -1)
        text = sum(size for part, size in changes.items() if part in CODE or part == UNSPLIT) - code_bytes + taken
        if all(row.code_bytes is not None for cell in (base, head) for row in cell.dispatches):
            renamed_bytes = explanation.renamed_bytes + sum(map(named_bytes, explanation.dispatches))
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
