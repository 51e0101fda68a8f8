"""Proofs of passes in words and as JSON."""

from __future__ import annotations

from bot.core.machine_passes import MachinePasses, MachineStage
from bot.core.pass_proof import PassCut, PassProof, untried
from bot.core.proof import PARTLY, PROVED
from bot.show.machine_passes import machine_pass_json
from bot.show.pass_proofs import pass_proof_json, pass_proof_line

CUTS = (
    PassCut(0, 9_354),
    PassCut(42, 9_354, "cse"),
    PassCut(43, 32_077, "lower-vectors"),
    PassCut(85, 32_077, "end"),
)


def proof(
    base: tuple[str, ...] = ("lower-vectors",),
    head: tuple[str, ...] = ("lower-vectors",),
    status: str = PROVED,
    reason: str = "",
    *,
    is_smallest: bool = True,
) -> PassProof:
    return PassProof(
        status=status,
        why=reason,
        base_passes=base,
        head_passes=head,
        moved_bytes=-22_723,
        restored_bytes=-22_723,
        cuts=CUTS,
        range_start=42,
        range_end=43,
        is_smallest=is_smallest,
        compiles=15,
    )


EFFECT = (
    "with base's IR after it in head's passes, 22,723 B of the 22,723 B shrinkage of"
    " the MLIR part disappear; with base's IR before it, 0 B"
)


def test_a_proof_says_what_disappears_on_both_sides_of_the_pass() -> None:
    assert pass_proof_line(proof()) == f"pass lower-vectors: proved: {EFFECT}"


def test_a_pass_of_one_side_says_so_and_a_renamed_one_has_both_names() -> None:
    assert pass_proof_line(proof(base=())).startswith(
        "pass lower-vectors, which only head runs: proved: "
    )
    assert pass_proof_line(proof(head=())).startswith(
        "pass lower-vectors, which only base runs: proved: "
    )
    assert pass_proof_line(proof(base=("old",))).startswith(
        "pass lower-vectors (on base old): proved: "
    )


def test_a_range_names_its_ends_and_the_passes_of_one_side() -> None:
    line = pass_proof_line(proof(base=("cse", "last"), head=("cse", "new", "last")))
    assert line.startswith(
        "passes cse to last (3 passes; only head runs new): proved: with base's IR"
        " after them "
    )


def test_what_is_not_proved_has_its_reason() -> None:
    obstacle = "several passes carry the bytes"
    line = pass_proof_line(proof(status=PARTLY, reason=obstacle, is_smallest=False))
    reason = f"{obstacle}; the range was not divided further (compile budget used up)"
    assert line == f"pass lower-vectors: partly proved: {EFFECT}; {reason}"
    assert pass_proof_line(untried("no option", 5)) == "MLIR pass: not tried: no option"


def test_json_has_the_range_and_its_bytes() -> None:
    row = pass_proof_json(proof())
    assert row is not None
    assert (row["first_pass"], row["last_pass"], row["runs_on"]) == (
        "lower-vectors",
        "lower-vectors",
        "both",
    )
    assert (row["bytes_before"], row["bytes_after"]) == (9_354, 32_077)
    assert row["cuts"][0] == {"place": 0, "after": None, "code_bytes": 9_354}
    assert pass_proof_json(None) is None
    empty = pass_proof_json(untried("no option"))
    assert empty is not None
    assert (empty["first_pass"], empty["bytes_before"], empty["moved_bytes"]) == (
        None,
        None,
        None,
    )


def test_the_first_pass_with_other_instructions_is_named() -> None:
    same = MachineStage("finalize-isel", 5, 5)
    changed = MachineStage("greedy", 5, 5, {"A": 1, "B": -1})
    row = machine_pass_json(MachinePasses("base", (same, changed)))
    assert row is not None
    assert row["first_apart"] == "greedy"
    assert machine_pass_json(MachinePasses("base", (same,))) == {
        "bitcode": "base",
        "stages": [{"name": "finalize-isel", "base": 5, "head": 5, "changes": {}}],
        "first_apart": None,
        "why": "",
    }
    assert machine_pass_json(None) is None
