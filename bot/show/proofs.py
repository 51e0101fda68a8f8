"""Proofs in words: which part of a change disappears if head has base's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.core.explanation import Tally
from bot.core.ladder import SEVERAL_PHASES, parts_words
from bot.core.proof import NOT_TRIED, PARTLY, PROVED, REFUTED, KnobProof, Proof
from bot.show.escape import clean
from bot.show.filters import plural

STATUS_WORDS = {
    PROVED: "proved",
    PARTLY: "partly proved",
    REFUTED: "refuted",
    NOT_TRIED: "not tried",
}
GROWTH = "growth"
SHRINKAGE = "shrinkage"
CHANGE = "change"


def knob_proof_words(proof: KnobProof) -> str:
    """Return the result of the experiment.

    An example is `proved: with base's value 99 % of the growth disappears`.
    """
    if proof.restored_bytes is None or not proof.moved_bytes:
        return untried_words(proof.why)
    noun = changed_noun(proof.moved_bytes)
    if proof.moved_bytes > 0:
        restored_bytes = proof.restored_bytes
    else:
        restored_bytes = -proof.restored_bytes
    effect = _effect(
        restored_bytes,
        moved_bytes=abs(proof.moved_bytes),
        knobs=len(proof.knobs),
        noun=noun,
    )
    text = f"{STATUS_WORDS[proof.status]}: {effect}"
    if proof.is_exact:
        text += ", and head has base's very code"
    if proof.status != REFUTED and proof.others:
        verb = "are"
        if len(proof.others) == 1:
            verb = "is"
        text += f"; {_named(proof.others)} {verb} not needed"
    if not proof.is_smallest:
        text += "; not every value was left out once (compile budget used up)"
    return text


def proof_line(proof: KnobProof) -> str:
    """Return the knobs of one dispatch with their proof.

    An example begins `configuration vector_reduction: refuted: …`.
    """
    names = ", ".join(clean(knob) for knob in proof.knobs)
    return (
        f"configuration{f' {names}' if names else ''}: {clean(knob_proof_words(proof))}"
    )


def proof_json(proof: KnobProof) -> Mapping[str, Any]:
    """Return the status, bytes and knobs that `root_causes[].proof` has."""
    return {
        "status": proof.status,
        "restored_bytes": proof.restored_bytes,
        "moved_bytes": proof.moved_bytes,
        "knobs": proof.knobs,
        "not_needed": proof.others,
        "why": proof.why,
    }


def cause_proof_words(
    proof: Proof, knobs: int, dispatches: int, net_bytes: int, absolute_bytes: int
) -> str:
    """Return the result of the experiments on a root cause's dispatches.

    The text has the number of tried dispatches. It is empty for an experiment that
    counts dispatch regions: the root cause itself has its result.

    Args:
        knobs: how many knobs were set to base's values.
        dispatches: how many dispatches the root cause has.
        net_bytes: the net change of the root cause.
        absolute_bytes: its total change.
    """
    if proof.restored_bytes is None:
        return ""
    if not proof.members:
        return untried_words(proof.why)
    effect = _effect(
        proof.restored_bytes,
        moved_bytes=proof.moved_bytes,
        knobs=knobs,
        noun=_noun(net_bytes, absolute_bytes),
    )
    return f"{STATUS_WORDS[proof.status]}: {effect}{_of(proof, dispatches)}"


def root_proof_words(
    proof: Proof,
    what: str,
    parts: Mapping[str, int],
    pass_name: str | None,
    dispatches: int,
    total: Tally,
) -> str:
    """Return the result of the experiments on a root cause.

    It is empty for an experiment that counts dispatch regions.

    Args:
        what: the words of the root cause.
        parts: phase → bytes, of a root cause in code generation.
        pass_name: the pass that a trace names; None if no pass is named.
    """
    net_bytes = total.net_bytes
    absolute_bytes = total.absolute_bytes
    if parts and pass_name is None:
        is_mixture = what.startswith(SEVERAL_PHASES)
        return phase_proof_words(
            proof,
            is_mixture=is_mixture,
            dispatches=dispatches,
            net_bytes=net_bytes,
            absolute_bytes=absolute_bytes,
        )
    knobs = 1
    if ", with " in what:
        knobs = 2
    text = cause_proof_words(
        proof,
        knobs=knobs,
        dispatches=dispatches,
        net_bytes=net_bytes,
        absolute_bytes=absolute_bytes,
    )
    if parts:
        return f"{text}; by phase: {parts_words(parts)}"
    return text


def phase_proof_words(
    proof: Proof, is_mixture: bool, dispatches: int, net_bytes: int, absolute_bytes: int
) -> str:
    """Return how much of a root cause its phase carries.

    Of several phases only how many dispatches were tried.

    Args:
        is_mixture: whether several phases carry the change together.
        dispatches: as `cause_proof_words` has it; so are the bytes.
    """
    if not proof.members or proof.restored_bytes is None:
        return untried_words(proof.why)
    if is_mixture:
        return f"the experiment ran for each phase{_of(proof, dispatches)}"
    noun = _noun(net_bytes, absolute_bytes)
    percent = 100 * proof.restored_bytes // proof.moved_bytes
    part = f"{percent} %"
    if proof.restored_bytes <= 0:
        part = "nothing"
    elif percent == 0:
        part = "less than 1 %"
    return (
        f"{STATUS_WORDS[proof.status]}: this phase carries {part} of the"
        f" {noun}{_of(proof, dispatches)}"
    )


def _noun(net_bytes: int, absolute_bytes: int) -> str:
    if abs(net_bytes) != absolute_bytes:
        return CHANGE
    return changed_noun(net_bytes)


def _of(proof: Proof, dispatches: int) -> str:
    """Return how many of the dispatches were tried; empty if all were."""
    if proof.members >= dispatches:
        return ""
    return f" ({proof.members:,} of {plural(dispatches, 'dispatch')} tried)"


def changed_noun(moved_bytes: int) -> str:
    """Return the noun for a signed change."""
    if moved_bytes > 0:
        return GROWTH
    return SHRINKAGE


def untried_words(reason: str) -> str:
    """Return the words that there was no experiment, and why."""
    if reason:
        return f"{STATUS_WORDS[NOT_TRIED]}: {reason}"
    return STATUS_WORDS[NOT_TRIED]


def _named(knobs: tuple[str, ...]) -> str:
    names = [f"`{knob}`" for knob in knobs]
    if len(names) > 1:
        return " and ".join([", ".join(names[:-1]), names[-1]])
    return names[0]


def _effect(restored_bytes: int, moved_bytes: int, knobs: int, noun: str) -> str:
    """Return the effect of base's values.

    Both numbers of bytes are amounts; negative is the wrong direction.
    """
    values = "with base's values"
    if knobs == 1:
        values = "with base's value"
    return undone_words(values, restored_bytes, moved_bytes=moved_bytes, noun=noun)


def undone_words(
    values: str, restored_bytes: int, *, moved_bytes: int, noun: str
) -> str:
    """Return what an experiment undoes: `with base's value 99 % of the growth disappears`.

    Both numbers of bytes are amounts; negative is the wrong direction.

    Args:
        values: what the experiment does, such as `with base's value`.
        noun: what moved, such as `growth`.
    """
    if restored_bytes == 0:
        return f"{values} none of the {noun} disappears"
    if restored_bytes < 0:
        return f"{values} the {noun} is {-restored_bytes:,} B larger"
    percent = 100 * restored_bytes // moved_bytes
    # rounded up, as it is more than a proof allows
    if 100 * restored_bytes > 110 * moved_bytes:
        percent = -(-100 * restored_bytes // moved_bytes)
        return (
            f"{values} {percent:,} % of the {noun} disappears, which is more than all"
            " of it"
        )
    if percent == 0:
        return f"{values} less than 1 % of the {noun} disappears"
    return f"{values} {percent} % of the {noun} disappears"
