"""Growth with the number of layers: the fit against another way to make it, warnings, and why there is no exponent."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence

import lab_factory as make
import pytest
from harmless import assert_harmless
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from test_lab_shown import printed, render_lab, words

from bot.core.growth import Growth, fitted
from bot.core.lab import Lab, lab_lines
from bot.core.study import Study, Variant
from bot.core.times import CompileTimes, phases_us
from bot.show.lab import LAB_LIMIT_BYTES

DEPTHS = (1, 2, 4, 8, 16)
CPU_MS = (1320, 1503, 1564, 1818, 2443)


def density(value: float, freedom: int) -> float:
    """Student's t distribution."""
    scale = (
        math.gamma((freedom + 1) / 2)
        / math.sqrt(freedom * math.pi)
        / math.gamma(freedom / 2)
    )
    return float(scale * (1 + value * value / freedom) ** (-(freedom + 1) / 2))


def probability_within(value: float, freedom: int) -> float:
    """Of a value of Student's t distribution between −value and value, by Simpson's rule."""
    steps = 4000
    width = value / steps
    weights = [1, *([4, 2] * (steps // 2 - 1)), 4, 1]
    return (
        2
        * sum(
            weight * density(step * width, freedom)
            for step, weight in enumerate(weights)
        )
        * width
        / 3
    )


def by_hand(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """The exponent and its standard error, by Python's own regression and the textbook's formula."""
    depths = [math.log2(depth) for depth, _ in points]
    values = [math.log2(value) for _, value in points]
    slope, intercept = statistics.linear_regression(depths, values)
    residual = sum(
        (value - intercept - slope * depth) ** 2
        for depth, value in zip(depths, values, strict=True)
    )
    return slope, math.sqrt(
        residual / (len(points) - 2) / (statistics.pvariance(depths) * len(points))
    )


def fit(points: Sequence[tuple[int, int]]) -> Growth:
    growth = fitted(points)
    assert isinstance(growth, Growth)
    return growth


@pytest.mark.parametrize("values", [CPU_MS, (10, 47, 150, 900, 5000), (7, 7, 7, 7, 8)])
def test_the_fit_is_that_of_another_way_to_make_it(values: tuple[int, ...]) -> None:
    points = list(zip(DEPTHS, values, strict=True))
    exponent, error = by_hand(points)
    growth = fit(points)
    assert growth.interval is not None
    low, high = growth.interval
    assert growth.exponent == pytest.approx(exponent, abs=1e-9)
    assert (low + high) / 2 == pytest.approx(exponent, abs=1e-9)
    assert probability_within((high - low) / 2 / error, 3) == pytest.approx(
        0.95, abs=1e-4
    )


@pytest.mark.parametrize("count", range(3, 25))
def test_the_interval_holds_95_percent_for_every_number_of_depths(count: int) -> None:
    points = [(depth, depth**2 + (depth * 37) % 5) for depth in range(1, count + 1)]
    _, error = by_hand(points)
    growth = fit(points)
    assert growth.interval is not None
    low, high = growth.interval
    within = probability_within((high - low) / 2 / error, count - 2)
    # The tail of one degree of freedom is so long that the rule's steps are coarse
    # there.
    assert within == pytest.approx(0.95, abs=2e-4)


@given(st.integers(1, 3), st.integers(1, 1000), st.permutations(DEPTHS))
def test_of_a_power_law_the_exponent_is_exact_in_any_order(
    power: int, factor: int, depths: list[int]
) -> None:
    growth = fit([(depth, factor * depth**power) for depth in depths])
    assert growth.exponent == pytest.approx(
        power
    ) and growth.last_step == pytest.approx(power)
    assert growth.interval is not None
    assert list(growth.interval) == pytest.approx([power, power], abs=1e-6)


def test_there_is_no_fit_of_one_depth_or_of_zeros_and_no_interval_of_two_depths() -> (
    None
):
    assert fitted([(4, 10)]) == fitted([]) == "fewer than two depths were measured"
    assert fitted([(1, 0), (2, 5)]) == "a value is 0, which has no logarithm"
    growth = fit([(1, 10), (2, 40)])
    assert growth.interval is None
    assert [growth.exponent, growth.last_step] == pytest.approx([2, 2])


def test_growth_is_a_warning_from_the_limit_on_and_where_only_the_last_step_is_steep() -> (
    None
):
    assert not fit([(1, 100), (10, 1990)]).is_warning
    assert fit([(1, 100), (10, 2000)]).is_warning
    hidden = fit([(1, 10_000), (2, 10_004), (4, 10_100), (8, 11_000), (16, 40_000)])
    assert hidden.exponent < 1 and hidden.last_step > 1.3 and hidden.is_warning


def layered(
    rows: Mapping[int, Mapping[str, int | None] | None], columns: Sequence[str]
) -> Lab:
    """A lab of these depths; None for a build that failed."""
    cells = []
    for layers, values in rows.items():
        name = str(layers)
        cells.append(
            make.failed("m", "vmvx", name)
            if values is None
            else make.cell("m", "vmvx", name, values)
        )
    variants = tuple(Variant(str(layers), layers=layers) for layers in rows)
    return make.lab(*cells, variants=variants, columns=tuple(columns))


def shown(lab: Lab) -> str:
    """The Markdown as a reader sees it: without the escapes."""
    return render_lab(lab).replace("\\", "")


def test_exponents_are_shown_with_their_interval_and_a_steep_one_leads_with_a_warning() -> (
    None
):
    rows = {
        depth: {"compile_cpu_ms": 100 * depth**2, "executables": 9} for depth in DEPTHS
    }
    text = shown(layered(rows, ["compile_cpu_ms", "executables"]))
    first = next(line for line in text.splitlines() if line.startswith("- "))
    assert (
        first
        == "- **⚠️ compile CPU time grows faster than the number of layers** (`m` on"
        " `vmvx` with `1`, `2`, `4`, `8`, `16`): layers^2.00 [2.00, 2.00], and"
        " layers^2.00 from 8 to 16 layers. The warning begins at 1.3."
    )
    fits = (
        "as layers^exponent: compile CPU time 2.00 [2.00, 2.00], executables 0.00"
        " [0.00, 0.00]."
    )
    assert f"- Growth of `m` on `vmvx` with `1`, `2`, `4`, `8`, `16` {fits}" in text
    row = (
        "| compile CPU time, ms (varies) | 100 | 400 | 1,600 | 6,400 | 25,600 | 2.00 |"
        " 2.00, 2.00 | 2.00 |"
    )
    assert (
        row in text
        and "| executables | 9 | 9 | 9 | 9 | 9 | 0.00 | 0.00, 0.00 | 0.00 |" in text
    )


def test_a_depth_that_failed_is_no_point_and_a_value_that_nobody_measured_has_no_exponent() -> (
    None
):
    rows = {
        1: {"executables": 1},
        2: None,
        4: {"executables": 4},
        8: {"executables": 8},
    }
    lab = layered(rows, ["executables", "fills"])
    text = shown(lab)
    assert "| executables | 1 | n/a | 4 | 8 | 1.00 | 1.00, 1.00 | 1.00 |" in text
    assert "| fills | n/a | n/a | n/a | n/a | n/a | n/a | n/a |" in text
    assert (
        "No exponent of fills (`m` on `vmvx` with `1`, `2`, `4`, `8`): fewer than two"
        " depths were measured." in text
    )
    growth = json.loads(b"".join(lab_lines(lab)))["growth"]
    assert (
        growth[0]["layers"] == [1, 4, 8]
        and growth[0]["exponent"] == 1.0
        and not growth[0]["warning"]
    )
    assert (growth[1]["exponent"], growth[1]["reason"]) == (
        None,
        "fewer than two depths were measured",
    )


def test_a_non_deterministic_build_has_no_exponent() -> None:
    cells = [
        make.cell("m", "vmvx", str(depth), {"executables": depth}, varies=depth == 2)
        for depth in (1, 2, 4)
    ]
    spread = replace(cells[1].cell.others[0], metrics={"executables": 3})
    varying = cells[1]._replace(cell=replace(cells[1].cell, others=(spread,)))
    variants = tuple(Variant(str(depth), layers=depth) for depth in (1, 2, 4))
    lab = make.lab(
        cells[0], varying, cells[2], variants=variants, columns=("executables",)
    )
    assert (
        "No exponent of executables (`m` on `vmvx` with `1`, `2`, `4`): a build is"
        " non-deterministic." in shown(lab)
    )


def test_variants_with_other_flags_are_fitted_apart_and_a_depth_may_stand_there_twice() -> (
    None
):
    sizes = {
        "a1": 10,
        "a2": 20,
        "a4": 40,
        "b1": 1000,
        "b2": 4000,
        "again": 4000,
        "alone": 7,
    }
    cells = [
        make.cell("m", "vmvx", name, {"executables": size})
        for name, size in sizes.items()
    ]
    plain = [Variant(f"a{layers}", layers=layers) for layers in (4, 1, 2)]
    flagged = [
        Variant(name, layers=layers, flags=("--x",))
        for name, layers in (("b1", 1), ("b2", 2), ("again", 2))
    ]
    single = Variant("alone", layers=9, flags=("--y",))
    lab = make.lab(
        *cells, variants=(*plain, *flagged, single), columns=("executables",)
    )
    growth = json.loads(b"".join(lab_lines(lab)))["growth"]
    assert [
        (row["variants"], row["layers"], row["exponent"], row["last_step"])
        for row in growth
    ] == [
        (["a1", "a2", "a4"], [1, 2, 4], 1.0, 1.0),
        (["b1", "b2", "again"], [1, 2, 2], 2.0, 2.0),
    ]
    assert (
        "grows faster than the number of layers** (`m` on `vmvx` with `b1`, `b2`,"
        " `again`)" in shown(lab)
    )


def test_variants_without_layers_have_no_growth() -> None:
    text = shown(make.timed())
    assert "exponent" not in text and "growth" not in json.loads(
        b"".join(lab_lines(make.timed()))
    )


def test_times_by_phase_and_pass_are_shown_with_their_growth_or_with_the_reason() -> (
    None
):
    lab = layered({depth: {} for depth in (1, 2, 4)}, ["executables"])
    keys = {variant: cell.key for variant, cell in lab.cells}
    times = {
        ("1", keys["1"]): CompileTimes({"input": 1000, "vm": 2000}, {"CSEPass": 300})
    }
    times["2", keys["2"]] = CompileTimes(
        reason="this compiler does not know the option --mlir-timing"
    )
    times["4", keys["4"]] = CompileTimes(
        {"input": 4000, "vm": 32000}, {"CSEPass": 4800}
    )
    timed = replace(lab, times=times)
    text = shown(timed)
    assert (
        "| `input` | 1 | n/a | 4 | 1.00 | 1.00 |" in text
        and "| `vm` | 2 | n/a | 32 | 2.00 | 2.00 |" in text
    )
    assert "| `CSEPass` | <1 | n/a | 5 | 2.00 | 2.00 |" in text
    reason = (
        "Compile times n/a: this compiler does not know the option --mlir-timing: `m on"
        " vmvx` with `2`."
    )
    assert (
        reason in text
        and "m on vmvx: wall time of each phase, in ms (varies)"
        in words(printed(timed))
    )
    cells = json.loads(b"".join(lab_lines(timed)))["cells"]
    assert [cell.get("phases", [])[1:] for cell in cells] == [
        [{"name": "vm", "wall_us": 2000}],
        [],
        [{"name": "vm", "wall_us": 32000}],
    ]


def test_phases_are_in_the_order_of_their_numbers_and_sum_to_the_whole() -> None:
    ended = {"artifact": 90_000, "10.hal": 70_000, "2.abi": 30_000, "1.input": 20_000}
    times = phases_us(10_000, ended)
    assert list(times) == ["input", "abi", "hal", "artifact"]
    assert sum(times.values()) == 80


def test_a_large_result_stays_within_its_limit_and_nothing_in_it_does_any_harm() -> (
    None
):
    many = make.many()
    variants = [
        replace(variant, layers=number, flags=())
        for number, variant in enumerate(many.study.variants, 1)
    ]
    hostile = CompileTimes(
        dict.fromkeys(make.WRITABLE, 5000), dict.fromkeys(make.WRITABLE, 5000)
    )
    times = {(variant, cell.key): hostile for variant, cell in many.cells}
    refused = CompileTimes(reason=make.WRITABLE[0])
    times |= dict.fromkeys(list(times)[::7], refused)
    layers = replace(many, study=Study(tuple(variants)), times=times)
    text = render_lab(layers)
    assert len(text.encode()) <= LAB_LIMIT_BYTES and "more builds" in text
    assert_harmless(text)
    assert not printed(layers, 80).count("\x1b")
