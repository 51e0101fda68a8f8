"""bot.running.runner: verdicts, prices, and how a run that gives nothing is told."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bot.core.runs import Price
from bot.running.feeding import Feed, compare, fill
from bot.running.runner import (
    FEWEST_PAIRS,
    Equality,
    Runtime,
    Stopped,
    judged,
    microseconds,
    price_of,
    started,
    within,
)
from bot.system.cancel import Cancel

NAN = float("nan")
INF = float("inf")
KINDS = {
    "f32": np.float32,
    "f16": np.float16,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "": np.uint8,
}

ALLOWED = "of the largest magnitude ("
ONE_OF_TWO = "differs in 1 of 2 values"
NO_PART = f"{ONE_OF_TWO}, and the difference is not finite"


def verdict(
    home: Path, element: str, *draws: tuple[Sequence[float], Sequence[float]]
) -> Equality:
    """Of one output on some inputs."""
    paths = []
    for number, pair in enumerate(draws):
        paths.append([str(home / f"{number}{side}") for side in ("before", "after")])
        for path, values in zip(paths[-1], pair, strict=True):
            np.array(values, KINDS[element]).tofile(path)
    compared = compare([{"element": element, "draws": paths}], home, Cancel())
    assert not isinstance(compared, str), compared
    return judged(compared, [element], "on these")


ONE = (1, 2)
OTHER = (1, 3)
BY_HALF = f"{ONE_OF_TWO}, by up to 0.005 of its largest magnitude (0.0001 is allowed)"
LARGEST = f"largest difference {{}} {ALLOWED}{{}} is allowed),"


@pytest.mark.parametrize(
    ("element", "before", "after", "equal", "note"),
    [
        ("i32", ONE, ONE, True, "bit-equal"),
        ("f32", ONE, ONE, True, "bit-equal"),
        ("f32", (1, 2, NAN, INF), (1, 2, NAN, INF), True, "bit-equal"),
        ("", ONE, ONE, True, "bit-equal"),
        ("f32", (1, -8), (1.0004, -8), True, LARGEST.format("5e-05", "0.0001")),
        ("f16", (1, 8), (1.0625, 8), True, LARGEST.format("0.0078", "0.01")),
        ("f32", (0.0, 8), (-0.0, 8), True, LARGEST.format("0", "0.0001")),
        ("f64", (0, 8), (8e-300, 8), True, LARGEST.format("1e-300", "0.0001")),
        ("i32", ONE, OTHER, False, ONE_OF_TWO),
        ("i8", ONE, (2, 3), False, "differs in 2 of 2 values"),
        ("f32", ONE, (1, 2.01), False, BY_HALF),
        ("f32", (1, NAN), ONE, False, NO_PART),
        ("f32", ONE, (1, INF), False, NO_PART),
        ("f32", (INF, 2), (-INF, 2), False, NO_PART),
        ("f32", (0, 0), (0, 1), False, NO_PART),
        ("f64", (1e308, 1), (-1e308, 1), False, NO_PART),
        ("f32", ONE, (1,), False, "has 4 bytes instead of 8"),
        ("", ONE, OTHER, False, ONE_OF_TWO),
        ("f32", (NAN, INF), (NAN, INF), None, "no value is finite"),
        ("f32", (7, 7), (7, 7), None, "all values are the same"),
        ("f32", (7, NAN), (7, NAN), None, "all values are the same"),
        ("i32", (), (), None, "there are no values"),
        ("i8", (-128, -128), (-128, -128), None, "all values are the same"),
    ],
)
def test_the_verdict_on_one_output(
    tmp_path: Path,
    element: str,
    before: Sequence[float],
    after: Sequence[float],
    equal: bool | None,
    note: str,
) -> None:
    notes = {
        True: f"{note} on these",
        False: f"output 0 {note}, on these",
        None: f"nothing to compare: {note}, on these",
    }
    assert verdict(tmp_path, element, (before, after)) == (equal, notes[equal])


def test_several_inputs_and_outputs(tmp_path: Path) -> None:
    assert verdict(tmp_path, "f32", ((7,), (7,)), ((8,), (8,))) == (
        True,
        "bit-equal on these",
    ), "no constant"
    assert verdict(tmp_path, "i8", ((7, 1), (7, 1)), ((8, 1), (8, 2))).equal is False
    for name, values in {"dead": (3, 3), "alive": (3, 4)}.items():
        np.array(values, np.int8).tofile(tmp_path / name)
    outputs = [
        {"element": "i8", "draws": [[str(tmp_path / name)] * 2]}
        for name in ("dead", "alive")
    ]
    compared = compare(outputs, tmp_path, Cancel())
    assert not isinstance(compared, str)
    note = "bit-equal on these; 1 of 2 outputs prove nothing: all values are the same"
    assert judged(compared, ["i8", "i8"], "on these") == (True, note)
    assert judged([], [], "on these") == (
        None,
        "nothing to compare: the program has no output, on these",
    )


def test_brain_floats_are_read_as_such(tmp_path: Path) -> None:
    def written(name: str, values: Sequence[float]) -> str:
        (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).tofile(
            tmp_path / name
        )
        return str(tmp_path / name)

    draws = [[written("before", (1, 2)), written("after", (1.0078125, 2))]]
    compared = compare([{"element": "bf16", "draws": draws}], tmp_path, Cancel())
    assert not isinstance(compared, str)
    equal, note = judged(compared, ["bf16"], "on these")
    assert equal is True and note.startswith("largest difference 0.0039 ")


def test_files_that_are_not_there_are_a_reason(tmp_path: Path) -> None:
    for message in (
        compare([{"element": "f32", "draws": [["none", "none"]]}], tmp_path, Cancel()),
        fill([{"path": "none/none", "head": "", "tensors": []}], tmp_path, Cancel()),
    ):
        assert (
            isinstance(message, str)
            and "FileNotFoundError" in message
            and "\n" not in message
        )


def covered(count: int, low: int) -> float:
    """How often the interval from the value of this rank to its mirror holds the median: by adding up all the cases."""
    return math.fsum(
        math.comb(count, below) / 2.0**count for below in range(low + 1, count - low)
    )


@pytest.mark.parametrize("count", range(FEWEST_PAIRS, 60))
def test_the_interval_is_the_narrowest_that_holds_the_median_in_19_of_20(
    count: int,
) -> None:
    ratios = [1 + number / 100 for number in range(count)]
    price = price_of(
        [(1000.0, 1000 * ratio) for ratio in random.Random(count).sample(ratios, count)]
    )
    low = ratios.index(price.low)
    high = ratios.index(price.high)
    assert low + high == count - 1
    assert covered(count, low) >= 0.95 > covered(count, low + 1)


def test_prices() -> None:
    price = price_of([(1.0, float(number)) for number in range(1, 21)])
    # Of 20 the 6th and the 15th: the example of every table of the sign test.
    assert (price.low, price.ratio, price.high) == (6.0, 10.5, 15.0)
    with pytest.raises(ValueError, match="only 5 pairs of runs, and 6 are needed"):
        price_of([(1.0, 1.0)] * 5)
    steady = [(100.0, 102.0)] * 19
    assert price_of([*steady, (100.0, 9000.0)]) == price_of(
        [*steady, (100.0, 102.0)]
    ), "an outlier moves nothing"
    price = price_of([(100.0 * load, 110.0 * load) for load in (1, 2, 3, 5, 8, 13)])
    assert price.ratio == price.low == price.high == pytest.approx(1.1), (
        "what slows both of a pair is no price"
    )
    assert (price.before_us, price.after_us, price.pairs) == (400, 440, 6)


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.9, 0.95, True),
        (0.99, 1.01, True),
        (0.99, 1.02, None),
        (1.005, 1.3, None),
        (1.02, 1.3, False),
    ],
)
def test_whether_it_is_worth_it(low: float, high: float, answer: bool | None) -> None:
    assert (
        within(
            Price(before_us=1, after_us=1, pairs=6, ratio=1.0, low=low, high=high), 0.01
        )
        is answer
    )


@pytest.mark.parametrize(
    ("unit", "time"), [("ns", 0.002), ("us", 2), ("ms", 2000), ("s", 2000000)]
)
def test_times_have_units(unit: str, time: float) -> None:
    text = (
        '{"context": {}, "benchmarks": [{"name": "x", "cpu_time": 2.0e0,'
        f' "time_unit": "{unit}"}}]}}'
    )
    assert microseconds(text.encode()) == pytest.approx(time)
    assert isinstance(microseconds(b"\xff"), str)
    other_unit = b'{"benchmarks": [{"cpu_time": 1.0, "time_unit": "m"}]}'
    assert microseconds(other_unit) == "iree-benchmark-module reports a time in 'm'"


SAID = (
    "iree/vm/module.c:12: INVALID_ARGUMENT; bytecode version mismatch; loading module"
    " at '/tmp/fold-x1/4.vmfb'; a/b"
)


def test_what_a_runtime_says_is_reported_without_the_places_of_this_machine(
    tmp_path: Path,
) -> None:
    fed = Feed(directory=tmp_path, draws=((),), random="", results=(), dynamic=None)
    argv = ["/bin/sh", "-c", f'echo "{SAID}"; exit 1']
    ended = started(
        Runtime(tmp_path, "3.13.0"),
        argv=argv,
        feed=fed,
        cancel=Cancel(),
        timeout_seconds=20,
    )
    reason = (
        "INVALID_ARGUMENT; bytecode version mismatch; loading module at '4.vmfb'; a/b"
    )
    assert ended == Stopped(
        f"was refused by iree-base-runtime 3.13.0: {reason}", is_own=True
    )
