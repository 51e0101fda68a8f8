"""Explain every cell that changed: its dispatches, its waterfall, and the headline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from bot.core.comparable import changed_inputs
from bot.core.delta import CellDelta
from bot.core.explanation import (
    Explanation,
    code_differs,
    named_bytes,
)
from bot.core.snapshot import Cell, CellKey, Dispatch, Snapshot
from bot.explain.cell_facts import CellFacts, source_digest
from bot.explain.compared import Compared, compare, rebound
from bot.explain.components import Sections, components, naming, where
from bot.explain.dispatch_deltas import delta_of
from bot.explain.matching import Match, index_both, match_sides
from bot.explain.phases import (
    cause_of,
)
from bot.explain.sameness import (
    same_numbers,
    strategy_differs,
)
from bot.explain.texts import Texts, no_texts
from bot.explain.waterfalls import headlined


def explain(
    base: Cell,
    head: Cell,
    same_model: bool,
    same_command: bool,
    same_inputs: bool = True,
    texts: Texts = no_texts,
    places: Sequence[Mapping[str, str]] = ({}, {}),
    base_compiler: str = "",
) -> Explanation:
    """Explain why a cell changed that both sides measured.

    `components` and `tree` of the result are empty. `explanations` adds them.

    Args:
        base: the cell on base.
        head: the cell on head.
        same_model: whether the model's text is the same on both sides.
        same_command: whether compiler and flags are the same.
        same_inputs: whether the other files that the build reads are the same.
        texts: as `bot.explain.texts` has it.
        places: entry point → its component, on base and on head.
        base_compiler: digest of the compiler that head's ladders must be against.
    """
    sides = index_both(base, head)
    matches = match_sides(*sides)
    compared = compare(
        *sides, matches, same_model, same_command, same_inputs=same_inputs
    )
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
    facts = CellFacts(
        compared=compared,
        cause=cause,
        texts=texts,
        components=places,
        base_compiler=base_compiler,
    )
    deltas = [delta_of(rank, match, facts) for rank, match in enumerate(changed)]
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
    """Return whether an entry point is the same, bound to other memory, or changed.

    Other sites or other numbers are a change. If they are equal, the code decides. If its
    code is not known, source and configuration decide. A rebased one has the same IR and
    configuration, and the program binds other buffers.
    """
    base = match.base
    head = match.head
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
        same_source = source_digest(base_source) == source_digest(head_source)
        same = same_source and not strategies
    if same:
        return "same"
    if rebound(compared, base, head) and not strategies:
        return "rebased"
    return "changed"


def _code_bytes(row: Dispatch | None) -> int:
    return (row.code_bytes if row else None) or 0


def explanations(
    base: Snapshot,
    head: Snapshot,
    deltas: Sequence[CellDelta],
    sections: Sections = (),
    texts: Texts = no_texts,
) -> dict[CellKey, Explanation]:
    """Explain why the cells changed that both sides measured.

    A cell that fails needs no explanation: it has the compiler's message. `texts`: as
    `bot.explain.texts` has it.
    """
    same = base.models.keys() - edited_models(base, head)
    one_compiler = base.compiler.digest == head.compiler.digest
    result = {}
    for delta in deltas:
        base_cell = delta.base
        head_cell = delta.head
        if base_cell is None or head_cell is None:
            continue
        if not base_cell.measured or not head_cell.measured:
            continue
        if delta.state in ("same", "unmeasured") or not delta.explainable:
            continue
        same_inputs = base_cell.inputs == head_cell.inputs
        same_model = delta.key.model in same
        names = naming(base_cell, head_cell, sections)
        same_command = one_compiler and base_cell.command == head_cell.command
        places = [where(cell.program, names) for cell in (base_cell, head_cell)]
        explanation = explain(
            base_cell,
            head=head_cell,
            same_model=same_model,
            same_command=same_command,
            same_inputs=same_inputs,
            texts=texts,
            places=places,
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
            only_model=not (same_model and same_inputs) and same_command,
        )
    return result


def edited_models(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Return the models whose text differs between the sides."""
    edited = set()
    for name in {*base.models, *head.models}:
        if base.models.get(name) != head.models.get(name):
            edited.add(name)
    return frozenset(edited)


def changed_models(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Return the models whose text or other input file differs between the sides."""
    return edited_models(base, head) | changed_inputs(base, head)
