"""bot.core.reading: parts and the unattributed rest sum to the whole, or there is no value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.reading import ArtifactReading, ExecutableFacts, ProgramFacts, Reading

sizes = st.integers(0, 1 << 40)


@given(st.dictionaries(st.text(max_size=4), sizes, max_size=4), sizes)
def test_parts_and_rest_sum_to_the_whole(parts: dict[str, int], rest: int) -> None:
    whole = sum(parts.values()) + rest
    reading = Reading("elf", whole, parts)
    assert reading.unattributed_bytes == rest
    assert sum(reading.parts.values()) + reading.unattributed_bytes == reading.size_bytes


@pytest.mark.parametrize(
    ("size_bytes", "parts"),
    [(10, {"text": 11}), (10, {"text": 6, "data": 5}), (10, {"text": 11, "data": -1}), (-1, {}), (0, {"text": 1})],
)
def test_parts_larger_than_the_whole_or_negative_are_no_reading(size_bytes: int, parts: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="exceed the whole"):
        Reading("elf", size_bytes, parts)


@given(sizes, sizes, sizes, sizes)
def test_the_four_parts_of_an_artifact_sum_to_it(code: int, vm: int, rodata: int, rest: int) -> None:
    reading = ArtifactReading(code + vm + rodata + rest, code, vm, rodata, rest, ())
    assert reading.artifact_bytes == code + vm + rodata + rest


@pytest.mark.parametrize(
    "figures",
    [(10, 1, 2, 3, 3), (10, 1, 2, 3, 5), (10, 4, 4, 4, -2), (10, 12, -2, 0, 0), (10, -2, 12, 0, 0), (10, 12, 0, -2, 0)],
)
def test_parts_that_do_not_sum_to_the_artifact_are_no_reading(figures: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="the artifact has 10 bytes"):
        ArtifactReading(*figures, executables=())


def test_sites_are_counted_by_launch_and_the_memory_bound_among_them_apart() -> None:
    entries = (
        ExecutableFacts("e0", "matmul", "matmul", False, 12),
        ExecutableFacts("e0", "copy", "elementwise", True, 3),
        ExecutableFacts("e1", "norm", "reduction", True, 4),
        ExecutableFacts("e2", "unused", "elementwise", True, 0),
    )
    facts = ProgramFacts(dispatch_regions=20, linalg_ops=40, executables=3, entry_points=entries)
    assert (facts.dispatch_sites, facts.memory_bound_sites) == (19, 7)
