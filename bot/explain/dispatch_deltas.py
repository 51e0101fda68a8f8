"""Explain one changed dispatch: its cause, its parting pass, its note and its diff."""

from __future__ import annotations

from itertools import islice
from sys import intern

from msgspec.structs import replace

from bot.core.explanation import (
    EARLY_CAUSES,
    PASS_OPERATIONS,
    UNATTRIBUTED,
    DispatchDelta,
    PassChange,
)
from bot.core.parting import parting
from bot.core.program import Source
from bot.core.program_proof import ProgramPassProof
from bot.core.trace import PROGRAM, REGION, Parting, TraceRow
from bot.explain.carrying import (
    carried_by,
    fitting_ladder,
    why_no_pass,
    with_experiments,
)
from bot.explain.cell_facts import CellFacts, Traced, source_digest
from bot.explain.compared import Compared
from bot.explain.differences import source_diff, strategy_diff
from bot.explain.dispatch_causes import dispatch_cause
from bot.explain.matching import Match
from bot.explain.notes import note_of
from bot.explain.sameness import (
    strategy_differs,
)

MOST_DIFFS = 5
_TRACED = frozenset({"codegen"}) | EARLY_CAUSES
"""Causes that a pass can have; some of them one before code generation."""


def delta_of(rank: int, match: Match, facts: CellFacts) -> DispatchDelta:
    """Explain a match that is not the same on both sides.

    `rank`: its place among the changed matches of its cell, largest change first.
    """
    row = match.head or match.base
    component = facts.components[match.head is not None].get(
        row.name if row else "", UNATTRIBUTED
    )
    differs_first = dispatch_cause(match, facts.compared, facts.cause)
    ladder = fitting_ladder(
        match.base,
        head=match.head,
        cell=facts.compared.head.cell,
        base_compiler=facts.base_compiler,
    )
    unproved = DispatchDelta(
        base=match.base,
        head=match.head,
        matched=match.passed,
        cause=differs_first,
        component=component,
    )
    delta = with_experiments(unproved, ladder)
    traced: Traced = (None, "")
    if delta.cause in _TRACED:
        traced = _pass(match, facts.compared, delta)
    passed, untraced = traced
    # many dispatches have the same one
    note = intern(note_of(match, delta=delta, facts=facts, traced=traced))
    if rank < MOST_DIFFS:
        difference = _difference(match, delta.cause, facts)
    else:
        difference = ()
    return replace(delta, note=note, diff=difference, passed=passed, untraced=untraced)


def _pass(match: Match, compared: Compared, delta: DispatchDelta) -> Traced:
    """Return the pass that parts the two sides of a dispatch, or why none is named."""
    base = match.base
    head = match.head
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
    """Return why a traced pass is not named as the cause; empty if it is named."""
    if carried_by(delta) is not None:
        return why_no_pass(delta, row.level, row.name)
    if delta.cause not in EARLY_CAUSES or parted.forms_otherwise:
        return ""
    base = match.base
    head = match.head
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


def _difference(match: Match, cause: str | None, facts: CellFacts) -> tuple[str, ...]:
    """Return the smallest piece that differs.

    It is a piece of the IR if that differs, else of the configuration.
    """
    base_source, head_source = facts.sources(match)
    pair = (source_digest(base_source), source_digest(head_source))
    # two of head that were one on base, or of base that are one on head
    if cause == "dedup-lost" and head_source:
        sibling = _folded_pair(facts.compared, head_source)
        if sibling:
            pair = (sibling[1].source, head_source.source)
    elif cause == "dedup-won" and base_source:
        sibling = _folded_pair(facts.compared, base_source)
        if sibling:
            pair = (base_source.source, sibling[0].source)
    if pair[0] != pair[1]:
        return source_diff(*pair, facts.texts)
    if match.base is None or match.head is None:
        return ()
    if match.base.strategy is None or match.head.strategy is None:
        return ()
    return strategy_diff(match.base.strategy, match.head.strategy)


def _folded_pair(compared: Compared, folded: Source) -> tuple[Source, Source] | None:
    """Return the sources of the first pair of dispatches with a source's structure."""
    for base, head in compared.pairs:
        base_source = compared.base.source(base)
        head_source = compared.head.source(head)
        if base_source is None or head_source is None:
            continue
        if base_source.structure == head_source.structure == folded.structure:
            return base_source, head_source
    return None
