"""bot.insight.tables.scaling: exponents of known power laws, and when growth may be called superlinear."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.values.model_counts import Slope
from bot.core.values.snapshot import Cell, CellKey, CompilerInfo, Snapshot, SourceInfo
from bot.insight.tables.scaling import slope

Depth = tuple["int | None", "int | None"]


def ladder(*depths: Depth, status: str = "ok") -> Snapshot:
    cells = [
        Cell(CellKey(f"l{index}", "t"), status, metrics={"linalg_ops": operations, "compile_cpu_ms": cpu_ms})
        for index, (operations, cpu_ms) in enumerate(depths)
    ]
    return Snapshot(CompilerInfo("3.13.0", "", "0"), SourceInfo(), tuple(cells))


def through(*depths: Depth, noise: float | None = None) -> Slope:
    found = slope(ladder(*depths), "bert", [f"l{index}" for index in range(len(depths))], "t", noise)
    assert found is not None
    return found


def law(exponent: float) -> list[Depth]:
    return [(operations, round(10_000_000 * (operations / 100) ** exponent)) for operations in (100, 200, 400, 800)]


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_law_is_found(exponent: float) -> None:
    assert through(*law(exponent)).exponent == pytest.approx(exponent, abs=1e-6)


@pytest.mark.parametrize(
    ("exponent", "noise", "superlinear"),
    [
        (2.0, None, True),
        (1.5, 0.05, True),
        (1.0, None, False),
        (1.1, None, False),
        (1.15, None, False),  # 10 % at both ends explain it
        (1.5, 0.8, False),
        (0.5, 0.01, False),
    ],
)
def test_superlinear_is_what_noise_cannot_explain(exponent: float, noise: float | None, superlinear: bool) -> None:
    assert through(*law(exponent), noise=noise).superlinear is superlinear


def test_the_band_lowers_the_exponent_by_what_it_can() -> None:
    """Three depths, a factor of four apart in all: the ends moved by the band each, the exponent falls by 2·log/log."""
    edge = 1.1 + 2 * log(1.3) / log(4)
    for exponent, superlinear in ((edge + 0.01, True), (edge - 0.01, False)):
        points: list[Depth] = [(n, round(10**7 * (n / 100) ** exponent)) for n in (100, 200, 400)]
        assert through(*points, noise=0.3).superlinear is superlinear


def test_two_depths_are_no_law_and_equal_ones_count_once() -> None:
    assert through((100, 10), (200, 90)).exponent is None
    same = through((100, 10), (200, 90), (200, 95), (100, 12))
    assert (same.exponent, same.superlinear) == (None, False)
    assert through((100, 10), (200, 20), (200, 20), (400, 40)).exponent == pytest.approx(1)


def test_points_ascend_and_only_measured_and_known_ones_are_taken() -> None:
    found = through((400, 40), (None, 7), (100, 10), (200, None), (0, 5), (300, 0), (200, 20))
    assert found.points == (("l2", 100, 10), ("l6", 200, 20), ("l0", 400, 40))
    assert (found.family, found.target) == ("bert", "t")
    assert found.exponent == pytest.approx(1)


def test_without_points_there_is_nothing_to_say() -> None:
    models = ["l0", "l1"]
    assert slope(ladder((1, 1), (2, 2), status="failed"), "f", models, "t", None) is None
    assert slope(ladder((1, 1), (2, 2)), "f", models, "other", None) is None
    assert slope(ladder((1, 1), (2, 2)), "f", ["x"], "t", None) is None
    refused = slope(ladder((1, 1), (2, 2), status="over-stack-limit"), "f", models, "t", None)
    assert refused is not None and len(refused.points) == 2


points = st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 10**6)), min_size=1, max_size=8)


@given(points, st.floats(0, 1), st.floats(0, 1))
def test_a_wider_band_never_makes_growth_superlinear(found: list[Depth], one: float, other: float) -> None:
    narrow, wide = (through(*found, noise=noise) for noise in sorted((one, other)))
    assert narrow.superlinear >= wide.superlinear
    assert narrow.exponent == wide.exponent
    if narrow.superlinear:
        assert narrow.exponent is not None and narrow.exponent > 1.1


@given(points, st.integers(2, 9))
def test_another_unit_of_time_changes_no_exponent(found: list[tuple[int, int]], factor: int) -> None:
    plain, scaled = through(*found).exponent, through(*((n, factor * t) for n, t in found)).exponent
    assert scaled == (plain if plain is None else pytest.approx(plain, rel=1e-6, abs=1e-6))
