"""Find the phase and the pass that form other dispatch regions, by experiment.

`bot.core.program_proof` has the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from bot.core.program_proof import (
    PROGRAM_PHASES,
    ProgramProof,
    regions_status,
    untried,
)
from bot.core.proof import REFUTED
from bot.readers.flow_regions import distance, named_regions, regions_of
from bot.study.program_side import FLOW, NoText, ProgramSide
from bot.study.proving_program_pass import PhaseCut, Programs, proved_pass

SAME_REGIONS = "both sides have the same dispatch regions"


@dataclass(frozen=True, slots=True)
class ProgramExperiment:
    """The proof of a program, with the executables of each side that it explains."""

    proof: ProgramProof
    # side → executables
    covered: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def proof_of(self, executables: Mapping[str, str]) -> ProgramProof:
        """Return the proof for one dispatch.

        It has no pass if the pass forms other regions of the program.

        Args:
            executables: side → the executable of the dispatch.
        """
        if self.proof.passed is None:
            return self.proof
        for side, name in executables.items():
            if name in self.covered.get(side, ()):
                return self.proof
        return _without_pass(
            self.proof, f"{self.proof.passed.name} forms other regions, not this one"
        )


def prove_program(
    base: ProgramSide, head: ProgramSide, *, with_bytes: bool = False
) -> ProgramExperiment:
    """Return which phase and pass form the regions that only one side has.

    Args:
        with_bytes: compile up to three programs to the end, and count the bytes of
            their code.
    """
    try:
        experiment = _experiment(base, head, with_bytes=with_bytes)
    except NoText as stopped:
        experiment = ProgramExperiment(untried(str(stopped)))
    proof = replace(experiment.proof, compiles=base.compiles + head.compiles)
    return ProgramExperiment(proof, experiment.covered)


def _experiment(
    base: ProgramSide, head: ProgramSide, *, with_bytes: bool
) -> ProgramExperiment:
    head_flow = _named("head", head)
    base_flow = _base_in_head(base, head)
    head_regions = regions_of(head_flow)
    base_regions = regions_of(base_flow)
    if not head_regions or not base_regions:
        return ProgramExperiment(untried("a side has no dispatch region"))
    regions = distance(head_regions, base_regions)
    if not regions:
        return ProgramExperiment(untried(SAME_REGIONS))
    programs = Programs(base=base, head=head, wanted=base_regions, regions=regions)
    cut = _phase_cut(programs)
    restored = min(cut.before - cut.after, regions)
    proof = ProgramProof(
        status=regions_status(restored, regions),
        phase=cut.phase,
        regions=regions,
        restored_regions=restored,
    )
    if proof.status == REFUTED:
        return ProgramExperiment(
            _without_pass(proof, "no single phase forms these regions")
        )
    try:
        found_pass = proved_pass(programs, cut)
    except NoText as stopped:
        proof = _with_bytes(
            _without_pass(proof, str(stopped)),
            programs=programs,
            base_flow=base_flow,
            pass_flow="",
            with_bytes=with_bytes,
        )
        return ProgramExperiment(proof)
    covered = {
        "base": _executables(base_flow, found_pass.restored),
        "head": _executables(head_flow, found_pass.restored),
    }
    proof = replace(proof, passed=found_pass.proof)
    return ProgramExperiment(
        _with_bytes(
            proof,
            programs=programs,
            base_flow=base_flow,
            pass_flow=found_pass.flow,
            with_bytes=with_bytes,
        ),
        covered,
    )


def _without_pass(proof: ProgramProof, reason: str) -> ProgramProof:
    return replace(proof, passed=None, no_pass=reason)


def _executables(flow: str, digests: frozenset[str]) -> frozenset[str]:
    names = []
    for name, digest in named_regions(flow).items():
        if digest in digests:
            names.append(name)
    return frozenset(names)


def _named(name: str, side: ProgramSide) -> str:
    try:
        return side.at(FLOW)
    except NoText as stopped:
        raise NoText(f"{name} does not compile to {FLOW}: {stopped}") from None


def _base_in_head(base: ProgramSide, head: ProgramSide) -> str:
    """Return base's program at `flow` as head's compiler prints it."""
    text = _named("base", base)
    try:
        return Programs(base=base, head=head, wanted={}, regions=0).fed(text, FLOW)
    except NoText as stopped:
        raise NoText(f"head cannot read base's regions: {stopped}") from None


def _phase_cut(programs: Programs) -> PhaseCut:
    """Return the phase whose IR of base gives base's regions in head's compiler.

    It is found by bisection.
    """
    last = len(PROGRAM_PHASES) - 1
    different_regions = {-1: programs.regions, last: 0}
    low = -1
    high = last
    while high - low > 1:
        middle = _nearest_fed(
            programs, low=low, high=high, different_regions=different_regions
        )
        if (
            2 * different_regions[middle]
            <= different_regions[low] + different_regions[high]
        ):
            high = middle
        else:
            low = middle
    return PhaseCut(
        PROGRAM_PHASES[high], different_regions[low], different_regions[high]
    )


def _nearest_fed(
    programs: Programs, low: int, high: int, different_regions: dict[int, int]
) -> int:
    """Measure the phase nearest to the middle from which head accepts base's IR."""
    centre = (low + high) // 2
    reason = ""
    for place in sorted(range(low + 1, high), key=lambda place: abs(place - centre)):
        phase = PROGRAM_PHASES[place]
        try:
            different_regions[place] = programs.distance_fed(
                programs.base.at(phase), phase
            )
        except NoText as stopped:
            reason = f"head cannot go on from base's IR at {phase}: {stopped}"
            continue
        return place
    raise NoText(reason)


def _with_bytes(
    proof: ProgramProof,
    programs: Programs,
    base_flow: str,
    pass_flow: str,
    with_bytes: bool,
) -> ProgramProof:
    """Add the bytes of the programs to a proof.

    They are head's program, base's regions in head's compiler, and head with base's
    pass.
    """
    if not with_bytes:
        return proof
    head = programs.head
    try:
        own_bytes = head.code_bytes(head.at(FLOW))
        proof = replace(proof, moved_bytes=own_bytes - head.code_bytes(base_flow))
        if proof.passed is not None and pass_flow:
            restored_bytes = own_bytes - head.code_bytes(pass_flow)
            proof = replace(
                proof, passed=replace(proof.passed, restored_bytes=restored_bytes)
            )
    except NoText as stopped:
        return replace(proof, no_bytes=str(stopped))
    return proof
