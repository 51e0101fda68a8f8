"""The first sentence and the grid: what alarms, which way the code went, how many builds."""

from __future__ import annotations

import re

import pytest
import report_factory as make
from hypothesis import given
from replacing import replace
from strategies import snapshots

from bot.config.configuration import configs_dir, load_config
from bot.core.delta import STATES
from bot.core.findings import Finding, Verdict
from bot.core.policy import judge
from bot.core.record import difference
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.show.blocks import plain
from bot.show.facts import build_facts
from bot.show.filters import signed
from bot.show.grid import Grid, GridCell, build_grid
from bot.show.headline import headline
from bot.show.totals import everything
from bot.show.views import COMMENT


def said(report: Report) -> str:
    return plain(headline(build_facts(report)))


def judged(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("3.12.0", base), make.snapshot("3.13.0", head))


def same(_key: CellKey, cell: Cell) -> Cell:
    """Edit nothing."""
    return cell


def of_vmvx(edit: make.Edit) -> Report:
    """Every cell of vmvx is edited on head."""
    return judged(same, lambda key, c: edit(key, c) if key.target == "vmvx" else c)


def stepped(vmvx_bytes: int, cuda_bytes: int = 0) -> Report:
    """Artifacts change by this."""
    steps = {"vmvx": vmvx_bytes, **({"cuda": cuda_bytes} if cuda_bytes else {})}
    return judged(
        same,
        lambda key, c: (
            make.grown(c, artifact_bytes=steps[key.target])
            if key.target in steps
            else c
        ),
    )


VMVX = CellKey("bert_l4_f32_s128", "vmvx")
LATE = make.partly(
    CellKey("bert_l4_f32_s128", "cuda"), timeout=CellKey("bert_l4_f32_dyn", "vmvx")
)
ADDED = make.report(
    make.snapshot("1", models=("bert",)), make.snapshot("2", models=("bert", "vit"))
)
FORBIDDEN = Finding(
    key=VMVX,
    level="fail",
    metric=None,
    rule="states",
    kind="state",
    limit="broken",
    actual="failed → failed",
)
BOTH_REFUSED = judged(
    *[lambda key, c: make.failed(c, "error") if key == VMVX else c] * 2
)
CRASH = Failure("compile", "boom", signal="SIGSEGV")
OTHERWISE = judged(
    lambda key, c: make.failed(c, "error") if key == VMVX else c,
    lambda key, c: (
        replace(make.failed(c, "error"), failure=CRASH) if key == VMVX else c
    ),
)
UNKNOWN = "⚪ Code size: unknown, because nothing could be compared"
IDENTICAL = "103 of 104 builds bit-identical"
LOST = "1 of 8 builds compared: 7 not measured on head"


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (
            make.none(),
            "✅ Code size: nothing changed · 104 of 104 builds bit-identical",
        ),
        (
            replace(make.none(), broke="no shard"),
            "⚪ Code size: no change seen · 104 of 104 builds bit-identical",
        ),
        # what base had is no alarm
        (
            make.usual(),
            (
                "✅ Code size: nothing changed · 101 of 104 builds bit-identical, 3"
                " already failing on base"
            ),
        ),
        (
            make.partly(),
            f"⚠️ Code size: {LOST} · no change seen · 1 of 8 builds bit-identical",
        ),
        (
            replace(
                make.partly(),
                verdict=judge(make.partly().deltas, [], {"unmeasured": "fail"}),
            ),
            (
                f"❌ Code size: 7 of 8 builds in a state that the rules forbid · {LOST}"
                " · 1 of 8 builds bit-identical"
            ),
        ),
        (
            LATE,
            (
                "⚠️ Code size: 6 of 8 builds compared: 1 timed out on head, 1 not"
                " measured on head · no change seen · 6 of 8 builds bit-identical"
            ),
        ),
        (
            make.no_baseline(),
            (
                f"{UNKNOWN} · 0 of 18 builds compared: 16 not measured on base, 2 not"
                " supported"
            ),
        ),
        (make.broken_on_both(), f"{UNKNOWN} · 104 already failing on base"),
        # where the rules allow it
        (
            replace(make.broken(), verdict=judge(make.broken().deltas, [], {})),
            f"{UNKNOWN} · 104 of 104 builds newly failing",
        ),
        (ADDED, "✅ Code size: within the rules · 8 new, 8 of 16 builds bit-identical"),
        (
            of_vmvx(lambda _, c: replace(c, artifact_digest=None)),
            (
                "✅ Code size: no change seen · 91 of 104 builds bit-identical, 13"
                " equal in every metric"
            ),
        ),
        *(
            (
                of_vmvx(edit),
                "✅ Code size: within the rules · 13 changed at the same size",
            )
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
        (
            stepped(7),
            (
                "✅ Code size: larger within the rules, +91 B (+0.0004 %) in all · 13"
                " larger"
            ),
        ),
        (stepped(-7), "✅ Code size: smaller, −91 B (−0.0004 %) in all · 13 smaller"),
        (
            stepped(7, -9),
            (
                "✅ Code size: changed within the rules, −26 B (−0.0001 %) in all · 13"
                " larger, 13 smaller"
            ),
        ),
        (
            stepped(7, -7),
            "✅ Code size: changed within the rules, ±0 in all · 13 larger, 13 smaller",
        ),
        # a failure of another kind is not called unchanged
        (
            BOTH_REFUSED,
            f"✅ Code size: nothing changed · {IDENTICAL}, 1 already failing on base",
        ),
        (
            OTHERWISE,
            f"✅ Code size: within the rules · {IDENTICAL}, 1 already failing on base",
        ),
        (
            replace(BOTH_REFUSED, verdict=Verdict("fail", (FORBIDDEN,))),
            (
                "❌ Code size: 1 of 104 builds in a state that the rules forbid ·"
                f" {IDENTICAL}, 1 already failing on base"
            ),
        ),
    ],
)
def test_the_first_sentence(report: Report, sentence: str) -> None:
    assert said(report) == sentence


ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}


