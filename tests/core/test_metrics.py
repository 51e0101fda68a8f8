"""bot.core.metrics: the ids are the contract's, and their names tell their units."""

from __future__ import annotations

from typing import get_args

import pytest

from bot.core.metrics import ARTIFACT_PARTS, METRIC_BY_ID, METRIC_IDS, METRICS, Metric, Unit
from bot.core.rules.policy import any_match
from bot.inputs.config import load_config

CONTRACT = """
    dispatch_sites dispatch_regions executables entry_points linalg_ops memory_bound_sites stack_max_bytes
    stack_alloca_bytes workgroup_memory_max_bytes artifact_bytes executable_bytes vm_bytes rodata_bytes
    unattributed_bytes compile_cpu_ms compile_peak_rss_kib vgprs_max sgprs_max agprs_max vgpr_spills sgpr_spills
    registers_max spill_bytes sass_bytes
"""
LATER = """
    steady_sites initializer_sites submissions awaits fills copies program_memory_bytes transient_memory_bytes
    variable_bytes dynamic_buffers constant_bytes
"""
UNIT_OF_SUFFIX = {"bytes": "bytes", "ms": "ms", "kib": "KiB"}


def test_the_ids_are_those_of_the_contract_each_once() -> None:
    assert sorted(METRIC_IDS) == sorted([*CONTRACT.split(), *LATER.split()])
    assert tuple(metric.id for metric in METRICS) == METRIC_IDS == tuple(METRIC_BY_ID)


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
