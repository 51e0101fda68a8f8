"""The first sentence, the totals of each target and the grid: what alarms, which way the code went, how many."""

from __future__ import annotations

import re

import pytest
import report_factory as make
from hypothesis import given
from replacing import replace
from strategies import snapshots

from bot.config.configuration import configs_dir, load_config
from bot.core.delta import STATES
from bot.core.policy import Finding, Verdict, judge
from bot.core.record import difference, ends
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.show.blocks import Limits, plain
from bot.show.comment import TIERS, render_comment
from bot.show.facts import build_facts
from bot.show.filters import signed
from bot.show.grid import Grid, GridCell, build_grid
from bot.show.headline import headline
from bot.show.totals import Total, everything, totals

MANY = make.many()


def said(report: Report) -> str:
    return plain(headline(build_facts(report)))


def judged(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("3.12.0", base), make.snapshot("3.13.0", head))


def same(_key: CellKey, found: Cell) -> Cell:
    return found


def of_vmvx(edit: make.Edit) -> Report:
    """Every cell of vmvx is edited on head."""
    return judged(same, lambda key, c: edit(key, c) if key.target == "vmvx" else c)


def stepped(vmvx_bytes: int, cuda_bytes: int = 0) -> Report:
    """Artifacts change by this."""
    steps = {"vmvx": vmvx_bytes, **({"cuda": cuda_bytes} if cuda_bytes else {})}
    return judged(same, lambda key, c: make.grown(c, artifact_bytes=steps[key.target]) if key.target in steps else c)


VMVX = CellKey("bert_l4_f32_s128", "vmvx")
LATE = make.partly(CellKey("bert_l4_f32_s128", "cuda"), timeout=CellKey("bert_l4_f32_dyn", "vmvx"))
ADDED = make.report(make.snapshot("1", models=("bert",)), make.snapshot("2", models=("bert", "vit")))
FORBIDDEN = Finding(VMVX, "fail", None, "states", "state", "broken", "failed → failed")
BOTH_REFUSED = judged(*[lambda key, c: make.failed(c, "error") if key == VMVX else c] * 2)
CRASH = Failure("compile", "boom", signal="SIGSEGV")
OTHERWISE = judged(
    lambda key, c: make.failed(c, "error") if key == VMVX else c,
    lambda key, c: replace(make.failed(c, "error"), failure=CRASH) if key == VMVX else c,
)
UNKNOWN, IDENTICAL = "⚪ Code size: unknown, as nothing could be compared", "103 of 104 builds bit-identical"
LOST = "1 of 8 builds compared: 7 not measured on head"


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (make.none(), "✅ Code size: nothing changed · 104 of 104 builds bit-identical"),
        (replace(make.none(), broke="no shard"), "⚪ Code size: no change seen · 104 of 104 builds bit-identical"),
        # what base had is no alarm
        (make.usual(), "✅ Code size: nothing changed · 101 of 104 builds bit-identical, 3 broken on both sides"),
        (make.partly(), f"⚠️ Code size: {LOST} · no change seen · 1 of 8 builds bit-identical"),
        (
            replace(make.partly(), verdict=judge(make.partly().deltas, [], {"unmeasured": "fail"})),
            f"❌ Code size: 7 of 8 builds in a state that the rules forbid · {LOST} · 1 of 8 builds bit-identical",
        ),
        (
            LATE,
            "⚠️ Code size: 6 of 8 builds compared: 1 timed out on head, 1 not measured on head · no change seen · "
            "6 of 8 builds bit-identical",
        ),
        (make.no_baseline(), f"{UNKNOWN} · 0 of 18 builds compared: 16 not measured on base, 2 not supported"),
        (make.broken_on_both(), f"{UNKNOWN} · 104 broken on both sides"),
        # where the rules allow it
        (
            replace(make.broken(), verdict=judge(make.broken().deltas, [], {})),
            f"{UNKNOWN} · 104 of 104 builds newly broken",
        ),
        (ADDED, "✅ Code size: within the rules · 8 new, 8 of 16 builds bit-identical"),
        (
            of_vmvx(lambda _, c: replace(c, artifact_digest=None)),
            "✅ Code size: no change seen · 91 of 104 builds bit-identical, 13 equal in every metric",
        ),
        *(
            (of_vmvx(edit), "✅ Code size: within the rules · 13 changed at the same size")
            for edit in (
                lambda _, c: make.with_metrics(c, compile_cpu_ms=10**9),
                lambda _, c: make.with_metrics(c, linalg_ops=None),
                lambda _, c: make.grown(c, artifact_bytes=0),
            )
        ),
        # an artifact that is not known any more is not as large as before
        (
            of_vmvx(lambda _, c: make.with_metrics(c, artifact_bytes=None)),
            "✅ Code size: within the rules · 91 of 104 builds bit-identical",
        ),
        (stepped(7), "✅ Code size: larger within the rules, +91 B (+0.0004 %) in all · 13 larger"),
        (stepped(-7), "✅ Code size: smaller, −91 B (−0.0004 %) in all · 13 smaller"),
        (stepped(7, -9), "✅ Code size: changed within the rules, −26 B (−0.0001 %) in all · 13 larger, 13 smaller"),
        (stepped(7, -7), "✅ Code size: changed within the rules, ±0 in all · 13 larger, 13 smaller"),
        # a failure of another kind is not called unchanged
        (BOTH_REFUSED, f"✅ Code size: nothing changed · {IDENTICAL}, 1 broken on both sides"),
        (OTHERWISE, f"✅ Code size: within the rules · {IDENTICAL}, 1 broken on both sides"),
        (
            replace(BOTH_REFUSED, verdict=Verdict("fail", (FORBIDDEN,))),
            f"❌ Code size: 1 of 104 builds in a state that the rules forbid · {IDENTICAL}, 1 broken on both sides",
        ),
    ],
)
def test_the_first_sentence(report: Report, words: str) -> None:
    assert said(report) == words


ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}


