"""Explain every cell that changed: its dispatches, its waterfall, and the headline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from sys import intern
from typing import Literal, NamedTuple

from msgspec.structs import replace

from bot.core.delta import CellDelta
from bot.core.explanation import (
    CAUSE_WORDS,
    CAUSES,
    EARLY_CAUSES,
    MIXED,
    OTHER_TYPES,
    PASS_OPERATIONS,
    UNATTRIBUTED,
    UNKNOWN,
    DispatchDelta,
    Explanation,
    PartDelta,
    PassChange,
    code_differs,
    moved_bytes,
    named_bytes,
    whole_bytes,
)
from bot.core.metrics import CODE, CONSTANTS, TABLES, VM, part_words
from bot.core.parting import parting
from bot.core.program import Source
from bot.core.program_proof import ProgramPassProof
from bot.core.snapshot import Cell, CellKey, Dispatch, Snapshot, changed_inputs
from bot.core.trace import PROGRAM, REGION, Parting, TraceRow, operation_words
from bot.explain.carrying import (
    carried_by,
    carried_words,
    fitting_ladder,
    why_no_pass,
    with_experiments,
)
from bot.explain.components import Sections, components, naming, where
from bot.explain.matching import Match, index_both, is_opaque, match_sides
from bot.explain.phases import (
    REBOUND,
    SAME_CODE,
    Cause,
    Compared,
    cause_of,
    compare,
    configured_differently,
    dispatch_cause,
    dispatches_have,
    opaque_source,
    rebound,
    same_numbers,
    source_diff,
    strategy_diff,
    strategy_differs,
    strategy_note,
    unconfigured,
    unnamed_bytes,
)
from bot.explain.root_causes import SOURCE_CHANGED, keeps_region
from bot.explain.texts import Texts, no_texts

MOST_DIFFS = 5
_NAMED = 3
_TRACED = frozenset({"codegen"}) | EARLY_CAUSES
"""Causes that a pass can have; some of them one before code generation."""
_FORMED = {
    "same-structure": "the same region with different constants, shapes or offsets",
    "same-kind-and-component": "different IR of the same kind in the same place",
    "same-description": "different IR with the same description by the compiler",
}


def explain(
    base: Cell,
    head: Cell,
    same_model: bool,
    same_command: bool,
    texts: Texts = no_texts,
    components: Sequence[Mapping[str, str]] = ({}, {}),
    base_compiler: str = "",
) -> Explanation:
    """Say why a cell changed that both sides measured.

    The caller adds how its components changed.

    Args:
        base: the cell on base.
        head: the cell on head.
        same_model: whether the model's text is the same on both sides.
        same_command: whether compiler and flags are the same.
        texts: as `bot.explain.texts` has it.
        components: entry point → its component, on base and on head.
        base_compiler: digest of the compiler that head's ladders have to be against.
    """
    sides = index_both(base, head)
    matches = match_sides(*sides)
    compared = compare(*sides, matches, same_model, same_command)
    cause = cause_of(compared)
    counts = Counter[str]()
    changed = list[Match]()
    renamed_bytes = 0
    for match in matches:
        kind = _kind(match, compared)
        counts[kind] += 1
        if kind == "changed":
            changed.append(match)
        else:
            renamed_bytes += named_bytes(match.base, match.head)
    changed.sort(
        key=lambda match: -abs(_code_bytes(match.head) - _code_bytes(match.base))
    )
    story = _Story(
        compared=compared,
        cause=cause,
        texts=texts,
        components=components,
        base_compiler=base_compiler,
    )
    deltas = [_delta(rank, match, story) for rank, match in enumerate(changed)]
    return Explanation(
        cause.cause,
        cause.phase,
        cause.why,
        dispatches=tuple(deltas),
        unchanged=counts["same"],
        rebased=counts["rebased"],
        renamed_bytes=renamed_bytes,
    )


def _kind(match: Match, compared: Compared) -> Literal["same", "rebased", "changed"]:
    """Return whether an entry point is the same, only bound to other memory, or changed.

    The numbers decide where its code is known. Elsewhere its source decides, too.
    """
    base, head = match.base, match.head
    if base is None or head is None or base.sites != head.sites:
        return "changed"
    if not same_numbers(base, head):
        return "changed"
    differs = code_differs(base, head)
    strategies = strategy_differs(base, head)
    same = not differs
    if differs is None:
        base_source = compared.base.source(base)
        head_source = compared.head.source(head)
        same_source = _digest(base_source) == _digest(head_source)
        same = same_source and not strategies
    if same:
        return "same"
    if rebound(compared, base, head) and not strategies:
        return "rebased"
    return "changed"


def _digest(source: Source | None) -> str | None:
    if source:
        return source.source
    return None


def _code_bytes(row: Dispatch | None) -> int:
    return (row.code_bytes if row else None) or 0


class _Story(NamedTuple):
    """What all dispatches of a cell share."""

    compared: Compared
    cause: Cause
    texts: Texts
    components: Sequence[Mapping[str, str]]
    base_compiler: str

    def sources(self, match: Match) -> tuple[Source | None, Source | None]:
        base = self.compared.base.source(match.base) if match.base else None
        head = self.compared.head.source(match.head) if match.head else None
        return base, head


def _delta(rank: int, match: Match, story: _Story) -> DispatchDelta:
    row = match.head or match.base
    component = story.components[match.head is not None].get(
        row.name if row else "", UNATTRIBUTED
    )
    differs_first = dispatch_cause(match, story.compared, story.cause)
    ladder = fitting_ladder(
        match.base,
        head=match.head,
        cell=story.compared.head.cell,
        base_compiler=story.base_compiler,
    )
    unproved = DispatchDelta(
        base=match.base,
        head=match.head,
        matched=match.passed,
        cause=differs_first,
        component=component,
    )
    delta = with_experiments(unproved, ladder)
    traced: _Traced = (None, "")
    if delta.cause in _TRACED:
        traced = _pass(match, story.compared, delta)
    passed, untraced = traced
    # many dispatches have the same one
    note = intern(_note(match, delta=delta, story=story, traced=traced))
    if rank < MOST_DIFFS:
        difference = _difference(match, delta.cause, story)
    else:
        difference = ()
    return replace(delta, note=note, diff=difference, passed=passed, untraced=untraced)


_Traced = tuple[PassChange | None, str]
"""The pass that parts two dispatches, or why none can be named."""


def _pass(match: Match, compared: Compared, delta: DispatchDelta) -> _Traced:
    """Return the pass that parts the two sides of a dispatch, or why none is named."""
    base, head = match.base, match.head
    base_trace = compared.base.cell.traces.get(base.name) if base else None
    head_trace = compared.head.cell.traces.get(head.name) if head else None
    traces = [trace for trace in (base_trace, head_trace) if trace]
    if not traces:
        return None, ""
    parted = parting(base_trace, head_trace)
    printed_for = traces[0].printed_for or traces[-1].printed_for
    if parted.formed is not None and parted.formed.passed is not None:
        return _formed_by(parted, parted.formed.passed, printed_for), ""
    row = parted.row
    if row is None:
        return None, parted.why
    reason = _why_not_the_cause(match, delta, parted, row)
    if reason:
        return None, reason
    operations = parted.operations
    named = dict(islice(operations.items(), PASS_OPERATIONS))
    growth = 0
    if row.head and row.base:
        growth = row.head.total - row.base.total
    change = PassChange(
        name=row.name,
        operations=named,
        more=growth,
        others=len(operations) - len(named),
        class_name=row.class_name,
        printed_for=printed_for if row.level == PROGRAM else "",
    )
    return change, ""


def _why_not_the_cause(
    match: Match, delta: DispatchDelta, parted: Parting, row: TraceRow
) -> str:
    """Say why a traced pass is not named as the cause; empty where it is."""
    if carried_by(delta) is not None:
        return why_no_pass(delta, row.level, row.name)
    if delta.cause not in EARLY_CAUSES or parted.forms_otherwise:
        return ""
    base, head = match.base, match.head
    if base is None or head is None or not strategy_differs(base, head):
        return ""
    return (
        f"traced: the sides diverge after {row.name}, and the configuration"
        " differs, too"
    )


def _formed_by(
    parted: Parting, proof: ProgramPassProof, printed_for: str
) -> PassChange:
    """Return the pass that an experiment names.

    It has the operations that differ after it, or the dispatches.
    """
    operations = parted.operations
    if parted.row is None:
        operations = {}
        for row in parted.rows:
            if row.level == PROGRAM and REGION in row.apart:
                operations = {REGION: row.apart[REGION]}
    named = dict(islice(operations.items(), PASS_OPERATIONS))
    return PassChange(
        name=proof.name,
        operations=named,
        others=len(operations) - len(named),
        class_name=proof.class_name,
        printed_for=printed_for,
        experiment=proof.status,
    )


def _difference(match: Match, cause: str | None, story: _Story) -> tuple[str, ...]:
    """Return the smallest piece that differs.

    It is one of the IR where that differs, else one of the configuration.
    """
    base_source, head_source = story.sources(match)
    pair = (_digest(base_source), _digest(head_source))
    # two of head that were one on base, or of base that are one on head
    if cause == "dedup-lost" and head_source:
        sibling = _folded_pair(story.compared, head_source)
        if sibling:
            pair = (sibling[1].source, head_source.source)
    elif cause == "dedup-won" and base_source:
        sibling = _folded_pair(story.compared, base_source)
        if sibling:
            pair = (base_source.source, sibling[0].source)
    if pair[0] != pair[1]:
        return source_diff(*pair, story.texts)
    if match.base is None or match.head is None:
        return ()
    if match.base.strategy is None or match.head.strategy is None:
        return ()
    return strategy_diff(match.base.strategy, match.head.strategy)


def _folded_pair(compared: Compared, folded: Source) -> tuple[Source, Source] | None:
    """Return the sources of the first pair of dispatches with the structure of a source."""
    for base, head in compared.pairs:
        base_source = compared.base.source(base)
        head_source = compared.head.source(head)
        if base_source is None or head_source is None:
            continue
        if base_source.structure == head_source.structure == folded.structure:
            return base_source, head_source
    return None


def _note(match: Match, delta: DispatchDelta, story: _Story, traced: _Traced) -> str:
    """Say what differs, or why that is not known.

    The cause of a dispatch that only one side has says all.
    """
    base, head = match.base, match.head
    compared = story.compared
    if delta.cause == "packaging":
        return SAME_CODE
    if delta.cause == "input" and is_opaque(compared.head):
        if compared.same_model:
            return SOURCE_CHANGED
        return ""
    if base is None or head is None:
        if delta.cause:
            return ""
        return _note_without_source(match, story)
    if delta.cause == "strategy":
        if base.strategy is None or head.strategy is None:
            return ""
        return strategy_note(base.strategy, head.strategy)
    if delta.cause == "codegen":
        return _coded(delta, compared, traced)
    return _note_of_source(match, delta, story, traced)


def _note_of_source(
    match: Match, delta: DispatchDelta, story: _Story, traced: _Traced
) -> str:
    """Say what differs in the source of a dispatch that both sides have.

    If the sources are equal, say what differs behind them.
    """
    base, head = match.base, match.head
    if base is None or head is None:
        return ""
    base_source, head_source = story.sources(match)
    has_other_source = _digest(base_source) != _digest(head_source)
    if base_source is None or has_other_source:
        if delta.cause:
            return _FORMED.get(match.passed, "")
        return _note_without_source(match, story)
    sites = _sites_words(base, head)
    if delta.cause:
        return sites or _coded(delta, story.compared, traced)
    return _note_without_cause(base, head, sites)


def _note_without_cause(base: Dispatch, head: Dispatch, sites: str) -> str:
    """Say what is known of a dispatch whose IR is the same on both sides."""
    differs = code_differs(base, head)
    if differs is None:
        return "its code could not be compared"
    if differs:
        return unconfigured(base, head)
    return sites


def _note_without_source(match: Match, story: _Story) -> str:
    """Say why there is no cause where the IR of a dispatch is not the same."""
    if story.cause.cause is None:
        return story.cause.why
    late = _made_late(match, story.compared)
    return late or "its IR was not read on both sides"


def _sites_words(base: Dispatch, head: Dispatch) -> str:
    """Return `2 → 3 dispatch sites`; empty where both have as many."""
    if base.sites == head.sites:
        return ""
    before = "?" if base.sites is None else base.sites
    after = "?" if head.sites is None else head.sites
    return f"{before} → {after} dispatch sites"


def _made_late(match: Match, compared: Compared) -> str:
    """Say that the compiler made a dispatch after it formed all others.

    Empty where it did not. The phase that has the formed dispatches does not have this
    dispatch. Data tiling makes such dispatches, which encode tensors.
    """
    kinds = set[str]()
    is_late = False
    for side, row in ((compared.base, match.base), (compared.head, match.head)):
        if row is not None:
            kinds.add(row.kind)
            is_late = is_late or side.is_late(row)
    if not is_late:
        return ""
    description = "the compiler makes it after it forms dispatches"
    if kinds == {"encode"}:
        description = "it changes the encoding of a tensor"
    if match.base is None:
        return f"{description}, and only head has it"
    if match.head is None:
        return f"{description}, and only base has it"
    return f"{description}, and its IR is not compared"


def _coded(delta: DispatchDelta, compared: Compared, traced: _Traced) -> str:
    base, head = delta.base, delta.head
    if base is None or head is None:
        return ""
    if strategy_differs(base, head):
        note = "different code, and a different configuration that does not make it"
    else:
        note = f"the same {_same_part(compared)}, different code"
    if rebound(compared, base, head):
        return f"{note}, {REBOUND}"
    carried = carried_words(delta)
    if carried:
        note = f"{note}; {carried}"
    passed, untraced = traced
    if passed is None:
        if untraced:
            return f"{note}; {untraced}"
        return note
    joint = ";" if carried else ":"
    operations = operation_words(passed.operations, _NAMED, passed.others)
    return f"{note}{joint} {passed.name}: {operations or OTHER_TYPES}"


def _same_part(compared: Compared) -> str:
    if is_opaque(compared.head):
        return opaque_source(compared)
    return "configuration"


def explanations(
    base: Snapshot,
    head: Snapshot,
    deltas: Sequence[CellDelta],
    sections: Sections = (),
    texts: Texts = no_texts,
) -> dict[CellKey, Explanation]:
    """Say why the cells changed that both sides measured.

    The compiler's own words say all about a cell that fails.

    `texts`: as `bot.explain.texts` has it.
    """
    same = base.models.keys() - changed_models(base, head)
    one_compiler = base.compiler.digest == head.compiler.digest
    result = {}
    for delta in deltas:
        base_cell, head_cell = delta.base, delta.head
        if base_cell is None or head_cell is None:
            continue
        if not base_cell.measured or not head_cell.measured:
            continue
        if delta.state in ("same", "unmeasured") or not delta.explainable:
            continue
        same_inputs = base_cell.inputs == head_cell.inputs
        same_model = delta.key.model in same and same_inputs
        names = naming(base_cell, head_cell, sections)
        same_command = one_compiler and base_cell.command == head_cell.command
        places = [where(cell.program, names) for cell in (base_cell, head_cell)]
        explanation = explain(
            base_cell,
            head=head_cell,
            same_model=same_model,
            same_command=same_command,
            texts=texts,
            components=places,
            base_compiler=base.compiler.digest,
        )
        moved, tree = components(base_cell, head_cell, names)
        explanation = replace(
            explanation, components=moved, tree=tree, first_compiles=delta.unstable
        )
        result[delta.key] = headlined(
            explanation,
            base=base_cell,
            head=head_cell,
            only_model=not same_model and same_command,
        )
    return result


def changed_models(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Return the models whose text, or a file read beside it, differs between the sides."""
    names = {*base.models, *head.models}
    edited = {name for name in names if base.models.get(name) != head.models.get(name)}
    return frozenset(edited | changed_inputs(base, head))


