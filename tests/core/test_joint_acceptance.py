"""bot.core.acceptance: several acceptances become one, which keeps all people, findings and reasons."""

from __future__ import annotations

from bot.core.acceptance import Acceptance, Seen, joint_acceptance

STACK = Seen("bert", "vmvx", "stack_max_bytes", "limit", 40_000)
SIZE = Seen("bert", "vmvx", "artifact_bytes", "change", 2_000)


def test_people_findings_and_reasons_are_kept_each_once() -> None:
    older = Acceptance("alice, carol", 3, (SIZE,), "needed for int4; agreed")
    newer = Acceptance("bob, alice", 9, (STACK, SIZE), "agreed")
    joint = Acceptance(
        who="alice, bob, carol",
        event_id=9,
        seen=(SIZE, STACK),
        reason="agreed; needed for int4",
    )
    assert joint_acceptance([older, newer]) == joint
    assert joint_acceptance([newer, older]) == joint


def test_one_acceptance_stays_as_it_is_and_none_is_none() -> None:
    label = Acceptance("alice", 3, (SIZE,))
    assert joint_acceptance([label]) == label
    assert joint_acceptance([]) is None
