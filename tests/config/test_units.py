"""bot.config.units: amounts and percentages, exactly or not at all."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config.units import parse_amount, parse_ratio, parse_share
from bot.core.metrics import Unit
from bot.core.rules import Amount, Dimension, Ratio


@pytest.mark.parametrize(
    ("written", "value", "dimension"),
    [
        ("4KiB", 4096, "bytes"),
        ("1.5 KiB", 1536, "bytes"),
        ("1GiB", 1 << 30, "bytes"),
        ("500ms", 500, "ms"),
        ("0.25s", 250, "ms"),
        ("120", 120, "own"),
        (120, 120, "own"),
        (0, 0, "own"),
    ],
)
def test_amounts(written: str | int, value: int, dimension: Dimension) -> None:
    assert parse_amount(written) == Amount(value, dimension, str(written))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        *(
            (text, "has an unknown unit; known units: B, KiB, MiB, GiB, ms, s")
            for text in ("4kB", "4%")
        ),
        ("0.1KiB", "is not a whole number of bytes"),
        ("0.0001s", "is not a whole number of milliseconds"),
        ("1.5", "is not a whole number"),
        *(
            (text, "is not a number with a unit, such as 4KiB, 120, 500ms or 1.5%")
            for text in (
                "-4KiB",
                -4,
                "KiB",
                "",
                "1e9",
                "٤KiB",
                "0x10",
                "1_000",
                "0100",
                "00.5 KiB",
                "9" * 60,
            )
        ),
    ],
)
def test_no_amounts(written: str | int, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_amount(written)
    assert str(caught.value) == f"{str(written)[:40]!r} {message}"


def test_percentages() -> None:
    assert parse_ratio("1.5%") == Ratio(Fraction(15, 1000), "1.5%")
    assert parse_ratio("0.1 %").value == Fraction(1, 1000), (
        "exact, which 0.1 as a float is not"
    )
    for wrong in ("1.5", "1.5KiB", "-1%", "%", "010%"):
        with pytest.raises(ValueError):
            parse_ratio(wrong)


def test_amounts_in_the_unit_of_a_metric() -> None:
    fitting: list[tuple[str, Unit, int]] = [
        ("4KiB", "bytes", 4096),
        ("4KiB", "KiB", 4),
        ("2s", "ms", 2000),
    ]
    for amount, unit, steps in (*fitting, ("7", "count", 7), ("7", "KiB", 7)):
        assert parse_amount(amount).steps(unit) == steps
    for amount, unit, expected in (
        ("4KiB", "count", "count"),
        ("4KiB", "ms", "number of ms"),
    ):
        with pytest.raises(ValueError, match=f"^'{amount}' is not a {expected}$"):
            parse_amount(amount).steps(unit)
    for amount, unit, expected in (
        ("4ms", "bytes", "number of bytes"),
        ("100B", "KiB", "whole number of KiB"),
    ):
        with pytest.raises(ValueError, match=f"^'{amount}' is not a {expected}$"):
            parse_amount(amount).steps(unit)


@given(st.integers(0, 10**9))
def test_decimals_are_exact(quarters: int) -> None:
    written = f"{quarters // 4}.{quarters % 4 * 25:02d}KiB"
    assert parse_amount(written).value == quarters * 256


def test_a_share_is_written_as_a_percentage() -> None:
    assert [parse_share(text) for text in ("1%", "0%", "1.5 %", "150%")] == [
        0.01,
        0.0,
        0.015,
        1.5,
    ]
    for wrong in ("0.01", "2", "1ms"):
        with pytest.raises(
            ValueError, match=f"^'{wrong}' is not a percentage, such as 1.5%$"
        ):
            parse_share(wrong)
