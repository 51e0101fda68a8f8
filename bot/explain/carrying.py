"""Correct the cause of a dispatch by the experiments on it.

They show which phase carries its change, and what that refutes. The first phase,
setting or pass in which the sides differ is only a correlation. A ladder
(`bot.core.ladder`) and the proof of a configuration (`bot.core.proof`) are experiments,
so their results go first.
"""

from __future__ import annotations

from msgspec.structs import replace

from bot.core.explanation import EARLY_CAUSES, DispatchDelta, moved_bytes
from bot.core.ladder import (
    BACK_END,
    CODE_GENERATOR,
    CONFIGURATION,
    LLVM_OPTIMIZER,
    MLIR,
    PHASE_NAMES,
    SOURCE,
    Carried,
    Ladder,
    attribution,
    carried,
    parts_words,
)
from bot.core.proof import NOT_TRIED, PARTLY, PROVED, REFUTED, Experiment, PhaseProof
from bot.core.snapshot import Cell, Dispatch
from bot.core.trace import LLVM as LLVM_LEVEL
from bot.core.trace import MLIR as MLIR_LEVEL
from bot.core.trace import PROGRAM

LONE = "only one side has the dispatch"
FAILED = "an experiment failed"
TRACED_ONLY = "a trace names the pass"
OTHER_SOURCE = "its source differs, and a ladder does not show why"
_MIDDLE_END = "Pass"  # how the name of a pass of LLVM's optimizer ends


def fitting_ladder(
    base: Dispatch | None, head: Dispatch | None, cell: Cell, base_compiler: str
) -> Ladder | None:
    """Return the ladder of a pair in head's cell.

    Return None if there is none, or only one of another base.
    """
    if base is None or head is None:
        return None
    ladder = cell.ladders.get(head.name)
    if ladder is None or ladder.head_code != head.code:
        return None
    if not ladder.is_of(base.code, base.code_bytes, base_compiler):
        return None
    if ladder.knobs is None or base.code_bytes is None or head.code_bytes is None:
        return ladder
    change_bytes = head.code_bytes - base.code_bytes
    if ladder.knobs.moved_bytes in (None, change_bytes):
        return ladder
    return None


def carried_by(delta: DispatchDelta) -> Carried | None:
    """Return the phases that carry a dispatch's change; None without a whole ladder."""
    if delta.attribution is None:
        return None
    change_bytes = moved_bytes(delta)
    if not change_bytes:
        return None
    return carried(delta.attribution, change_bytes)


def cause_by_experiment(delta: DispatchDelta) -> str | None:
    """Return the cause of a dispatch after its experiments confirm or change it."""
    proof = delta.proof
    status = proof.status if proof is not None else NOT_TRIED
    if status in (PROVED, PARTLY):
        return "strategy"
    by_phase = carried_by(delta)
    if by_phase is None:
        is_refuted = status == REFUTED and delta.cause == "strategy"
        if is_refuted:
            return "codegen"
        return delta.cause
    if by_phase.phase == CONFIGURATION:
        return "strategy"
    if SOURCE in by_phase.parts and delta.cause not in ("strategy", "codegen"):
        return delta.cause
    is_partly_configured = by_phase.phase is None and CONFIGURATION in by_phase.parts
    if is_partly_configured and delta.cause == "strategy" and status != REFUTED:
        return "strategy"
    return "codegen"


def phase_of_pass(level: str, name: str) -> str:
    """Return the phase that a traced pass belongs to."""
    if level == PROGRAM:
        return SOURCE
    if level == MLIR_LEVEL:
        return MLIR
    if level == LLVM_LEVEL and name.endswith(_MIDDLE_END):
        return LLVM_OPTIMIZER
    return CODE_GENERATOR


def is_within(phase: str, carrying: str) -> bool:
    """Return whether a phase is the one that carries the change, or is in it."""
    return phase == carrying or (
        carrying == BACK_END and phase in (LLVM_OPTIMIZER, CODE_GENERATOR)
    )


def why_no_pass(delta: DispatchDelta, level: str, name: str) -> str:
    """Return that a traced pass is not in the phase that carries the bytes.

    The text is empty if the pass is in this phase, or if the phase is not known.
    """
    by_phase = carried_by(delta)
    if by_phase is None:
        return ""
    if by_phase.phase is None:
        return (
            f"traced: the sides diverge after {name}, but no single phase carries the"
            " change"
        )
    if is_within(phase_of_pass(level, name), by_phase.phase):
        return ""
    return (
        f"traced: the sides diverge after {name}, but {PHASE_NAMES[by_phase.phase]}"
        " carries the change"
    )


def carried_words(delta: DispatchDelta) -> str:
    """Return `the code generator carries 98 % of the change`, or the parts.

    The text is empty without a whole ladder.
    """
    by_phase = carried_by(delta)
    change_bytes = moved_bytes(delta)
    if by_phase is None or not change_bytes:
        return ""
    if by_phase.phase is not None:
        percent = 100 * by_phase.parts[by_phase.phase] // change_bytes
        return f"{PHASE_NAMES[by_phase.phase]} carries {percent} % of the change"
    return parts_words(by_phase.parts)


def claim_of(delta: DispatchDelta) -> Experiment:
    """Return the experiment behind the cause that a report names for one dispatch."""
    change_bytes = moved_bytes(delta)
    proof = delta.proof if delta.cause == "strategy" else None
    if proof is not None and proof.status in (PROVED, PARTLY):
        return proof
    by_phase = carried_by(delta)
    if delta.base is None or delta.head is None:
        return _untried(change_bytes, LONE)
    if by_phase is None or change_bytes is None:
        if proof is not None:
            return _untried(change_bytes, proof.why)
        return _untried(change_bytes, "" if delta.attribution is None else FAILED)
    if delta.passed is not None:
        return _untried(change_bytes, TRACED_ONLY)
    if delta.cause in EARLY_CAUSES:
        return _untried(change_bytes, OTHER_SOURCE)
    if by_phase.phase is None:
        largest = max(by_phase.parts.values(), key=abs, default=0)
        return PhaseProof(PARTLY, change_bytes, largest)
    return PhaseProof(PROVED, change_bytes, by_phase.parts[by_phase.phase])


def _untried(moved_bytes: int | None, reason: str) -> PhaseProof:
    """Return the claim of a dispatch that no experiment is about."""
    return PhaseProof(
        status=NOT_TRIED, moved_bytes=moved_bytes, restored_bytes=None, why=reason
    )


def with_experiments(delta: DispatchDelta, ladder: Ladder | None) -> DispatchDelta:
    """Return a dispatch with its ladder's results, and the cause that follows."""
    if ladder is None:
        return delta
    measured = replace(delta, attribution=attribution(ladder), proof=ladder.knobs)
    return replace(measured, cause=cause_by_experiment(measured))
