"""bot.core.policy: the rules of the verdict as the module's prose has them, and properties of any judgement."""

from __future__ import annotations

from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

import pytest
import report_factory as make
from hypothesis import example, given, settings
from hypothesis import strategies as st
from replacing import replace
from strategies import snapshots as any_snapshots

from bot.config.configuration import load_config
from bot.core.delta import CellDelta, MetricDelta, diff
from bot.core.findings import Finding, Status, Verdict
from bot.core.metrics import METRIC_IDS, METRICS
from bot.core.planned import covers
from bot.core.policy import change_text, excess, judge
from bot.core.rules import (
    DEFAULT_STATES,
    Amount,
    LevelSpec,
    Ratio,
    Rule,
    hiding,
    is_catch_all,
    metrics_of,
)
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot, SourceInfo

KEY = CellKey("bert", "llvm-cpu-x86_64")
PACKAGED = load_config()


def amount(value: int) -> Amount:
    return Amount(value, "own", str(value))


def percent(value: int) -> Ratio:
    return Ratio(Fraction(value, 100), f"{value}%")


def level(
    absolute: int | None = None, relative: int | None = None, limit: int | None = None
) -> LevelSpec:
    return LevelSpec(
        absolute=None if absolute is None else amount(absolute),
        relative=None if relative is None else percent(relative),
        limit=None if limit is None else amount(limit),
    )


def rule(**changes: Any) -> Rule:
    return replace(Rule("r", ("*",), line=7), **changes)


def delta(
    metric: str,
    base: int | None,
    head: int | None,
    *,
    key: CellKey = KEY,
    status: str = "ok",
    state: str = "changed",
) -> CellDelta:
    base_cell = (
        Cell(key.model, key.target, "ok", {metric: base}) if base is not None else None
    )
    head_cell = Cell(
        key.model,
        key.target,
        status,
        {metric: head},
        reasons={metric: "no such section"},
    )
    return CellDelta(
        key=key,
        state=state,
        metrics={metric: MetricDelta(metric, base, head)},
        base=base_cell,
        head=head_cell,
    )


def cell(model: str, metric: str, base: int | None, head: int | None) -> CellDelta:
    return delta(metric, base, head, key=CellKey(model, "t"))


def findings(cell_delta: CellDelta, *rules: Rule) -> tuple[Finding, ...]:
    return judge([cell_delta], rules, {}).findings


def only(cell_delta: CellDelta, *rules: Rule) -> Finding:
    (finding,) = findings(cell_delta, *rules)
    return finding


# Which rule decides.


def test_the_first_matching_rule_decides_and_later_ones_are_not_looked_at() -> None:
    strict = rule(name="strict", fail=level(0))
    last = rule(name="last", warn=level(0))
    for scope in (
        {},
        {"metrics": ("vm_*",)},
        {"models": ("be*",), "targets": ("llvm-cpu-*",)},
    ):
        first = rule(name="calm", **scope)
        assert not findings(delta("vm_bytes", 10, 90), first, strict)
        assert only(delta("vm_bytes", 10, 90), strict, first).rule == "strict"
    for scope in (
        {"metrics": ("rodata_*",)},
        {"models": ("BERT",)},
        {"targets": ("llvm",)},
    ):
        assert (
            only(delta("vm_bytes", 10, 90), replace(strict, **scope), last).rule
            == "last"
        )
    assert not findings(delta("vm_bytes", 1, 10**9))
    assert not findings(delta("vm_bytes", 1024, 10**9), rule()), (
        "an informational rule has no findings"
    )
    assert not findings(delta("vm_bytes", 1024, None), rule())


# Levels.


@pytest.mark.parametrize(
    ("base", "head", "is_finding"),
    [
        (1000, 1100, False),
        (1000, 1101, True),
        (10_000, 10_101, False),
        (100, 111, False),
        (100, 201, True),
    ],
)
def test_both_absolute_and_relative_must_be_exceeded_strictly(
    base: int, head: int, is_finding: bool
) -> None:
    assert (
        bool(findings(delta("vm_bytes", base, head), rule(warn=level(100, 10))))
        is is_finding
    )


