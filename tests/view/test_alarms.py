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
from test_view import ROOMY, view

from bot.core.explanation import RootCause
from bot.core.policy import Accepted, Budget, Finding, Verdict, judge
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.render.markdown.comment import TIERS
from bot.render.text.phrase import plain
from bot.render.view.alarms import Alarm, finding_words
from bot.render.view.facts import build_facts
from bot.render.view.failures import trimmed

MANY = make.many()
MODELS, TARGETS = ("bert", "gpt2", "vit"), {"cuda": "cuda", "llvm-cpu-x86_64": "llvm-cpu", "vmvx": "vmvx"}
KEY = CellKey("bert", "vmvx")


def of(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("1", base, MODELS, TARGETS), make.snapshot("2", head, MODELS, TARGETS))


def same(_key: CellKey, found: Cell) -> Cell:
    return found


CHANGED = of(same, lambda _key, found: replace(make.grown(found, artifact_bytes=8), compiles=2))


def lines(report: Report) -> list[str]:
    return [f"{one.mark} {plain(one.said)}" for one in view(report).alarms.lines]


def with_(*findings: Finding, report: Report = CHANGED) -> Report:
    return replace(report, verdict=Verdict("fail", findings))


GROWN = Finding(KEY, "fail", "artifact_bytes", "r", "change", "4KiB and 5%", "+", 50_438, 83_990, allowed=4_096)
OVER = replace(GROWN, metric="stack_max_bytes", kind="limit", limit="8KiB", base=8_000, head=9_011, allowed=8_192)


# One line for a cell.

ARTIFACT = "artifact, bert on vmvx: 50,438 → 83,990 B, +66.5 %; allowed: growth up to"


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (GROWN, f"❌ {ARTIFACT} 4 KiB or 5 %"),
        (replace(GROWN, limit="1.5%"), f"❌ {ARTIFACT} 1.5 %"),
        (replace(GROWN, accepted=Accepted("a", "")), f"☑️ {ARTIFACT} 4 KiB or 5 %"),
        (OVER, "❌ stack frame, bert on vmvx: 8,000 → 9,011 B; allowed: up to 8 KiB, 110.0 % of it"),
        (replace(OVER, base=None), "❌ stack frame, bert on vmvx: 9,011 B; allowed: up to 8 KiB, 110.0 % of it"),
        (replace(GROWN, level="warn", head=None), "⚠️ artifact, bert on vmvx: 50,438 B on base, not known any more"),
        (
            replace(GROWN, metric="executables", base=0, head=2, limit="0"),
            "❌ executables, bert on vmvx: 0 → 2, new; allowed: growth up to 0",
        ),
    ],
)
def test_a_line_says_what_where_how_much_and_what_is_allowed(finding: Finding, line: str) -> None:
    assert lines(with_(finding)) == [line]


def test_other_findings_of_the_cell_are_named_in_its_line_but_no_part_of_its_whole() -> None:
    parts = [replace(GROWN, metric=metric) for metric in ("executable_bytes", "vm_bytes")]
    counts = [replace(GROWN, metric=m, base=3, head=5) for m in ("executables", "entry_points", "linalg_ops")]
    (line,) = lines(with_(parts[0], GROWN, parts[1], *counts))
    assert line.startswith("❌ artifact, bert on vmvx: ")
    assert line.endswith(" · also executables +2, entry points +2 and 1 more")


def test_a_part_heads_its_line_where_its_whole_is_not_as_bad() -> None:
    part = replace(GROWN, metric="vm_bytes")
    assert lines(with_(part, replace(GROWN, level="warn")))[0].startswith("❌ VM bytecode, ")
    accepted = replace(GROWN, accepted=Accepted("a", ""))
    assert lines(with_(accepted, part))[0].startswith("❌ VM bytecode, "), "what fails is told before what is accepted"


def test_what_base_had_alarms_nobody() -> None:
    shown = view(with_(replace(GROWN, known=True)))
    assert (shown.alarms.lines, shown.alarms.cells, shown.findings.total, shown.known.total) == ((), 0, 0, 1)
    assert shown.commands.total == 0


def test_accepted_cells_come_after_those_that_fail() -> None:
    found = [replace(GROWN, key=CellKey(model, "vmvx")) for model in MODELS]
    told = lines(with_(replace(found[0], accepted=Accepted("a", "")), *found[1:]))
    assert [line[0] for line in told] == ["❌", "❌", "☑"]


def test_warnings_have_lines_where_nothing_is_worse_and_are_counted_else() -> None:
    warned = [replace(GROWN, key=CellKey(model, "vmvx"), level="warn") for model in MODELS]
    alone, beside = view(with_(*warned)).alarms, view(with_(GROWN, *warned[1:])).alarms
    assert ([one.level for one in alone.lines], alone.cells, alone.warned) == (["warn"] * 3, 3, 0)
    assert ([one.level for one in beside.lines], beside.cells, beside.warned) == (["fail"], 1, 2)


