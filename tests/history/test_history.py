"""A history: what is told of each release, totals, its JSON; drawn exact, bounded and harmless."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path

import history_factory as make
import pytest
from golden_files import check_golden
from harmless import assert_harmless
from history_factory import BERT, BERT_CUDA, MOBILENET
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from report_factory import snapshot, with_metrics
from rich.console import Console

from bot.core.history import History, Move, history_lines
from bot.core.history_totals import TRACKED, totals_of
from bot.core.metrics import METRIC_BY_ID
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.snapshot import (
    Cell,
    CellKey,
    CompileOutcome,
    CompilerInfo,
    Snapshot,
    SourceInfo,
)
from bot.core.study import Study, Variant, named_apart
from bot.show.history import HISTORY_LIMIT_BYTES, history_blocks, write_history
from bot.show.renderers import markdown, print_blocks
from bot.show.views import TERMINAL
from bot.study.releases import _by_version


def study(*sides: Snapshot) -> Study:
    return Study(
        tuple(
            Variant(f"3.{number}.0", f"3.{number}.0", side)
            for number, side in enumerate(sides)
        )
    )


def moves(history: History, key: CellKey) -> list[Move | None]:
    """What moved of a cell, release after release."""
    return [
        history.moves.get((variant.name, key)) for variant in history.study.variants
    ]


def test_what_a_snapshot_does_not_have_is_no_failure() -> None:
    cell = make.eventful().study.rows[replace(BERT_CUDA, model=MOBILENET.model)][0]
    assert (cell.status, cell.reason, dict(cell.metrics)) == (
        "unmeasured",
        "not in this snapshot",
        {},
    )


def test_a_cell_that_does_not_repeat_itself_has_all_its_sizes_and_no_part_in_moves_and_totals() -> (
    None
):
    first = make.side("3.0.0", {BERT: 82_408, MOBILENET: 5})
    second = make.side("3.1.0", {BERT: 86_872, MOBILENET: 7})
    cell = second.cells[0]
    second_outcome = CompileOutcome(
        "ok", {**cell.metrics, "artifact_bytes": 86_000}, "e" * 64
    )
    second = replace(
        second,
        cells=(replace(cell, compiles=2, others=(second_outcome,)), *second.cells[1:]),
    )
    history = make.history_of(study(first, second))
    assert "86,000..86,872" in render_history(history)
    assert (
        "non-deterministic: the same command gives 86,000 B or 86,872 B"
        in render_history(history)
    )
    assert not any(moves(history, BERT))
    assert [
        total.metrics["artifact_bytes"]
        for total in history.totals
        if total.target is None
    ] == [5, 7]


def with_command(snapshot: Snapshot, command: str) -> Snapshot:
    return replace(
        snapshot, cells=tuple(replace(cell, command=command) for cell in snapshot.cells)
    )


def test_a_move_says_that_the_flags_are_others_and_not_that_one_has_another_name() -> (
    None
):
    commands = (
        "iree-compile - --iree-hip-target=gfx942 --iree-old -o m.vmfb < m.mlir",
        (
            f"iree-compile - --iree-rocm-target=gfx942 --iree-old {LIFTED_LIMIT_FLAG}"
            " -o m.vmfb < m.mlir"
        ),
        "iree-compile - --iree-rocm-target=gfx942 --iree-new=1 -o m.vmfb < m.mlir",
    )
    sides = [
        with_command(make.side(f"3.{number}.0", {BERT: 100 + number}), command)
        for number, command in enumerate(commands)
    ]
    whys = [
        move.why if move else "" for move in moves(make.history_of(study(*sides)), BERT)
    ]
    assert "flags" not in whys[1]
    assert whys[2].startswith(
        "compiled with other flags (without --iree-old, --iree-new=1)"
    )


def test_a_release_that_compiles_nothing_keeps_the_reasons_of_its_cells_and_takes_part_in_no_total() -> (
    None
):
    sides = [
        make.side(f"3.{number}.0", {BERT: size, MOBILENET: size})
        for number, size in enumerate((100, None, 120))
    ]
    history = make.history_of(study(*sides))
    assert [(cell.status, cell.reason) for cell in history.rows[BERT]][1] == (
        "failed",
        "error: failed to distribute",
    )
    assert not any(moves(history, BERT)), "nothing is told across a gap"
    assert {total.compiler for total in history.totals} == {"3.0.0", "3.2.0"}
    assert history.totals[0].metrics["artifact_bytes"] == 200


def render_history(history: History, templates: Path | None = None) -> str:
    """As the command writes it."""
    return markdown(
        "history", partial(history_blocks, history), HISTORY_LIMIT_BYTES, templates
    )


def printed(history: History, width: int = 160) -> str:
    out = io.StringIO()
    print_blocks(
        history_blocks(history, TERMINAL),
        Console(file=out, width=width, legacy_windows=False),
    )
    return out.getvalue()


def test_goldens() -> None:
    check_golden("history.measured.md", render_history(make.measured()))
    check_golden("history.eventful.md", render_history(make.eventful()))


def test_the_largest_move_is_so_by_its_amount_and_of_equal_ones_the_first() -> None:
    sizes = (100_000, 110_000, 60_000, 110_000, 100_000)
    history_study = make.study_of(
        *(
            make.side(f"3.{number}.0", {make.BERT: size})
            for number, size in enumerate(sizes)
        )
    )
    for text in (
        render_history(make.history_of(history_study)),
        printed(make.history_of(history_study), 240),
    ):
        assert "3.2.0: −50,000 (−45.5 %)" in text.replace(
            "\\", ""
        ) and "3.3.0: +50,000" not in text.replace("\\", "")


@pytest.mark.parametrize("width", [60, 80, 100, 160, 240])
def test_a_terminal_of_any_width_breaks_no_number(width: int) -> None:
    text = printed(make.measured(), width)
    assert "+26,464" in text and ("64,920" in text) is (width > 60), (
        "what moved has room before what there is"
    )
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert ("no room for " in text) is (width < 160)


def test_many_releases_have_as_many_columns_as_there_is_room_for() -> None:
    text = render_history(make.long())
    assert len(text.encode()) <= HISTORY_LIMIT_BYTES
    assert "No column here for 48 releases" in text
    header = next(line for line in text.splitlines() if line.startswith("| model"))
    assert header.count("|") == 12 + 4 + 1


def test_a_column_has_the_share_of_folded_regions() -> None:
    text = render_history(make.measured())
    for model, share in (
        ("bert_l4_f32_s128", "80 %"),
        ("mobilenet_v1_f32_224", "53 % → 58 %"),
    ):
        lines = [line for line in text.splitlines() if line.startswith(f"| `{model}`")]
        assert lines and all(f"| {share} |" in line for line in lines)
    assert "folded" in printed(make.measured(), 100)


def test_the_share_of_folded_regions_is_that_of_the_first_and_the_last_release_to_know_it(
    tmp_path: Path,
) -> None:
    counts: list[dict[str, int | None]] = [
        {"dispatch_regions": None, "executables": None},
        {"dispatch_regions": 100, "executables": 32},
        {"dispatch_regions": 90, "executables": 30},
        {"dispatch_regions": 82, "executables": 32},
        {"dispatch_regions": 4, "executables": 9},
    ]
    sides = []
    for number, figures in enumerate(counts):
        side = make.side(f"3.{number}.0", {BERT: 82_408})
        sides.append(
            replace(
                side, cells=tuple(with_metrics(cell, **figures) for cell in side.cells)
            )
        )
    history = make.history_of(study(*sides))
    assert "| 68 % → 61 % |" in render_history(history)
    write_history(history, None, tmp_path)
    page = (tmp_path / "history.html").read_text(encoding="utf-8")
    for phrase in ("68 of 100 (68 %)", "50 of 82 (61 %)", "regions folded"):
        assert phrase in page


def test_hostile_texts_are_harmless() -> None:
    text = render_history(make.hostile())
    assert_harmless(text)
    assert len(text.encode()) <= HISTORY_LIMIT_BYTES
    assert "\x1b" not in printed(make.hostile()) and "\u202e" not in printed(
        make.hostile()
    )


def text(history: History) -> bytes:
    return b"".join(history_lines(history))


@given(st.lists(st.sampled_from(["a", "b", "a (2)"]), max_size=8))
def test_names_are_told_apart(names: list[str]) -> None:
    labels = [
        variant.name
        for variant in named_apart([Variant(name) for name in names]).variants
    ]
    assert len(set(labels)) == len(labels) == len(names)
    assert all(new.startswith(old) for new, old in zip(labels, names, strict=True))


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 1_000)), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_totals_add_up_and_take_nothing_from_gaps(rows: list[list[int | None]]) -> None:
    variants = []
    for column in range(3):
        cells = (
            Cell(
                f"m{index}",
                "t",
                "failed" if row[column] is None else "ok",
                dict.fromkeys(TRACKED, row[column]),
            )
            for index, row in enumerate(rows)
        )
        variants.append(
            Variant(
                str(column),
                "",
                Snapshot(CompilerInfo("", "", ""), SourceInfo(), tuple(cells)),
            )
        )
    columns = [
        column for column in range(3) if any(row[column] is not None for row in rows)
    ]
    whole = [row for row in rows if all(row[column] is not None for column in columns)]
    totals = totals_of(Study(tuple(variants)))
    assert {int(total.compiler) for total in totals} == set(columns), (
        "what measured nothing has no part in it"
    )
    for total in totals:
        for metric in TRACKED:
            values = [
                value
                for row in whole
                if (value := row[int(total.compiler)]) is not None
            ]
            expected = (
                None
                if not values
                else (
                    max(values)
                    if METRIC_BY_ID[metric].over == "largest"
                    else sum(values)
                )
            )
            assert total.metrics[metric] == expected and total.cells[metric] == len(
                whole
            )


def test_the_contract() -> None:
    plain = json.loads(text(make.eventful()))
    assert plain["schema"] == "code-size-history/1"
    for point in plain["points"]:
        assert {"compiler", "model", "target", "status", "metrics"} <= point.keys()
        assert point["status"] in ("ok", "failed", "unmeasured") and (
            point["status"] == "ok"
        ) == bool(point["metrics"])
    assert [release["order"] for release in plain["releases"]] == list(
        range(5)
    ) and "/tmp" not in str(plain)
    missing = [point for point in plain["points"] if point["compiler"] == "3.12.0"]
    assert len(missing) == 4 and all(
        "no such release" in point["reason"] for point in missing
    )


def test_a_gap_is_ordered_by_its_spec() -> None:
    """Its name may have a number behind it, or be that of a wheel."""
    side = snapshot("3.13.0")
    said = list[str]()
    variants = (
        Variant("3.13.0", "old-3.13.json", side),
        Variant("3.13.0 (2)", "3.13.0", reason="it cannot be fetched"),
        Variant("3.12.0", "3.12.0", reason="it cannot be fetched"),
    )
    ordered = _by_version(Study(variants), said.append)
    assert [variant.name for variant in ordered.variants] == [
        "3.12.0",
        "3.13.0",
        "3.13.0 (2)",
    ]
    assert said == []