def test_relative_levels_are_exact_and_growth_from_zero_exceeds_them_all() -> None:
    tenth = rule(fail=LevelSpec(relative=Ratio(Fraction("0.1") / 100, "0.1%")))
    assert not findings(delta("vm_bytes", 10**18, 10**18 + 10**15), tenth)
    assert findings(delta("vm_bytes", 10**18, 10**18 + 10**15 + 1), tenth)
    assert not any(
        findings(delta("vm_bytes", 1000, head), rule(fail=level(None, 10)))
        for head in (1100, 1000, 10, 0)
    )
    zero = only(delta("executables", 0, 1), rule(warn=level(None, 1000)))
    assert (zero.limit, zero.actual) == ("1000%", "+1 (from 0)")
    assert not findings(delta("executables", 0, 1), rule(warn=level(1, 1000))), (
        "the absolute part still decides"
    )
    assert not findings(delta("executables", 0, 0), rule(warn=level(None, 0)))


@pytest.mark.parametrize(
    "state", ["same", "new", "newly-broken", "broken", "fixed", "unmeasured"]
)
def test_a_limit_holds_in_every_state_that_is_measured(state: str) -> None:
    limit = rule(fail=LevelSpec(limit=Amount(32768, "bytes", "32KiB")))
    over = only(
        delta(
            "stack_alloca_bytes", 40_000, 40_000, status="over-stack-limit", state=state
        ),
        limit,
    )
    assert (over.kind, over.limit, over.actual) == ("limit", "32KiB", "40,000 B")
    assert not findings(delta("stack_alloca_bytes", 0, 32768, state=state), limit), (
        "at the limit is within it"
    )


def test_only_what_is_known_is_judged() -> None:
    strict = rule(fail=level(0, None, 0))
    failed = delta("vm_bytes", 10, 90, status="failed")
    assert not findings(failed, strict) and not findings(
        replace(failed, state="removed", head=None), strict
    )
    new = delta("vm_bytes", None, 90, state="new")
    assert not findings(new, rule(fail=level(0, 0)))
    assert only(new, rule(fail=level(None, None, 89))).actual == "90 B"
    assert not findings(delta("vm_bytes", None, None), rule(fail=level(0)))
    gone = only(delta("vm_bytes", 1024, None), rule(fail=level(9)))
    assert (gone.level, gone.kind, gone.rule) == ("warn", "unknown", "r")
    assert (gone.limit, gone.actual) == (
        "known on base",
        "1,024 B → not known: no such section",
    )


def test_fail_wins_over_warn_and_the_limit_over_the_change() -> None:
    combined_rule = rule(warn=level(1), fail=level(50, None, 100))
    ends = [only(delta("vm_bytes", 10, head), combined_rule) for head in (20, 90, 110)]
    assert [(end.level, end.kind) for end in ends] == [
        ("warn", "change"),
        ("fail", "change"),
        ("fail", "limit"),
    ]


def test_what_varies_from_run_to_run_is_never_judged() -> None:
    strict = rule(fail=level(0, 0, 0))
    for metric in (metric.id for metric in METRICS if not metric.exact):
        for varying in (
            delta(metric, 1, 10**9),
            delta(metric, 1, None),
            delta(metric, 0, 1),
        ):
            assert not findings(varying, strict)


# States.


def test_what_a_state_does_and_what_its_finding_says() -> None:
    cells = [
        replace(delta("vm_bytes", 1, 1, key=CellKey("m", state)), state=state)
        for state in DEFAULT_STATES
    ]
    verdict = judge(cells, [])
    assert (
        verdict.status,
        [(f.key.target, f.level, f.kind, f.metric) for f in verdict.findings],
    ) == (
        "fail",
        [
            (name, mark, "state", None)
            for name, mark in (("newly-broken", "fail"), ("removed", "warn"))
        ]
        + [("unmeasured", "warn", "state", None)],
    )
    assert judge(cells, [], {"same": "warn"}).status == "warn", (
        "a state that is not named passes"
    )
    broken = delta("vm_bytes", 1, 1, status="over-stack-limit", state="newly-broken")
    removed = replace(broken, state="removed", head=None)
    unmeasured = replace(broken, state="unmeasured", reason="not measured on head")
    actual = [
        judge([state_delta], []).findings[0].actual
        for state_delta in (broken, removed, unmeasured)
    ]
    assert actual == ["ok → over-stack-limit", "ok → absent", "not measured on head"]
    for mark in ("pass", "warn", "fail"):
        states: dict[str, Status] = {"unmeasured": mark}
        assert (
            judge(
                [delta("vm_bytes", 1, 1, state="same"), unmeasured], [], states
            ).status
            == mark
        )
    excused = [delta("vm_bytes", 1, 1, state="same"), replace(unmeasured, excused=True)]
    assert judge(excused, [], {"unmeasured": "fail"}) == Verdict("pass")


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
def test_where_nothing_was_compared_there_is_no_verdict(
    states: list[str], status: str
) -> None:
    cells = [
        replace(delta("vm_bytes", 1, 1, key=CellKey("m", str(i))), state=s)
        for i, s in enumerate(states)
    ]
    assert judge(cells, [], {}).status == status


