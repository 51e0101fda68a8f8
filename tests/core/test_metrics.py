"""bot.core.metrics: what names and labels tell, and what code is called where it is text."""

from __future__ import annotations

from typing import get_args

import pytest

from bot.config.configuration import load_config
from bot.core.metrics import ARTIFACT_PARTS, METRIC_BY_ID, METRIC_IDS, METRICS, Metric, Unit, code_words, metric_words
from bot.core.policy import any_match

UNIT_OF_SUFFIX = {"bytes": "bytes", "ms": "ms", "kib": "KiB"}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_the_name_tells_the_unit(metric: Metric) -> None:
    assert metric.unit == UNIT_OF_SUFFIX.get(metric.id.rpartition("_")[2], "count")
    assert metric.unit in get_args(Unit)


def test_labels_tell_metrics_apart_and_texts_are_for_one_line() -> None:
    assert len({metric.label for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert metric.label and metric.about and "\n" not in metric.label + metric.about


def test_each_is_judged_by_the_default_rule_that_it_names() -> None:
    rules = load_config(models=False).thresholds
    for metric in METRICS:
        found = next(rule for rule in rules if any_match(rule.metrics, metric.id) and rule.targets == ("*",))
        assert found.name == metric.rule, metric.id


def test_only_time_and_memory_of_the_compile_may_differ_between_runs() -> None:
    assert {metric.id for metric in METRICS if not metric.exact} == {"compile_cpu_ms", "compile_peak_rss_kib"}


def test_the_parts_of_an_artifact_are_metrics_and_exclude_the_whole() -> None:
    assert set(ARTIFACT_PARTS) <= set(METRIC_IDS) - {"artifact_bytes"}
    assert len(set(ARTIFACT_PARTS)) == 4


def test_text_is_called_text() -> None:
    size = METRIC_BY_ID["executable_bytes"]
    assert [metric_words(size, one) for one in ("cuda", "metal-spirv", "rocm", "")] == [
        *("PTX text", "shader source"),
        *("device code", "device code"),
    ]
    assert metric_words(METRIC_BY_ID["sass_bytes"], "cuda") == "SASS"
    assert (code_words("code", "cuda"), code_words("code", "llvm-cpu")) == ("PTX text", "code")
