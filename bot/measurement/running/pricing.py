"""What the change costs in run time: medians, their ratio, and how sure it is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Annotated

import msgspec

from bot.core.codec.json_text import decoded
from bot.core.folds.fold_values import Price
from bot.core.record import Small
from bot.errors import InputError

FEWEST_PAIRS = 6
"""With fewer, not even the whole range of the ratios holds the median with CONFIDENCE."""
CONFIDENCE = 0.95
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_Time = Annotated[float, msgspec.Meta(gt=0)]


class _Benchmark(Small, frozen=True):
    """One line of Google Benchmark's report, which has more fields than these."""

    cpu_time: _Time
    time_unit: str


class _Report(Small, frozen=True):
    benchmarks: tuple[_Benchmark, ...]


def microseconds(report: bytes) -> float | str:
    """The CPU time of one run, or what is wrong with the report."""
    try:
        benchmarks = decoded(report, _Report, "iree-benchmark-module").benchmarks
    except (InputError, UnicodeDecodeError) as error:
        return str(error)
    if len(benchmarks) != 1 or benchmarks[0].time_unit not in _MICROSECONDS:
        return f"iree-benchmark-module reports {len(benchmarks)} times where one was asked for"
    return benchmarks[0].cpu_time * _MICROSECONDS[benchmarks[0].time_unit]


def price_of(pairs: Sequence[tuple[float, float]]) -> Price:
    """The price of (before, after) times in microseconds; of at least FEWEST_PAIRS pairs, or ValueError."""
    if len(pairs) < FEWEST_PAIRS:
        raise ValueError(f"{len(pairs)} pairs, of at least {FEWEST_PAIRS}")
    ratios = sorted(after / before for before, after in pairs)
    low = _rank(len(ratios))
    return Price(
        before_us=round(statistics.median(before for before, _ in pairs)),
        after_us=round(statistics.median(after for _, after in pairs)),
        pairs=len(pairs),
        ratio=statistics.median(ratios),
        low=ratios[low],
        high=ratios[-1 - low],
    )


def _rank(count: int) -> int:
    """How many of `count` sorted values may be left out at either end of an interval that holds their median.

    Each value is below the true median as often as above it, whatever their distribution: how many are below is
    binomial, and the interval from the value of this rank misses the median where fewer are.
    """
    missed, rank = 0.0, 0
    while True:
        missed += 2 * math.comb(count, rank) / 2**count
        if missed > 1 - CONFIDENCE:
            return max(0, rank - 1)
        rank += 1


def within(price: Price, max_slowdown: float) -> bool | None:
    """Whether the folded artifact is slower by no more than this (0.01 is 1 %); None where the pairs do not say."""
    if price.high <= 1 + max_slowdown:
        return True
    return False if price.low > 1 + max_slowdown else None