def test_only_a_newly_failing_build_gives_a_verdict_when_nothing_was_compared() -> None:
    broken = replace(delta("vm_bytes", 1, None, status="failed"), state="newly-broken")
    assert (
        judge([broken], []).status,
        judge([broken], [], {"newly-broken": "warn"}).status,
    ) == ("fail", "warn")
    lost = replace(
        delta("vm_bytes", None, 90, state="unmeasured"), reason="not measured on base"
    )
    verdict = judge([lost], [rule(fail=level(None, None, 10))])
    assert verdict.status == "unknown"
    assert [(finding.level, finding.kind) for finding in verdict.findings] == [
        ("fail", "limit"),
        ("warn", "state"),
    ]


def dead(model: str, target: str) -> CellDelta:
    failed = delta(
        "vm_bytes",
        None,
        None,
        key=CellKey(model, target),
        status="failed",
        state="broken",
    )
    return replace(failed, base=failed.head)


@pytest.mark.parametrize(
    ("states", "levels"),
    [
        (DEFAULT_STATES, ["warn", "warn"]),
        ({"unmeasured": "fail"}, ["fail", "fail"]),
        ({"unmeasured": "pass"}, []),
        ({"unmeasured": "warn", "broken": "fail"}, ["fail", "fail", "fail"]),
    ],
)
def test_a_model_that_compiles_nowhere_is_not_measured(
    states: dict[str, Status], levels: list[str]
) -> None:
    partly = delta("vm_bytes", 1, 1, key=CellKey("partly", "cpu"), state="same")
    verdict = judge(
        [dead("dead", "cpu"), dead("dead", "cuda"), dead("partly", "cuda"), partly],
        [],
        states,
    )
    assert [finding.level for finding in verdict.findings] == levels


def test_a_state_finding_has_how_the_cell_ended() -> None:
    crash = Failure("compile", "boom", None, "SIGSEGV")
    gate = Failure(
        stage="stack-limit",
        message="too much",
        exit_code=1,
        signal=None,
        figure_bytes=73_728,
    )
    newly_broken = delta("vm_bytes", 1, 1, state="newly-broken")
    ends = (
        Cell(KEY.model, KEY.target, "failed", failure=crash),
        Cell(KEY.model, KEY.target, "over-stack-limit", failure=gate),
    )
    ended = [
        judge([replace(newly_broken, head=end)], [], {"newly-broken": "fail"}).findings[
            0
        ]
        for end in ends
    ]
    assert [(finding.outcomes, finding.head) for finding in ended] == [
        (("ok", "failed: compile, SIGSEGV"), None),
        (("ok", "over-stack-limit: stack-limit"), 73_728),
    ]


# What base had, too.

LIMIT = rule(fail=level(None, None, 100))
PLAIN = Failure("compile", "boom", 1)
CRASH = Failure("compile", "boom", None, "SIGSEGV")
SHARED = [
    Failure(
        stage="compile",
        message=f"uses {size} bytes",
        exit_code=1,
        signal=None,
        figure_bytes=size,
    )
    for size in (81_920, 90_000)
]
ELSEWHERE = delta("vm_bytes", 1, 1, key=CellKey("m", "elsewhere"), state="same")
STRICT: dict[str, Status] = {**DEFAULT_STATES, "broken": "fail"}


@pytest.mark.parametrize(
    ("base", "head", "is_known"),
    [
        (120, 120, True),
        (121, 120, True),
        (119, 120, False),
        (100, 101, False),
        (0, 101, False),
        (None, 120, False),
    ],
)
def test_a_limit_that_base_exceeded_by_as_much_or_more_is_known(
    base: int | None, head: int, is_known: bool
) -> None:
    verdict = judge([delta("vm_bytes", base, head)], [LIMIT])
    assert [finding.known for finding in verdict.findings] == [is_known]
    assert (verdict.status, len(verdict.news)) == (
        "pass" if is_known else "fail",
        not is_known,
    )


