"""The report on a terminal: readable at any width, colours only where they work, no sequence of the data's own."""

from __future__ import annotations

import io
from functools import partial

import pytest
import report_factory as make
from rich.cells import cell_len
from rich.console import Console

from bot.core.report import Report
from bot.show.report import print_report


def printed(report: Report, width: int = 100, colour: bool = False) -> str:
    out = io.StringIO()
    console = partial(
        Console, file=out, width=width, force_terminal=colour, legacy_windows=False
    )
    print_report(report, console(color_system="standard" if colour else None))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", ["many", "none", "broken", "hostile", "why"])
def test_no_line_is_too_wide(name: str, width: int) -> None:
    lines = printed(getattr(make, name)(), width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_it_has_totals_alarms_grid_and_failures() -> None:
    text = printed(make.many(), 140)
    for line in (
        (
            "mobilenet_v1_f32_224      +0.1        =      +0.04  ❌+67   −3.2    −0.1 "
            " ❌+6.4    +0.3"
        ),
        (
            "x86_64 2,730,431 → 2,798,679 B (+2.5 %) frame 1,687 → 1,751 B in"
            " bert_l4_f32_s128 476 → 479"
        ),
        (
            "above the compiler's stack limit: a function needs 36,864 B:"
            " jax_mlp_train_step_f32 on aarch64"
        ),
        (
            "    whisper_tiny_encoder_f32.mlir:214:12: error: failed to distribute:"
            " type mismatch"
        ),
    ):
        assert line.split() in [line.split() for line in text.splitlines()], line


def test_nothing_changed_is_short() -> None:
    lines = printed(make.none(), 140).splitlines()
    assert len(lines) <= 6 + len(make.TARGETS) + 1
    assert not [line for line in lines if "=" in line or "limit" in line]


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b" not in printed(make.many())
    assert "\x1b[1;31m" in printed(make.many(), colour=True)


def test_data_brings_no_sequences_and_no_markup() -> None:
    report = make.hostile(
        (
            *make.HOSTILE,
            "[bold red]markup[/]",
            ":smile:",
            "\x9b31mC1",
            "\x1b]0;title\x07",
        )
    )
    text = printed(report, 200)
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert "[bold red]markup[/]" in text
