"""Numbers as people read them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.show.filters import amount, change, grid_percent, human, percent, plural, relative, sides, signed, superscript

counts = st.integers(0, 1 << 53)


def test_each_number_is_written_as_people_read_it() -> None:
    sizes = [(83_990, "82.0 KiB"), (1_023, "1,023 B"), (1_024, "1.0 KiB"), (1_048_575, "1.0 MiB"), (5 << 40, "5.0 TiB")]
    for size, text in [*sizes, (5 << 50, "5,120.0 TiB"), (None, "n/a")]:
        assert human(size) == text
    for value, unit, text in [
        (83_990, "bytes", "83,990 B"),
        (0, "bytes", "0 B"),
        (36, "count", "36"),
        (1_234, "ms", "1,234 ms"),
        (5, "KiB", "5 KiB"),
        (None, "bytes", "n/a"),
    ]:
        assert amount(value, unit) == text
    assert [*map(signed, (33_552, -1_024, 0, None))] == ["+33,552 B", "−1,024 B", "±0", "n/a"]
    ratios = (33_552 / 50_438, -0.5, 0.0004, -0.0004, 0.0, -1.0, -0.99999, 12.3456, 9.99, None)
    assert "; ".join(map(percent, ratios)) == (
        "+66.5 %; −50.0 %; +0.04 %; −0.04 %; 0 %; −100.0 %; −99.9 %; +1,235 %; +999.0 %; –"
    )
    narrow = (0.665, 0.0994, 0.0996, -0.031, 0.0001, 25.0)
    assert [*map(grid_percent, narrow)] == ["+66", "+9.9", "+10", "−3.1", "+0.01", "+2,500"]


def test_both_sides_are_written_with_what_lies_between() -> None:
    for base, head, told, grown, moved in [
        (50_438, 83_990, "50,438 → 83,990 B", "+66.5 %", "+33,552 B (+66.5 %)"),
        (5, 5, "5 B", "0 %", "±0"),
        (4, 0, "4 → 0 B", "−100.0 %", "−4 B (−100.0 %)"),
        (0, 5, "0 → 5 B", "new", "+5 B (new)"),
        (None, 5, "n/a → 5 B", "new", "n/a"),
        (5, None, "5 B → n/a", "–", "n/a"),
        (0, 0, "0 B", "–", "±0"),
        (None, None, "n/a", "–", "n/a"),
    ]:
        assert (sides(base, head), relative(base, head), change(base, head)) == (told, grown, moved)


@given(counts.filter(bool), counts)
def test_a_change_never_reads_as_none(base: int, head: int) -> None:
    text = percent((head - base) / base)
    assert (text == "0 %") == (base == head)
    assert text.lstrip("+−") != "0.0 %"
    assert text.startswith("−") == (head < base)


def test_plural_and_superscript() -> None:
    assert [plural(count, "cell") for count in (0, 1, 1_204)] == ["0 cells", "1 cell", "1,204 cells"]
    assert superscript(120) == "¹²⁰"