def test_what_is_not_known() -> None:
    lost = replace(
        delta("vm_bytes", None, 120, state="unmeasured"), reason="not measured on base"
    )
    unknown_findings = judge([lost, cell("other", "vm_bytes", 1, 1)], [LIMIT]).findings
    assert {(finding.kind, finding.known) for finding in unknown_findings} == {
        ("state", False),
        ("limit", False),
    }
    (growth,) = judge(
        [delta("vm_bytes", 90, 95)], [rule(warn=level(0), fail=level(None, None, 100))]
    ).findings
    assert (growth.kind, growth.known) == ("change", False)
    limits = rule(warn=level(None, None, 100), fail=level(None, None, 200))
    (beyond,) = judge([delta("vm_bytes", 150, 201)], [limits]).findings
    assert (beyond.level, beyond.known) == ("fail", False)
    for state in {*DEFAULT_STATES} - {"broken"}:
        cells = [replace(broken(PLAIN, PLAIN), state=state), ELSEWHERE]
        assert not any(
            finding.known
            for finding in judge(
                cells, [], dict.fromkeys(DEFAULT_STATES, "warn")
            ).findings
        )


def broken(base: Failure, head: Failure, model: str = "m") -> CellDelta:
    key = CellKey(model, "t")
    return CellDelta(
        key=key,
        state="broken",
        metrics={},
        base=Cell(key.model, key.target, "failed", failure=base),
        head=Cell(key.model, key.target, "failed", failure=head),
    )


@pytest.mark.parametrize(
    ("base", "head", "is_known"),
    [
        (PLAIN, PLAIN, True),
        (PLAIN, replace(PLAIN, message="other words"), True),
        (CRASH, CRASH, True),
        (SHARED[0], SHARED[0], True),
        (SHARED[0], SHARED[1], False),
        (PLAIN, CRASH, False),
        (PLAIN, replace(PLAIN, stage="option"), False),
    ],
)
def test_a_build_that_already_fails_in_the_same_way_is_known(
    base: Failure, head: Failure, is_known: bool
) -> None:
    verdict = judge([broken(base, head), ELSEWHERE], [], STRICT)
    assert ([finding.known for finding in verdict.findings], verdict.status) == (
        [is_known],
        "pass" if is_known else "fail",
    )
    nowhere = judge(
        [
            broken(PLAIN, replace(PLAIN, message="boom in another word"), "dead"),
            ELSEWHERE,
        ],
        [],
    )
    assert ([finding.known for finding in nowhere.findings], nowhere.status) == (
        [True],
        "pass",
    ), "it compiled nowhere before"
    alone_verdict = judge(
        [broken(PLAIN, PLAIN), replace(ELSEWHERE, state="removed")], [], STRICT
    )
    assert alone_verdict.status == "unknown", (
        "nothing known is a verdict where nothing was compared"
    )


def test_known_findings_come_last_and_set_no_verdict() -> None:
    deltas = [
        cell("known", "vm_bytes", 10**6, 10**6),
        cell("news", "vm_bytes", 99, 101),
    ]
    verdict = judge(
        deltas, [rule(models=("news",), warn=level(None, None, 100)), LIMIT]
    )
    assert [
        (finding.key.model, finding.known, finding.weight)
        for finding in verdict.findings
    ] == [
        ("news", False, "warn"),
        ("known", True, "pass"),
    ]
    assert (verdict.status, verdict.news) == ("warn", verdict.findings[:1])
    gate = rule(metrics=("stack_alloca_bytes",), fail=level(None, None, 32_768))
    usual = judge(make.usual().deltas, [gate])
    assert (usual.status, len(usual.findings), usual.news) == (
        "pass",
        9,
        (),
    ), "packaged models that base refuses"


# The worst.


def test_findings_are_sorted_worst_first() -> None:
    rules = [rule(models=("warn*",), warn=level(0)), rule(fail=level(0))]
    gone = replace(cell("z-gone", "vm_bytes", 1, 1), state="removed", head=None)
    cells = [
        cell(name, "vm_bytes", 10, head)
        for name, head in (("b", 20), ("a", 20), ("z-most", 90))
    ]
    cells += [cell("zero", "vm_bytes", 0, 1), gone, cell("warn", "vm_bytes", 1, 10_000)]
    cells += [replace(cell("z-broken", "vm_bytes", 1, 1), state="newly-broken")]
    order = ["z-broken", "z-most", "a", "b", "zero", "z-gone", "warn"]
    assert [finding.key.model for finding in judge(cells, rules).findings] == order
    assert judge(cells[::-1], rules) == judge(cells, rules)


