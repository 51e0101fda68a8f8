"""What base had, too: known findings, the order of the worst, and budgets that are nearly used up."""

from __future__ import annotations

from fractions import Fraction

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from strategies import snapshots
from test_policy import amount, delta, noisy, percent, rule

from bot.core.delta import CellDelta, diff
from bot.core.policy import DEFAULT_STATES, Amount, LevelSpec, Status, Verdict, excess, judge
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot

LIMIT = rule(fail=LevelSpec(limit=amount(100)))


def cell(model: str, metric: str, base: int | None, head: int) -> CellDelta:
    return delta(metric, base, head, key=CellKey(model, "t"))


# A limit that base exceeded.


@pytest.mark.parametrize(
    ("base", "head", "known"),
    [(120, 120, True), (121, 120, True), (119, 120, False), (100, 101, False), (0, 101, False), (None, 120, False)],
)
def test_a_limit_that_base_exceeded_by_as_much_or_more_is_known(base: int | None, head: int, known: bool) -> None:
    verdict = judge([delta("vm_bytes", base, head)], [LIMIT])
    assert [found.known for found in verdict.findings] == [known]
    assert verdict.status == ("pass" if known else "fail")
    assert len(verdict.news) == (not known)


def test_a_cell_that_is_not_measured_on_base_knows_no_limit() -> None:
    lost = replace(delta("vm_bytes", None, 120, state="unmeasured"), reason="not measured on base")
    findings = judge([lost, cell("other", "vm_bytes", 1, 1)], [LIMIT]).findings
    assert {(found.kind, found.known) for found in findings} == {("state", False), ("limit", False)}


def test_growth_is_never_known() -> None:
    both = rule(warn=LevelSpec(absolute=amount(0)), fail=LevelSpec(limit=amount(100)))
    (found,) = judge([delta("vm_bytes", 90, 95)], [both]).findings
    assert (found.kind, found.known) == ("change", False)


def test_a_warn_limit_of_base_does_not_hide_a_fail_limit_of_head() -> None:
    both = rule(warn=LevelSpec(limit=amount(100)), fail=LevelSpec(limit=amount(200)))
    (found,) = judge([delta("vm_bytes", 150, 201)], [both]).findings
    assert (found.level, found.known) == ("fail", False)


# A cell that is broken on both sides.


def broken(base: Failure, head: Failure, model: str = "m") -> CellDelta:
    key = CellKey(model, "t")
    return CellDelta(key, "broken", {}, Cell(key, "failed", failure=base), Cell(key, "failed", failure=head))


PLAIN, CRASH = Failure("compile", "boom", 1), Failure("compile", "boom", None, "SIGSEGV")
SHARED = [Failure("compile", f"uses {size} bytes", 1, None, size) for size in (81_920, 90_000)]
ELSEWHERE = delta("vm_bytes", 1, 1, key=CellKey("m", "elsewhere"), state="same")
STRICT: dict[str, Status] = {**DEFAULT_STATES, "broken": "fail"}


@pytest.mark.parametrize(
    ("base", "head", "known"),
    [
        (PLAIN, PLAIN, True),
        (PLAIN, replace(PLAIN, message="other words"), True),
        (PLAIN, CRASH, False),
        (CRASH, CRASH, True),
        (SHARED[0], SHARED[0], True),
        (SHARED[0], SHARED[1], False),
        (PLAIN, replace(PLAIN, stage="option"), False),
    ],
)
def test_a_cell_that_is_broken_on_both_sides_alike_is_known(base: Failure, head: Failure, known: bool) -> None:
    verdict = judge([broken(base, head), ELSEWHERE], [], STRICT)
    assert ([found.known for found in verdict.findings], verdict.status) == ([known], "pass" if known else "fail")


def test_a_model_that_compiled_nowhere_and_still_does_not_is_known() -> None:
    reworded = replace(PLAIN, message=f"{PLAIN.message} in another word")
    for states in (DEFAULT_STATES, STRICT):
        verdict = judge([broken(PLAIN, reworded, "dead"), ELSEWHERE], [], states)
        assert ([found.known for found in verdict.findings], verdict.status) == ([True], "pass")


@pytest.mark.parametrize("state", sorted({*DEFAULT_STATES} - {"broken"}))
def test_no_other_state_is_known(state: str) -> None:
    found = judge([replace(broken(PLAIN, PLAIN), state=state), ELSEWHERE], [], dict.fromkeys(DEFAULT_STATES, "warn"))
    assert not any(one.known for one in found.findings)


# What known findings do not do.


def test_known_findings_come_last_and_set_no_verdict() -> None:
    deltas = [cell("known", "vm_bytes", 10**6, 10**6), cell("news", "vm_bytes", 99, 101)]
    verdict = judge(deltas, [rule(models=("news",), warn=LevelSpec(limit=amount(100))), LIMIT])
    assert [(found.key.model, found.known, found.weight) for found in verdict.findings] == [
        ("news", False, "warn"),
        ("known", True, "pass"),
    ]
    assert (verdict.status, verdict.news) == ("warn", verdict.findings[:1])


def test_nothing_known_is_a_verdict_where_nothing_was_compared() -> None:
    assert judge([broken(PLAIN, PLAIN), replace(ELSEWHERE, state="removed")], [], STRICT).status == "unknown"


@given(snapshots(), snapshots())
def test_what_base_had_is_all_that_is_left_where_nothing_changed(base: Snapshot, head: Snapshot) -> None:
    rules = [rule(fail=LevelSpec(amount(0), None, amount(0)))]
    alone = judge(diff(head, head), rules, {})
    assert not alone.news and alone.status in ("pass", "unknown")
    for found in judge(diff(base, head), rules, {}).findings:
        assert not found.known or (found.base is not None and found.head is not None and found.head <= found.base)


