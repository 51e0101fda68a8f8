"""Acceptances: bound to what was measured; growth fires again, and nothing else is covered."""

from __future__ import annotations

import json

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from json_texts import report_to_json
from replacing import replace

from bot.core.policy import Accepted, Budget, Finding, Verdict
from bot.core.publication import Acceptance, Seen, accept, seen
from bot.core.report import Baseline, Report
from bot.core.snapshot import CellKey

CELL = CellKey("bert", "vmvx")
GROWTH = Finding(CELL, "fail", "artifact_bytes", "code size", "change", "4KiB", "+9,000 B", 1_000, 10_000, 12)
BROKEN = Finding(
    CELL, "fail", None, "states", "state", "newly-broken", "ok → failed", outcomes=("ok", "failed: compile")
)
OVER = replace(BROKEN, head=73_728, outcomes=("ok", "over-stack-limit: stack-limit"))
WARNING = replace(GROWTH, level="warn", metric="vm_bytes")


def acceptance(*findings: Finding, who: str = "octocat", event_id: int = 1) -> Acceptance:
    return Acceptance(who, "better fusion", "comment", event_id, seen(findings))


def status(finding: Finding, *given_before: Acceptance) -> str:
    return accept(Verdict("fail", (finding,)), given_before).status


def test_seen_is_the_failing_findings_only() -> None:
    assert seen([WARNING, GROWTH, BROKEN]) == (
        Seen("bert", "vmvx", "", "state", None, "newly-broken: failed: compile"),
        Seen("bert", "vmvx", "artifact_bytes", "change", 10_000, ""),
    )


def test_what_base_had_needs_no_acceptance() -> None:
    known = replace(GROWTH, kind="limit", known=True)
    assert seen([known]) == ()
    assert accept(Verdict("pass", (known,)), [acceptance(GROWTH)]) == Verdict("pass", (known,))
    beside = Verdict("fail", (BROKEN, known), (Budget(CELL, "vm_bytes", "r", 1, 95, 100),))
    taken = accept(beside, [acceptance(BROKEN)])
    assert (taken.status, taken.findings[1:], taken.budgets) == ("warn", (known,), beside.budgets)


def test_seen_keeps_what_was_accepted_before() -> None:
    taken = accept(Verdict("fail", (GROWTH,)), [acceptance(GROWTH)])
    assert seen(taken.findings) == seen([GROWTH])


def test_an_accepted_finding_stays_and_does_not_fail() -> None:
    taken = accept(Verdict("fail", (GROWTH, WARNING)), [acceptance(GROWTH)])
    assert taken == Verdict("warn", (replace(GROWTH, accepted=Accepted("octocat", "better fusion")), WARNING))


def test_one_unaccepted_failure_is_enough_to_fail() -> None:
    taken = accept(Verdict("fail", (BROKEN, GROWTH)), [acceptance(GROWTH)])
    assert taken.status == "fail"
    assert [finding.accepted is None for finding in taken.findings] == [True, False]


def test_without_findings_there_is_nothing_to_accept() -> None:
    assert accept(Verdict("pass"), [acceptance(GROWTH)]) == Verdict("pass")
    assert accept(Verdict("warn", (WARNING,)), [acceptance(GROWTH)]) == Verdict("warn", (WARNING,))


@pytest.mark.parametrize(("head", "expected"), [(10_001, "fail"), (10_000, "warn"), (9_999, "warn"), (None, "fail")])
def test_growth_fires_again_and_shrinking_does_not(head: int | None, expected: str) -> None:
    assert status(replace(GROWTH, head=head), acceptance(GROWTH)) == expected


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_what_is_not_above_the_accepted_value_is_accepted(then: int, now: int) -> None:
    assert (status(replace(GROWTH, head=now), acceptance(replace(GROWTH, head=then))) == "warn") == (now <= then)


@pytest.mark.parametrize(
    "other",
    [
        replace(GROWTH, key=CellKey("bert", "cuda")),
        replace(GROWTH, key=CellKey("vit", "vmvx")),
        replace(GROWTH, metric="executable_bytes"),
        replace(GROWTH, kind="limit"),
        BROKEN,
    ],
)
def test_nothing_else_is_covered(other: Finding) -> None:
    assert status(other, acceptance(GROWTH)) == "fail"


def test_a_state_is_accepted_as_that_state() -> None:
    assert status(BROKEN, acceptance(BROKEN)) == "warn"
    assert status(replace(BROKEN, limit="removed"), acceptance(BROKEN)) == "fail"
    assert status(GROWTH, acceptance(BROKEN)) == "fail"


@pytest.mark.parametrize(
    "later",
    [
        replace(OVER, head=None, outcomes=("ok", "failed: compile, SIGSEGV")),
        replace(OVER, head=None, outcomes=("ok", "failed: compile")),
        replace(OVER, head=73_729),
        replace(OVER, head=None),
        replace(OVER, outcomes=("ok", "failed: compile")),
        replace(OVER, outcomes=None),
    ],
)
def test_accepting_a_cell_over_a_limit_accepts_neither_a_crash_nor_a_larger_figure(later: Finding) -> None:
    assert status(later, acceptance(OVER)) == "fail"
    assert status(OVER, acceptance(later)) == ("warn" if later.head == 73_729 else "fail")


def test_a_smaller_figure_and_another_base_are_accepted() -> None:
    assert (
        status(
            replace(OVER, head=40_000, base=1, outcomes=("absent", "over-stack-limit: stack-limit")), acceptance(OVER)
        )
        == "warn"
    )


def test_what_an_earlier_version_remembered_of_a_state_covers_nothing() -> None:
    old = Acceptance("octocat", "", "label", 1, (Seen("bert", "vmvx", "", "state", None, "newly-broken"),))
    assert status(BROKEN, old) == status(OVER, old) == "fail"


def test_an_acceptance_makes_no_verdict_where_there_is_none() -> None:
    assert accept(Verdict("unknown", (GROWTH,)), [acceptance(GROWTH)]).status == "unknown"
    assert accept(Verdict("unknown"), []).status == "unknown"


def test_a_rule_that_was_written_anew_does_not_undo_an_acceptance() -> None:
    assert status(replace(GROWTH, limit="2KiB", rule="stricter"), acceptance(GROWTH)) == "warn"


def test_the_last_one_who_accepted_it_is_named() -> None:
    both = (acceptance(GROWTH, who="first"), acceptance(GROWTH, who="second", event_id=2))
    found = accept(Verdict("fail", (GROWTH,)), both).findings[0].accepted
    assert found is not None and found.who == "second"


def test_the_report_says_who_and_why() -> None:
    small = make.small()
    half = acceptance(*[f for f in small.verdict.findings if f.metric is None])
    report = Report(
        small.base, small.head, Baseline("x"), small.deltas, accept(small.verdict, [half]), broke="a shard was lost"
    )
    plain = json.loads(report_to_json(report))
    told = {finding["metric"]: finding["accepted"] for finding in plain["verdict"]["findings"]}
    assert told == {None: {"who": "octocat", "why": "better fusion"}, "artifact_bytes": None}
    assert plain["notes"] == ["the analysis broke: a shard was lost"]
