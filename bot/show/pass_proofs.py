"""The proof of an MLIR pass in words, as a table of cuts and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.core.pass_proof import BASE_ALONE, HEAD_ALONE, PassProof
from bot.core.planned import SIDES
from bot.show.blocks import Block, Sentence, Table, listed, strong
from bot.show.escape import clean, clip
from bot.show.filters import MINUS, UNKNOWN, amount, plural, signed
from bot.show.proofs import STATUS_WORDS, changed_noun, untried_words

_PASS = 64
_REASON = 200
_NAMED = 3
_CUTS = (
    "code bytes with base's passes up to a cut and head's passes after it; control:"
    " head's own IR gives head's own code"
)
_SIDES = {BASE_ALONE: ", which only base runs", HEAD_ALONE: ", which only head runs"}


def pass_proof_blocks(proof: PassProof) -> Iterator[Block]:
    """Draw the result of the experiment, and the cuts that it measured."""
    yield Sentence((strong(pass_proof_line(proof)),))
    if proof.restored_bytes is None:
        return
    rows = []
    last_bytes: int | None = None
    for cut in proof.cuts:
        if last_bytes is None:
            change = ""
        else:
            change = signed(cut.code_bytes - last_bytes)
        after = clip(clean(cut.after), _PASS) or "no pass"
        rows.append((after, amount(cut.code_bytes), change))
        last_bytes = cut.code_bytes
    yield Table(
        ("base's passes up to", "code", "since the cut above"), listed(rows, "cut")
    )
    yield Sentence(
        f"{_CUTS}; {plural(proof.compiles, 'compile')} of one executable", small=True
    )


def pass_proof_line(proof: PassProof) -> str:
    """Return the pass with its proof.

    An example begins `pass cse: proved: with base's IR after it in head's passes, …`.
    """
    return f"{_named(proof)}: {clip(clean(pass_proof_words(proof)), 2 * _REASON)}"


def pass_proof_words(proof: PassProof) -> str:
    """Return the result of the experiment for the range of passes."""
    if proof.restored_bytes is None or not proof.moved_bytes:
        return untried_words(clip(proof.why, _REASON))
    noun = changed_noun(proof.moved_bytes)
    it = "them"
    if proof.is_one_pass:
        it = "it"
    after = _disappearing(proof, proof.bytes_after)
    before = _disappearing(proof, proof.bytes_before)
    text = (
        f"{STATUS_WORDS[proof.status]}: with base's IR after {it} in head's passes,"
        f" {after} of the {abs(proof.moved_bytes):,} B {noun} of the MLIR part"
        f" disappear; with base's IR before {it}, {before}"
    )
    if proof.why:
        text += f"; {proof.why}"
    if not proof.is_smallest:
        text += "; the range was not divided further (compile budget used up)"
    return text


def _disappearing(proof: PassProof, code_bytes: int | None) -> str:
    """Return how much of the change disappears if head has this code."""
    if code_bytes is None:
        return UNKNOWN
    gone_bytes = proof.cuts[0].code_bytes - code_bytes
    if (proof.moved_bytes or 0) > 0:
        in_direction = gone_bytes
    else:
        in_direction = -gone_bytes
    return amount(in_direction).replace("-", MINUS)


def _named(proof: PassProof) -> str:
    if not proof.passes:
        return "MLIR pass"
    first = clip(clean(proof.first_pass), _PASS)
    last = clip(clean(proof.last_pass), _PASS)
    if proof.is_one_pass:
        side = _SIDES.get(proof.runs_on, "")
        base_first = first
        if proof.base_passes:
            base_first = proof.base_passes[0]
        renamed = ""
        if base_first != first:
            renamed = f" (on base {clip(clean(base_first), _PASS)})"
        return f"pass {first}{renamed}{side}"
    number = plural(len(proof.passes), "pass")
    return f"passes {first} to {last} ({number}{_lone_words(proof)})"


def _lone_words(proof: PassProof) -> str:
    """Return which passes of the range only one side runs."""
    text = ""
    for side, names in zip(SIDES, proof.lone_passes, strict=True):
        if names:
            shown_names = [clip(clean(name), _PASS) for name in names[:_NAMED]]
            listed_names = ", ".join(shown_names)
            overflow = ""
            if len(names) > _NAMED:
                overflow = f" and {len(names) - _NAMED} more"
            text += f"; only {side} runs {listed_names}{overflow}"
    return text


def pass_proof_json(proof: PassProof | None) -> Mapping[str, Any] | None:
    """Return the proof with its range and its cuts; None without a proof."""
    if proof is None:
        return None
    cuts = []
    for cut in proof.cuts:
        cuts.append(
            {
                "place": cut.place,
                "after": cut.after or None,
                "code_bytes": cut.code_bytes,
            }
        )
    return {
        "status": proof.status,
        "why": proof.why,
        "first_pass": proof.first_pass or None,
        "last_pass": proof.last_pass or None,
        "runs_on": proof.runs_on or None,
        "base_passes": proof.base_passes,
        "head_passes": proof.head_passes,
        "restored_bytes": proof.restored_bytes,
        "moved_bytes": proof.moved_bytes,
        "reverse_restored_bytes": proof.reverse_restored_bytes,
        "reverse_moved_bytes": proof.reverse_moved_bytes,
        "bytes_before": proof.bytes_before,
        "bytes_after": proof.bytes_after,
        "is_smallest": proof.is_smallest,
        "compiles": proof.compiles,
        "cuts": cuts,
    }
