"""Proofs in words: every status, one value and several, growth and shrinkage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bot.core.proof import (
    NOT_TRIED,
    PARTLY,
    PROVED,
    REFUTED,
    KnobProof,
    Proof,
    status_of,
)
from bot.show.proofs import cause_proof_words, knob_proof_words, phase_proof_words


def proof(
    moved_bytes: int,
    restored_bytes: int,
    knobs: int = 1,
    other_knobs: tuple[str, ...] = (),
) -> KnobProof:
    return KnobProof(
        status=status_of(restored_bytes, moved_bytes),
        moved_bytes=moved_bytes,
        restored_bytes=restored_bytes,
        knobs=tuple(f"knob{number}" for number in range(knobs)),
        others=other_knobs,
    )


@pytest.mark.parametrize(
    ("moved_bytes", "restored_bytes", "knobs", "expected"),
    [
        (4241, 4227, 1, "proved: with base's value 99 % of the growth disappears"),
        (
            -4241,
            -4241,
            3,
            "proved: with base's values 100 % of the shrinkage disappears",
        ),
        (
            1000,
            899,
            1,
            "partly proved: with base's value 89 % of the growth disappears",
        ),
        (
            10_000,
            8_999,
            1,
            "partly proved: with base's value 89 % of the growth disappears",
        ),
        (
            -1000,
            -630,
            2,
            "partly proved: with base's values 63 % of the shrinkage disappears",
        ),
        (
            464,
            700,
            1,
            "partly proved: with base's value 151 % of the growth disappears, which is more than all of it",
        ),
        (
            10_000,
            11_001,
            1,
            "partly proved: with base's value 111 % of the growth disappears, which is more than all of it",
        ),
        (10_000, 999, 1, "refuted: with base's value 9 % of the growth disappears"),
        (
            10_000,
            99,
            1,
            "refuted: with base's value less than 1 % of the growth disappears",
        ),
        (2720, 0, 2, "refuted: with base's values none of the growth disappears"),
        (2720, -156, 2, "refuted: with base's values the growth is 156 B larger"),
        (-2176, 1176, 2, "refuted: with base's values the shrinkage is 1,176 B larger"),
    ],
)
def test_one_dispatch(
    moved_bytes: int, restored_bytes: int, knobs: int, expected: str
) -> None:
    assert knob_proof_words(proof(moved_bytes, restored_bytes, knobs)) == expected


def test_what_is_said_besides() -> None:
    exact = KnobProof(
        PROVED,
        moved_bytes=8,
        restored_bytes=8,
        knobs=("a",),
        others=("b",),
        is_exact=True,
    )
    assert (
        knob_proof_words(exact)
        == "proved: with base's value 100 % of the growth disappears, and head has"
        " base's very code; `b` is not needed"
    )
    three_unneeded = proof(100, 100, 2, other_knobs=("a", "b", "c"))
    assert knob_proof_words(three_unneeded).endswith(
        "; `a`, `b` and `c` are not needed"
    )
    ended = KnobProof(
        PROVED, moved_bytes=8, restored_bytes=8, knobs=("a", "b"), is_smallest=False
    )
    assert knob_proof_words(ended).endswith(
        "; not every value was left out once (compile budget used up)"
    )
    assert (
        knob_proof_words(
            KnobProof(NOT_TRIED, "the configuration is the same on both sides")
        )
        == "not tried: the configuration is the same on both sides"
    )


@pytest.mark.parametrize(
    ("joint", "net_bytes", "expected"),
    [
        (
            Proof(PROVED, 990, 1000, 3),
            1000,
            "proved: with base's value 99 % of the growth disappears (3 of 21 dispatches tried)",
        ),
        (
            Proof(PROVED, 990, 1000, 21),
            -1000,
            "proved: with base's value 99 % of the shrinkage disappears",
        ),
        (
            Proof(PARTLY, 500, 1000, 21),
            200,
            "partly proved: with base's value 50 % of the change disappears",
        ),
        (
            Proof(REFUTED, -5, 1000, 1),
            1000,
            "refuted: with base's value the growth is 5 B larger (1 of 21 dispatches tried)",
        ),
        (
            Proof(
                status=NOT_TRIED,
                restored_bytes=0,
                moved_bytes=0,
                members=0,
                why="compile budget used up",
            ),
            1000,
            "not tried: compile budget used up",
        ),
        (Proof(NOT_TRIED, 0, 0, 0), 1000, "not tried"),
    ],
)
def test_a_root_cause(joint: Proof, net_bytes: int, expected: str) -> None:
    assert (
        cause_proof_words(
            joint, knobs=1, dispatches=21, net_bytes=net_bytes, absolute_bytes=1000
        )
        == expected
    )


def test_a_phase_and_several_together() -> None:
    proved = Proof(PROVED, 990, 1000, 21)
    some_of_them = Proof(PARTLY, 600, 1000, 2)
    assert (
        phase_proof_words(
            proved, is_mixture=False, dispatches=21, net_bytes=1000, absolute_bytes=1000
        )
        == "proved: this phase carries 99 % of the growth"
    )
    assert (
        phase_proof_words(
            some_of_them,
            is_mixture=True,
            dispatches=21,
            net_bytes=1000,
            absolute_bytes=1000,
        )
        == "the experiment ran for each phase (2 of 21 dispatches tried)"
    )


@given(
    some.integers(1, 1 << 40),
    some.integers(-(1 << 41), 1 << 41),
    some.sampled_from([1, -1]),
)
def test_the_share_never_contradicts_the_status(
    moved_bytes: int, restored_bytes: int, sign: int
) -> None:
    sentence = knob_proof_words(proof(sign * moved_bytes, sign * restored_bytes))
    numbers = [
        int(word.replace(",", ""))
        for word in sentence.split()
        if word.replace(",", "").isdigit()
    ]
    if "%" not in sentence or "less than 1 %" in sentence:
        assert sentence.startswith("refuted")
    elif sentence.startswith("proved"):
        assert 90 <= numbers[0] <= 110
    elif sentence.startswith("partly"):
        assert 10 <= numbers[0] < 90 or numbers[0] > 110
    else:
        assert numbers[0] < 10
