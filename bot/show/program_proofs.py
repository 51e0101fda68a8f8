"""The experiment on a program in words and as JSON: which phase and which pass form other dispatch regions."""

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
    """Draw what the experiment says of the phase and of the pass; nothing where there is none."""
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
    what = "regions count where they differ: those of base and those of head"
    yield Sentence(f"{what}; the experiment ran a compiler or its passes {proof.compiles:,} times", small=True)


def phase_words(proof: ProgramProof) -> str:
    """Return `phase global-optimization: proved: base's IR after it gives back 3 of 3 regions`."""
    restored = proof.restored_regions or 0
    words = f"base's IR of this phase gives back {restored:,} of {plural(proof.regions, 'region')} in head's compiler"
    if proof.moved_bytes is not None:
        words += f"; all code of the program: {signed(proof.moved_bytes)} with head's regions"
    return f"phase {proof.phase}: {STATUS_WORDS[proof.status]}: {words}"


def pass_words(passed: ProgramPassProof, proof: ProgramProof) -> str:
    """Return what the experiment with the pass was, and what it gave."""
    what = "head with base's pass"
    if passed.why:
        what = "base's passes up to this one, and head's after it,"
    elif passed.runs_on == HEAD_ONLY:
        what = "head without this pass, which base does not have,"
    elif passed.runs_on == BASE_ONLY:
        what = "head with this pass, which only base has,"
    verb = "give" if passed.why else "gives"
    words = f"{what} {verb} back {passed.restored_regions:,} of {plural(proof.regions, 'region')}"
    if passed.restored_bytes is not None:
        words += f", and changes the program's code by {signed(-passed.restored_bytes)}"
    return f"pass {passed.name}: {STATUS_WORDS[passed.status]}: {words}"


def program_json(proof: ProgramProof | None) -> Mapping[str, Any] | None:
    """Return the experiment; None where nobody made it."""
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
        "pass": None
        if passed is None
        else {
            "name": passed.name,
            "runs_on": passed.runs_on,
            "status": passed.status,
            "restored_regions": passed.restored_regions,
            "restored_bytes": passed.restored_bytes,
            "why": passed.why,
        },
        "no_pass": proof.no_pass,
        "compiles": proof.compiles,
    }