def test_state_findings_come_first_then_bytes_over_the_rule_then_counts() -> None:
    levels = rule(warn=level(4, 5))

    def order(*deltas: CellDelta) -> list[str]:
        return [finding.key.model for finding in judge(deltas, [levels]).findings]

    tiny = cell("tiny", "unattributed_bytes", 10, 110)
    large = cell("large", "artifact_bytes", 1_000_000, 1_060_000)
    assert order(tiny, large) == order(large, tiny) == ["large", "tiny"], (
        "a tiny table's ratio is not much"
    )
    grown = cell("grown", "artifact_bytes", 1_000_000, 1_050_001)
    slightly = cell("small", "artifact_bytes", 100, 107)
    assert order(grown, slightly) == [
        "small",
        "grown",
    ], "50,001 bytes more, 50,000 of them allowed"
    assert [
        excess(finding) for finding in judge([grown, slightly], [levels]).findings
    ] == [
        2,
        1,
    ]
    gone = replace(cell("gone", "vm_bytes", 1, 1), state="removed", head=None)
    regressions = (
        cell("count", "executables", 1, 10**6),
        cell("bytes", "vm_bytes", 100, 106),
    )
    assert order(*regressions, gone) == ["gone", "bytes", "count"]
    limit = cell("limit", "vm_bytes", 99, 120)
    growth = cell("growth", "vm_bytes", 20, 80)
    either = judge([limit, growth], [rule(fail=level(10, None, 100))]).findings
    assert [(f.key.model, f.allowed, excess(f)) for f in either] == [
        ("growth", 10, 50),
        ("limit", 100, 20),
    ]


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 200),
)
def test_what_is_allowed_is_the_largest_growth_without_a_finding(
    base: int, head: int, steps: int, share: int
) -> None:
    allowed = max(steps, int(Fraction(share, 100) * base))
    judged = findings(delta("vm_bytes", base, head), rule(warn=level(steps, share)))
    assert [finding.allowed for finding in judged] == (
        [allowed] if head - base > allowed else []
    )


# Words.


def test_a_finding_says_everything() -> None:
    spec = LevelSpec(Amount(4096, "bytes", "4KiB"), percent(5))
    fields = ("artifact_bytes", "r", "change", "4KiB and 5%", "+33,552 B (+66.5 %)")
    expected = Finding(KEY, "fail", *fields, 50_438, 83_990, 7, allowed=4096)
    assert only(delta("artifact_bytes", 50_438, 83_990), rule(fail=spec)) == expected
    verdict = judge(
        [delta("artifact_bytes", 50_438, 83_990)], PACKAGED.thresholds, PACKAGED.states
    )
    assert (verdict.status, [finding.rule for finding in verdict.findings]) == (
        "fail",
        ["code size"],
    )


def test_changes_in_words() -> None:
    rows: list[tuple[str, int | None, int, str]] = [
        ("artifact_bytes", 50_438, 83_990, "+33,552 B (+66.5 %)"),
        ("executables", 36, 39, "+3 (+8.3 %)"),
        ("executables", 39, 36, "-3 (-7.7 %)"),
        ("executables", 5, 5, "+0 (+0.0 %)"),
        ("compile_cpu_ms", 1000, 3500, "+2,500 ms (+250.0 %)"),
        ("vm_bytes", 0, 4, "+4 B (from 0)"),
        ("compile_peak_rss_kib", 1, 1000, "+999 KiB (+99,900.0 %)"),
        ("vm_bytes", 10**6, 10**6 + 4, "+4 B (under 0.1 %)"),
        ("vm_bytes", None, 4, ""),
    ]
    for metric, base, head, text in rows:
        assert change_text(MetricDelta(metric, base, head)) == text


# Rules that others hide.

GLOBS = st.text("ab*?[]!", min_size=1, max_size=5)


@given(GLOBS, GLOBS, st.text("ab*?[]!", max_size=5))
@example("*a*", "[ab]", "b")
@example("??", "*", "a")
@settings(max_examples=200)
def test_what_is_covered_is_matched(wide: str, narrow: str, name: str) -> None:
    if covers(wide, narrow) and fnmatchcase(name, narrow):
        assert fnmatchcase(name, wide)


