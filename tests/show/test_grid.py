"""The grid: the state of every cell, which metric a mark is for, and no mark for what base had."""

from __future__ import annotations

import pytest
import report_factory as make
from replacing import replace

from bot.config.configuration import configs_dir, load_config
from bot.core.delta import STATES
from bot.core.policy import Accepted, Finding, Verdict
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import Limits
from bot.show.comment import TIERS
from bot.show.facts import build_facts
from bot.show.report import Grid, GridCell, build_grid


def drawn(report: Report, limits: Limits = TIERS[0]) -> Grid:
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
    rows = {model: {cell.state for cell in cells} for model, cells in drawn(report).blocks[0][1]}
    assert {model: rows[model] for model in states} == {model: {state} for model, state in states.items()}
    texts = {model: cells[0].text for model, cells in drawn(report).blocks[0][1]}
    assert [texts[model] for model in states] == ["💥", "+0.0004", "🆕", "➖", "🟢", "🚫", "·", "="]


def test_too_many_targets_make_several_tables() -> None:
    targets = {f"target_{index:02}": "vmvx" for index in range(30)}
    report = make.report(make.snapshot("1", targets=targets), make.snapshot("2", targets=targets))
    blocks = drawn(report).blocks
    assert len(blocks) > 2
    assert [name for headers, _ in blocks for name in headers] == sorted(targets)
    assert all(len(cells) == len(headers) for headers, rows in blocks for _, cells in rows)


def test_the_wide_suite_has_names_that_tell_targets_apart_in_tables_that_fit() -> None:
    targets = load_config(configs_dir() / "wide.yml", models=False).targets
    wide = {target.name: target.backend for target in targets if not target.unsupported}
    head = make.snapshot("2", lambda _key, found: make.grown(found, artifact_bytes=30_000), targets=wide)
    grid = drawn(make.report(make.snapshot("1", targets=wide), head))
    assert [" ".join(headers) for headers, _ in grid.blocks] == [
        "cuda sm_89 aarch64 riscv64 x86_64 x86_64-O2 x86_64-O3",
        "x86_64-tiled metal rocm gfx1201 gfx950 vmvx vulkan-rdna3",
        "vulkan vulkan-valhall4",
    ]
    assert dict(grid.names)["gfx1201"] == "rocm-gfx1201"
    for headers, rows in grid.blocks:
        lines = zip(headers, *([cell.text for cell in cells] for _, cells in rows), strict=True)
        columns = sum(5 + max(map(len, texts)) for texts in lines)
        assert 6 + max(len(model) for model, _ in rows) * 5 // 4 + columns <= TIERS[0].grid_width


def test_the_worst_models_are_drawn_where_there_is_no_room_for_all() -> None:
    tight = replace(TIERS[0], grid_models=2)
    shown = drawn(make.many(), tight)
    assert ([model for model, _ in shown.blocks[0][1]], shown.models.more) == (
        ["jax_mlp_train_step_f32", "whisper_tiny_encoder_f32"],
        11,
    )


def test_only_used_symbols_are_in_the_legend() -> None:
    assert [symbol for symbol, _ in drawn(make.none()).legend] == ["="]
    assert [symbol for symbol, _ in drawn(make.many()).legend] == [*("💥", "❌", "⚠️", "±1.2", "🟢", "🚫", "=")]


KEY = CellKey("vit_l4_f32_224", "vmvx")


def cell(report: Report, key: CellKey = KEY) -> GridCell:
    grid = drawn(report)
    short = key.target.removeprefix("llvm-cpu-")
    ((headers, rows),) = (block for block in grid.blocks if short in block[0])
    (cells,) = (cells for model, cells in rows if model == key.model)
    return cells[headers.index(short)]


def found(metric: str | None, **changes: object) -> Report:
    """Nothing changed but one cell, which has this finding."""
    base = make.snapshot("1", lambda key, c: make.with_metrics(c, artifact_bytes=1_000) if key == KEY else c)
    head = make.snapshot("2", lambda key, c: make.with_metrics(c, artifact_bytes=900) if key == KEY else c)
    finding = replace(Finding(KEY, "warn", metric, "r", "change", "5", "+9", 1, 10), **changes)
    return replace(make.report(base, head), verdict=Verdict("warn", (finding,)))


@pytest.mark.parametrize(
    ("metric", "letter", "meaning"),
    [
        ("executable_bytes", "ᵈ", "by device code"),
        ("executables", "ᵉ", "by executables or entry points"),
        ("entry_points", "ᵉ", "by executables or entry points"),
        ("stack_max_bytes", "ˢ", "by stack"),
        ("stack_alloca_bytes", "ˢ", "by stack"),
        ("unattributed_bytes", "ᵒ", "by another metric than the artifact"),
    ],
)
def test_a_cell_that_shrank_and_warns_shows_which_metric_warns(metric: str, letter: str, meaning: str) -> None:
    report = found(metric)
    assert (cell(report).text, cell(report).level) == (f"⚠️{letter}−10", "warn")
    assert (letter, meaning) in drawn(report).legend


def test_the_artifacts_own_mark_and_that_of_a_state_have_no_letter() -> None:
    assert cell(found("artifact_bytes")).text == cell(found(None, kind="state")).text == "⚠️−10"


def test_the_letter_is_of_the_finding_that_the_mark_is_for() -> None:
    report = found("executables")
    worse = replace(report.verdict.findings[0], level="fail", metric="artifact_bytes")
    both = replace(report, verdict=Verdict("fail", (worse, *report.verdict.findings)))
    assert cell(both).text == "❌−10"
    accepted = replace(worse, accepted=Accepted("a", ""))
    assert cell(replace(report, verdict=Verdict("warn", (*report.verdict.findings, accepted)))).text == "☑️−10"


def test_what_base_had_gets_no_mark() -> None:
    known = found("stack_alloca_bytes", kind="limit", known=True)
    assert (cell(known).text, cell(known).level, cell(known).marks) == ("−10", "", ("number",))
    usual = CellKey("gpt2_f32_dyn", "llvm-cpu-x86_64")
    assert (cell(make.usual(), usual).text, cell(make.usual(), usual).level) == ("=", "")