def test_the_packaged_models_that_base_refuses_are_a_pass() -> None:
    made = make.usual()
    verdict = judge(made.deltas, [rule(metrics=("stack_alloca_bytes",), fail=LevelSpec(limit=amount(32_768)))])
    assert (verdict.status, len(verdict.findings), verdict.news) == ("pass", 9, ())


# The worst.

LEVELS = rule(warn=LevelSpec(absolute=amount(4), relative=percent(5)))


def order(*deltas: CellDelta) -> list[str]:
    return [found.key.model for found in judge(deltas, [LEVELS]).findings]


def test_a_tiny_tables_ratio_never_comes_before_a_large_artifacts_bytes() -> None:
    tiny, large = cell("tiny", "unattributed_bytes", 10, 110), cell("large", "artifact_bytes", 1_000_000, 1_060_000)
    assert order(tiny, large) == order(large, tiny) == ["large", "tiny"]


def test_what_the_rule_allows_is_no_excess() -> None:
    grown, slightly = cell("grown", "artifact_bytes", 1_000_000, 1_050_001), cell("small", "artifact_bytes", 100, 107)
    assert order(grown, slightly) == ["small", "grown"], "50,001 bytes more, 50,000 of them allowed"
    assert [excess(found) for found in judge([grown, slightly], [LEVELS]).findings] == [2, 1]


def test_bytes_come_before_counts_and_states_before_both() -> None:
    counts, sizes = cell("count", "executables", 1, 10**6), cell("bytes", "vm_bytes", 100, 106)
    gone = replace(cell("gone", "vm_bytes", 1, 1), state="removed", head=None)
    assert order(counts, sizes, gone) == ["gone", "bytes", "count"]


def test_a_limit_is_exceeded_by_the_value_and_a_change_by_the_growth() -> None:
    either = rule(fail=LevelSpec(absolute=amount(10), limit=amount(100)))
    limit, growth = cell("limit", "vm_bytes", 99, 120), cell("growth", "vm_bytes", 20, 80)
    assert [(f.key.model, f.allowed, excess(f)) for f in judge([limit, growth], [either]).findings] == [
        ("growth", 10, 50),
        ("limit", 100, 20),
    ]


def test_sizes_are_compared_in_bytes_whatever_their_unit() -> None:
    level = rule(warn=LevelSpec(absolute=Amount(0, "bytes", "0B")))
    memory, code = cell("memory", "compile_peak_rss_kib", 10, 20), cell("code", "vm_bytes", 10, 1_034)
    (found,) = noisy(memory, level)
    noise = {"compile_peak_rss_kib": percent(2)}
    assert (found.allowed, excess(found)) == (0, 10)
    assert [f.key.model for f in judge([code, memory], [level], {}, noise).findings] == ["memory", "code"]


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 200))
def test_what_is_allowed_is_the_largest_growth_without_a_finding(base: int, head: int, steps: int, share: int) -> None:
    level = rule(warn=LevelSpec(absolute=amount(steps), relative=percent(share)))
    allowed = max(steps, int(Fraction(share, 100) * base))
    found = judge([delta("vm_bytes", base, head)], [level], {}).findings
    assert [one.allowed for one in found] == ([allowed] if head - base > allowed else [])


# Budgets.


@pytest.mark.parametrize(
    ("head", "used"), [(899, False), (900, True), (999, True), (1_000, True), (1_001, False), (0, False)]
)
def test_a_value_is_mentioned_from_nine_tenths_of_its_limit_on(head: int, used: bool) -> None:
    verdict = judge([delta("vm_bytes", 1, head)], [rule(fail=LevelSpec(limit=amount(1_000)))])
    assert [(one.base, one.head, one.limit, one.rule) for one in verdict.budgets] == [(1, head, 1_000, "r")] * used
    assert bool(verdict.findings) == (head > 1_000)
    assert verdict.status == ("fail" if head > 1_000 else "pass"), "a budget is no finding"


def test_without_a_limit_there_is_no_budget() -> None:
    growth = rule(fail=LevelSpec(absolute=amount(100), relative=percent(10)))
    assert not judge([delta("vm_bytes", 900, 990)], [growth]).budgets
    assert not judge([delta("vm_bytes", 0, 0)], [rule(fail=LevelSpec(limit=amount(0)))]).budgets
    assert not judge([delta("vm_bytes", 95, None)], [LIMIT]).budgets


def test_beyond_the_limit_that_warns_the_one_that_fails_is_the_budget() -> None:
    both = rule(warn=LevelSpec(limit=amount(90)), fail=LevelSpec(limit=amount(100)))
    verdict = judge([delta("vm_bytes", 80, 95)], [both])
    assert [(found.level, found.limit) for found in verdict.findings] == [("warn", "90")]
    assert [one.limit for one in verdict.budgets] == [100]


def test_the_fullest_budget_comes_first_and_a_new_cell_has_one() -> None:
    cells = [cell("b", "vm_bytes", 1, 91), cell("c", "vm_bytes", None, 99), cell("a", "vm_bytes", 1, 91)]
    budgets = judge(cells, [LIMIT]).budgets
    assert [(one.key.model, one.base) for one in budgets] == [("c", None), ("b", 1), ("a", 1)]
    assert judge([delta("vm_bytes", 1, 5)], [LIMIT]) == Verdict("pass")
