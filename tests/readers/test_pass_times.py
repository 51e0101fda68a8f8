"""The compiler's report of the times of its passes, as releases print it."""

from __future__ import annotations

import pytest

from bot.readers.pass_times import pass_times_us

REPORT = """\
model.mlir:1:1: warning: something
===-------------------------------------------------------------------------===
                         ... Execution time report ...
===-------------------------------------------------------------------------===
  Total Execution Time: 0.4035 seconds

  ----Wall Time----  ----Name----
    0.4607 (114.2%)  'hal.executable' Pipeline
    0.4035 (100.0%)  root
    0.2316 ( 57.4%)  Pipeline Collection : ['hal.executable']
    0.1752 ( 43.4%)  mlir::iree_compiler::detail::OpPipelineAdaptorPass
    0.0215 (  5.3%)  CanonicalizerPass
    0.1328 ( 32.9%)  SerializeTargetExecutablesPass
    0.0000 (  0.0%)    (A) CallGraph
    0.0015 (  0.4%)  Rest
    0.4035 (100.0%)  Total
"""
THREADED = """\
                         ... Execution time report ...
  ----User Time----  ----Wall Time----  ----Name----
    2.2296 (129.4%)    1.1000 (139.6%)  CSEPass
    1.7230 (100.0%)    1.5971 (100.0%)  root
"""


def test_passes_have_their_wall_times_the_longest_first_and_pipelines_have_none() -> (
    None
):
    assert list(pass_times_us(REPORT).items()) == [
        ("SerializeTargetExecutablesPass", 132_800),
        ("CanonicalizerPass", 21_500),
    ]


def test_with_threads_the_wall_time_is_read_and_not_that_of_all_threads() -> None:
    assert pass_times_us(THREADED) == {"CSEPass": 1_100_000}


@pytest.mark.parametrize(
    "text",
    ["", "error: no\n", "Execution time report", REPORT.replace("Wall Time", "Time")],
)
def test_without_a_report_there_are_no_times(text: str) -> None:
    assert pass_times_us(text) == {}


@pytest.mark.parametrize("length", range(0, len(REPORT), 7))
def test_of_a_torn_report_nothing_is_read_that_is_not_there(length: int) -> None:
    whole = pass_times_us(REPORT)
    assert pass_times_us(REPORT[:length]).items() <= whole.items()
