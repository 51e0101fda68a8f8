"""An experiment between two jobs: what is read is what was measured."""

from __future__ import annotations

from pathlib import Path

import lab_factory as make
import pytest
from msgspec.structs import replace

from bot.core.lab import Lab, lab_lines
from bot.core.times import CompileTimes
from bot.github.measured import Measured, read_measured, write_measured
from bot.github.measured_lab import handed_lab, lab_of
from bot.show.report_files import write_snapshot


def with_times(lab: Lab) -> Lab:
    """Return the experiment with times of each build, which are in no order of names."""
    times = {
        (variant, cell.key): CompileTimes({"stream": 5, "hal": 3}, {"z": 2, "a": 1}, "")
        for variant, cell in lab.cells
    }
    return replace(lab, times=times)


@pytest.mark.parametrize(
    "lab", [with_times(make.timed()), make.many()], ids=["timed", "many"]
)
def test_a_result_is_the_same_behind_the_files(lab: Lab, tmp_path: Path) -> None:
    ours = [replace(variant, snapshot=None) for variant in lab.study.variants]
    experiment = replace(lab.experiment, variants=tuple(ours))
    lab = replace(lab, experiment=experiment)
    handed = handed_lab(lab)
    write_measured(tmp_path, Measured(lab=handed))
    for name, variant in zip(handed.names, lab.study.variants, strict=True):
        assert variant.snapshot is not None
        write_snapshot(tmp_path / f"{name}.json", variant.snapshot)
    read = read_measured(tmp_path)
    assert read.measured.lab == handed
    again = lab_of(handed, read.sides, experiment)
    assert b"".join(lab_lines(again)) == b"".join(lab_lines(lab))
