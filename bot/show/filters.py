"""Numbers as people read them: the only place with units, signs and rounding."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from bot.core.record import Spread, Value, difference, ends
from bot.core.words import noun_of

SUFFIX = {"count": "", "bytes": " B", "ms": " ms", "KiB": " KiB"}
UNKNOWN = "n/a"
MINUS = "−"
_MOST_DIGITS = 8  # of a share behind the point
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def amount(value: Value, unit: str = "bytes") -> str:
    """The exact value with its unit: `83,990 B`, `36`, `54,168..55,288 B`; `n/a` for None."""
    if isinstance(value, Spread):
        return f"{value.low:,}..{value.high:,}{SUFFIX[unit]}"
    return UNKNOWN if value is None else f"{value:,}{SUFFIX[unit]}"


def human(size_bytes: int | None) -> str:
    """A size in bytes, rounded to a binary unit: `82.0 KiB`; exact below 1 KiB."""
    if size_bytes is None or abs(size_bytes) < 1024:
        return amount(size_bytes)
    size, units = float(size_bytes), iter(("KiB", "MiB", "GiB", "TiB"))
    unit = "B"
    while round(abs(size), 1) >= 1024 and (larger := next(units, None)):
        size, unit = size / 1024, larger
    return f"{size:,.1f} {unit}"


def signed(change: Value, unit: str = "bytes") -> str:
    """A difference with its sign and unit: `+33,552 B`, `−304..+1,968 B`.

    `±0` for none, `n/a` for None.
    """
    if isinstance(change, Spread):
        low, high = (f"{end:+,}" if end else "0" for end in change)
        return f"{low}..{high}{SUFFIX[unit]}".replace("-", MINUS)
    if not change:
        return UNKNOWN if change is None else "±0"
    return f"{change:+,}{SUFFIX[unit]}".replace("-", MINUS)


def percent(ratio: float | None) -> str:
    """A relative change (0.5 is `+50.0 %`).

    Never `+0.0 %` for a change, but `+0.004 %`; nor `−100.0 %` for less than all. `–`
    for None: nothing to relate to.
    """
    if not ratio:
        return "–" if ratio is None else "0 %"
    size = min(abs(ratio) * 100, 99.9) if -1 < ratio < 0 else abs(ratio) * 100
    sign = MINUS if ratio < 0 else "+"
    if round(size, 1) == 0:
        return f"{sign}{Decimal(f'{size:.1g}'):f} %"
    return f"{sign}{size:,.{0 if size >= 999.95 else 1}f} %"


def share(part: float) -> str:
    """A part of a whole (0.56 is `56 %`); never `100 %` for less than all, but `99.6 %`."""
    if 0.995 <= part < 1:
        return f"{min(part * 100, 99.9):.1f} %"
    return f"{part * 100:.0f} %"


def shares(*parts: Fraction) -> list[str]:
    """Parts of wholes, with as many digits as tell them apart: `68 %` and `61 %`, `68.4 %` and `68.1 %`.

    `0 %` and `100 %` stand only for nothing and for all.
    """
    texts = [f"{float(part) * 100:.0f} %" for part in parts]
    for digits in range(1, _MOST_DIGITS):
        if len(set(texts)) == len(set(parts)) and all(map(_is_told, parts, texts)):
            break
        texts = [f"{float(part) * 100:.{digits}f} %" for part in parts]
    return texts


def _is_told(part: Fraction, text: str) -> bool:
    """Return whether a share that is shown as nothing or as all is that."""
    number = float(text.removesuffix(" %"))
    return (number != 0 or part == 0) and (number != 100 or part == 1)


def relative(base: Value, head: Value) -> str:
    """The relative change between two values.

    `new` where a value came from nothing, `–` where there is none.

    There is none either from a range that begins at 0: what it holds besides is no
    nothing.
    """
    if base is None or not ends(base)[1]:
        return "new" if head else "–"
    if head is None or not ends(base)[0]:
        return "–"
    (least, most), (low, high) = ends(base), ends(head)
    first, last = percent((low - most) / most), percent((high - least) / least)
    return last if first == last else f"{first.removesuffix(' %')}..{last}"


def sides(base: Value, head: Value, unit: str = "bytes") -> str:
    """Both values, the unit once: `50,438 → 83,990 B`; one value where they are equal."""
    if base == head:
        return amount(head, unit)
    right = amount(head, unit) if head is not None else UNKNOWN
    left = amount(base, unit if head is None else "count")
    return f"{left} → {right}"


def change(base: Value, head: Value, unit: str = "bytes") -> str:
    """Difference and percent in one: `+33,552 B (+66.5 %)`; `n/a` where a side is not known."""
    moved = difference(base, head)
    if base == head and isinstance(base, Spread):
        return "the same range"
    return (
        f"{signed(moved, unit)} ({relative(base, head)})"
        if moved
        else signed(moved, unit)
    )


def grew_and_shrank(net_bytes: int, moved_bytes: int) -> str:
    """`12,000 B grew, 10,797 B shrank`, of a sum and the sum of the amounts."""
    return (
        f"{amount((moved_bytes + net_bytes) // 2)} grew,"
        f" {amount((moved_bytes - net_bytes) // 2)} shrank"
    )


def plural(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`, `1,204 dispatches`, `2 families`."""
    return f"{count:,} {noun_of(count, noun)}"


def grid_percent(ratio: float | None) -> str:
    """A relative change for narrow columns, in percent without its sign: `+67`, `−3.1`, `+0.04`."""
    if (
        ratio is None or abs(ratio) < 0.0995 or -1 < ratio <= -0.995
    ):  # less than all is never `−100`
        return percent(ratio).removesuffix(" %")
    return f"{ratio * 100:+,.0f}".replace("-", MINUS)


def grid_relative(base: Value, head: Value) -> str:
    """The change from base to head in percent, without its sign `%`, as in the grid: `+67`, `+46..+54`."""
    if base is None or head is None or not ends(base)[0]:
        return grid_percent(None)
    (least, most), (low, high) = ends(base), ends(head)
    first, last = (
        grid_percent((low - most) / most),
        grid_percent((high - least) / least),
    )
    return last if first == last else f"{first}..{last}"


def superscript(number: int) -> str:
    """`¹²`: a number that points to a footnote."""
    return str(number).translate(_SUPERSCRIPT)
