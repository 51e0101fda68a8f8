"""The report on a terminal: readable at any width, colours only where they work, no sequence of the data's own."""

from __future__ import annotations

import io
from functools import partial

import pytest
import report_factory as make
from rich.cells import cell_len
from rich.console import Console

from bot.core.values.whole_report import Report
from bot.render.terminal.report_text import print_report


def printed(report: Report, width: int = 100, colour: bool = False) -> str:
    out = io.StringIO()
    console = partial(Console, file=out, width=width, force_terminal=colour, legacy_windows=False)
    print_report(report, console(color_system="standard" if colour else None))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", ["many", "none", "broken", "hostile", "why"])
def test_no_line_is_too_wide(name: str, width: int) -> None:
    lines = printed(getattr(make, name)(), width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_it_begins_with_the_verdict() -> None:
    assert printed(make.many(), 200).startswith("❌ Code size: fail — 18 cells broke the rules; 13 more")


def test_it_has_grid_movers_and_failures() -> None:
    text = printed(make.many(), 140)
    for line in (
        "mobilenet_v1_f32_224      +0.1        =      <0.1   ❌+67   -3.2    -0.1  ❌+6.4    +0.3",
        "mobilenet_v1_f32_224     x86_64     50,438 → 83,990 B   +33,552 B (+66.5 %)",
        "over the compiler's stack limit: 36,864 B, allowed are 32,768 B: jax_mlp_train_step_f32 on aarch64",
        "    whisper_tiny_encoder_f32.mlir:214:12: error: failed to distribute: type mismatch",
        "10 of 189 regressions",
    ):
        assert line.split() in [found.split() for found in text.splitlines()], line


def test_nothing_changed_is_short() -> None:
    assert len(printed(make.none(), 140).splitlines()) <= 5


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b" not in printed(make.many())
    assert "\x1b[1;31m" in printed(make.many(), colour=True)


def test_data_brings_no_sequences_and_no_markup() -> None:
    report = make.hostile((*make.HOSTILE, "[bold red]markup[/]", ":smile:", "\x9b31mC1", "\x1b]0;title\x07"))
    text = printed(report, 200)
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert "[bold red]markup[/]" in text


def test_alarms_have_cause_and_place_under_the_headline() -> None:
    lines = printed(make.explained_small(), 200).splitlines()
    assert lines[1] == f"- mobilenet on x86_64: strategy in encoder.layer.*: {make.TILES}"
    assert lines[2].rstrip() == "  largest: main_dispatch_0_matmul_128x768x768_f32 2,000 → 4,000 B"