@given(snapshots(), snapshots())
def test_no_sentence_denies_a_change(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    printed = said(report)
    assert printed.startswith(f"{ICONS[report.verdict.status]} Code size: ")
    moved = {delta.state for delta in report.deltas} & {
        "changed",
        "fixed",
        "new",
        "removed",
        "newly-broken",
    }
    assert not (moved and ("nothing changed" in printed or "no change seen" in printed))
    if "newly-broken" in moved:
        assert re.search(r"\d of \d+ builds? newly failing", printed), printed


@given(snapshots(), snapshots())
def test_every_count_is_a_recount(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    printed = said(report)
    states = [delta.state for delta in report.deltas]
    changes = [delta.metrics["artifact_bytes"].change for delta in report.deltas]
    counts = {
        "fixed": states.count("fixed"),
        "new": states.count("new"),
        "larger": sum(change > 0 for change in changes if change is not None),
        "smaller": sum(change < 0 for change in changes if change is not None),
    }
    for label, count in counts.items():
        match = re.search(rf"(?:^| )([\d,]+) {label}(?:,|$| ·)", printed)
        assert (match[1] if match else "0") == f"{count:,}", label
    total = everything(report)
    moved = difference(total.base or 0, total.head or 0)
    assert signed(moved) in printed or not moved


# The grid: the state of every cell, which metric a mark is for, and no mark for what
# base had.


def drawn_grid(report: Report, count: int = COMMENT.grid_models) -> Grid:
    return build_grid(build_facts(report), COMMENT.grid_width, count)


def test_the_grid_draws_every_state() -> None:
    states = dict(zip(make.MODELS, STATES, strict=False))

    def on_base(key: CellKey, cell: Cell) -> Cell | None:
        state = states.get(key.model, "same")
        if state in ("fixed", "broken"):
            return make.failed(cell, "error")
        return None if state == "new" else cell

    def on_head(key: CellKey, cell: Cell) -> Cell | None:
        state = states.get(key.model, "same")
        if state in ("newly-broken", "broken"):
            return make.failed(cell, "error")
        if state == "unmeasured":
            return replace(cell, status="unsupported", metrics={}, artifact_digest=None)
        return (
            None
            if state == "removed"
            else make.grown(cell, artifact_bytes=1)
            if state == "changed"
            else cell
        )

    base = make.snapshot("1", on_base)
    head = make.snapshot("2", on_head)
    without = {
        state: {m: d for m, d in base.models.items() if states.get(m) != state}
        for state in ("new", "removed")
    }
    report = make.report(
        replace(base, models=without["new"]), replace(head, models=without["removed"])
    )
    texts = {model: cells[0].text for model, cells in drawn_grid(report).blocks[0][1]}
    assert {state: texts[model] for model, state in states.items()} == {
        "newly-broken": "💥",
        "changed": "+0.0004",
        "new": "🆕",
        "removed": "➖",
        "fixed": "🟢",
        "broken": "🚫",
        "unmeasured": "·",
        "same": "=",
    }


def test_the_wide_suite_has_names_that_tell_targets_apart_in_tables_that_fit() -> None:
    targets = load_config(configs_dir() / "wide.yml", models=False).targets
    wide = {target.name: target.backend for target in targets if not target.unsupported}
    head = make.snapshot(
        "2", lambda _key, cell: make.grown(cell, artifact_bytes=30_000), targets=wide
    )
    grid = drawn_grid(make.report(make.snapshot("1", targets=wide), head))
    assert [" ".join(headers) for headers, _ in grid.blocks] == [
        "cuda sm_89 aarch64 riscv64 x86_64 x86_64-O2 x86_64-O3",
        "x86_64-tiled metal rocm gfx1201 gfx950 vmvx vulkan-rdna3",
        "vulkan vulkan-valhall4",
    ]
    assert dict(grid.names)["gfx1201"] == "rocm-gfx1201"


def test_the_worst_models_are_drawn_where_there_is_no_room_for_all() -> None:
    grid = drawn_grid(make.many(), 2)
    assert ([model for model, _ in grid.blocks[0][1]], grid.models.more) == (
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
    return make.snapshot(
        "1",
        lambda key, c: (
            make.with_metrics(c, artifact_bytes=size) if key == VIT_VMVX else c
        ),
    )


WARNED = Finding(
    key=VIT_VMVX,
    level="warn",
    metric="stack_max_bytes",
    rule="r",
    kind="change",
    limit="5",
    actual="+9",
    base=1,
    head=10,
)
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
    assert (("ᵒ", "by another metric than code size") in drawn_grid(report).legend) == (
        "ᵒ" in text
    )
