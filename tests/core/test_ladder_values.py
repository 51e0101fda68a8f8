"""Ladders: their parts sum to the change, a failed rung leaves its neighbours unknown, and swapping negates."""

from __future__ import annotations

import pytest
from replacing import replace

from bot.core.ladder import (
    Climb,
    Ladder,
    Rung,
    attribution,
    failed_rungs,
    interactions,
    reverse_attribution,
)

HEAD_CODE = "A" * 16
BASE_CODE = "B" * 16
FAILED = Rung(why="it crashed")


def rungs(*sizes: int | None) -> list[Rung]:
    return [FAILED if size is None else Rung(size) for size in sizes]


def climb(*sizes: int | None) -> Climb:
    source, configured, translated, *llvm = rungs(*sizes)
    optimized, control = llvm or (None, None)
    return Climb(source, configured, translated, optimized, control)


def ladder(
    head: int | None, base: int | None, down: Climb, back: Climb | None = None
) -> Ladder:
    ends = rungs(head, base)
    return Ladder(
        head_code=HEAD_CODE,
        base_code=BASE_CODE,
        base_compiler="0" * 64,
        head=ends[0],
        base=ends[1],
        climb=down,
        back=back,
    )


def swapped(climbed: Ladder) -> Ladder:
    assert climbed.back is not None
    return replace(
        climbed,
        head=climbed.base,
        base=climbed.head,
        climb=climbed.back,
        back=climbed.climb,
    )


DIVIDED = ladder(
    4040, 2056, climb(4040, 4000, 3990, 2064, 2060), climb(2056, 2080, 2090, 2100, 4030)
)


def test_the_parts_sum_to_the_change() -> None:
    parts = {
        "source": 0,
        "configuration": 40,
        "mlir": 10,
        "llvm_optimizer": 1930,
        "code_generator": 4,
    }
    assert attribution(DIVIDED) == parts
    assert sum(parts.values()) == DIVIDED.change_bytes == 1984
    whole = attribution(ladder(100, 60, climb(100, 90, 70)))
    assert whole == {"source": 0, "configuration": 10, "mlir": 20, "back_end": 10}


def test_swapping_the_sides_exchanges_the_orders_and_negates() -> None:
    forward = attribution(DIVIDED)
    backward = reverse_attribution(DIVIDED)
    assert backward is not None
    assert sum(part or 0 for part in backward.values()) == 1984
    exchanged = swapped(DIVIDED)
    assert {
        phase: -(part or 0) for phase, part in attribution(exchanged).items()
    } == backward
    negated = reverse_attribution(exchanged)
    assert negated is not None
    assert {phase: -(part or 0) for phase, part in negated.items()} == forward


def test_an_error_of_the_linkers_experiment_is_in_no_part() -> None:
    """The same bitcode has 48 bytes more in the linker than in the compiler, on both sides."""
    parts = attribution(ladder(1820, 1820, climb(1820, 1820, 1820, 1868, 1868)))
    assert set(parts.values()) == {0}


def test_a_failed_control_leaves_the_back_end_unknown() -> None:
    parts = attribution(ladder(100, 60, climb(100, 90, 70, 65, None)))
    assert (parts["mlir"], parts["llvm_optimizer"], parts["code_generator"]) == (
        20,
        None,
        None,
    )


def test_a_failed_rung_leaves_both_its_neighbours_unknown() -> None:
    parts = attribution(ladder(100, 60, climb(100, None, 70, 65, 60)))
    assert parts == {
        "source": 0,
        "configuration": None,
        "mlir": None,
        "llvm_optimizer": 5,
        "code_generator": 5,
    }
    torn = ladder(None, 60, climb(100, 90, 70))
    assert attribution(torn)["source"] is None
    assert (torn.change_bytes, torn.is_whole) == (None, False)
    assert failed_rungs(torn) == {"head": "it crashed"}


def test_phases_interact_where_the_orders_differ_by_more_than_a_tenth_of_the_change() -> (
    None
):
    down = climb(200, 150, 120)
    same = ladder(200, 100, down, climb(100, 150, 180))
    assert interactions(same) == {}
    slightly_different = ladder(200, 100, down, climb(100, 140, 170))
    assert interactions(slightly_different) == {}, "by a tenth and no more"
    assert interactions(ladder(200, 100, down, climb(100, 139, 169))) == {
        "configuration": (50, 39),
        "back_end": (20, 31),
    }
    assert interactions(ladder(200, 100, down)) == {}
    equal = ladder(100, 100, climb(100, 101, 100), climb(100, 100, 100))
    assert interactions(equal) == {"configuration": (-1, 0), "mlir": (1, 0)}


def test_a_rung_has_bytes_or_a_reason() -> None:
    with pytest.raises(ValueError, match="either code bytes or a reason"):
        Rung()
    with pytest.raises(ValueError, match="either code bytes or a reason"):
        Rung(5, "and a reason")
    with pytest.raises(ValueError, match="has a control"):
        Climb(Rung(1), Rung(1), Rung(1), Rung(1))
    with pytest.raises(ValueError, match="divide the back end"):
        ladder(1, 1, climb(1, 1, 1, 1, 1), climb(1, 1, 1))
