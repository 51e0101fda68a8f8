"""What `report` says of causes: which knob names a root cause, and what of a change is names alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matched_cells
import pytest
from matched_cells import Row
from replacing import replace
from report_factory import snapshot, with_metrics
from series import write
from trace_factory import trace

from bot.cli.main import main
from bot.core.snapshot import Cell, CellKey

Report = Callable[[Cell, Cell], tuple[dict[str, Any], str]]


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report and the comment of a cell whose artifacts are these entry points' code and nothing else."""
    monkeypatch.chdir(tmp_path)

    def run(base: Cell, head: Cell) -> tuple[dict[str, Any], str]:
        for name, version, side in (("base", "3.12.0", base), ("head", "3.13.0", head)):

            def edit(_key: CellKey, cell: Cell, changed_cell: Cell = side) -> Cell:
                size = sum(row.code_bytes or 0 for row in changed_cell.dispatches)
                zeros = dict.fromkeys(
                    ("vm_bytes", "rodata_bytes", "unattributed_bytes"), 0
                )
                cell = with_metrics(
                    cell, artifact_bytes=size, executable_bytes=size, **zeros
                )
                parts = {"executables/text": size}
                shared = {
                    "program": changed_cell.program,
                    "traces": changed_cell.traces,
                }
                return replace(
                    cell, dispatches=changed_cell.dispatches, parts=parts, **shared
                )

            write(
                tmp_path / f"{name}.json",
                snapshot(version, edit, ("m",), {"llvm-cpu-x86_64": "llvm-cpu"}),
            )
        assert main(
            [
                "report",
                "--base",
                "base.json",
                "--head",
                "head.json",
                "--config",
                "default",
            ]
        ) in (0, 1)
        return (
            json.loads((tmp_path / "out/report.json").read_text()),
            (tmp_path / "out/comment.md").read_text(),
        )

    return run


OLD = "Tiling | distribution = [64, 64], unroll = [1, 4]"
OTHER = "Distribute | distribution = [32, 64], unroll = [8, 4]"
UNROLLED = OLD.replace("[1, 4]", "[8, 4]")


def test_another_pipeline_names_a_root_cause_before_knobs_that_moved_more_bytes(
    report: Report,
) -> None:
    base = matched_cells.made(
        *(Row(name, code=name, code_bytes=1_000, strategy=OLD) for name in "pqr")
    )
    rows = (("p", 2_000, OTHER), ("q", 1_900, OTHER), ("r", 6_000, UNROLLED))
    head = matched_cells.made(
        *(
            Row(name, code=name.upper(), code_bytes=size, strategy=strategy)
            for name, size, strategy in rows
        )
    )
    json_report, comment = report(base, head)
    roots = [
        (root["what"], root["dispatches"], root["bytes"]["net"])
        for root in json_report["root_causes"]
    ]
    assert roots == [
        ("unroll 1 → 8", 1, 5_000),
        ("pipeline Tiling → Distribute, with distribution, unroll", 2, 1_900),
    ]
    assert "**Pipeline Tiling → Distribute**, with `distribution`, `unroll`" in comment


def test_code_that_is_longer_for_its_names_alone_is_no_change_of_code(
    report: Report,
) -> None:
    """Of `main_dispatch_8_…` and 9, now 10 and 11, one is as it was, and one is launched once more."""
    base = matched_cells.made(Row("p", code="c"), Row("q", code="d"), first=8)
    twice = Row("q", code="d", code_bytes=103, places=("encoder.0", "encoder.1"))
    head = matched_cells.made(Row("p", code="c", code_bytes=102), twice, first=10)
    json_report, comment = report(base, head)
    (cell,) = json_report["cells"]
    assert cell["waterfall"] == {"container": 5}
    assert [(part["what"], part["change_bytes"]) for part in cell["parts"]] == [
        ("names of kernels in their code", 5)
    ]
    assert [(row["name"].split("_")[2], row["note"]) for row in cell["dispatches"]] == [
        ("11", "1 → 2 dispatch sites")
    ]
    assert (
        "**Causes** (the first 1 of 2, 100 % of the total change)\n\n"
        "1. **Names of kernels in their code** · +5 B (100 %) · `m` on `x86_64`\n"
        in comment
    )


def test_a_pass_that_leaves_only_what_differed_before_has_words_too(
    report: Report,
) -> None:
    sides = {}
    for name, size in (("a", 1_000), ("b", 6_000)):
        cell = matched_cells.made(Row("p", code=name, code_bytes=size, strategy=OLD))
        whole = trace(
            ("tile", {"scf.for": 100}),
            ("lower", {"scf.for": 100, name: 5}),
            ("clean", {name: 5}),
        )
        sides[name] = replace(cell, traces={cell.dispatches[0].name: whole})
    json_report, comment = report(sides["a"], sides["b"])
    assert [root["what"] for root in json_report["root_causes"]] == [
        "clean: operations of other types"
    ]
    assert (
        "the same configuration, different code: clean: operations of other types\n"
        in comment
    )


def test_a_dispatch_is_reported_with_its_pass_and_with_what_shows_it(
    report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    base = matched_cells.made(
        *(Row(name, code=name, code_bytes=1_000, strategy=OLD) for name in "pq")
    )
    head = matched_cells.made(
        *(
            Row(name, code=name.upper(), code_bytes=size, strategy=OLD)
            for name, size in (("p", 6_000), ("q", 2_000))
        )
    )
    grown = {
        "vector.extract": 90,
        **{f"vector.x{index}": 9 - index for index in range(9)},
    }
    largest = base.dispatches[0].name
    json_report, comment = report(
        replace(
            base,
            traces={
                largest: trace(
                    ("tile", {"scf.for": 4}), ("lower", {"vector.extract": 10})
                )
            },
        ),
        replace(
            head, traces={largest: trace(("tile", {"scf.for": 4}), ("lower", grown))}
        ),
    )
    difference = "lower: vector.extract +80, vector.x0 +9, vector.x1 +8 and 7 more"
    notes = [
        line.partition(": ")[2]
        for line in comment.splitlines()
        if line.startswith("- `main_dispatch_")
    ]
    assert notes == [
        f"the same configuration, different code: {difference}",
        "the same configuration, different code",
    ]
    assert [root["what"] for root in json_report["root_causes"]] == [
        "lower: 80 vector.extract more",
        "other code; not traced",
    ]
    (cell,) = json_report["cells"]
    assert [row.get("pass") for row in cell["dispatches"]] == ["lower", None]
    assert difference in Path("out/report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert (
        main(
            [
                "explain",
                "out/report.json",
                "--model",
                "m",
                "--target",
                "x86_64",
                "--dispatch",
                largest,
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    begin = lines.index("After lower the sides differ most in")
    operations = [
        line.split()
        for line in lines[begin + 1 :]
        if "vector." in line and "+" in line and len(line.split()) == 2
    ]
    assert operations == [
        ["vector.extract", "+80"],
        *([f"vector.x{index}", f"+{9 - index}"] for index in range(7)),
    ]
    assert lines[-1].startswith(
        f"code-size-bot trace --model m --target llvm-cpu-x86_64 --dispatch {largest}"
        " --base "
    )
