"""Proofs in words: which part of a change disappears where head has base's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.core.proof import NOT_TRIED, PARTLY, PROVED, REFUTED, KnobProof, Proof
from bot.show.escape import clean
from bot.show.filters import plural

STATUS_WORDS = {
    PROVED: "proved",
    PARTLY: "partly proved",
    REFUTED: "refuted",
    NOT_TRIED: "not tried",
}
GROWTH, SHRINKAGE, CHANGE = "growth", "shrinkage", "change"


def knob_proof_words(proof: KnobProof) -> str:
    """Return what the experiment says: `proved: with base's value 99 % of the growth disappears`."""
    if proof.restored_bytes is None or not proof.moved_bytes:
        return _untried(proof.why)
    noun = GROWTH if proof.moved_bytes > 0 else SHRINKAGE
    restored_bytes = proof.restored_bytes if proof.moved_bytes > 0 else -proof.restored_bytes
    effect = _effect(restored_bytes, abs(proof.moved_bytes), len(proof.knobs), noun)
    words = f"{STATUS_WORDS[proof.status]}: {effect}"
    if proof.is_exact:
        words += ", and head has base's very code"
    if proof.status != REFUTED and proof.others:
        verb = "is" if len(proof.others) == 1 else "are"
        words += f"; {_named(proof.others)} {verb} not needed"
    if not proof.is_smallest:
        words += "; not every value was left out once (compile budget used up)"
    return words


def proof_line(proof: KnobProof) -> str:
    """Return the knobs of one dispatch with their proof: `configuration vector_reduction: refuted: …`."""
    names = ", ".join(clean(knob) for knob in proof.knobs)
    return f"configuration{f' {names}' if names else ''}: {clean(knob_proof_words(proof))}"


def proof_json(proof: KnobProof) -> Mapping[str, Any]:
    """Return the status and the bytes, as `root_causes[].proof` has them, and the knobs."""
    return {
        "status": proof.status,
        "restored_bytes": proof.restored_bytes,
        "moved_bytes": proof.moved_bytes,
        "knobs": proof.knobs,
        "not_needed": proof.others,
        "why": proof.why,
    }


def cause_proof_words(proof: Proof, knobs: int, dispatches: int, net_bytes: int, absolute_bytes: int) -> str:
    """Return what the experiments on the dispatches of a root cause say, and how many were tried.

    Args:
        knobs: how many knobs were set to base's values.
        dispatches: how many dispatches the root cause has.
        net_bytes: the net change of the root cause.
        absolute_bytes: its total change.
    """
    if not proof.members:
        return _untried(proof.why)
    noun = CHANGE
    if abs(net_bytes) == absolute_bytes:
        noun = GROWTH if net_bytes > 0 else SHRINKAGE
    effect = _effect(proof.restored_bytes, proof.moved_bytes, knobs, noun)
    words = f"{STATUS_WORDS[proof.status]}: {effect}"
    if proof.members < dispatches:
        words += f" ({proof.members:,} of {plural(dispatches, 'dispatch')} tried)"
    return words


def _untried(why: str) -> str:
    return f"{STATUS_WORDS[NOT_TRIED]}: {why}" if why else STATUS_WORDS[NOT_TRIED]


def _named(knobs: tuple[str, ...]) -> str:
    names = [f"`{knob}`" for knob in knobs]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _effect(restored_bytes: int, moved_bytes: int, knobs: int, noun: str) -> str:
    """Return what base's values do; both are amounts of bytes, negative is the wrong direction."""
    values = f"with base's {'value' if knobs == 1 else 'values'}"
    if restored_bytes == 0:
        return f"{values} none of the {noun} disappears"
    if restored_bytes < 0:
        return f"{values} the {noun} is {-restored_bytes:,} B larger"
    percent = 100 * restored_bytes // moved_bytes
    if 100 * restored_bytes > 110 * moved_bytes:  # rounded up, as it is more than a proof allows
        percent = -(-100 * restored_bytes // moved_bytes)
        return f"{values} {percent:,} % of the {noun} disappears, which is more than all of it"
    if percent == 0:
        return f"{values} less than 1 % of the {noun} disappears"
    return f"{values} {percent} % of the {noun} disappears"
