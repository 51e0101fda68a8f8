"""The IR worker's answers: the real one as facts; any other JSON as facts or MalformedBinary, nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from places import FIXTURES

from bot.core.program import Argument, Site
from bot.errors import MalformedBinary
from bot.readers import ir_facts

HERE = FIXTURES / "ir"
ANSWERS = json.loads((HERE / "tiny.answers.json").read_text())
NAMED = json.loads((HERE / "named.answers.json").read_text())

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)


def told(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    """The reader, given the answer as plain values."""
    return lambda answer: read(json.dumps(answer))


program_facts, alloca_bytes = told(ir_facts.program_facts), told(ir_facts.alloca_bytes)
strategies = told(ir_facts.strategies)


def changed(answer: Any, *path: str | int, to: object) -> Any:
    """A copy of the answer with one value changed."""
    result = copy.deepcopy(answer)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return result


def test_the_real_answer_becomes_facts() -> None:
    facts = program_facts(ANSWERS["program"])
    assert (facts.dispatch_regions, facts.linalg_ops, facts.executables) == (5, 13, 4)
    assert (facts.dispatch_sites, facts.memory_bound_sites) == (5, 2)
    first = facts.entry_points[0]
    assert first.executable == "tiny$net_dispatch_0"
    assert first.entry_point == "tiny$net_dispatch_0_matmul_16x48x48_f32"
    assert (first.kind, first.memory_bound, first.sites) == ("matmul", False, 2)


def test_the_real_answer_for_all_phases_becomes_facts() -> None:
    facts = program_facts(NAMED["program"])
    matmul = "net_dispatch_0_matmul_16x48x24_f32"
    assert facts.linalg_ops_before == 6
    assert [*facts.phases] == ["input", "global-optimization"]
    assert [source.executable for source in facts.sources] == [each.executable for each in facts.entry_points]
    assert "linalg.matmul ins(" in facts.sources[1].shown and '"linalg.matmul"(' in facts.sources[1].generic
    assert facts.sites[0] == Site(facts.entry_points[0].entry_point, "net/scale", initializer=True)
    assert facts.sites[1:3] == (Site(matmul, "net/layer.0/dense"), Site(matmul, 'net/layer.1/"dense"'))
    assert facts.arguments == (Argument(matmul, 0, "i32", (0, 3072), 2, 3072, 0),)


def test_what_was_not_at_hand_is_empty() -> None:
    facts = program_facts(ANSWERS["program"])
    assert (facts.linalg_ops_before, facts.phases, facts.sources, facts.sites) == (None, {}, (), ())
    assert (facts.operations, facts.places) == (None, {})


def test_the_real_strategies() -> None:
    found = strategies(NAMED["strategies"])
    assert found["_initializer_0_dispatch_0_elementwise_1152_f32"] == (
        "DoubleTilingExpert | distribution = [1152], vector_common_parallel = [8]"
    )
    assert strategies({"functions": {}}) == {}


def test_the_real_allocas_keep_their_zeros() -> None:
    sizes = alloca_bytes(ANSWERS["allocas"])
    assert sorted(sizes.values()) == [0, 0, 0, 128]
    assert sizes["tiny$net_dispatch_4_conv_7x7x8x3x3_f32"] == 128
    assert alloca_bytes({"functions": {}}) == {}


@pytest.mark.parametrize("read", [program_facts, alloca_bytes, strategies])
def test_the_workers_error_is_passed_on_as_one_line(read: Any) -> None:
    with pytest.raises(MalformedBinary, match="program IR: MLIRError: cannot parse"):
        read({"error": "MLIRError:\ncannot parse"})


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("executables",), 3, "more than 3 executables"),
        (("entry_points", 1, "kind"), "magic", "unknown kind 'magic'"),
    ],
)
def test_a_wrong_value_is_named(path: tuple[str | int, ...], value: object, said: str) -> None:
    with pytest.raises(MalformedBinary, match=said):
        program_facts(changed(ANSWERS["program"], *path, to=value))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("phases",), {"vm": "0" * 64}, "not digests of phases"),
        (("phases", "input"), "0" * 63, "a phase has no digest"),
        (("phases", "input"), "0" * 63 + "G", "a phase has no digest"),
        (("sources", 0, "executable"), "net_dispatch_0", "listed twice"),
        (("places",), {"a\nb": 1}, "not a line of text"),
        (("places",), {"a" * 201: 1}, "not a line of text"),
        (("sites", 0, "entry_point"), "", "not a line of text"),
        (("sites", 0, "component"), "", "not a line of text"),
        (("sites", 0, "component"), "a\nb", "not a line of text"),
        (("sites", 0, "component"), "a" * 201, "not a line of text"),
        (("arguments", 0, "type"), "i32\n", "not a line of text"),
        (("arguments", 0, "values"), [-1, 2], "do not ascend from 0"),
        (("arguments", 0, "values"), [2, 1], "do not ascend"),
        (("arguments", 0, "values"), [1, 1], "do not ascend"),
        (("arguments", 0, "values"), [1, 2, 3], "3 values of 2"),
        (("arguments", 0, "divisor"), None, "a divisor is known exactly"),
        (("arguments", 0, "unknown_sites"), 1, "a divisor is known exactly"),
        (("families",), [{"kind": "offsets", "members": ["nobody"], "varying": ["a"]}], "in none of the program's"),
        (
            ("families",),
            [{"kind": "offsets", "members": ["net_dispatch_0"] * 2, "varying": ["a"]}],
            "in another one too",
        ),
        (("families",), [{"kind": "offsets", "members": [], "varying": ["a\nb"]}], "not a line of text"),
    ],
)
def test_a_wrong_value_of_what_explains_is_named(path: tuple[str | int, ...], value: object, said: str) -> None:
    with pytest.raises(MalformedBinary, match=said):
        program_facts(changed(NAMED["program"], *path, to=value))


def test_an_entry_point_cannot_come_twice() -> None:
    rows = ANSWERS["program"]["entry_points"]
    with pytest.raises(MalformedBinary, match="listed twice"):
        program_facts(changed(ANSWERS["program"], "entry_points", to=[*rows, rows[0]]))


def test_an_allocation_of_unknown_size_is_a_reason_with_the_functions_name() -> None:
    with pytest.raises(MalformedBinary, match="allocations of f have no constant size"):
        alloca_bytes({"functions": {"g": 1, "f": None}})


PLACES: list[tuple[str | int, ...]] = [(key,) for key in NAMED["program"]]
PLACES += [(key, 0) for key, value in NAMED["program"].items() if value and isinstance(value, list)]


@given(
    JSON
    | some.builds(
        lambda path, value: changed(NAMED["program"], *path, to=value),
        some.sampled_from(PLACES),
        JSON,
    )
    | some.builds(lambda value: {"functions": value}, JSON)
)
def test_any_json_gives_facts_or_malformed_binary(answer: Any) -> None:
    for read in (program_facts, alloca_bytes, strategies):
        try:
            read(answer)
        except MalformedBinary as error:
            assert "\n" not in error.line
