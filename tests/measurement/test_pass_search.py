"""The search for the passes that carry bytes, by arithmetic alone: what it names, and how many cuts it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as some

from bot.study.cross_feed import Piece
from bot.study.proving_pass import largest_piece


@dataclass
class KnownBytes:
    """A feed whose bytes are known; None stands for a cut that is not usable."""

    sizes: Sequence[int | None]
    asked: set[int] = field(default_factory=set)

    @property
    def whole(self) -> Piece:
        return Piece(0, len(self.sizes) - 1)

    def bytes_at(self, place: int) -> int | None:
        self.asked.add(place)
        return self.sizes[place]

    def carried(self, piece: Piece) -> int | None:
        before = self.bytes_at(piece.start)
        behind = self.bytes_at(piece.end)
        return None if before is None or behind is None else before - behind


@given(some.integers(1, 100), some.integers(0, 99), some.sampled_from([1000, -1000]))
def test_one_pass_that_carries_all_is_found_with_few_cuts(
    passes: int, place: int, moved_bytes: int
) -> None:
    place %= passes
    sizes = [5000] * (place + 1) + [5000 - moved_bytes] * (passes - place)
    feed = KnownBytes(sizes)
    result = largest_piece(feed, lambda: True)
    if passes == 1:
        assert result is None
        return
    assert result is not None
    assert result.piece == (place, place + 1)
    assert result.is_smallest
    assert len(feed.asked) <= 2 + passes.bit_length()


def test_the_largest_of_several_passes_is_named() -> None:
    sizes = [1000, 1000, 700, 700, 700, 100, 100, 0]
    result = largest_piece(KnownBytes(sizes), lambda: True)
    assert result is not None
    assert result.piece == (4, 5)


def test_a_range_ends_where_cuts_are_not_usable() -> None:
    sizes = [1000, 1000, None, None, None, 0, 0, 0]
    result = largest_piece(KnownBytes(sizes), lambda: True)
    assert result is not None
    assert result.piece == (1, 5)
    assert result.is_smallest


def test_nothing_is_found_without_a_usable_cut_or_a_change() -> None:
    assert largest_piece(KnownBytes([10, None, 0]), lambda: True) is None
    assert largest_piece(KnownBytes([10, 5, 10]), lambda: True) is None
    assert largest_piece(KnownBytes([None, 5, 10]), lambda: True) is None


def test_a_used_up_budget_leaves_a_larger_range_and_says_so() -> None:
    feed = KnownBytes([1000] * 20 + [0] * 20)
    result = largest_piece(feed, lambda: len(feed.asked) < 4)
    assert result is not None
    assert not result.is_smallest
    assert result.piece == (19, 29)
