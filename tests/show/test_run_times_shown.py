"""Run times in comment, summary, page, terminal, `explain` and report.json."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import report_factory as make
from replacing import replace
from rich.console import Console

from bot.core.findings import Finding, Verdict
from bot.core.report import Report
from bot.core.report_json import report_lines
from bot.core.report_reading import report_of
from bot.core.run_times import BuildRun, RunTimes, TimeRatio, build_run, not_run
from bot.core.runs import Price, Run
from bot.core.snapshot import Cell, CellKey
from bot.running.runner import price_of
from bot.show.alarm_table import alarm_table
from bot.show.alarms import AlarmGroup, alarms
from bot.show.blocks import plain
from bot.show.comment import render_comment, render_summary
from bot.show.explained import explain
from bot.show.facts import build_facts
from bot.show.page import html_pieces
from bot.show.report import print_report
from bot.show.run_times import ratio_words, run_rows, tendency
from bot.show.views import COMMENT

MODELS = ("bert", "gpt2", "vit")
TARGETS = {"rocm": "rocm", "llvm-cpu-x86_64": "llvm-cpu", "vmvx": "vmvx"}
KEYS = tuple(CellKey(model, target) for model in MODELS for target in TARGETS)
BERT = CellKey("bert", "vmvx")
GPU = CellKey("bert", "rocm")
FASTER = TimeRatio(base_us=100, head_us=97, pairs=12, ratio=0.97, low=0.95, high=0.99)
NEEDS_DEVICE = "rocm code needs its device"
MACHINE = "A processor, 2 cores, iree-base-runtime 3.13.0"


def timed(key: CellKey, *, equal: bool | None = True, note: str = "") -> BuildRun:
    return BuildRun(key.model, key.target, equal, note, FASTER)


def failing(*keys: CellKey, **registers: tuple[int, int]) -> Report:
    """A report in which these builds fail the check; metric → base and head of each."""

    def grown(place: int) -> make.Edit:
        def edit(_key: CellKey, cell: Cell) -> Cell:
            values = {name: pair[place] for name, pair in registers.items()}
            command = f"{cell.command} --iree-rocm-target=gfx942"
            return replace(
                make.with_metrics(make.grown(cell, artifact_bytes=8 * place), **values),
                command=command,
                compiles=2,
            )

        return edit

    report = make.report(
        make.snapshot("1", grown(0), MODELS, TARGETS),
        make.snapshot("2", grown(1), MODELS, TARGETS),
    )
    findings = tuple(
        Finding(
            key=key,
            level="fail",
            metric="artifact_bytes",
            rule="code size",
            kind="change",
            limit="1B",
            actual="+8 B",
            base=100,
            head=108,
            allowed=1,
        )
        for key in keys
    )
    return replace(report, verdict=Verdict("fail", findings))


def with_runs(report: Report, *builds: BuildRun) -> Report:
    return replace(report, run_times=RunTimes(MACHINE, builds))


def replace_lines(group: AlarmGroup) -> AlarmGroup:
    """Return the group with the first build of its first line alone."""
    line = group.lines[0]
    first_build = dataclasses.replace(line, cells=line.cells[:1], rows=line.rows[:1])
    return group._replace(lines=(first_build,))


def terminal(report: Report) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_report(report, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def explained(report: Report, tmp_path: Path) -> str:
    path = tmp_path / "report.json"
    path.write_bytes(b"".join(report_lines(report)))
    console = Console(file=io.StringIO(), width=160)
    explain(path, "bert", "vmvx", None, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_run_time_is_a_row_below_its_build_everywhere(tmp_path: Path) -> None:
    report = with_runs(failing(BERT), timed(BERT, note="bit-equal on 3 random inputs"))
    comment = render_comment(report).replace("&nbsp;", " ").replace("\\", "")
    row = "| `bert` on `vmvx`: run time | 0.97 [0.95, 0.99] faster |"
    lines = comment.splitlines()
    assert row in lines
    assert "`bert` on `vmvx`: code size" in lines[lines.index(row) - 1]
    assert f"95 % interval, on {MACHINE}" in comment
    assert "outputs differ" not in comment
    for text in (render_summary(report), "".join(html_pieces(report))):
        printed = text.replace("&nbsp;", " ").replace("\\", "").replace("\u00a0", " ")
        assert "0.97 [0.95, 0.99]" in printed and "run time" in printed
    assert "run time" in terminal(report) and "0.97 [0.95, 0.99]" in terminal(report)
    printed = explained(report, tmp_path)
    assert (
        "run time 0.97 [0.95, 0.99], head / base: faster (12 pairs of runs)" in printed
    )
    assert "outputs equal: bit-equal on 3 random inputs" in printed


def test_other_outputs_are_shown_with_the_difference(tmp_path: Path) -> None:
    note = "output 0 differs in 3 of 12 values, on 3 random inputs"
    report = with_runs(failing(BERT), timed(BERT, equal=False, note=note))
    for text in (
        render_comment(report),
        render_summary(report),
        "".join(html_pieces(report)),
        terminal(report),
        explained(report, tmp_path),
    ):
        assert "outputs differ" in text.lower() and "3 of 12 values" in text


def test_outputs_that_differ_are_shown_without_a_run_time_too() -> None:
    note = "head's artifact was ended by SIGSEGV, on 1 random input"
    build = BuildRun(
        BERT.model, BERT.target, equal=False, equal_note=note, time_note="it crashed"
    )
    comment = render_comment(with_runs(failing(BERT), build)).replace("\\", "")
    assert "`bert` on `vmvx`: run time | n/a, outputs differ |" in comment
    assert "SIGSEGV" in comment and "Run time n/a: it crashed" in comment


def test_builds_without_a_run_time_share_a_line_with_the_reason() -> None:
    keys = [CellKey(model, "rocm") for model in MODELS]
    builds = [not_run(key.model, key.target, NEEDS_DEVICE) for key in keys]
    comment = render_comment(with_runs(failing(*keys), *builds)).replace("\\", "")
    assert comment.count(f"Run time n/a: {NEEDS_DEVICE}") == 1
    assert "run time |" not in comment


def test_a_gpu_build_has_registers_spills_and_occupancy() -> None:
    report = failing(GPU, vgprs_max=(64, 72), vgpr_spills=(0, 3), sgpr_spills=(1, 1))
    report = with_runs(report, not_run(GPU.model, GPU.target, NEEDS_DEVICE))
    (row,) = run_rows(build_facts(report)).by_build[GPU]
    expected = (
        "VGPRs 64 → 72, VGPR spills 0 → 3, occupancy by registers:"
        " 8 of 8 waves of a SIMD unit → 7 of 8 waves of a SIMD unit"
    )
    assert plain(row[1]) == expected
    assert "VGPRs 64 → 72" in render_comment(report)
    same = failing(GPU, vgprs_max=(64, 64), vgpr_spills=(0, 0))
    same = with_runs(same, not_run(GPU.model, GPU.target, NEEDS_DEVICE))
    assert run_rows(build_facts(same)).by_build == {}


def test_findings_that_share_rows_have_one_row_of_run_times() -> None:
    report = failing(*KEYS)
    runs = [timed(key) for key in KEYS[:2]]
    slower = replace(FASTER, ratio=1.2, high=1.3)
    runs.append(replace(timed(KEYS[2], equal=False), time=slower))
    facts = build_facts(with_runs(report, *runs))
    (group,) = alarms(facts, COMMENT)
    table = alarm_table(group, 1, run_rows(facts))
    assert [plain(cell) for cell in table.texts[-1]][:2] == [
        "run time of 3 builds",
        "0.97 to 1.20, outputs differ in 1 build",
    ]


def test_a_build_whose_findings_have_no_room_keeps_its_run_time() -> None:
    report = failing(*KEYS)
    facts = build_facts(with_runs(report, timed(KEYS[8], equal=False)))
    (group,) = alarms(facts, COMMENT)
    group_of_one = replace_lines(group)
    table = alarm_table(group_of_one, 6, run_rows(facts))
    last = [plain(cell) for cell in table.texts[-1]]
    assert last[:2] == [
        "vit on vmvx: run time",
        "0.97 [0.95, 0.99] faster, outputs differ",
    ]


def test_without_runs_nothing_is_said_of_them() -> None:
    report = failing(BERT)
    for text in (render_comment(report), terminal(report)):
        assert "run time" not in text.lower()
    assert "run_times" not in b"".join(report_lines(report)).decode()


def test_report_json_has_the_run_times_and_is_read_back() -> None:
    report = with_runs(failing(BERT), timed(BERT, note="bit-equal"))
    text = b"".join(report_lines(report))
    assert json.loads(text)["run_times"] == {
        "machine": MACHINE,
        "builds": [
            {
                "model": "bert",
                "target": "vmvx",
                "equal": True,
                "equal_note": "bit-equal",
                "time": msgspec.to_builtins(FASTER),
            }
        ],
    }
    assert report_of(text, "here", "").run_times == report.run_times


def test_words_of_a_compiler_are_escaped_and_unknown_builds_left_out() -> None:
    hostile = "<b>@everyone</b> [x](https://evil.example) | \u202e"
    builds = [
        BuildRun("bert", "vmvx", equal=False, equal_note=hostile, time=FASTER),
        BuildRun(hostile, "vmvx", equal=True, time=FASTER),
    ]
    report = replace(failing(BERT), run_times=RunTimes(hostile, tuple(builds)))
    comment = render_comment(report)
    assert "<b>" not in comment and "\u202e" not in comment
    assert "[x](https" not in comment
    assert comment.count(": run time |") == 1
    assert "<b>@" not in "".join(html_pieces(report))


WRONG: dict[str, dict[str, Any]] = {
    "an interval beside its ratio": {"low": 1.1},
    "a negative ratio": {"ratio": -1.0, "low": -2.0},
    "no ratio": {"ratio": 0.0, "low": 0.0},
    "negative pairs": {"pairs": -1},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_run_time_that_cannot_be_is_refused(wrong: str) -> None:
    fields = {**msgspec.to_builtins(FASTER), **WRONG[wrong]}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, TimeRatio)


@pytest.mark.parametrize(
    ("head_us", "ratio_text", "meaning"),
    [
        (50.0, "0.50 [0.50, 0.50]", "faster"),
        (100.0, "1.00 [1.00, 1.00]", "no clear change"),
        (125.0, "1.25 [1.25, 1.25]", "slower"),
        (1.0, "0.01 [0.01, 0.01]", "faster"),
    ],
)
def test_a_ratio_comes_from_its_pairs(
    head_us: float, ratio_text: str, meaning: str
) -> None:
    time = build_run("m", "t", Run(True, "", price_of([(100.0, head_us)] * 12))).time
    assert time is not None
    assert (ratio_words(time), tendency(time)) == (ratio_text, meaning)


def test_noise_around_one_is_no_clear_change() -> None:
    pairs = [(100.0, 100.0 + (-1) ** number * number) for number in range(12)]
    price = price_of(pairs)
    assert isinstance(price, Price)
    time = build_run("m", "t", Run(True, "", price)).time
    assert time is not None and time.low < 1 < time.high
    assert tendency(time) == "no clear change"
