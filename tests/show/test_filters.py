"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.show.filters import (
    amount,
    change,
    grid_percent,
    human,
    percent,
    plural,
    relative,
    sides,
    signed,
    superscript,
)

counts = st.integers(0, 1 << 53)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (83_990, "bytes", "83,990 B"),
        (0, "bytes", "0 B"),
        (36, "count", "36"),
        (1_234, "ms", "1,234 ms"),
        (5, "KiB", "5 KiB"),
        (None, "bytes", "n/a"),
    ],
)
def test_amount(value: int | None, unit: str, text: str) -> None:
    assert amount(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (83_990, "82.0 KiB"),
        (1_023, "1,023 B"),
        (1_024, "1.0 KiB"),
        (1_048_575, "1.0 MiB"),
        (5 << 40, "5.0 TiB"),
        (5 << 50, "5,120.0 TiB"),
        (None, "n/a"),
    ],
)
def test_human(value: int | None, text: str) -> None:
    assert human(value) == text


@pytest.mark.parametrize(("value", "text"), [(33_552, "+33,552 B"), (-1_024, "−1,024 B"), (0, "±0"), (None, "n/a")])
def test_signed(value: int | None, text: str) -> None:
    assert signed(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (33_552 / 50_438, "+66.5 %"),
        (-0.5, "−50.0 %"),
        (0.0004, "+0.04 %"),
        (-0.0004, "−0.04 %"),
        (-3e-9, "−0.0000003 %"),
        (0.0, "0 %"),
        (-1.0, "−100.0 %"),
        (-0.99999, "−99.9 %"),
        (12.3456, "+1,235 %"),
        (9.99, "+999.0 %"),
        (None, "–"),
    ],
)
def test_percent(ratio: float | None, text: str) -> None:
    assert percent(ratio) == text


@given(counts.filter(bool), counts)
def test_a_change_never_reads_as_none(base: int, head: int) -> None:
    text = percent((head - base) / base)
    assert (text == "0 %") == (base == head)
    assert text.lstrip("+−") != "0.0 %"
    assert text.startswith("−") == (head < base)


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [
        (0, 5, "new"),
        (None, 5, "new"),
        (5, None, "–"),
        (0, 0, "–"),
        (None, None, "–"),
        (4, 5, "+25.0 %"),
        (4, 0, "−100.0 %"),
    ],
)
def test_relative(base: int | None, head: int | None, text: str) -> None:
    assert relative(base, head) == text


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [
        (50_438, 83_990, "50,438 → 83,990 B"),
        (7, 7, "7 B"),
        (36, None, "36 B → n/a"),
        (None, 36, "n/a → 36 B"),
        (None, None, "n/a"),
    ],
)
def test_sides(base: int | None, head: int | None, text: str) -> None:
    assert sides(base, head) == text


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [(50_438, 83_990, "+33,552 B (+66.5 %)"), (5, 5, "±0"), (0, 5, "+5 B (new)"), (None, 5, "n/a"), (5, None, "n/a")],
)
def test_change(base: int | None, head: int | None, text: str) -> None:
    assert change(base, head) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.665, "+66"), (0.0994, "+9.9"), (0.0996, "+10"), (-0.031, "−3.1"), (0.0001, "+0.01"), (25.0, "+2,500")],
)
def test_grid_percent(ratio: float, text: str) -> None:
    assert grid_percent(ratio) == text


def test_plural_and_superscript() -> None:
    assert [plural(count, "cell") for count in (0, 1, 1_204)] == ["0 cells", "1 cell", "1,204 cells"]
    assert superscript(120) == "¹²⁰"