_NAMED_PARTS = 3
_COUNTED = {
    "input": "a program that differs from its input on",
    "fusion": "regions that are formed differently",
    "dedup-lost": "executables that base folds into others",
    "dedup-won": "executables that head folds into others",
    "strategy": "the same source and a different configuration",
    "codegen": "the same configuration and different code",
}
"""What is there for each of the dispatches of a cause.

The others are causes of parts that are no dispatch's code.
"""


def headlined(
    explanation: Explanation, base: Cell, head: Cell, only_model: bool = False
) -> Explanation:
    """Return the explanation with its waterfall, and the cause that this gives.

    The waterfall is the change of the artifact by cause, to the byte. Code counts under
    the cause of its dispatch. The other bytes of executables count as `container`, the
    program around them as `host`, and what the artifact adds of its own as `packaging`.
    What cannot be told apart is `unknown`.

    The cause is that of the largest part, `mixed` where that is under half of them all.
    A cell that moved no byte keeps the cause of the first phase that differs. It has no
    waterfall where its size is not known on both sides.

    `only_model`: nothing but the model's text differs between the sides: what is no
    code is its consequence.
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
    falls = {cause: amounts[cause] for cause in (*CAUSES, UNKNOWN) if amounts[cause]}
    fallen = replace(explanation, waterfall=falls, parts=parts)
    if not falls:
        return fallen
    cause, why = _headline(fallen, explanation)
    return replace(fallen, cause=cause, why=why)


def _headline(fallen: Explanation, explanation: Explanation) -> tuple[str | None, str]:
    """Return the cause of a cell, and why.

    The earlier phase counts where causes are equal. No cause is named where as many
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
        words = CAUSE_WORDS.get(name, name.replace("-", " "))
        largest.append(f"{words} {_signed(falls[name])}")
    if 2 * abs(falls[cause]) < sum(map(abs, falls.values())):
        return MIXED, f"no cause has half of the change: {', '.join(largest)}"
    if cause == UNKNOWN:
        if explanation.cause is None:
            return None, explanation.why
        return None, f"{largest[0]} could not be separated"
    if cause not in _COUNTED:
        return cause, _parts_of(cause, fallen.parts)
    if cause == explanation.cause:
        return cause, explanation.why
    return cause, _counted_words(cause, fallen)


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
    """Return the largest parts of a cause with their changes, and how many more it has."""
    of_cause = [part for part in parts if part.cause == cause]
    texts = [f"{part.what} {_signed(part.change_bytes)}" for part in of_cause]
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
    """Return what no dispatch's code explains, largest change first.

    With the change of that code (`code_bytes`) it sums to the artifact's (`net_bytes`).
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
    what = "parts of the artifact that could not be separated"
    parts.append(PartDelta(UNKNOWN, what, unseparated))
    changed = [part for part in parts if part.change_bytes]
    return tuple(sorted(changed, key=lambda part: (-abs(part.change_bytes), part.what)))


def _text_parts(
    base: Cell, head: Cell, explanation: Explanation, text_bytes: int
) -> list[PartDelta]:
    """Divide the text of executables beyond the code of the dispatches that changed.

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

    What only base has is negative: it is gone. 0 where both sides have the dispatch.
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
