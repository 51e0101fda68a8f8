"""The verdict on two artifacts' outputs: equal, not equal or not known, with one line that says why."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

from bot.core.fold import Price
from bot.core.json_text import decoded
from bot.core.record import Small
from bot.errors import InputError
from bot.running.feeding import Draw, Output

_ALLOWED = {"f64": 1e-4, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}
"""The largest difference that another order of the same operations may make, as a part of the largest magnitude of an
output. An `f64` may have been computed in `f32`. Elements that are not here have to be the same to the bit."""


NOTHING = "nothing to compare"
"""What the note begins with where outputs are equal, and would be so whatever was computed."""


class Equality(NamedTuple):
    """What `FoldCell` has in its fields of these names."""

    equal: bool | None
    equal_note: str


def judged(outputs: Sequence[Output], elements: Sequence[str], inputs: str, calls: int = 1) -> Equality:
    """The verdict.

    Args:
        elements: of the outputs, in order (`f32`).
        inputs: what they were computed from, as in `on 3 random inputs`.
        calls: how many calls gave them; each as many.
    """
    for number, (output, element) in enumerate(zip(outputs, elements, strict=True)):
        for draw in output.draws:
            if why := _unequal(draw, element):
                call, of_call = divmod(number, len(outputs) // calls)
                name = f"output {of_call} of the second call" if call else f"output {of_call}"
                return Equality(False, f"{name} {why}, {inputs}")
    mute = [_mute(output) for output in outputs]
    if all(mute):
        said = mute[0] if mute else "the program has no output"
        return Equality(None, f"{NOTHING}: {said}, {inputs}")
    untold = sum(map(bool, mute))
    beside = f"; {untold} of {len(mute)} outputs proved nothing: {next(filter(None, mute))}" if untold else ""
    runs = list(zip(*(output.draws for output in outputs), strict=True))
    barren = sum(not any(draw.finite for draw in run) for run in runs)
    beside += f"; {barren} of {len(runs)} inputs proved nothing: no value is finite" if barren else ""
    return Equality(True, f"{_agreement(outputs, elements)} {inputs}{beside}")


def _mute(output: Output) -> str:
    if not any(draw.finite for draw in output.draws):
        return "no value is finite" if any(draw.values for draw in output.draws) else "there are no values"
    if output.constant:
        return "all values are one constant"
    return "it is the same whatever the input" if output.still else ""


def _unequal(draw: Draw, element: str) -> str:
    if draw.before_bytes != draw.after_bytes:
        return f"has {draw.after_bytes:,} bytes instead of {draw.before_bytes:,}"
    allowed = _ALLOWED.get(element)
    if not draw.different or (allowed is not None and draw.relative is not None and draw.relative <= allowed):
        return ""
    differs = f"differs in {draw.different:,} of {draw.values:,} values"
    if allowed is None:
        return differs
    if draw.relative is None:
        return f"{differs}, and not by a finite part of its largest magnitude"
    return f"{differs}, by up to {draw.relative:.2g} of its largest magnitude where {allowed:g} is allowed"


def _agreement(outputs: Sequence[Output], elements: Sequence[str]) -> str:
    differing = [
        (draw.relative or 0.0, _ALLOWED.get(element, 0.0))
        for output, element in zip(outputs, elements, strict=True)
        for draw in output.draws
        if draw.different
    ]
    if not differing:
        return "bit-equal"
    most, allowed = max(differing)
    return f"largest difference {most:.2g} of the largest magnitude where {allowed:g} is allowed,"


# What the change costs in run time: medians, their ratio, and how sure it is.


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
