"""bot.core.policy: the rules of the verdict, one test per sentence of the module's prose, and properties."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.config.configuration import load_config
from bot.core.delta import CellDelta, MetricDelta, diff
from bot.core.metrics import METRIC_IDS, METRICS
from bot.core.policy import DEFAULT_STATES, Amount, Finding, LevelSpec, Ratio, Rule, Status, Verdict, change_text, judge
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot, SourceInfo

KEY = CellKey("bert", "llvm-cpu-x86_64")
PACKAGED = load_config()


def amount(value: int) -> Amount:
    return Amount(value, "own", str(value))


def percent(value: int) -> Ratio:
    return Ratio(Fraction(value, 100), f"{value}%")


def rule(**changes: Any) -> Rule:
    return replace(Rule("r", ("*",), line=7), **changes)


def delta(
    metric: str, base: int | None, head: int | None, *, key: CellKey = KEY, status: str = "ok", state: str = "changed"
) -> CellDelta:
    left = Cell(key, "ok", {metric: base}) if base is not None else None
    right = Cell(key, status, {metric: head}, reasons={metric: "no such section"})
    return CellDelta(key, state, {metric: MetricDelta(metric, base, head)}, left, right)


def findings(one: CellDelta, *rules: Rule) -> tuple[Finding, ...]:
    return judge([one], rules, {}).findings


def only(one: CellDelta, *rules: Rule) -> Finding:
    (finding,) = findings(one, *rules)
    return finding


# Which rule decides.


def test_the_first_matching_rule_decides_and_later_ones_are_not_looked_at() -> None:
    strict = rule(name="strict", fail=LevelSpec(absolute=amount(0)))
    for first in (
        rule(name="calm"),
        rule(name="calm", metrics=("vm_*",)),
        rule(name="calm", models=("be*",), targets=("llvm-cpu-*",)),
    ):
        assert not findings(delta("vm_bytes", 10, 90), first, strict)
        assert only(delta("vm_bytes", 10, 90), strict, first).rule == "strict"


@pytest.mark.parametrize("changes", [{"metrics": ("rodata_*",)}, {"models": ("BERT",)}, {"targets": ("llvm",)}])
def test_a_rule_that_does_not_match_is_passed_over(changes: dict[str, object]) -> None:
    other = rule(name="other", fail=LevelSpec(absolute=amount(0)), **changes)
    last = rule(name="last", warn=LevelSpec(absolute=amount(0)))
    assert only(delta("vm_bytes", 10, 90), other, last).rule == "last"


def test_without_a_matching_rule_there_is_no_finding() -> None:
    assert not findings(delta("vm_bytes", 1, 10**9))


# Levels.


@pytest.mark.parametrize(
    ("base", "head", "found"),
    [(1000, 1100, False), (1000, 1101, True), (10_000, 10_101, False), (100, 111, False), (100, 201, True)],
)
def test_both_absolute_and_relative_must_be_exceeded_strictly(base: int, head: int, found: bool) -> None:
    level = LevelSpec(absolute=amount(100), relative=percent(10))
    assert bool(findings(delta("vm_bytes", base, head), rule(warn=level))) is found


@pytest.mark.parametrize("head", [1100, 1000, 10, 0])
def test_shrinking_and_growth_within_the_level_are_no_findings(head: int) -> None:
    assert not findings(delta("vm_bytes", 1000, head), rule(fail=LevelSpec(relative=percent(10))))


def test_relative_levels_are_exact() -> None:
    level = LevelSpec(relative=Ratio(Fraction("0.1") / 100, "0.1%"))
    assert not findings(delta("vm_bytes", 10**18, 10**18 + 10**15), rule(fail=level))
    assert findings(delta("vm_bytes", 10**18, 10**18 + 10**15 + 1), rule(fail=level))


def test_growth_from_zero_exceeds_every_relative_level() -> None:
    found = only(delta("executables", 0, 1), rule(warn=LevelSpec(relative=percent(1000))))
    assert (found.limit, found.actual) == ("1000%", "+1 (from 0)")
    both = LevelSpec(absolute=amount(1), relative=percent(1000))
    assert not findings(delta("executables", 0, 1), rule(warn=both)), "the absolute part still decides"
    assert not findings(delta("executables", 0, 0), rule(warn=LevelSpec(relative=percent(0))))


def test_a_missing_base_is_judged_by_limits_alone() -> None:
    new = delta("vm_bytes", None, 90, state="new")
    assert not findings(new, rule(fail=LevelSpec(amount(0), percent(0))))
    assert only(new, rule(fail=LevelSpec(limit=amount(89)))).actual == "90 B"


@pytest.mark.parametrize("state", ["same", "new", "newly-broken", "broken", "fixed", "unmeasured"])
def test_a_limit_holds_in_every_state_that_is_measured(state: str) -> None:
    over = delta("stack_alloca_bytes", 40_000, 40_000, status="over-stack-limit", state=state)
    limit = LevelSpec(limit=Amount(32768, "bytes", "32KiB"))
    found = only(over, rule(fail=limit))
    assert (found.kind, found.limit, found.actual) == ("limit", "32KiB", "40,000 B")
    exactly = delta("stack_alloca_bytes", 0, 32768, state=state)
    assert not findings(exactly, rule(fail=limit)), "at the limit is within it"


def test_nothing_is_judged_where_head_is_not_measured() -> None:
    failed = delta("vm_bytes", 10, 90, status="failed")
    assert not findings(failed, rule(fail=LevelSpec(absolute=amount(0), limit=amount(0))))
    removed = replace(failed, state="removed", head=None)
    assert not findings(removed, rule(fail=LevelSpec(absolute=amount(0))))


def test_fail_wins_over_warn_and_the_limit_over_the_change() -> None:
    low, high = LevelSpec(absolute=amount(1)), LevelSpec(absolute=amount(50), limit=amount(100))
    both = rule(warn=low, fail=high)
    levels = [(only(delta("vm_bytes", 10, head), both)) for head in (20, 90, 110)]
    assert [(found.level, found.kind) for found in levels] == [
        ("warn", "change"),
        ("fail", "change"),
        ("fail", "limit"),
    ]


def test_amounts_are_in_the_unit_of_the_metric() -> None:
    level = rule(warn=LevelSpec(absolute=Amount(4096, "bytes", "4KiB")))
    assert not noisy(delta("compile_peak_rss_kib", 10, 14), level)
    assert [found.actual for found in noisy(delta("compile_peak_rss_kib", 10, 15), level)] == ["+5 KiB (+50.0 %)"]


# Noise.

NOISE = {"compile_cpu_ms": percent(7), "compile_peak_rss_kib": percent(2)}
INEXACT = tuple(metric.id for metric in METRICS if not metric.exact)


def noisy(one: CellDelta, *rules: Rule) -> tuple[Finding, ...]:
    return judge([one], rules, {}, NOISE).findings


@pytest.mark.parametrize(
    ("level", "least"),
    [
        (LevelSpec(relative=percent(0)), 10_701),
        (LevelSpec(relative=percent(5)), 10_701),
        (LevelSpec(relative=percent(9)), 10_901),
        (LevelSpec(absolute=amount(3)), 10_701),
        (LevelSpec(absolute=amount(800)), 10_801),
        (LevelSpec(absolute=amount(100), relative=percent(8)), 10_801),
    ],
)
def test_growth_of_an_inexact_metric_must_exceed_the_band_and_the_level(level: LevelSpec, least: int) -> None:
    assert not noisy(delta("compile_cpu_ms", 10_000, least - 1), rule(warn=level))
    (found,) = noisy(delta("compile_cpu_ms", 10_000, least), rule(warn=level))
    assert (found.kind, found.limit) == ("change", level.change_text)


@pytest.mark.parametrize("metric", INEXACT)
def test_an_inexact_metric_without_a_band_is_never_judged(metric: str) -> None:
    strict = rule(fail=LevelSpec(amount(0), percent(0), amount(0)))
    for one in (delta(metric, 1, 10**9), delta(metric, 1, None), delta(metric, 0, 1)):
        assert not findings(one, strict)
        assert noisy(one, strict)


def test_a_limit_of_an_inexact_metric_is_held_as_it_is_written() -> None:
    limit = rule(fail=LevelSpec(limit=amount(10_000)))
    assert not noisy(delta("compile_cpu_ms", 10_000, 10_000), limit)
    assert noisy(delta("compile_cpu_ms", 10_000, 10_001), limit)


def test_growth_from_zero_exceeds_every_band() -> None:
    assert noisy(delta("compile_cpu_ms", 0, 1), rule(warn=LevelSpec(absolute=amount(0))))


@pytest.mark.parametrize("metric", [metric.id for metric in METRICS if metric.exact])
def test_a_metric_that_repeats_exactly_has_no_band(metric: str) -> None:
    everything = dict.fromkeys(METRIC_IDS, percent(50))
    assert judge([delta(metric, 100, 101)], [rule(fail=LevelSpec(absolute=amount(0)))], {}, everything).findings


# Values that are not known.


def test_a_value_that_is_not_known_any_more_is_a_warning_with_its_reason() -> None:
    found = only(delta("vm_bytes", 1024, None), rule(fail=LevelSpec(absolute=amount(9))))
    assert (found.level, found.kind, found.rule) == ("warn", "unknown", "r")
    assert (found.limit, found.actual) == ("known on base", "1,024 B → not known: no such section")


def test_an_informational_rule_has_no_findings_at_all() -> None:
    assert not findings(delta("vm_bytes", 1024, None), rule())
    assert not findings(delta("vm_bytes", 1024, 10**9), rule())


def test_a_value_never_known_or_newly_known_is_no_finding() -> None:
    strict = rule(fail=LevelSpec(absolute=amount(0)))
    assert not findings(delta("vm_bytes", None, None), strict)
    assert not findings(delta("vm_bytes", None, 90), strict)


# States.


def test_states() -> None:
    cells = [replace(delta("vm_bytes", 1, 1, key=CellKey("m", state)), state=state) for state in DEFAULT_STATES]
    verdict = judge(cells, [])
    assert verdict.status == "fail"
    assert [(f.key.target, f.level, f.kind, f.metric) for f in verdict.findings] == [
        ("newly-broken", "fail", "state", None),
        ("removed", "warn", "state", None),
        ("unmeasured", "warn", "state", None),
    ]
    assert judge(cells, [], {"same": "warn"}).status == "warn", "a state that is not named passes"


def test_a_state_finding_says_what_became_of_the_cell() -> None:
    broken = delta("vm_bytes", 1, 1, status="over-stack-limit", state="newly-broken")
    removed = replace(broken, state="removed", head=None)
    unmeasured = replace(broken, state="unmeasured", reason="not measured on head")
    states: dict[str, Status] = {**DEFAULT_STATES, "unmeasured": "warn"}
    actual = [judge([one], [], states).findings[0].actual for one in (broken, removed, unmeasured)]
    assert actual == ["ok → over-stack-limit", "ok → absent", "not measured on head"]


# The verdict.


def test_the_verdict_is_the_worst_level() -> None:
    grown = delta("vm_bytes", 10, 90)
    warn, fail = rule(warn=LevelSpec(absolute=amount(0))), rule(fail=LevelSpec(absolute=amount(0)))
    assert [judge([grown], [one]).status for one in (rule(), warn, fail)] == ["pass", "warn", "fail"]


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (["same"], "pass"),
        (["changed", "unmeasured"], "pass"),
        (["fixed"], "pass"),
        (["newly-broken"], "unknown"),
        ([], "unknown"),
        (["unmeasured", "unmeasured"], "unknown"),
        (["broken"], "unknown"),
        (["new", "removed"], "unknown"),
    ],
)
def test_where_nothing_was_compared_there_is_no_verdict(states: list[str], status: str) -> None:
    cells = [replace(delta("vm_bytes", 1, 1, key=CellKey("m", str(i))), state=s) for i, s in enumerate(states)]
    assert judge(cells, [], {}).status == status


def test_cells_that_are_newly_broken_are_a_verdict_where_they_are_findings() -> None:
    one = replace(delta("vm_bytes", 1, None, status="failed"), state="newly-broken")
    assert judge([one], []).status == "fail"
    assert judge([one], [], {"newly-broken": "warn"}).status == "warn"


def test_a_finding_does_not_make_a_verdict_where_nothing_was_compared() -> None:
    lost = replace(delta("vm_bytes", None, 90, state="unmeasured"), reason="not measured on base")
    verdict = judge([lost], [rule(fail=LevelSpec(limit=amount(10)))])
    assert verdict.status == "unknown"
    assert [(found.level, found.kind) for found in verdict.findings] == [("warn", "state"), ("fail", "limit")][::-1]


@pytest.mark.parametrize("level", ["pass", "warn", "fail"])
def test_a_configuration_raises_or_lowers_what_a_missing_cell_does(level: Status) -> None:
    cells = [delta("vm_bytes", 1, 1, state="same"), replace(delta("vm_bytes", 1, 1), state="unmeasured", reason="lost")]
    assert judge(cells, [], {"unmeasured": level}).status == level


def test_a_cell_that_is_left_out_on_purpose_is_no_finding() -> None:
    left_out = replace(delta("vm_bytes", None, None, state="unmeasured"), reason="inlined", excused=True)
    cells = [delta("vm_bytes", 1, 1, state="same"), left_out]
    assert judge(cells, [], {"unmeasured": "fail"}) == Verdict("pass")


def dead(model: str, target: str) -> CellDelta:
    failed = delta("vm_bytes", None, None, key=CellKey(model, target), status="failed", state="broken")
    return replace(failed, base=failed.head)


@pytest.mark.parametrize(
    ("states", "found"),
    [
        (DEFAULT_STATES, ["warn", "warn"]),
        ({"unmeasured": "fail"}, ["fail", "fail"]),
        ({"unmeasured": "pass"}, []),
        ({"unmeasured": "warn", "broken": "fail"}, ["fail", "fail", "fail"]),
    ],
)
def test_a_model_that_compiles_nowhere_is_not_measured(states: dict[str, Status], found: list[str]) -> None:
    partly = delta("vm_bytes", 1, 1, key=CellKey("partly", "cpu"), state="same")
    verdict = judge([dead("dead", "cpu"), dead("dead", "cuda"), dead("partly", "cuda"), partly], [], states)
    assert [finding.level for finding in verdict.findings] == found


def test_the_level_of_a_state_finding_is_about_how_the_cell_ended() -> None:
    crash = Failure("compile", "boom", None, "SIGSEGV")
    gate = Failure("stack-limit", "too much", 1, None, 73_728)
    one = delta("vm_bytes", 1, 1, state="newly-broken")
    ends = [
        replace(one, head=Cell(KEY, status, failure=failure))
        for status, failure in (("failed", crash), ("over-stack-limit", gate))
    ]
    found = [judge([end], [], {"newly-broken": "fail"}).findings[0] for end in ends]
    assert [finding.outcomes for finding in found] == [
        ("ok", "failed: compile, SIGSEGV"),
        ("ok", "over-stack-limit: stack-limit"),
    ]
    assert [finding.head for finding in found] == [None, 73_728]


def test_findings_are_sorted_worst_first() -> None:
    def cell(model: str, base: int, head: int) -> CellDelta:
        return delta("vm_bytes", base, head, key=CellKey(model, "t"))

    rules = [rule(models=("warn*",), warn=LevelSpec(absolute=amount(0))), rule(fail=LevelSpec(absolute=amount(0)))]
    gone = replace(cell("z-gone", 1, 1), state="removed", head=None)
    broken = replace(cell("z-broken", 1, 1), state="newly-broken")
    cells = [cell("b", 10, 20), cell("a", 10, 20), cell("z-most", 10, 90), cell("zero", 0, 1)]
    cells += [gone, cell("warn", 1, 10_000), broken]
    order = ["z-broken", "z-most", "a", "b", "zero", "z-gone", "warn"]
    assert [found.key.model for found in judge(cells, rules).findings] == order
    assert judge(cells[::-1], rules) == judge(cells, rules)


def test_a_finding_says_everything() -> None:
    level = LevelSpec(Amount(4096, "bytes", "4KiB"), percent(5))
    assert only(delta("artifact_bytes", 50_438, 83_990), rule(fail=level)) == Finding(
        KEY,
        "fail",
        "artifact_bytes",
        "r",
        "change",
        "4KiB and 5%",
        "+33,552 B (+66.5 %)",
        50_438,
        83_990,
        7,
        allowed=4096,
    )


@pytest.mark.parametrize(
    ("metric", "base", "head", "text"),
    [
        ("artifact_bytes", 50_438, 83_990, "+33,552 B (+66.5 %)"),
        ("executables", 36, 39, "+3 (+8.3 %)"),
        ("executables", 39, 36, "-3 (-7.7 %)"),
        ("executables", 5, 5, "+0 (+0.0 %)"),
        ("compile_cpu_ms", 1000, 3500, "+2,500 ms (+250.0 %)"),
        ("compile_peak_rss_kib", 1, 1000, "+999 KiB (+99,900.0 %)"),
        ("vm_bytes", 10**6, 10**6 + 4, "+4 B (under 0.1 %)"),
        ("vm_bytes", 0, 4, "+4 B (from 0)"),
        ("vm_bytes", None, 4, ""),
    ],
)
def test_changes_in_words(metric: str, base: int | None, head: int | None, text: str) -> None:
    assert change_text(MetricDelta(metric, base, head)) == text


# Properties.

bands = st.dictionaries(st.sampled_from(INEXACT), st.builds(percent, st.integers(0, 60)))

values = st.none() | st.integers(0, 200)
amounts = st.none() | st.builds(amount, st.integers(0, 60))
levels = st.none() | st.builds(LevelSpec, amounts, st.none() | st.builds(percent, st.integers(0, 60)), amounts)
globs = st.sampled_from([("*",), ("a*",), ("b",), ("a", "?b")])
rules_ = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["one", "two"]),
        st.sampled_from([("*",), ("*_bytes",), ("executables",)]),
        globs,
        globs,
        levels,
        levels,
    ),
    max_size=4,
)
keys = st.builds(CellKey, st.sampled_from(["a", "ab", "b"]), st.sampled_from(["a", "b"]))
cells = st.builds(
    lambda key, status, found: Cell(key, status, dict(found) if status in ("ok", "over-stack-limit") else {}),
    keys,
    st.sampled_from(["ok", "over-stack-limit", "failed", "unsupported"]),
    st.fixed_dictionaries(dict.fromkeys(METRIC_IDS[:4], values)),
)
compiler = CompilerInfo("3.13.0", "", "")
snapshots = st.lists(cells, max_size=4, unique_by=lambda cell: cell.key).map(
    lambda found: Snapshot(compiler, SourceInfo(), tuple(sorted(found, key=lambda cell: cell.key)))
)


@given(snapshots, snapshots, rules_)
def test_first_match_wins(base: Snapshot, head: Snapshot, rules: list[Rule]) -> None:
    deltas = diff(base, head)
    alone = [
        found
        for one in deltas
        for index, each in enumerate(rules)
        for found in judge([one], [each], {}).findings
        if not any(judged(rules[:index], one, found.metric))
    ]
    together = judge(deltas, rules, {}).findings
    assert sorted(map(repr, alone)) == sorted(map(repr, together))


def judged(rules: list[Rule], one: CellDelta, metric: str | None) -> list[bool]:
    everything = LevelSpec(limit=amount(-1))
    return [any(f.metric == metric for f in judge([one], [replace(r, fail=everything)], {}).findings) for r in rules]


@given(snapshots, rules_)
def test_nothing_changed_leaves_limits_and_states_only(side: Snapshot, rules: list[Rule]) -> None:
    assert {found.kind for found in judge(diff(side, side), rules).findings} <= {"limit", "state"}
    without = [replace(r, warn=drop(r.warn), fail=drop(r.fail)) for r in rules]
    assert judge(diff(side, side), without, {}).status in ("pass", "unknown")


def drop(level: LevelSpec | None) -> LevelSpec | None:
    return level and replace(level, limit=None)


@given(snapshots, snapshots, rules_)
def test_swapping_the_sides_never_leaves_a_growth_on_both(base: Snapshot, head: Snapshot, rules: list[Rule]) -> None:
    there, back = (judge(diff(*sides), rules).findings for sides in ((base, head), (head, base)))
    grown = [{(f.key, f.metric): f for f in found if f.kind == "change"} for found in (there, back)]
    assert not grown[0].keys() & grown[1].keys()
    for found in (*grown[0].values(), *grown[1].values()):
        assert found.base is not None and found.head is not None and found.head > found.base


@given(snapshots, snapshots, rules_)
def test_findings_are_complete_unique_and_add_up(base: Snapshot, head: Snapshot, rules: list[Rule]) -> None:
    verdict = judge(diff(base, head), rules)
    assert all(found.actual and found.limit and found.rule for found in verdict.findings)
    assert len({(found.key, found.metric) for found in verdict.findings}) == len(verdict.findings)
    levels = [found.level for found in verdict.news]
    assert verdict.status in (levels[0] if levels else "pass", "unknown")
    assert levels == sorted(levels), "fail before warn"
    known = [found.known for found in verdict.findings]
    assert known == sorted(known), "what base had, too, comes last"


@given(snapshots, snapshots)
def test_the_packaged_rules_judge_anything(base: Snapshot, head: Snapshot) -> None:
    verdict = judge(diff(base, head), PACKAGED.thresholds, PACKAGED.states)
    grown = [d for d in diff(base, head) if d.state == "newly-broken"]
    assert (verdict.status == "fail") >= bool(grown)
    missed = [d for d in diff(base, head) if d.state == "unmeasured" and not d.excused and not d.unstable]
    assert (verdict.status != "pass") >= bool(missed)


def test_the_packaged_rules_fail_the_regression_they_are_for() -> None:
    grown = delta("artifact_bytes", 50_438, 83_990, key=CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64"))
    verdict = judge([grown], PACKAGED.thresholds, PACKAGED.states)
    assert (verdict.status, [found.rule for found in verdict.findings]) == ("fail", ["code size"])


@given(st.sampled_from(INEXACT), st.integers(0, 500), st.integers(0, 500), bands, levels)
def test_a_band_only_takes_changes_away(
    metric: str, base: int, head: int, noise: dict[str, Ratio], level: LevelSpec | None
) -> None:
    one, rules = delta(metric, base, head), [rule(warn=level)]
    exact = judge([one], rules, {}, {metric: percent(0)}).findings
    found = judge([one], rules, {}, noise).findings
    assert set(found) <= set(exact)
    for finding in set(exact) - set(found):
        band = noise.get(metric)
        assert band is None or (finding.kind == "change" and head - base <= band.value * base)