def test_what_a_rule_is_about_and_which_ones_hide_it() -> None:
    metrics = ("executables", "compile_cpu_ms", "compile_peak_rss_kib")
    assert (
        metrics_of(Rule("r", ("compile_*", "executables"))),
        metrics_of(Rule("r", ("*",))),
    ) == (metrics, METRIC_IDS)
    assert is_catch_all(Rule("r", ("vm_bytes", "*"))) and is_catch_all(
        Rule("r", ("**",))
    )
    assert not is_catch_all(Rule("r", METRIC_IDS)), (
        "a metric that comes later would fall through"
    )
    assert not is_catch_all(Rule("r", ("*",), ("bert_*",)))
    assert not is_catch_all(Rule("r", ("*",), targets=("vmvx", "cuda")))
    rules = [
        Rule("models", ("*_bytes",), models=("bert_*",)),
        Rule("targets", ("*_bytes",), targets=("vmvx",)),
        Rule("hidden", ("vm_bytes", "rodata_bytes"), ("bert_l4_*",)),
        Rule("half hidden", ("vm_bytes",), ("bert_*", "vit_*")),
        Rule("hidden by the second", ("vm_bytes",), ("bert_a", "vit_a"), ("vmvx",)),
        Rule("other metric", ("vm_bytes", "executables"), ("bert_l4_*",)),
    ]
    hidden = [hiding(rules[:index], rule) for index, rule in enumerate(rules)]
    assert hidden == [None, None, rules[0], None, rules[1], None]


# Properties of any judgement.

few = st.integers(0, 60)
amounts = st.none() | st.builds(amount, few)
shares = st.none() | st.builds(percent, few)
levels_ = st.none() | st.builds(LevelSpec, amounts, shares, amounts)
globs = st.sampled_from([("*",), ("a*",), ("b",), ("a", "?b")])
of_metrics = st.sampled_from([("*",), ("*_bytes",), ("executables",)])
rules_ = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["one", "two"]),
        of_metrics,
        globs,
        globs,
        levels_,
        levels_,
    ),
    max_size=4,
)
cells_ = st.builds(
    lambda key, status, values: Cell(
        key.model,
        key.target,
        status,
        dict(values) if status in ("ok", "over-stack-limit") else {},
    ),
    st.builds(CellKey, st.sampled_from(["a", "ab", "b"]), st.sampled_from(["a", "b"])),
    st.sampled_from(["ok", "over-stack-limit", "failed", "unsupported"]),
    st.fixed_dictionaries(
        dict.fromkeys(METRIC_IDS[:4], st.none() | st.integers(0, 200))
    ),
)
snapshots = st.lists(cells_, max_size=4, unique_by=lambda entry: entry.key).map(
    lambda cells: Snapshot(
        CompilerInfo("3.13.0", "", ""),
        SourceInfo(),
        tuple(sorted(cells, key=lambda entry: entry.key)),
    )
)


@given(any_snapshots(), any_snapshots())
def test_what_base_had_is_all_that_is_left_where_nothing_changed(
    base: Snapshot, head: Snapshot
) -> None:
    rules = [rule(fail=level(0, None, 0))]
    verdict = judge(diff(head, head), rules, {})
    assert not verdict.news and verdict.status in ("pass", "unknown")
    for finding in judge(diff(base, head), rules, {}).findings:
        assert not finding.known or (
            finding.base is not None
            and finding.head is not None
            and finding.head <= finding.base
        )


@given(snapshots, snapshots, rules_)
def test_findings_are_complete_unique_add_up_and_are_never_growth_both_ways(
    base: Snapshot, head: Snapshot, rules: list[Rule]
) -> None:
    verdict = judge(diff(base, head), rules)
    back = judge(diff(head, base), rules)
    assert all(
        finding.actual and finding.limit and finding.rule
        for finding in verdict.findings
    )
    assert len({(finding.key, finding.metric) for finding in verdict.findings}) == len(
        verdict.findings
    )
    levels = [finding.level for finding in verdict.news]
    assert verdict.status in (levels[0] if levels else "pass", "unknown")
    assert levels == sorted(levels), "fail before warn"
    known_flags = [finding.known for finding in verdict.findings]
    assert known_flags == sorted(known_flags), "what base had, too, comes last"
    grown = [
        {(f.key, f.metric): f for f in direction.findings if f.kind == "change"}
        for direction in (verdict, back)
    ]
    assert not grown[0].keys() & grown[1].keys()
    for finding in (*grown[0].values(), *grown[1].values()):
        assert (
            finding.base is not None
            and finding.head is not None
            and finding.head > finding.base
        )
