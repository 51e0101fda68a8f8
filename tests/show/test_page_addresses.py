"""Addresses on the page: one for each thing, whatever it is called."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.snapshot import CellKey
from bot.show.facts import (
    cause_address,
    cell_address,
    component_address,
    dispatch_address,
    dispatch_addresses,
    segment,
)

KEY = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")
NAMES = st.text(st.characters(exclude_categories=()), max_size=300)


def test_they_are_the_names() -> None:
    assert cell_address(KEY) == "mobilenet_v1_f32_224/llvm-cpu-x86_64"
    assert dispatch_address(KEY, "main_dispatch_9") == f"{cell_address(KEY)}/main_dispatch_9"
    assert component_address(KEY, "encoder.layer.0") == f"{cell_address(KEY)}/component=encoder.layer.0"
    assert cause_address(2) == "cause-2"


@pytest.mark.parametrize(
    ("name", "written"),
    [("a/b", "a%2Fb"), ("a b=c", "a%20b%3Dc"), ("é", "%C3%A9"), ("\ud800", "%ED%A0%80"), ("~", "~"), ("", "")],
)
def test_what_is_no_letter_is_encoded(name: str, written: str) -> None:
    assert segment(name) == written


def test_long_names_keep_their_beginning() -> None:
    one, other = (segment("x" * 4_999 + end) for end in "yz")
    assert one != other and one[:81] == other[:81] == "x" * 80 + "="
    assert len(one) < 100


def test_a_second_entry_point_of_an_executable_has_its_name_behind_it() -> None:
    points = [("exe", "a"), ("other", "a"), ("exe", "b")]
    cell = cell_address(KEY)
    assert list(dispatch_addresses(KEY, points).values()) == [f"{cell}/exe", f"{cell}/other", f"{cell}/exe/b"]


@given(NAMES, NAMES)
def test_two_names_never_have_one_address(one: str, other: str) -> None:
    assert (segment(one) == segment(other)) == (one == other)
    assert re.fullmatch(r"[A-Za-z0-9._~%=-]*", segment(one))
    assert "=" in segment(one) or unquote(segment(one), errors="surrogatepass") == one


@given(NAMES, NAMES, NAMES)
def test_a_component_never_has_the_address_of_a_dispatch_nor_a_cell_that_of_a_section(
    model: str, target: str, name: str
) -> None:
    key = CellKey(model, target)
    assert component_address(key, name) != dispatch_address(key, name)
    assert "/" in cell_address(key) and "/" not in cause_address(1)
