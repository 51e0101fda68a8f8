"""bot.core.lab: sums over what all variants measured, ratios, fitted lines; and lab.json."""

from __future__ import annotations

import lab_factory as make
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.lab import fits, sums


def test_sums_are_over_the_models_that_every_variant_measured() -> None:
    cells = [make.cell(model, "vmvx", name, {"artifact_bytes": size}) for model, name, size in (
        ("m1", "a", 100), ("m1", "b", 150), ("m2", "a", 300), ("m2", "b", 200), ("m3", "a", 7)
    )]  # fmt: skip
    (found,) = sums(make.lab(*cells, make.failed("m3", "vmvx", "b")))
    assert found.models == ("m1", "m2") and found.more == 1
    assert (found.value("a", "artifact_bytes"), found.value("b", "artifact_bytes")) == (400, 350)


def test_a_variant_that_measured_nothing_takes_no_model_from_the_others() -> None:
    (found,) = sums(make.lab(make.cell("m", "vmvx", "a"), make.failed("m", "vmvx", "b", status="unsupported")))
    assert found.models == ("m",) and found.value("b", "artifact_bytes") is None


def test_of_a_largest_value_the_largest_is_told_and_what_is_not_known_is_in_no_sum() -> None:
    cells = [
        make.cell("m1", "vmvx", "a", {"stack_max_bytes": 10, "copies": 1}),
        make.cell("m2", "vmvx", "a", {"stack_max_bytes": 70, "copies": None}),
    ]
    (found,) = sums(make.lab(*cells))
    assert found.value("a", "stack_max_bytes") == 70 and found.value("a", "copies") is None


def test_ratios_of_time_are_geometric_means_in_which_the_same_artifact_counts_as_one() -> None:
    cuda, host = sums(make.timed())
    assert cuda.time("b") is None and host.time("a") is None
    slower, same = host.time("b"), host.time("c")
    assert slower is not None and slower.models == 2 and slower.ratio == pytest.approx(1.25)
    assert same == (1.0, 2)
    counted = host.instructions("b")
    assert counted is not None and counted.ratio == pytest.approx(1.5) and host.instructions("c") is None


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.sets(st.integers(0, 50), min_size=2, max_size=6))
def test_least_squares_finds_every_line(slope: int, start: int, places: set[int]) -> None:
    lowest = min(slope * at + start for at in places)
    names = [f"v{at}" for at in sorted(places)]
    cells = [make.cell("m", "vmvx", f"v{at}", {"artifact_bytes": slope * at + start - lowest}) for at in places]
    told = tuple(replace(variant, at=at) for variant, at in zip(make.variants(*names), sorted(places), strict=True))
    (found,) = fits(make.lab(*cells, variants=told, columns=("artifact_bytes",), axis="layer"))
    assert found.is_exact and found.slope == slope and found.start == start - lowest


def test_one_place_is_no_line() -> None:
    assert not list(
        fits(make.lab(make.cell("net", "vmvx", "a"), variants=(replace(make.variants("a")[0], at=1),), axis="layer"))
    )
