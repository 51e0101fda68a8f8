"""Store base's IR of its largest dispatches with a baseline.

A later run uses it in place of base's compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from bot.compiler.schedule import Task, run_all
from bot.core.ladder import MOST_REASON
from bot.core.proof import KnobProof
from bot.core.snapshot import Cell, Dispatch, Failure, Snapshot
from bot.core.stored_ir import Bitcode, PhaseText, StoredDispatch
from bot.core.work import stored_ir_work
from bot.show.filters import plural
from bot.store.ir_files import digest_of_ir, packed_ir
from bot.study.compiling_alone import CONFIGURATIONS, SOURCES, TARGETS
from bot.study.foreign_ir import NamedText
from bot.study.ladder import FirstSide, LadderSide, first_side
from bot.study.prepare import Work
from bot.study.proving import proof_between
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.study.trace_budget import work_for
from bot.study.tracing import SideTracer, side_tracers

_NO_IR = "no IR is stored for this phase"


class WithIr(NamedTuple):
    """A side that others will be compared with when its compiler is gone."""

    snapshot: Snapshot  # names its IR by digest, if it has any
    ir: bytes  # the file with it; empty if there is none


class _Chosen(NamedTuple):
    """One dispatch whose IR is stored."""

    cell: Cell
    row: Dispatch


def with_stored_ir(plan: SidePlan, snapshot: Snapshot, work: Work) -> WithIr:
    """Return a side and the IR of its largest dispatches, within a work and size limit.

    Storing IR may cost as much as tracing.
    """
    budget = work_for({plan.label: snapshot})
    if plan.compiler.is_traced:
        chosen = _largest(snapshot, budget)
    else:
        chosen = []
    if not chosen:
        return WithIr(snapshot, b"")
    dispatches = plural(len(chosen), "largest dispatch")
    work.show.say(f"storing the IR of the {dispatches}, for later pull requests")
    with work.resources() as resources:
        stored = _stored(plan, chosen, resources)
    ir = packed_ir(snapshot.compiler.digest, stored)
    if not ir:
        return WithIr(snapshot, b"")
    return WithIr(replace(snapshot, stored_ir=digest_of_ir(ir)), ir)


def _largest(snapshot: Snapshot, budget: int) -> list[_Chosen]:
    """Return the largest dispatches that the work covers; others are skipped."""
    pairs = []
    for cell in snapshot.cells:
        for row in cell.dispatches:
            if row.code_bytes and row.code is not None:
                pairs.append(_Chosen(cell, row))
    pairs.sort(
        key=lambda pair: (-(pair.row.code_bytes or 0), pair.cell.key, pair.row.name)
    )
    chosen = list[_Chosen]()
    for pair in pairs:
        backend = snapshot.targets.get(pair.cell.target, "")
        cost = stored_ir_work(pair.row, backend)
        if cost > budget:
            continue
        budget -= cost
        chosen.append(pair)
    return chosen


def _stored(
    plan: SidePlan, chosen: Sequence[_Chosen], resources: Resources
) -> list[StoredDispatch]:
    """Compile each dispatch alone; return what a ladder needs, in the same order."""
    stored = dict[int, StoredDispatch]()

    def store(number: int, pair: _Chosen, tracer: SideTracer) -> None:
        side = tracer.ladder_side(pair.cell, pair.row)
        if not isinstance(side.source, Failure):
            stored[number] = stored_dispatch(pair.cell, side)

    resources.progress.stage("storing IR", len(chosen), "dispatch")
    with side_tracers([plan], resources) as tracers:
        tasks = []
        for number, pair in enumerate(chosen):
            name = f"store the IR of {pair.row.name} of {pair.cell.key}"
            start = partial(store, number, pair, tracers[plan.label])
            tasks.append(Task(-number, name, start))
        run_all(
            tasks,
            jobs=resources.jobs,
            interrupt=resources.cancel.set,
            watcher=resources.progress,
        )
    return [stored[number] for number in sorted(stored)]


def stored_dispatch(cell: Cell, side: LadderSide) -> StoredDispatch:
    """Return the values that a ladder needs of one dispatch of base.

    Raises ValueError for a dispatch without the digest of its code.
    """
    row = side.row
    if row.code is None:
        raise ValueError("a stored dispatch has the digest of its code")
    first = first_side(side)
    return StoredDispatch(
        model=cell.key.model,
        target=cell.key.target,
        name=row.name,
        code=row.code,
        source=_phase_text(first, SOURCES),
        configured=_phase_text(first, CONFIGURATIONS),
        translated=_phase_text(first, TARGETS),
        end=first.end,
        end_same=first.is_same,
        respelled_bytes=first.respelled_bytes,
        bitcode=_bitcode(first),
    )


def _phase_text(first: FirstSide, phase: str) -> PhaseText:
    text = first.texts[phase]
    if isinstance(text, Failure):
        return PhaseText(why=_reason(text))
    return PhaseText(text.text, text.generic)


def _bitcode(first: FirstSide) -> Bitcode | None:
    if first.control is None:
        return None
    if isinstance(first.bitcode, Failure):
        return Bitcode(first.control, why=_reason(first.bitcode))
    if not first.bitcode:
        return Bitcode(first.control, why="the compiler wrote no bitcode")
    return Bitcode(first.control, first.bitcode.hex())


def _reason(failed: Failure) -> str:
    return (failed.first_line or failed.stage or _NO_IR)[:MOST_REASON]


def first_side_of(stored: StoredDispatch) -> FirstSide:
    """Return the first side of a ladder from what is stored of it."""
    bitcode: bytes | Failure = Failure("read", "the target has no bitcode")
    if stored.bitcode is not None and stored.bitcode.why:
        bitcode = Failure("read", stored.bitcode.why)
    elif stored.bitcode is not None:
        bitcode = bytes.fromhex(stored.bitcode.data)
    texts = {
        SOURCES: _named_text(stored, stored.source),
        CONFIGURATIONS: _named_text(stored, stored.configured),
        TARGETS: _named_text(stored, stored.translated),
    }
    return FirstSide(
        name=stored.name,
        texts=texts,
        end=stored.end,
        is_same=stored.end_same,
        respelled_bytes=stored.respelled_bytes,
        bitcode=bitcode,
        control=stored.bitcode.control if stored.bitcode is not None else None,
    )


def _named_text(stored: StoredDispatch, text: PhaseText) -> NamedText | Failure:
    if text.why:
        return Failure("read", text.why)
    return NamedText(stored.name, text.plain, text.generic)


def proof_from(base: Dispatch, stored: StoredDispatch, head: LadderSide) -> KnobProof:
    """Return the proof of a dispatch's configuration without base's compiler.

    Only head's compiler runs.
    """
    text = stored.configured
    base_text: str | Failure = text.plain
    if text.why:
        base_text = Failure("read", text.why)
    return proof_between(base, base_text, head)