@given(snapshots(), snapshots())
def test_no_sentence_denies_a_change(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    told = said(report)
    assert told.startswith(f"{ICONS[report.verdict.status]} Code size: ")
    moved = {delta.state for delta in report.deltas} & {"changed", "fixed", "new", "removed", "newly-broken"}
    assert not (moved and ("nothing changed" in told or "no change seen" in told))
    for broken in [delta for delta in report.deltas if delta.state == "newly-broken"][:1]:
        assert re.search(r"\d of \d+ builds? newly broken", told), broken.key


@given(snapshots(), snapshots())
def test_every_count_is_a_recount(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    told, states = said(report), [delta.state for delta in report.deltas]
    changes = [delta.metrics["artifact_bytes"].change for delta in report.deltas]
    counts = {
        "compiles? now": states.count("fixed"),
        "new": states.count("new"),
        "larger": sum(change > 0 for change in changes if change is not None),
        "smaller": sum(change < 0 for change in changes if change is not None),
    }
    for words, count in counts.items():
        found = re.search(rf"(?:^| )([\d,]+) {words}(?:,|$| ·)", told)
        assert (found[1] if found else "0") == f"{count:,}", words
    total = everything(report)
    moved = difference(total.base or 0, total.head or 0)
    assert signed(moved) in told or not moved


# Totals: sums over the cells that both sides measured, and the worst cell.

TWO_MODELS, TWO_TARGETS = ("bert", "vit"), {"cuda": "cuda", "vmvx": "vmvx"}
BERT, VIT = CellKey("bert", "vmvx"), CellKey("vit", "vmvx")


def rows(report: Report) -> dict[str, Total]:
    return {row.target: row for row in totals(build_facts(report)).rows}


def of_two(base: make.Edit, head: make.Edit, targets: dict[str, str] = TWO_TARGETS) -> Report:
    return make.report(make.snapshot("1", base, TWO_MODELS, targets), make.snapshot("2", head, TWO_MODELS, targets))


def sized(**sizes: int | None) -> make.Edit:
    """Every cell with the artifact of its model; None is a cell that fails."""

    def edit(key: CellKey, found: Cell) -> Cell:
        size = sizes[key.model]
        return make.failed(found, "error") if size is None else make.with_metrics(found, artifact_bytes=size)

    return edit


def worst_of(report: Report, *findings: Finding) -> tuple[str, str]:
    row = rows(replace(report, verdict=Verdict("fail", findings)))["vmvx"]
    return row.mark, row.level


CALM = of_two(sized(bert=1_000, vit=2_000), sized(bert=1_100, vit=1_900))
GROWN = Finding(BERT, "fail", "artifact_bytes", "r", "change", "5%", "+100 B", 1_000, 1_100, allowed=50)


def test_sums_are_over_the_cells_that_both_sides_measured() -> None:
    report = of_two(sized(bert=1_000, vit=2_000), sized(bert=None, vit=2_500))
    row = rows(report)["vmvx"]
    assert (row.cells, row.base, row.head, row.larger, row.smaller) == (1, 2_000, 2_500, 1, 0)
    assert rows(report)[""] == everything(report) == Total("", 2, 4_000, 5_000, 2, 0, 0, 4, 2)
    row = rows(CALM)["vmvx"]
    assert (row.base, row.head, row.larger, row.smaller) == (3_000, 3_000, 1, 1)


def test_only_what_changed_has_a_row_and_one_target_none_for_all() -> None:
    assert list(rows(of_two(sized(bert=1, vit=1), sized(bert=1, vit=2), {"vmvx": "vmvx"}))) == ["vmvx"]
    still = totals(build_facts(of_two(sized(bert=1, vit=1), sized(bert=1, vit=1))))
    assert (still.rows, still.still) == ((), 2)
    usual = totals(build_facts(make.usual()))
    assert (usual.rows, usual.still) == ((), 8), "vmvx-inline was not measured"


def test_a_target_without_such_a_cell_has_no_sums() -> None:
    def broken(key: CellKey, found: Cell) -> Cell:
        return make.failed(found, "error") if key.target == "vmvx" else make.grown(found, artifact_bytes=8)

    report = of_two(lambda _key, found: found, broken)
    row = rows(report)["vmvx"]
    assert (row.cells, row.base, row.head) == (0, None, None)
    assert "| `vmvx` 💥 | 2&nbsp;broken | n/a |" in render_comment(report)


def test_where_no_target_has_one_there_is_a_sentence_and_no_table() -> None:
    report = of_two(sized(bert=1, vit=1), sized(bert=None, vit=None))
    assert rows(report) == {}
    assert "No artifact to compare: no build was measured on both sides." in render_comment(report)


@pytest.mark.parametrize(
    ("findings", "mark", "level"),
    [
        ((GROWN,), "❌", "fail"),
        ((replace(GROWN, level="warn"),), "⚠️", "warn"),
        ((replace(GROWN, accepted="a"),), "☑️", "warn"),
        ((replace(GROWN, metric=None, kind="state", limit="newly-broken"),), "💥", "fail"),
        ((replace(GROWN, metric=None, kind="state", limit="removed", level="warn"),), "⚠️", "warn"),
        ((replace(GROWN, known=True),), "", ""),
        ((replace(GROWN, accepted="a"), replace(GROWN, key=VIT)), "❌", "fail"),
        ((replace(GROWN, known=True), replace(GROWN, key=VIT, level="warn")), "⚠️", "warn"),
    ],
)
def test_a_row_has_the_mark_of_the_worst_that_is_news(findings: tuple[Finding, ...], mark: str, level: str) -> None:
    assert worst_of(CALM, *findings) == (mark, level)
    assert rows(replace(CALM, verdict=Verdict("fail", findings)))["cuda"].mark == "", "they are of another target"


@given(snapshots(), snapshots())
def test_targets_add_up_to_all(base: Snapshot, head: Snapshot) -> None:
    facts = build_facts(make.report(base, head))
    found = totals(facts)
    each, total = [row for row in found.rows if row.target], everything(facts.report)
    moved = [ends(difference(row.base or 0, row.head or 0) or 0) for row in (*each, total)]
    assert moved[-1] == tuple(map(sum, zip(*moved[:-1], strict=True))) or (0, 0), "what is still has no change"
    assert (total.larger, total.smaller) == (sum(r.larger for r in each), sum(r.smaller for r in each))
    assert all((row.base is None) == (row.head is None) == (row.cells == 0) for row in (*each, total))
    assert len(each) + found.still == len(facts.measured_targets) or not total.cells


# The grid: the state of every cell, which metric a mark is for, and no mark for what base had.


def drawn_grid(report: Report, limits: Limits = TIERS[0]) -> Grid:
    return build_grid(build_facts(report), limits)


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
    texts = {model: cells[0].text for model, cells in drawn_grid(report).blocks[0][1]}
    assert [texts[model] for model in states] == ["💥", "+0.0004", "🆕", "➖", "🟢", "🚫", "·", "="]


def test_the_wide_suite_has_names_that_tell_targets_apart_in_tables_that_fit() -> None:
    targets = load_config(configs_dir() / "wide.yml", models=False).targets
    wide = {target.name: target.backend for target in targets if not target.unsupported}
    head = make.snapshot("2", lambda _key, found: make.grown(found, artifact_bytes=30_000), targets=wide)
    grid = drawn_grid(make.report(make.snapshot("1", targets=wide), head))
    assert [" ".join(headers) for headers, _ in grid.blocks] == [
        "cuda sm_89 aarch64 riscv64 x86_64 x86_64-O2 x86_64-O3",
        "x86_64-tiled metal rocm gfx1201 gfx950 vmvx vulkan-rdna3",
        "vulkan vulkan-valhall4",
    ]
    assert dict(grid.names)["gfx1201"] == "rocm-gfx1201"


def test_the_worst_models_are_drawn_where_there_is_no_room_for_all() -> None:
    tight = replace(TIERS[0], grid_models=2)
    shown = drawn_grid(make.many(), tight)
    assert ([model for model, _ in shown.blocks[0][1]], shown.models.more) == (
        ["jax_mlp_train_step_f32", "whisper_tiny_encoder_f32"],
        11,
    )


VIT_VMVX = CellKey("vit_l4_f32_224", "vmvx")


def cell_of(report: Report, key: CellKey = VIT_VMVX) -> GridCell:
    grid = drawn_grid(report)
    short = key.target.removeprefix("llvm-cpu-")
    ((headers, rows),) = (block for block in grid.blocks if short in block[0])
    (cells,) = (cells for model, cells in rows if model == key.model)
    return cells[headers.index(short)]


def vit_of(size: int) -> Snapshot:
    return make.snapshot("1", lambda key, c: make.with_metrics(c, artifact_bytes=size) if key == VIT_VMVX else c)


WARNED = Finding(VIT_VMVX, "warn", "stack_max_bytes", "r", "change", "5", "+9", 1, 10)
FAILED = replace(WARNED, level="fail", metric="artifact_bytes")


@pytest.mark.parametrize(
    ("findings", "text", "level"),
    [
        ((WARNED,), "⚠️ᵒ−10", "warn"),
        ((replace(WARNED, metric="artifact_bytes"),), "⚠️−10", "warn"),
        ((replace(WARNED, metric=None, kind="state"),), "⚠️−10", "warn"),
        ((FAILED, WARNED), "❌−10", "fail"),
        ((WARNED, replace(FAILED, accepted="a")), "☑️−10", "warn"),
        ((replace(WARNED, kind="limit", known=True),), "−10", ""),
    ],
)
def test_a_cell_has_the_mark_of_its_worst_news_and_a_letter_where_that_is_no_artifacts(
    findings: tuple[Finding, ...], text: str, level: str
) -> None:
    base, head = (vit_of(size) for size in (1_000, 900))
    report = replace(make.report(base, head), verdict=Verdict("warn", findings))
    assert (cell_of(report).text, cell_of(report).level) == (text, level)
    assert (("ᵒ", "by another metric than the artifact") in drawn_grid(report).legend) == ("ᵒ" in text)
