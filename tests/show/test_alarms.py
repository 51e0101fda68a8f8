"""What alarms: newly broken cells, cells over their limit, budgets, and cells that compile now."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from strategies import snapshots

from bot.core.explanation import RootCause
from bot.core.policy import Accepted, Budget, Finding, Verdict, judge
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.show.blocks import Fold, Limits, plain
from bot.show.comment import TIERS
from bot.show.facts import build_facts
from bot.show.report import (
    BROKEN,
    WARNED,
    Alarm,
    AlarmGroup,
    alarms,
    close,
    failures,
    finding_words,
    first_screen,
    known_lines,
    settled,
    trimmed,
)
from bot.show.why import root_lines

ROOMY = Limits(5_000, 10_000, 500, 50, 40, 5_000, 5_000, 50_000, 5_000, 5_000)

MANY = make.many()
MODELS, TARGETS = ("bert", "gpt2", "vit"), {"cuda": "cuda", "llvm-cpu-x86_64": "llvm-cpu", "vmvx": "vmvx"}
KEY = CellKey("bert", "vmvx")


def of(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("1", base, MODELS, TARGETS), make.snapshot("2", head, MODELS, TARGETS))


def same(_key: CellKey, found: Cell) -> Cell:
    return found


CHANGED = of(same, lambda _key, found: replace(make.grown(found, artifact_bytes=8), compiles=2))


def told(report: Report, limits: Limits = ROOMY) -> list[Alarm]:
    return [one for group in alarms(build_facts(report), limits) for one in group.lines]


def lines(report: Report, limits: Limits = ROOMY) -> list[str]:
    return [f"{one.mark} {plain(one.said)}" for one in told(report, limits)]


def groups(report: Report, limits: Limits = ROOMY) -> dict[str, AlarmGroup]:
    return {group.title: group for group in alarms(build_facts(report), limits)}


def with_(*findings: Finding, report: Report = CHANGED) -> Report:
    return replace(report, verdict=Verdict("fail", findings))


GROWN = Finding(KEY, "fail", "artifact_bytes", "r", "change", "4KiB and 5%", "+", 50_438, 83_990, allowed=4_096)
OVER = replace(GROWN, metric="stack_max_bytes", kind="limit", limit="8KiB", base=8_000, head=9_011, allowed=8_192)


# One line for one metric and one root cause.

ARTIFACT = "artifact, bert on vmvx: 50,438 → 83,990 B, +66.5 %; limit"


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (GROWN, f"❌ {ARTIFACT} 54,534 B (the larger of +4 KiB and +5 %)"),
        (replace(GROWN, limit="1.5%", allowed=756), f"❌ {ARTIFACT} 51,194 B (+1.5 %)"),
        (replace(GROWN, accepted=Accepted("a", "")), f"☑️ {ARTIFACT} 54,534 B (the larger of +4 KiB and +5 %)"),
        (OVER, "❌ stack frame, bert on vmvx: 8,000 → 9,011 B; limit 8 KiB, 110.0 % of it"),
        (replace(OVER, base=None), "❌ stack frame, bert on vmvx: 9,011 B; limit 8 KiB, 110.0 % of it"),
        (replace(GROWN, level="warn", head=None), "⚠️ artifact, bert on vmvx: 50,438 B on base, not known any more"),
        (
            replace(GROWN, metric="executables", base=0, head=2, limit="0", allowed=0),
            "❌ executables, bert on vmvx: 0 → 2, new; limit 0 (no growth)",
        ),
    ],
)
def test_a_line_says_what_where_how_much_and_what_is_allowed(finding: Finding, line: str) -> None:
    assert lines(with_(finding)) == [line]


def test_a_limit_is_explained_once() -> None:
    other = replace(GROWN, metric="executable_bytes", key=CellKey("gpt2", "vmvx"))
    assert lines(with_(GROWN, other))[1] == "❌ device code, gpt2 on vmvx: 50,438 → 83,990 B, +66.5 %; limit 54,534 B"


def test_cells_of_one_metric_and_cause_are_one_line() -> None:
    alike = [replace(GROWN, key=CellKey(model, "vmvx")) for model in MODELS]
    (line,) = lines(with_(*alike))
    assert line == "❌ artifact, +33,552 B each: every model on vmvx; limit: the larger of +4 KiB and +5 %"
    apart = [replace(one, head=83_990 + number) for number, one in enumerate(alike)]
    assert lines(with_(*apart)) == [
        "❌ artifact, 3 builds on vmvx: bert 50,438 → 83,990 B (+66.5 %), gpt2 50,438 → 83,991 B (+66.5 %), "
        "vit 50,438 → 83,992 B (+66.5 %); limit: the larger of +4 KiB and +5 %"
    ]
    (line_of_all,) = told(with_(*apart))
    assert line_of_all.cells == tuple(finding.key for finding in apart)
    moved = [replace(GROWN, key=CellKey("bert", target), head=90_000 + number) for number, target in enumerate(TARGETS)]
    assert lines(with_(*moved))[0].startswith(
        "❌ artifact, 3 builds of bert: cuda 50,438 → 90,000 B (+78.4 %), x86_64 "
    )


def test_a_part_of_an_artifact_is_told_where_its_whole_is_not_as_bad() -> None:
    part = replace(GROWN, metric="vm_bytes")
    assert len(lines(with_(part, GROWN))) == 1
    assert lines(with_(part, replace(GROWN, level="warn")))[0].startswith("❌ VM bytecode, ")
    accepted = replace(GROWN, accepted=Accepted("a", ""))
    assert lines(with_(accepted, part))[0].startswith("❌ VM bytecode, "), "what fails is told before what is accepted"


def test_what_base_had_alarms_nobody() -> None:
    facts = build_facts(with_(replace(GROWN, known=True)))
    assert (alarms(facts, ROOMY), known_lines(facts, ROOMY).total) == ((), 1)


def test_each_level_has_its_heading() -> None:
    found = [replace(GROWN, key=CellKey(model, "vmvx")) for model in MODELS]
    shown = groups(with_(replace(found[0], accepted=Accepted("a", "")), found[1], replace(found[2], level="warn")))
    assert [(title, group.cells) for title, group in shown.items()] == [
        ("Over the limit", 1),
        ("Accepted", 1),
        (WARNED, 1),
    ]


# Newly broken cells.


def failing(**messages: Failure) -> make.Edit:
    def edit(key: CellKey, found: Cell) -> Cell:
        failure = messages.get(key.model)
        return found if failure is None else Cell(key, "failed", failure=failure, command=found.command)

    return edit


def newly(report: Report) -> list[str]:
    return lines(replace(report, verdict=judge(report.deltas, [])))


def test_newly_broken_cells_come_first_each_with_its_diagnostic_in_one_line() -> None:
    said = lines(MANY)
    assert [line[0] for line in said[:3]] == ["💥", "💥", "❌"] and groups(MANY)[BROKEN].cells == 2
    assert said[0] == (
        "💥 jax_mlp_train_step_f32 on aarch64: over the compiler's stack limit, a function needs 36,864 B"
    )
    assert said[1].endswith(
        "does not compile (exit code 1): "
        "whisper_tiny_encoder_f32.mlir:214:12: error: failed to distribute: type mismatch"
    )


def test_alike_are_told_once_and_only_what_is_true_of_all() -> None:
    alike = Failure("compile", "error: uses 81920 bytes", 1)
    more = replace(alike, message="error: uses 90000 bytes")
    said = "💥 every model on every target: does not compile (exit code 1)"
    assert newly(of(same, failing(bert=alike, gpt2=alike, vit=alike))) == [f"{said}: error: uses 81920 bytes"]
    assert newly(of(same, failing(bert=alike, gpt2=alike, vit=more))) == [
        f"{said}, for example: error: uses 81920 bytes"
    ]


def test_a_crash_is_not_told_with_a_refusal() -> None:
    refused, crashed = Failure("compile", "error: no", 1), Failure("compile", "error: no", None, "SIGSEGV")
    assert newly(of(same, failing(bert=refused, vit=crashed))) == [
        "💥 bert on every target: does not compile (exit code 1): error: no",
        "💥 vit on every target: compiler crashed (SIGSEGV): error: no",
    ]


def test_figures_of_several_cells_are_a_range() -> None:
    needs = {"bert": 40_000, "gpt2": 73_728, "vit": 50_000}
    report = of(same, lambda key, found: make.over(found, needs[key.model]) if "x86" in key.target else found)
    (line,) = newly(report)
    assert line == ("💥 every model on x86_64: over the compiler's stack limit, a function needs 40,000 B to 73,728 B")


def test_cells_of_which_some_are_accepted_are_not_called_accepted() -> None:
    report = of(same, failing(bert=Failure("compile", "error: no", 1)))
    first, *rest = judge(report.deltas, []).findings
    taken = replace(first, accepted=Accepted("a", ""))
    assert [(one.mark, one.level) for one in told(with_(taken, *rest, report=report))] == [("💥", "fail")]
    every = with_(*(replace(one, accepted=Accepted("a", "")) for one in (first, *rest)), report=report)
    assert [(one.mark, one.level) for one in told(every)] == [("☑️", "")]


def test_a_newly_broken_cell_counts_once_whatever_else_is_wrong_with_it() -> None:
    report = of(
        same, lambda key, found: make.over(make.grown(found, artifact_bytes=90_000), 40_000) if key == KEY else found
    )
    broken = judge(report.deltas, []).findings
    shown = groups(with_(*broken, GROWN, replace(OVER, metric="stack_alloca_bytes"), report=report))
    assert [(title, group.cells) for title, group in shown.items()] == [(BROKEN, 1)]
    assert len(lines(with_(replace(OVER, metric="stack_alloca_bytes"), report=report))) == 1, (
        "where the state is allowed, what the metrics broke is told"
    )


@given(snapshots(), snapshots())
def test_every_alarming_cell_has_a_line_where_there_is_room(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    for group in alarms(build_facts(replace(report, verdict=judge(report.deltas, []))), ROOMY):
        assert group.lines.more == 0 and len({key for line in group.lines for key in line.cells}) == group.cells


def test_failures_alike_are_told_once() -> None:
    shown = failures(build_facts(make.broken()), "newly-broken", TIERS[0])
    assert [(group.cell_count, plain(group.cells)) for group in shown] == [
        (91, "every model on cuda, aarch64, riscv64, x86_64, metal, vmvx, vulkan"),
        (13, "every model on rocm"),
    ]


def test_diagnostics_are_trimmed_and_lose_absolute_paths() -> None:
    message = '/home/me/work/m.mlir:1:2: error: x\n\n"C:\\Users\\me\\m.mlir"\n--opt=/opt/a/b.so and/or 1/2 https://a.b/c/d\nmore'
    assert trimmed(message, 3) == (
        'm.mlir:1:2: error: x\n"m.mlir"\n--opt=b.so and/or 1/2 https://a.b/c/d',
        1,
    )


# Cells that compile now.


def test_cells_that_compile_now_are_grouped_by_what_refused_them() -> None:
    was = failing(bert=Failure("compile", "error: no", 1), gpt2=Failure("compile", "error: no", 1))
    report = of(
        lambda key, c: make.over(c, 40_000) if key.model == "vit" and "x86" in key.target else was(key, c), same
    )
    assert [plain(line) for line in settled(build_facts(report), TIERS[0])] == [
        "6 builds compile now: bert, gpt2 on every target; on base: does not compile (exit code 1)",
        "1 build compiles now: vit on x86_64; on base: over the compiler's stack limit, a function needs 40,000 B",
    ]


def test_figures_of_cells_that_compile_now_are_a_range() -> None:
    needs = {"bert": 40_000, "gpt2": 73_728, "vit": 50_000}
    report = of(lambda key, c: make.over(c, needs[key.model]) if "x86" in key.target else c, same)
    (line,) = map(plain, settled(build_facts(report), TIERS[0]))
    assert line.endswith("; on base: over the compiler's stack limit, a function needs 40,000 B to 73,728 B")


# Root causes.


def test_an_alarm_names_the_root_cause_that_holds_most_of_each_of_its_cells() -> None:
    report = make.why()
    named = [one for one in told(report) if one.cause]
    assert named
    for one in named:
        shares = []
        for key in one.cells:
            sizes = [root.by_cell.get(key, 0) for root in report.root_causes]
            assert sizes[one.cause - 1] == max(sizes)
            shares.append(100 * max(sizes) // sum(sizes))
        ends = f"{min(shares)} %" if min(shares) == max(shares) else f"{min(shares)} to {max(shares)} %"
        assert f"({ends})" in plain(one.said)
        assert (" · mostly " in plain(one.said)) == (min(shares) >= 50), "what holds less than half is not most of it"


def test_a_cause_that_is_not_shown_is_not_named_by_its_number() -> None:
    report = make.why()
    assert not any(" cause " in line for line in lines(replace(report, root_causes=())))
    assert not re.search(r" cause \d", " ".join(lines(report, replace(TIERS[0], causes=0))))
    assert {*re.findall(r" cause (\d+)", " ".join(lines(report, replace(TIERS[0], causes=1))))} <= {"1"}


def test_root_causes_that_hold_nine_tenths_are_shown_and_counted() -> None:
    report = make.why()
    roots: tuple[RootCause, ...] = report.root_causes
    shares = [Fraction(root.share or 0) for root in roots]
    facts, limits = build_facts(report), replace(ROOMY, causes=1_000)
    count = len(root_lines(facts, limits).items)
    assert sum(shares[:count]) >= Fraction("0.9") > sum(shares[: count - 1])
    (title,) = (one.title for one in first_screen(facts, limits) if one.name == "causes" and isinstance(one, Fold))
    share = f"{float(sum(shares[:count])) * 100:.0f} % of moved bytes"
    assert not isinstance(title, str) and plain(title) == f"Root causes ({count} of {len(roots)}, {share})"


# Budgets.


@pytest.mark.parametrize(
    ("base", "head", "words"),
    [
        (8_000, 8_184, "stack frame of bert on vmvx: 8,184 of 8,192 B, 99.9 %"),
        (None, 8_192, "stack frame of bert on vmvx: 8,192 of 8,192 B, 100.0 %"),
        (1, 7_373, "stack frame of bert on vmvx: 7,373 of 8,192 B, 90.0 %"),
    ],
)
def test_a_value_that_came_close_to_its_limit_is_told(base: int | None, head: int, words: str) -> None:
    budget = Budget(KEY, "stack_max_bytes", "r", base, head, 8_192)
    facts = build_facts(replace(CHANGED, verdict=Verdict("pass", (), (budget,))))
    assert [plain(line) for line in close(facts, ROOMY, True)] == [words]
    assert not close(facts, ROOMY, False)


def test_a_value_that_did_not_come_closer_is_only_in_the_fold() -> None:
    budgets = tuple(Budget(KEY, "stack_max_bytes", "r", base, 8_000, 8_192) for base in (8_000, 8_100))
    facts = build_facts(replace(CHANGED, verdict=Verdict("pass", (), budgets)))
    assert (close(facts, ROOMY, True).total, close(facts, ROOMY, False).total) == (0, 2)


@given(st.integers(90, 10**6).flatmap(lambda limit: st.tuples(st.integers(limit * 9 // 10 + 1, limit), st.just(limit))))
def test_less_than_a_limit_is_never_called_all_of_it(both: tuple[int, int]) -> None:
    head, limit = both
    budget = Budget(KEY, "vm_bytes", "r", None, head, limit)
    (line,) = close(build_facts(replace(CHANGED, verdict=Verdict("pass", (), (budget,)))), ROOMY, True)
    assert ("100.0 %" in plain(line)) == (head == limit)


def test_an_alarm_that_was_not_repeated_says_so() -> None:
    once = of(same, lambda _key, found: make.grown(found, artifact_bytes=8))
    assert lines(with_(GROWN, report=once))[0].endswith("+5 %) · compiled once")
    assert "once" not in lines(with_(GROWN))[0]


def test_the_words_of_a_finding_are_those_of_the_annotation() -> None:
    (alarm,) = told(with_(GROWN))
    assert plain(alarm.said) == plain(finding_words(build_facts(with_(GROWN)), GROWN))
