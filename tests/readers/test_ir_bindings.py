"""What a program binds, taken apart: an offset is not an assumption, and neither is anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.readers.ir_worker.ir_stream import parts_of

HEAD = '"func.func"() <{sym_name = "@"}> ({\n^bb0(%arg0: !stream.binding, %arg1: !stream.binding, %arg2: i32):'
TAIL = '  "func.return"() : () -> ()\n}) : () -> ()'
TYPE = ": (!stream.binding, index) -> tensor<4xf32>"


def function(*lines: str) -> str:
    return "\n".join((HEAD, *(f"  {line}" for line in lines), TAIL))


def constant(name: str, value: int) -> str:
    return f'{name} = "arith.constant"() <{{value = {value} : index}}> : () -> index'


def subspan(name: str, offset: str, binding: int = 0) -> str:
    return f'{name} = "stream.binding.subspan"(%arg{binding}, {offset}) {TYPE}'


def assumed(*values: str) -> str:
    listed = ", ".join(f"#util.int.assumption<{value}>" for value in values)
    return f'%a = "util.assume.int"(%i) <{{assumptions = [[{listed}]]}}> : (index) -> index'


CAST = '%i = "arith.index_castui"(%arg2) : (i32) -> index'


def which(left: str, right: str) -> tuple[str, ...]:
    """The parts that differ."""
    parts = zip(("offsets", "assumptions", "rest"), parts_of(left), parts_of(right), strict=True)
    return tuple(name for name, one, other in parts if one != other)


def test_a_constant_offset_is_an_offset() -> None:
    base = function(constant("%0", 0), subspan("%1", "%0"), subspan("%2", "%0", 1))
    head = function(constant("%0", 0), constant("%1", 64), subspan("%2", "%1"), subspan("%3", "%0", 1))
    assert which(base, head) == ("offsets",)


def test_the_order_of_constants_is_nothing() -> None:
    base = function(constant("%0", 0), constant("%1", 64), subspan("%2", "%0"), subspan("%3", "%1", 1))
    head = function(constant("%0", 64), constant("%1", 0), subspan("%2", "%1"), subspan("%3", "%0", 1))
    assert which(base, head) == ()


def test_a_constant_that_is_used_otherwise_is_no_offset() -> None:
    def used(value: int) -> str:
        return function(constant("%0", value), constant("%1", 0), subspan("%2", "%1"), '"x.use"(%0) : (index) -> ()')

    assert which(used(0), used(64)) == ("rest",)


def test_known_offsets_of_several_sites_are_offsets() -> None:
    def at(*values: str) -> str:
        return function(CAST, assumed(*values), subspan("%1", "%a"))

    base = at("umin = 0, umax = 0", "umin = 64, umax = 64, udiv = 64")
    assert which(base, at("umin = 0, umax = 0", "umin = 128, umax = 128, udiv = 128")) == ("offsets",)
    assert which(base, at("umin = 0, umax = 0")) == ("offsets", "assumptions")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("umin = 64, umax = 4096", "umin = 64, umax = 4096, udiv = 64"),
        ("umin = 64, umax = 4096, udiv = 64", "umin = 128, umax = 4096, udiv = 64"),
    ],
)
def test_what_is_known_of_an_offset_is_an_assumption(before: str, after: str) -> None:
    base, head = (function(CAST, assumed(said), subspan("%1", "%a")) for said in (before, after))
    assert which(base, head) == ("assumptions",)


def test_a_divisor_that_is_told_for_a_known_offset_is_an_assumption_too() -> None:
    base, head = (
        function(CAST, assumed(said), subspan("%1", "%a"))
        for said in ("umin = 64, umax = 64", "umin = 64, umax = 64, udiv = 64")
    )
    assert "assumptions" in which(base, head)


def test_an_assumption_more_is_an_assumption() -> None:
    """What a newer release adds to the size of a dynamic dimension."""
    base = function(CAST, subspan("%1", "%i"), '"x.use"(%i, %1) : (index, tensor<4xf32>) -> ()')
    head = function(CAST, assumed("udiv = 16"), subspan("%1", "%a"), '"x.use"(%a, %1) : (index, tensor<4xf32>) -> ()')
    assert which(base, head) == ("assumptions",)


def test_a_value_that_is_used_otherwise_too_is_no_offset() -> None:
    def at(value: str) -> str:
        return function(CAST, assumed(value), subspan("%1", "%a"), '"x.use"(%a) : (index) -> ()')

    assert which(at("umin = 0, umax = 0"), at("umin = 64, umax = 64, udiv = 64")) == ("assumptions",)


def test_several_values_of_one_assumption() -> None:
    def at(offset: int, size: int) -> str:
        lists = ", ".join(f"[#util.int.assumption<umin = {v}, umax = {v}, udiv = {v}>]" for v in (offset, size))
        assume = f'%a:2 = "util.assume.int"(%i, %i) <{{assumptions = [{lists}]}}> : (index, index) -> (index, index)'
        return function(CAST, assume, subspan("%1", "%a#0"), '"x.use"(%a#1) : (index) -> ()')

    assert which(at(64, 8), at(128, 8)) == ("offsets",)
    assert which(at(64, 8), at(64, 16)) == ("assumptions",)


def test_names_of_values_are_nothing() -> None:
    base = function(constant("%0", 0), subspan("%1", "%0"), '"x.use"(%1) : (tensor<4xf32>) -> ()')
    assert which(base, base.replace("%1", "%c7").replace("%0", "%zero")) == ()


@given(st.text(alphabet='%a0:#=<>()[]{}", \numinxstreabdgpcol."_', max_size=200))
def test_any_text_has_parts(text: str) -> None:
    assert len(parts_of(text)) == len(parts_of(function(text))) == 3
