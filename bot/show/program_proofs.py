"""Show the experiment on a program, in words and as JSON.

It names the phase and the pass that form other dispatch regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.core.program_proof import BASE_ONLY, HEAD_ONLY, ProgramPassProof, ProgramProof
from bot.core.proof import NOT_TRIED
from bot.show.blocks import Block, Sentence, strong
from bot.show.escape import clean
from bot.show.filters import plural, signed
from bot.show.proofs import STATUS_WORDS


def program_blocks(proof: ProgramProof | None) -> Iterator[Block]:
    """Draw the result of the experiment for phase and pass; nothing without one."""
    if proof is None:
        return
    if proof.status == NOT_TRIED:
        yield Sentence(f"experiment on the program: not tried: {clean(proof.why)}")
        return
    yield Sentence((strong(clean(phase_words(proof))),))
    if proof.passed is None:
        yield Sentence(f"no pass is named: {clean(proof.no_pass)}")
    else:
        yield Sentence((strong(clean(pass_words(proof.passed, proof))),))
        if proof.passed.why:
            yield Sentence(clean(proof.passed.why), small=True)
    if proof.no_bytes:
        yield Sentence(f"bytes of the program: n/a, {clean(proof.no_bytes)}")
    effect = "only regions that one side alone has are counted"
    yield Sentence(
        f"{effect}; the experiment ran a compiler or its passes {proof.compiles:,} times",
        small=True,
    )


def phase_words(proof: ProgramProof) -> str:
    """Return the result of the experiment for the phase.

    An example is `phase flow: proved: with base's IR of this phase, head forms 3 of 3
    regions as base does`.
    """
    restored = proof.restored_regions or 0
    regions = f"{restored:,} of {plural(proof.regions, 'region')}"
    text = f"with base's IR of this phase, head forms {regions} as base does"
    if proof.moved_bytes is not None:
        text += (
            f"; all code of the program: {signed(proof.moved_bytes)} with head's"
            " regions"
        )
    return f"phase {proof.phase}: {STATUS_WORDS[proof.status]}: {text}"


def pass_words(passed: ProgramPassProof, proof: ProgramProof) -> str:
    """Return the words about the experiment with the pass, and its result."""
    change = "with base's pass"
    if passed.why:
        change = "with base's passes up to this one"
    elif passed.runs_on == HEAD_ONLY:
        change = "without this pass, which base does not have"
    elif passed.runs_on == BASE_ONLY:
        change = "with this pass, which only base has"
    text = (
        f"{change}, head forms {passed.restored_regions:,} of"
        f" {plural(proof.regions, 'region')} as base does"
    )
    if passed.restored_bytes is not None:
        text += f", and changes the program's code by {signed(-passed.restored_bytes)}"
    return f"pass {passed.name}: {STATUS_WORDS[passed.status]}: {text}"


def program_json(proof: ProgramProof | None) -> Mapping[str, Any] | None:
    """Return the experiment; None if it was not made."""
    if proof is None:
        return None
    passed = proof.passed
    return {
        "status": proof.status,
        "why": proof.why,
        "phase": proof.phase or None,
        "regions": proof.regions,
        "restored_regions": proof.restored_regions,
        "moved_bytes": proof.moved_bytes,
        "pass": (
            None
            if passed is None
            else {
                "name": passed.name,
                "runs_on": passed.runs_on,
                "status": passed.status,
                "restored_regions": passed.restored_regions,
                "restored_bytes": passed.restored_bytes,
                "why": passed.why,
            }
        ),
        "no_pass": proof.no_pass,
        "compiles": proof.compiles,
    }