def test_one_model_cannot_crowd_out_the_rest() -> None:
    def head(key: CellKey, found: Cell) -> Cell:
        return make.grown(found, artifact_bytes=900_000 if key.model == "vit_l4_f32_224" else 20_000)

    report = make.report(make.snapshot("1"), make.snapshot("2", head))
    shown = view(report).alarms
    models = [re.findall(r", (\S+) on ", plain(one.said))[0] for one in shown.lines]
    assert models[0] == "vit_l4_f32_224" and len(set(models)) == len(models) == TIERS[0].alarms
    assert shown.more == shown.cells - len(models) > 0


# Newly broken cells.


def failing(**messages: Failure) -> make.Edit:
    def edit(key: CellKey, found: Cell) -> Cell:
        failure = messages.get(key.model)
        return found if failure is None else Cell(key, "failed", failure=failure, command=found.command)

    return edit


def newly(report: Report) -> list[str]:
    made = replace(report, verdict=judge(report.deltas, []))
    return [f"{one.mark} {plain(one.said)}" for one in view(made, ROOMY).alarms.lines]


def test_newly_broken_cells_come_first_each_with_its_diagnostic_in_one_line() -> None:
    told = lines(MANY)
    assert [line.partition(":")[0] for line in told[:3]] == ["💥 newly broken"] * 2 + [told[2].partition(":")[0]]
    assert told[0] == (
        "💥 newly broken: jax_mlp_train_step_f32 on aarch64: over the compiler's stack limit, a function needs 36,864 B"
    )
    assert told[1].endswith(
        "does not compile (exit code 1): "
        "whisper_tiny_encoder_f32.mlir:214:12: error: failed to distribute: type mismatch"
    )


def test_alike_are_told_once_and_only_what_is_true_of_all() -> None:
    alike = Failure("compile", "error: uses 81920 bytes", 1)
    more = replace(alike, message="error: uses 90000 bytes")
    said = "💥 newly broken: every model on every target: does not compile (exit code 1)"
    assert newly(of(same, failing(bert=alike, gpt2=alike, vit=alike))) == [f"{said}: error: uses 81920 bytes"]
    told = newly(of(same, failing(bert=alike, gpt2=alike, vit=more)))
    assert told == [f"{said}, for example: error: uses 81920 bytes"]


def test_a_crash_is_not_told_with_a_refusal() -> None:
    refused, crashed = Failure("compile", "error: no", 1), Failure("compile", "error: no", None, "SIGSEGV")
    assert newly(of(same, failing(bert=refused, vit=crashed))) == [
        "💥 newly broken: bert on every target: does not compile (exit code 1): error: no",
        "💥 newly broken: vit on every target: compiler crashed (SIGSEGV): error: no",
    ]


def test_figures_of_several_cells_are_a_range() -> None:
    needs = {"bert": 40_000, "gpt2": 73_728, "vit": 50_000}
    report = of(same, lambda key, found: make.over(found, needs[key.model]) if "x86" in key.target else found)
    (line,) = newly(report)
    assert line == (
        "💥 newly broken: every model on x86_64: over the compiler's stack limit, a function needs 40,000 B to 73,728 B"
    )


def test_cells_of_which_some_are_accepted_are_not_called_accepted() -> None:
    report = of(same, failing(bert=Failure("compile", "error: no", 1)))
    first, *rest = judge(report.deltas, []).findings
    taken = replace(first, accepted=Accepted("a", ""))
    assert [(one.mark, one.level) for one in view(with_(taken, *rest, report=report)).alarms.lines] == [("💥", "fail")]
    every = with_(*(replace(one, accepted=Accepted("a", "")) for one in (first, *rest)), report=report)
    assert [(one.mark, one.level) for one in view(every).alarms.lines] == [("☑️", "")]


def test_a_newly_broken_cell_counts_once_whatever_else_is_wrong_with_it() -> None:
    report = of(
        same, lambda key, found: make.over(make.grown(found, artifact_bytes=90_000), 40_000) if key == KEY else found
    )
    broken = judge(report.deltas, []).findings
    shown = view(with_(*broken, GROWN, replace(OVER, metric="stack_alloca_bytes"), report=report)).alarms
    assert (len(shown.lines), shown.cells, shown.more, shown.warned) == (1, 1, 0, 0)
    allowed = view(with_(replace(OVER, metric="stack_alloca_bytes"), report=report)).alarms
    assert len(allowed.lines) == 1, "where the state is allowed, what the metrics broke is told"


