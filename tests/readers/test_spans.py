"""Byte ranges: overlap and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import MalformedBinary
from bot.readers.spans import Span, label_sizes, require_disjoint, span_inside

SPANS = st.lists(st.builds(Span, st.integers(0, 60), st.integers(0, 10)), max_size=12)


@given(SPANS)
def test_overlap_is_found_exactly_where_a_byte_is_claimed_twice(spans: list[Span]) -> None:
    claims = [byte for span in spans for byte in range(span.start, span.end)]
    if len(claims) == len(set(claims)):
        require_disjoint(spans, "test")
    else:
        with pytest.raises(MalformedBinary, match="share the byte"):
            require_disjoint(spans, "test")


def test_sizes_are_summed_per_label_without_empty_ones() -> None:
    labelled = {Span(10, 5): "text", Span(0, 10): "header", Span(15, 1): "text", Span(3, 0): "nothing"}
    assert label_sizes(labelled, "test") == {"text": 6, "header": 10}


@pytest.mark.parametrize(("start", "size"), [(-1, 1), (0, 11), (10, 1), (0, -1), (2**64, 0)])
def test_a_span_outside_its_whole_is_refused(start: int, size: int) -> None:
    with pytest.raises(MalformedBinary, match="exceed the whole of 10 bytes"):
        span_inside(start, size, 10, "test")


def test_a_span_may_end_where_the_whole_does() -> None:
    assert span_inside(10, 0, 10, "test") == Span(10, 0)
    assert span_inside(4, 6, 10, "test").of(b"0123456789") == b"456789"
