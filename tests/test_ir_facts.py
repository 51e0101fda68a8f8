"""The IR worker's answers: the real one as facts; any other JSON as facts or MalformedBinary, nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import MalformedBinary
from bot.measure.ir_facts import alloca_bytes, program_facts

ANSWERS = json.loads((Path(__file__).parent / "fixtures" / "ir" / "tiny.answers.json").read_text())

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


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


def test_the_real_allocas_keep_their_zeros() -> None:
    sizes = alloca_bytes(ANSWERS["allocas"])
    assert sorted(sizes.values()) == [0, 0, 0, 128]
    assert sizes["tiny$net_dispatch_4_conv_7x7x8x3x3_f32"] == 128
    assert alloca_bytes({"functions": {}}) == {}


@pytest.mark.parametrize("read", [program_facts, alloca_bytes])
def test_the_workers_error_is_passed_on_as_one_line(read: Any) -> None:
    with pytest.raises(MalformedBinary, match="program IR: MLIRError: cannot parse"):
        read({"error": "MLIRError:\ncannot parse"})


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("linalg_ops",), None, "linalg_ops is no count: None"),
        (("linalg_ops",), -1, "linalg_ops is no count: -1"),
        (("executables",), True, "executables is no count: True"),
        (("executables",), 3, "more than 3 executables"),
        (("dispatch_regions",), 5.0, "dispatch_regions is no count"),
        (("entry_points",), {}, "no list of entry points"),
        (("entry_points", 1), "main", "no object"),
        (("entry_points", 1, "kind"), "magic", "unknown kind 'magic'"),
        (("entry_points", 1, "kind"), ["conv"], "unknown kind"),
        (("entry_points", 1, "memory_bound"), 1, "unknown kind"),
        (("entry_points", 1, "sites"), "2", "sites is no count"),
        (("entry_points", 1, "executable"), "", "no name"),
        (("entry_points", 1, "entry_point"), 7, "no name"),
    ],
)
def test_a_wrong_value_is_named(path: tuple[str | int, ...], value: object, said: str) -> None:
    with pytest.raises(MalformedBinary, match=said):
        program_facts(changed(ANSWERS["program"], *path, to=value))


def test_an_entry_point_cannot_come_twice() -> None:
    rows = ANSWERS["program"]["entry_points"]
    with pytest.raises(MalformedBinary, match="listed twice"):
        program_facts(changed(ANSWERS["program"], "entry_points", to=[*rows, rows[0]]))


def test_an_allocation_of_unknown_size_is_a_reason_with_the_functions_name() -> None:
    with pytest.raises(MalformedBinary, match="allocations of f have no constant size"):
        alloca_bytes({"functions": {"g": 1, "f": None}})


@pytest.mark.parametrize("functions", [None, [], {"f": "64"}, {"f": -64}, {"": 64}, {"f": False}])
def test_wrong_allocas_are_refused(functions: object) -> None:
    with pytest.raises(MalformedBinary):
        alloca_bytes({"functions": functions})


@given(JSON | st.builds(lambda value: changed(ANSWERS["program"], "entry_points", 0, to=value), JSON))
def test_any_json_gives_facts_or_malformed_binary(answer: Any) -> None:
    for read in (program_facts, alloca_bytes):
        try:
            read(answer)
        except MalformedBinary as error:
            assert "\n" not in error.line
