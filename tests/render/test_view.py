"""What a report says: verdict sentence, counts, grid, fair selections, failures, sides."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from strategies import snapshots

from bot.core.rules.delta import STATES
from bot.core.rules.policy import judge
from bot.core.values.explanation import Explanation
from bot.core.values.snapshot import Cell, CellKey, Snapshot
from bot.core.values.verdict import Accepted, Finding, Status, Verdict
from bot.core.values.whole_report import Report
from bot.render.markdown.comment import TIERS
from bot.render.text.phrase import plain
from bot.render.text.selection import Limits, fair, fair_in_order
from bot.render.view.facts import build_facts, cells_phrase, short_names
from bot.render.view.failures import trimmed
from bot.render.view.view import ReportView, build_view

ROOMY = Limits(5_000, 10_000, 500, 50, 40, 500, 5_000, 50_000, 5_000, 5_000)


def view(report: Report, limits: Limits = TIERS[0]) -> ReportView:
    return build_view(report, limits)


def headline(report: Report) -> str:
    return plain(view(report).headline)


def judged(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("3.12.0", base), make.snapshot("3.13.0", head))


def same(_key: CellKey, found: Cell) -> Cell:
    return found


def test_nothing_changed() -> None:
    assert headline(make.none()) == "✅ Code size: pass — nothing changed in 104 compared cells: all bit-identical."
    assert plain(view(make.none()).counts) == "104 cells: 104 bit-identical."


@pytest.mark.parametrize(
    ("report", "said", "counted"),
    [
        (
            make.partly(),
            "⚠️ Code size: warn — 1 of 8 cells compared: 7 not measured on head; "
            "nothing changed in 1 compared cell: all bit-identical.",
            "10 cells: 1 bit-identical · 7 not measured · 2 unsupported.",
        ),
        (
            make.partly(CellKey("bert_l4_f32_s128", "cuda"), timeout=CellKey("bert_l4_f32_dyn", "vmvx")),
            "⚠️ Code size: warn — 6 of 8 cells compared: 1 timed out on head (not finished after 1800 s), "
            "1 not measured on head; nothing changed in 6 compared cells: all bit-identical.",
            "10 cells: 6 bit-identical · 2 not measured · 2 unsupported.",
        ),
        (
            make.no_baseline(),
            "⚪ Code size: unknown — none of 18 cells compared: 16 not measured on base, 2 unsupported on head.",
            "18 cells: 18 not measured.",
        ),
        (
            make.broken_on_both(),
            "⚪ Code size: unknown — nothing could be compared; 104 cells broken on both sides.",
            "104 cells: 104 broken on both sides.",
        ),
    ],
    ids=["lost", "late", "no baseline", "dead"],
)
def test_the_first_sentence_says_how_much_was_compared_and_why_not_all(report: Report, said: str, counted: str) -> None:
    assert headline(report) == said
    assert plain(view(report).counts) == counted


def test_a_failing_verdict_says_so_too() -> None:
    made = make.partly()
    fail: dict[str, Status] = {"unmeasured": "fail"}
    assert headline(replace(made, verdict=judge(made.deltas, [], fail))).startswith(
        "❌ Code size: fail — 1 of 8 cells compared: 7 not measured on head; 7 cells broke the rules; worst: "
    )


def test_missing_cells_are_told_in_one_place_and_those_on_purpose_come_last() -> None:
    made = view(make.partly())
    assert made.exceeded.total == 0 and made.commands.total == 0 and made.findings.total == 7
    assert [group.reason.partition(":")[0] for group in made.undrawn] == [
        "not measured on head",
        "it makes no executables of its own",
    ]


def test_the_worst_finding_is_told_in_words() -> None:
    one = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")

    def at(size: int, code: int) -> make.Edit:
        return lambda key, c: make.with_metrics(c, artifact_bytes=size, executable_bytes=code) if key == one else c

    assert headline(judged(at(50_438, 31_000), at(83_990, 64_552))) == (
        "❌ Code size: fail — 1 cell broke the rules; worst: artifact of mobilenet_v1_f32_224 on llvm-cpu-x86_64: "
        "50,438 → 83,990 B, +33,552 B (+66.5 %), allowed 4KiB and 5%."
    )


def test_a_newly_broken_cell_is_the_worst() -> None:
    assert headline(make.many()).startswith(
        "❌ Code size: fail — 18 cells broke the rules; 13 more reached a warning level; worst: "
        "jax_mlp_train_step_f32 on llvm-cpu-aarch64 is newly broken: over the compiler's stack limit, "
        "a function needs 36,864 B."
    )


def test_limits_exceeded_before_are_no_news() -> None:
    assert headline(make.usual()) == (
        "⚠️ Code size: warn — 9 cells reached a warning level; all of them were there on base; nothing changed in 101 "
        "compared cells: all bit-identical; 3 cells broken on both sides."
    )


def test_a_model_that_is_new_is_told() -> None:
    models = ("bert_l4_f32_s128", "gpt2_f32_dyn")
    report = make.report(make.snapshot("3.12.0", models=models[:1]), make.snapshot("3.13.0", models=models))
    assert headline(report) == (
        "✅ Code size: pass — nothing changed in 8 compared cells: all bit-identical; 8 cells new."
    )


def test_beside_what_is_accepted_old_limits_are_no_news() -> None:
    report = make.usual()
    grown = Finding(CellKey("gpt2_f32_dyn", "vmvx"), "fail", "executables", "r", "change", "0", "+1", 1, 2)
    verdict = Verdict("warn", (replace(grown, accepted=Accepted("alice", "why")), *report.verdict.findings))
    assert headline(replace(report, verdict=verdict)).startswith(
        "⚠️ Code size: warn — 1 cell over the rules, accepted by alice; 9 more reached a warning level; "
        "these were there on base"
    )


def test_growth_within_the_rules_is_told() -> None:
    report = judged(same, lambda key, c: make.grown(c, artifact_bytes=7) if key.target == "vmvx" else c)
    assert report.verdict.status == "pass"
    assert "13 of 104 compared cells changed, within the rules; largest growth: artifact of" in headline(report)
    assert "+7 B" in headline(report)


def test_shrinking_only_and_lost_values() -> None:
    shrunk = judged(same, lambda key, c: make.grown(c, artifact_bytes=-7) if key.target == "vmvx" else c)
    assert headline(shrunk).endswith("changed, within the rules; no metric grew.")
    lost = judged(same, lambda key, c: make.with_metrics(c, linalg_ops=None) if key.target == "vmvx" else c)
    assert headline(lost).endswith("changed, within the rules; some metrics are not known any more.")


def test_broken_cells_that_the_rules_allow_are_still_told() -> None:
    allowed = replace(make.broken(), verdict=Verdict("pass"))
    assert headline(allowed) == "⚪ Code size: pass — nothing could be compared; 104 cells newly broken."


def test_equal_metrics_are_not_called_identical() -> None:
    report = judged(same, lambda key, c: replace(c, artifact_digest=None) if key.target == "vmvx" else c)
    assert "nothing changed in 104 compared cells: all metrics equal, 91 bit-identical" in headline(report)
    assert {"=", "≈"} <= {symbol for symbol, _ in view(report).grid.legend}


@given(snapshots(), snapshots())
def test_no_sentence_denies_a_change(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    told, changed = headline(report), [delta for delta in report.deltas if delta.state == "changed"]
    assert told.split()[3] == report.verdict.status or f"Code size: {report.verdict.status}" in told
    assert not (changed and "nothing changed" in told)
    numbers = re.findall(r"(\d[\d,]*) (?!changed \()", plain(view(report).counts).replace("artifact larger in", ""))
    assert not report.deltas or int(numbers[0].replace(",", "")) == len(report.deltas)


@given(snapshots(), snapshots())
def test_every_cell_is_counted_once(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    parts = plain(view(report).counts).removesuffix(".").partition(": ")[2]
    counts = [int(part.split()[0].replace(",", "")) for part in parts.split(" · ") if part]
    assert sum(counts) == len(report.deltas)


def test_the_grid_draws_every_state() -> None:
    states = dict(zip(make.MODELS, STATES, strict=False))

    def on_base(key: CellKey, found: Cell) -> Cell | None:
        state = states.get(key.model, "same")
        if state in ("fixed", "broken"):
            return make.failed(found, "error")
        return None if state == "new" else found

    def on_head(key: CellKey, found: Cell) -> Cell | None:
        state = states.get(key.model, "same")
        if state in ("newly-broken", "broken"):
            return make.failed(found, "error")
        if state == "unmeasured":
            return replace(found, status="unsupported", metrics={}, artifact_digest=None)
        return None if state == "removed" else make.grown(found, artifact_bytes=1) if state == "changed" else found

    base, head = make.snapshot("1", on_base), make.snapshot("2", on_head)
    without = {state: {m: d for m, d in base.models.items() if states.get(m) != state} for state in ("new", "removed")}
    report = make.report(replace(base, models=without["new"]), replace(head, models=without["removed"]))
    rows = {row.model: {cell.state for cell in row.cells} for row in view(report).grid.blocks[0].rows}
    assert {model: rows[model] for model in states} == {model: {state} for model, state in states.items()}
    texts = {row.model: row.cells[0].text for row in view(report).grid.blocks[0].rows}
    assert [texts[model] for model in states] == ["💥", "<0.1", "🆕", "➖", "🔧", "🚫", "·", "="]


def test_only_used_symbols_are_in_the_legend() -> None:
    assert [symbol for symbol, _ in view(make.none()).grid.legend] == ["="]
    assert [symbol for symbol, _ in view(make.many()).grid.legend] == ["💥", "❌", "⚠️", "±1.2", "🔧", "🚫", "="]


def test_whole_unmeasured_columns_are_told_in_a_line() -> None:
    shown = view(make.usual())
    assert all("inline" not in name for block in shown.grid.blocks for name in block.headers)
    (group,) = shown.undrawn
    assert (plain(group.cells), group.reason[:20]) == ("vmvx-inline (13 cells)", "it makes no executab")


def test_too_many_targets_make_several_tables() -> None:
    targets = {f"target_{index:02}": "vmvx" for index in range(30)}
    report = make.report(make.snapshot("1", targets=targets), make.snapshot("2", targets=targets))
    blocks = view(report).grid.blocks
    assert len(blocks) > 2
    assert [name for block in blocks for name in block.headers] == sorted(targets)
    assert all(len(row.cells) == len(block.headers) for block in blocks for row in block.rows)


def test_the_worst_models_are_drawn_where_there_is_no_room_for_all() -> None:
    tight = replace(TIERS[0], grid_models=2)
    shown = view(make.many(), tight).grid
    assert ([row.model for row in shown.blocks[0].rows], shown.models.more) == (
        ["jax_mlp_train_step_f32", "whisper_tiny_encoder_f32"],
        11,
    )


def test_one_model_cannot_crowd_out_the_rest() -> None:
    def head(key: CellKey, found: Cell) -> Cell:
        return make.grown(found, artifact_bytes=900_000 if key.model == "vit_l4_f32_224" else 2_000)

    rows = view(judged(same, head)).regressions.top
    models = Counter(row.model for row in rows)
    assert max(models.values()) <= 2
    assert len(models) >= 3
    assert rows.items[0].model == "vit_l4_f32_224"
    assert rows.total == 104


def test_one_metric_cannot_crowd_out_the_rest() -> None:
    def head(_key: CellKey, found: Cell) -> Cell:
        return make.grown(found, artifact_bytes=90_000, executables=1, stack_max_bytes=64, linalg_ops=3)

    rows = view(judged(same, head)).regressions.top
    metrics = list(dict.fromkeys(row.metric for row in rows))
    assert metrics == ["artifact", "executables", "stack frame", "linalg operations"]


def test_the_cost_of_compiling_is_no_headline() -> None:
    report = judged(
        same, lambda _key, c: make.with_metrics(c, compile_cpu_ms=10**9, artifact_bytes=c.value("artifact_bytes"))
    )
    shown = view(report)
    assert not shown.regressions.top
    assert "CPU" not in plain(shown.headline)
    assert shown.costs[0].cpu_head == 13 * 10**9


def test_findings_carry_rule_and_limit() -> None:
    row = view(make.many()).regressions.top.items[0]
    assert (row.mark, row.rule, row.limit) == ("❌²", "code size", "4KiB and 5%")


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


def test_over_the_gate_on_both_sides_shows_the_figures() -> None:
    shown = view(make.usual())
    assert shown.over.total == 9
    assert {(row.base, row.head) for row in shown.over if row.model == "bert_l4_f32_s128"} == {(73_728, 73_728)}
    assert shown.stack_limit_bytes == 32_768
    assert not shown.exceeded


def test_every_alarming_cell_has_its_commands() -> None:
    report = make.many()
    shown = {(entry.model, entry.target): entry.text for entry in view(report, ROOMY).commands}
    alarming = {(f.key.model, f.key.target) for f in report.verdict.findings}
    alarming |= {(d.key.model, d.key.target) for d in report.deltas if d.state == "newly-broken"}
    assert shown.keys() == alarming
    text = shown["whisper_tiny_encoder_f32", "rocm"]
    assert make.command(CellKey("whisper_tiny_encoder_f32", "rocm"), "rocm") in text
    assert "base: IREE 3.11.0" in text
    assert "head: IREE 3.13.0" in text


def test_both_commands_where_they_differ() -> None:
    def head(_key: CellKey, found: Cell) -> Cell:
        return replace(make.failed(found, "error"), command="iree-compile --new")

    text = view(judged(same, head)).commands.items[0].text
    assert re.fullmatch(r"# base: .*\niree-compile - .*\n# head: .*\niree-compile --new", text)


def test_what_was_compared() -> None:
    base, head = make.snapshot("3.11.0"), make.snapshot("3.13.0")
    changed = {**head.models, "vit_l4_f32_224": "other", "extra": "x"}
    report = make.report(base, replace(head, models=changed, flags=("--a", "--b")))
    told = view(report).compared
    assert plain(told.suite) == (
        "14 models on 8 targets; 1 with another text on head: vit_l4_f32_224; 1 only on head: extra"
    )
    rows = {row.what: (plain(row.base), plain(row.head)) for row in told.rows}
    assert rows["flags"] == (" ".join(make.COMMON), "--a --b")
    assert rows["compiler version"] == ("3.11.0rc20261016", "3.13.0rc20261016")
    assert rows["compiler SHA-256"][0] == make.digest("3.11.0")[:16]


def test_everything_is_there_when_there_is_room() -> None:
    assert not view(make.many(), ROOMY).left_out
    assert not view(make.huge(800), ROOMY).left_out


def test_what_is_left_out_is_counted() -> None:
    told = " ".join(view(make.many(), TIERS[-1]).left_out)
    for what in ("7 models", "29 findings", "changed metrics", "30 commands"):
        assert what in told
    assert "11 changed models" in view(make.many(), replace(TIERS[-1], changed=2)).left_out


@pytest.mark.parametrize(
    ("targets", "short"),
    [
        ({"llvm-cpu-x86_64": "llvm-cpu", "vulkan-spirv": "vulkan-spirv"}, ["x86_64", "vulkan"]),
        ({"llvm-cpu-x": "llvm-cpu", "rocm-x": "rocm"}, ["llvm-cpu-x", "rocm-x"]),
        ({"cuda": "cuda", "cuda-spirv": "other"}, ["cuda", "cuda-spirv"]),
    ],
)
def test_short_names_are_unambiguous(targets: dict[str, str], short: list[str]) -> None:
    assert list(short_names(targets, targets).values()) == short


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=30), st.integers(0, 30))
def test_fair_takes_turns(items: list[tuple[str, int]], limit: int) -> None:
    taken = fair(items, lambda item: item[0], limit)
    counts, available = Counter(name for name, _ in taken), Counter(name for name, _ in items)
    assert len(taken) == min(limit, len(items))
    for name in available:
        assert all(counts[name] == available[name] or counts[name] >= counts[other] - 1 for other in available)
    assert sorted(taken) == sorted(fair_in_order(items, lambda item: item[0], limit))


@given(st.integers(1, 40))
def test_cells_in_words_account_for_all(limit: int) -> None:
    facts = build_facts(make.many())
    keys = [delta.key for delta in facts.states["changed"]]
    spans = cells_phrase(facts, keys, limit)
    told = 0
    for part in plain(spans).split("; "):
        models, _, targets = part.replace("every model", "," * 12).replace("every target", "," * 7).partition(" on ")
        rest = re.match(r"(\d+) more cell", part)
        told += int(rest[1]) if rest else (models.count(",") + 1) * (targets.count(",") + 1)
    assert told == len(keys)
    assert sum(span.kind == "code" for span in spans) <= 2 * limit + 8


def test_explained_cells_are_told_alarms_first_and_counted() -> None:
    report = make.why()
    drawn = view(report, replace(TIERS[0], whys=5))
    assert len(drawn.whys.items) == 5 and drawn.whys.total == len(report.explanations)
    alarming = {finding.key.model for finding in report.verdict.findings}
    assert {cell.model for cell in drawn.whys} <= alarming
    assert f"{drawn.whys.more} explained cells" in drawn.left_out


def test_every_alarm_that_is_explained_is_in_a_line() -> None:
    report = make.why()
    news = {f.key for f in report.verdict.findings if f.kind != "limit"} & report.explanations.keys()
    drawn = view(report, ROOMY_CAUSES)
    assert len(drawn.causes.items) == drawn.causes.total
    words = [plain(line.said) for line in drawn.causes]
    short = build_facts(report).short
    for key in news:
        assert any(f"{key.model} on " in line and short[key.target] in line for line in words), key


ROOMY_CAUSES = replace(ROOMY, causes=1_000)


def test_what_one_target_says_without_a_cause_is_not_said_of_another() -> None:
    report = make.why()
    keys = [f.key for f in report.verdict.findings if f.kind != "limit" and f.key in report.explanations]
    (one, other) = next((a, b) for a in keys for b in keys if a.model == b.model and a.target < b.target)
    said = {one: "head fails: “too large”", other: "head fails: “cannot be tiled”"}
    stories = {key: Explanation(None, None, said[key]) if key in said else e for key, e in report.explanations.items()}
    words = [plain(line.said) for line in view(replace(report, explanations=stories), ROOMY_CAUSES).causes]
    for key, why in said.items():
        (line,) = (line for line in words if why in line)
        assert line.startswith(f"{key.model} on {build_facts(report).short[key.target]}: ")


def test_a_deduplication_of_other_bytes_is_no_other_deduplication() -> None:
    report = make.explained_small()
    (first, *rest) = report.overview.folding
    assert first.base is not None
    other = replace(first, head=replace(first.base, surplus_bytes=1))
    told = replace(report, overview=replace(report.overview, folding=(other, *rest)))
    assert view(report).folding.rows.total == 1
    assert view(told).folding.rows.total == 0
    assert view(told, replace(ROOMY, overview=40, every=True)).folding.rows.total == len(report.overview.folding)
