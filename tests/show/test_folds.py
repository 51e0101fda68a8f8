"""The fold audit as a section: exact sums that say over what, every reason told, n/a never 0, and harmless."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path

import fold_factory as make
import pytest
from fold_strategies import audits
from golden_files import check_golden
from harmless import assert_harmless
from hypothesis import given, settings
from replacing import replace
from report_factory import HOSTILE, TARGETS
from rich.cells import cell_len
from rich.console import Console

from bot.core.runs import Price
from bot.errors import TemplateError
from bot.fold.audit import BeforeAfter, FoldAudit, FoldCell, FoldModel, LeftFamily
from bot.fold.showing import FOLD_LIMIT_BYTES, fold_blocks
from bot.show.renderers import markdown, print_blocks
from bot.show.views import TERMINAL

ONE = next(cell for cell in make.small().cells if cell.state == "folded")


def render_folds(audit: FoldAudit, templates: Path | None = None) -> str:
    """As the command writes it."""
    return markdown("fold", partial(fold_blocks, audit), FOLD_LIMIT_BYTES, templates)


def of(*cells: FoldCell, **changes: object) -> str:
    """The section of an audit of these cells."""
    return render_folds(replace(make.small(), models=(), cells=cells, **changes))


def cell(
    model: str = "m",
    target: str = "vmvx",
    before: int | None = 1000,
    after: int | None = 600,
) -> FoldCell:
    """A folded cell of 10 executables that became 7."""
    sizes = BeforeAfter(before, after)
    return replace(
        ONE,
        model=model,
        target=target,
        executables=BeforeAfter(10, 7),
        artifact_bytes=sizes,
        resumed_bytes=before,
        left=(),
    )


def printed(audit: FoldAudit, width: int = 100) -> str:
    out = io.StringIO()
    print_blocks(
        fold_blocks(audit, TERMINAL),
        Console(file=out, width=width, legacy_windows=False),
    )
    return out.getvalue()


# The section.


def test_golden() -> None:
    for name in ("small", "unmeasured"):
        check_golden(f"{name}.fold.md", render_folds(getattr(make, name)()))
    check_golden("small.fold.txt", re.sub(" +\n", "\n", printed(make.small(), 120)))


@pytest.mark.parametrize("name", ["small", "many", "nothing", "unmeasured", "hostile"])
def test_it_is_harmless_whatever_the_names_are(name: str) -> None:
    text = render_folds(getattr(make, name)())
    assert_harmless(text)
    assert text.startswith("**Fold audit: ")


@given(audits)
@settings(max_examples=40)
def test_any_audit_can_be_shown(audit: FoldAudit) -> None:
    assert_harmless(render_folds(audit))
    lines = printed(audit, 80).splitlines()
    assert max(map(cell_len, lines)) <= 80


def test_it_fits_by_leaving_out_and_says_how_much() -> None:
    models = tuple(f"model_{number:04}_int8_tosa" for number in range(400))
    audit = make.audit(models)
    text = render_folds(audit)
    assert len(text.encode()) <= FOLD_LIMIT_BYTES
    assert "…and 7 more builds." in text
    long = "`|*<&#@" * 400
    cells = [
        replace(fold_cell, equal_note=f"{long}{index}", note=f"{long}{index}")
        for index, fold_cell in enumerate(audit.cells)
    ]
    cells = [
        replace(
            fold_cell, left=(LeftFamily("constants", ("a", "b"), f"{index}{long}"),)
        )
        for index, fold_cell in enumerate(cells)
    ]
    assert (
        len(render_folds(replace(audit, cells=tuple(cells))).encode())
        <= FOLD_LIMIT_BYTES
    )


def test_a_template_of_the_user_goes_first_and_a_broken_one_is_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "fold.md.j2").write_text("{{ blocks[1].lines.total }} sentences")
    assert render_folds(make.small(), tmp_path) == "5 sentences\n"
    (tmp_path / "fold.md.j2").write_text("{{ blocks. }}")
    with pytest.raises(TemplateError, match=r"fold\.md\.j2:1"):
        render_folds(make.small(), tmp_path)


# Sums.


def test_what_is_not_known_is_in_no_sum_and_not_zero() -> None:
    half = replace(cell("b", before=900, after=None), executables=BeforeAfter(10, 7))
    first, *_ = of(cell("a"), half).splitlines()
    assert (
        first
        == "**Fold audit: 2 of 2 builds folded**: artifacts 1,000 → 600 B (−40.0 %)"
        " over 1 build, executables 20 → 14 (−30.0 %)."
    )
    assert "10 → 7</sub> | <sub>900 → n/a</sub> | <sub>n/a</sub>" in of(half)


def test_outputs_that_differ_are_reported_and_added_to_nothing() -> None:
    wrong = replace(
        cell("b", before=5000), equal=False, equal_note="3 of 8 elements differ"
    )
    text = of(cell("a"), wrong)
    assert "1 of 2 builds folded**: artifacts 1,000 → 600 B" in text
    assert (
        "- **⚠️ outputs differ in 1 more build**, not counted here: `b` on `vmvx`."
        in text
    )
    assert "<sub>**⚠️ differ²**</sub>" in text
    assert "- <sub>² 3 of 8 elements differ</sub>" in text
    assert of(wrong).startswith(
        "**Fold audit: every fold changed the outputs in 1 build**."
    )


def test_outputs_and_price_that_are_not_known_say_why() -> None:
    idle = replace(
        cell(),
        equal=None,
        equal_note="not a target of this machine",
        price=None,
        price_note="",
    )
    text = of(idle, machine="", max_slowdown=None)
    assert (
        "Outputs and run time are unknown: no compared output proves anything." in text
    )
    assert "<sub>not known¹</sub> | <sub>n/a¹</sub>" in text
    assert "- <sub>¹ not a target of this machine</sub>" in text
    assert "Run on" not in text
    ran = replace(
        idle, equal=True, equal_note="bit by bit", price_note="too short to be timed"
    )
    assert "<sub>equal¹</sub> | <sub>n/a²</sub>" in of(ran)
    timed = replace(
        ran,
        price=Price(
            before_us=1000, after_us=1020, pairs=21, ratio=1.02, low=1.0, high=1.05
        ),
        price_note="",
    )
    assert r"<sub>1\.02 \[1.00, 1.05\]</sub>" in of(timed)


def test_resuming_alone_is_not_taken_for_folding() -> None:
    text = of(
        replace(cell("a"), resumed_bytes=984),
        cell("c"),
        replace(cell("d"), resumed_bytes=None),
    )
    assert (
        text.count("<sub>−40.0 %¹</sub>") == 1 and text.count("<sub>−40.0 %</sub>") == 2
    )
    assert (
        "<sub>¹ −16 B of this change comes from resuming the compile, not from"
        " folding</sub>" in text
    )


def test_one_reason_over_all_targets_is_one_line() -> None:
    family = LeftFamily(
        "constants",
        ("main_dispatch_1", "main_dispatch_2", "main_dispatch_3"),
        "i64 is not legal here",
    )
    cells = [replace(cell("m", target), left=(family,)) for target in sorted(TARGETS)]
    text = of(*cells)
    line = (
        "- **3 executables in 1 family** (constants): i64 is not legal here: `m` on"
        " every target"
    )
    assert text.count("i64 is not legal here") == 1 and line in text


def test_families_that_were_folded_are_reported_once_with_their_targets() -> None:
    cells = [
        replace(cell("m", target), folded=make.families("m"))
        for target in ("cuda", "rocm", "vmvx")
    ]
    cells[2] = replace(cells[2], folded=())
    count = len(make.families("m")[0].members)
    assert (
        of(*cells).count(
            f"- **{count} executables in 1 family** (static-shapes): `m` on `cuda`,"
            " `rocm`"
        )
        == 1
    )


# Models.


def test_today_and_then_stand_beside_the_regions() -> None:
    counted = FoldModel("a", 200, 90, 30)
    unknown = FoldModel("b", 100, 70, None)
    text = render_folds(replace(make.small(), models=(counted, unknown)))
    for cells in (
        ("`a`", "200", "90", r"**55\.0**", "30", r"**85\.0**"),
        ("`b`", "100", "70", r"**30\.0**", "n/a", "**n/a**"),
    ):
        assert "| " + " | ".join(f"<sub>{cell}</sub>" for cell in cells) + " |" in text
    assert (
        "Of 200 dispatch regions of 1 model, 55.0 % are folded away today, and **85\\.0"
        " %** with folding." in text
    )


# On a terminal.


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", ["small", "many", "hostile", "nothing", "unmeasured"])
def test_no_line_of_a_terminal_is_too_wide(name: str, width: int) -> None:
    assert (
        max(map(cell_len, printed(getattr(make, name)(), width).splitlines())) <= width
    )


def test_a_terminal_has_rows_for_what_there_is_room_for_and_counts_every_other_build() -> (
    None
):
    """What differs comes first: it has a row, however little it gains."""
    audit = make.many()
    wrong = ("gpt2_f32_dyn", "cuda")
    cells = [
        replace(cell, equal=False) if (cell.model, cell.target) == wrong else cell
        for cell in audit.cells
    ]
    text = printed(replace(audit, cells=tuple(cells)), 120)
    rows = re.findall(r"^ [\w-]+ +\d+ → \d+ .*", text, re.MULTILINE)
    more_count = sum(
        map(
            int,
            re.findall(r"^…and (\d+) more builds, in the files$", text, re.MULTILINE),
        )
    )
    other_count = sum(
        map(
            int,
            re.findall(
                r"^  (?:Nothing|Not) [a-z ]+ \((\d+) builds?\)", text, re.MULTILINE
            ),
        )
    )
    never = sum(cell.state == "unsupported" for cell in audit.cells)
    assert (
        len(rows) == TERMINAL.rows
        and len(rows) + more_count + other_count == len(audit.cells) - never
    )
    assert [row.split()[0] for row in rows if "differ" in row] == [
        "cuda",
        "llvm-cpu-x86_64",
    ]
    assert len(text.splitlines()) < 200


def test_data_brings_no_sequences_to_the_terminal() -> None:
    text = printed(
        make.hostile((*HOSTILE, "[bold red]markup[/]", "\x1b]0;title\x07")), 200
    )
    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert "[bold red]markup[/]" in text
