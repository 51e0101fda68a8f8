"""bot.core.acceptance: several acceptances become one, which keeps all people, findings and reasons."""

from __future__ import annotations

from replacing import replace

from bot.core.acceptance import Acceptance, Seen, accept, joint_acceptance, seen
from bot.core.findings import Finding, Verdict
from bot.core.snapshot import CellKey

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


def test_a_state_with_a_figure_and_one_without_are_joined_in_either_order() -> None:
    refused = Seen("m", "x86", "", "state", 40_000, "newly-broken: over-stack-limit")
    failed = Seen("m", "x86", "", "state", None, "newly-broken: failed: compile")
    first = Acceptance("alice", 1, (refused,))
    second = Acceptance("bob", 2, (failed,))
    joint = joint_acceptance([first, second])
    assert joint == joint_acceptance([second, first])
    assert joint is not None and set(joint.seen) == {refused, failed}


def test_growth_counts_from_the_largest_accepted_value() -> None:
    accepted = [
        Seen("m", "vmvx", "artifact_bytes", "change", value, "0%")
        for value in (100, 200)
    ]
    finding = Finding(
        CellKey("m", "vmvx"),
        level="fail",
        metric="artifact_bytes",
        rule="code size",
        kind="change",
        limit="0%",
        actual="+250 B",
        base=0,
        head=250,
    )
    (seen_now,) = seen((finding,))
    acceptance = Acceptance(
        "alice", 1, tuple(replace(seen_now, value=then.value) for then in accepted)
    )
    (judged,) = accept(Verdict("fail", (finding,)), acceptance).findings
    assert (judged.accepted, judged.grown_since) == (None, 50)
