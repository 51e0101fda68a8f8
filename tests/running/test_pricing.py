"""bot.running.runner: medians of pairs, and what can be said of them."""

from __future__ import annotations

import math
import random

import pytest

from bot.core.fold import Price
from bot.running.runner import FEWEST_PAIRS, microseconds, price_of, within


def covered(count: int, low: int) -> float:
    """How often the interval from the value of this rank to its mirror holds the median: by adding up all the cases."""
    return math.fsum(math.comb(count, below) / 2.0**count for below in range(low + 1, count - low))


@pytest.mark.parametrize("count", range(FEWEST_PAIRS, 60))
def test_the_interval_is_the_narrowest_that_holds_the_median_in_19_of_20(count: int) -> None:
    ratios = [1 + number / 100 for number in range(count)]
    price = price_of([(1000.0, 1000 * ratio) for ratio in random.Random(count).sample(ratios, count)])
    low, high = ratios.index(price.low), ratios.index(price.high)
    assert low + high == count - 1
    assert covered(count, low) >= 0.95 > covered(count, low + 1)


def test_published_ranks() -> None:
    """Of 20 the 6th and the 15th: the example of every table of the sign test."""
    price = price_of([(1.0, float(number)) for number in range(1, 21)])
    assert (price.low, price.ratio, price.high) == (6.0, 10.5, 15.0)


def test_fewer_pairs_than_say_anything_are_refused() -> None:
    assert covered(5, 0) < 0.95 <= covered(6, 0)
    with pytest.raises(ValueError, match="5 pairs, of at least 6"):
        price_of([(1.0, 1.0)] * 5)


def test_an_outlier_moves_nothing() -> None:
    steady = [(100.0, 102.0)] * 19
    assert price_of([*steady, (100.0, 9000.0)]) == price_of([*steady, (100.0, 102.0)])


def test_what_slows_both_of_a_pair_is_no_price() -> None:
    price = price_of([(100.0 * load, 110.0 * load) for load in (1, 2, 3, 5, 8, 13)])
    assert price.ratio == price.low == price.high == pytest.approx(1.1)
    assert (price.before_us, price.after_us, price.pairs) == (400, 440, 6)


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [(0.9, 0.95, True), (0.99, 1.01, True), (0.99, 1.02, None), (1.005, 1.3, None), (1.02, 1.3, False)],
)
def test_whether_it_is_worth_it(low: float, high: float, answer: bool | None) -> None:
    assert within(Price(1, 1, 6, 1.0, low, high), 0.01) is answer


@pytest.mark.parametrize(("unit", "time"), [("ns", 0.002), ("us", 2), ("ms", 2000), ("s", 2000000)])
def test_times_have_units(unit: str, time: float) -> None:
    text = f'{{"context": {{}}, "benchmarks": [{{"name": "x", "cpu_time": 2.0e0, "time_unit": "{unit}"}}]}}'
    assert microseconds(text.encode()) == pytest.approx(time)


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff", b'{"benchmarks": [{"cpu_time": 1, "time_unit": "fortnights"}]}'])
def test_a_report_that_cannot_be_read_is_a_reason(text: bytes) -> None:
    said = microseconds(text)
    assert isinstance(said, str) and said