@given(snapshots(), snapshots())
def test_every_alarming_cell_has_a_line_where_there_is_room(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    shown = view(replace(report, verdict=judge(report.deltas, [])), ROOMY).alarms
    assert shown.more == 0
    assert sum(line.cells for line in shown.lines) == shown.cells


def test_failures_alike_are_told_once() -> None:
    shown = view(make.broken())
    assert [(group.count, plain(group.cells)) for group in shown.broken_newly] == [
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
    assert [plain(line) for line in view(report).settled] == [
        "6 cells compile now: bert, gpt2 on every target; on base: does not compile (exit code 1)",
        "1 cell compiles now: vit on x86_64; on base: over the compiler's stack limit, a function needs 40,000 B",
    ]


def test_figures_of_cells_that_compile_now_are_a_range() -> None:
    needs = {"bert": 40_000, "gpt2": 73_728, "vit": 50_000}
    report = of(lambda key, c: make.over(c, needs[key.model]) if "x86" in key.target else c, same)
    (line,) = map(plain, view(report).settled)
    assert line.endswith("; on base: over the compiler's stack limit, a function needs 40,000 B to 73,728 B")


# Root causes.


def test_an_alarm_names_the_root_cause_that_holds_most_of_its_cell() -> None:
    report = make.why()
    told = [
        line
        for line in lines(report)
        if re.search(r" · cause \d+ \(\d+ % of what moved in the artifact\)( · compiled once)?$", line)
    ]
    shown = len(view(report).roots.items)
    assert told and all(1 <= int(re.findall(r"cause (\d+)", line)[0]) <= shown for line in told)
    for line in told:
        number, share = map(int, re.findall(r"cause (\d+) \((\d+) %", line)[0])
        model, target = re.findall(r", (\S+) on (\S+): ", line)[0]
        (key,) = (k for k in report.explanations if (k.model, build_facts(report).short[k.target]) == (model, target))
        sizes = [root.by_cell.get(key, 0) for root in report.root_causes]
        assert sizes[number - 1] == max(sizes) and share == 100 * max(sizes) // sum(sizes)


def test_a_cause_that_is_not_shown_is_not_named() -> None:
    report = make.why()
    hidden = replace(report, root_causes=())
    assert not any(" · cause " in line for line in lines(hidden))
    told = [plain(one.said) for one in view(report, replace(TIERS[0], causes=0)).alarms.lines]
    assert any(" · largest part: " in line and " % of what moved in the artifact)" in line for line in told), (
        "it is told in words"
    )
    few = view(report, replace(TIERS[0], causes=1))
    assert {*re.findall(r" · cause (\d+)", " ".join(plain(one.said) for one in few.alarms.lines))} <= {"1"}


def test_root_causes_that_hold_nine_tenths_are_shown_and_counted() -> None:
    report = make.why()
    roots: tuple[RootCause, ...] = report.root_causes
    shares = [Fraction(root.share or 0) for root in roots]
    shown = view(report, replace(ROOMY, causes=1_000))
    count = len(shown.roots.items)
    assert sum(shares[:count]) >= Fraction("0.9") > sum(shares[: count - 1])
    assert (
        shown.held == f"{count} of {len(roots)} hold {float(sum(shares[:count])) * 100:.0f} % of all bytes that moved"
    )


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
    shown = view(replace(CHANGED, verdict=Verdict("pass", (), (budget,))))
    assert ([plain(line) for line in shown.close], shown.closer.total) == ([words], 0)


def test_a_value_that_did_not_come_closer_is_only_in_the_fold() -> None:
    budgets = tuple(Budget(KEY, "stack_max_bytes", "r", base, 8_000, 8_192) for base in (8_000, 8_100))
    shown = view(replace(CHANGED, verdict=Verdict("pass", (), budgets)))
    assert (shown.close.total, shown.closer.total) == (0, 2)


@given(st.integers(90, 10**6).flatmap(lambda limit: st.tuples(st.integers(limit * 9 // 10 + 1, limit), st.just(limit))))
def test_less_than_a_limit_is_never_called_all_of_it(both: tuple[int, int]) -> None:
    head, limit = both
    budget = Budget(KEY, "vm_bytes", "r", None, head, limit)
    (line,) = view(replace(CHANGED, verdict=Verdict("pass", (), (budget,)))).close
    assert ("100.0 %" in plain(line)) == (head == limit)


def test_an_alarm_that_was_not_repeated_says_so() -> None:
    once = of(same, lambda _key, found: make.grown(found, artifact_bytes=8))
    assert lines(with_(GROWN, report=once))[0].endswith("or 5 % · compiled once")
    assert "once" not in lines(with_(GROWN))[0]


def test_the_words_of_a_finding_are_those_of_the_annotation() -> None:
    alarm: Alarm = view(with_(GROWN)).alarms.lines[0]
    assert plain(alarm.said) == plain(finding_words(build_facts(with_(GROWN)), GROWN))
