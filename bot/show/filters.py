"""Write numbers as people read them: the only place with units, signs and rounding."""

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
    """Return the exact value with its unit; `n/a` for None.

    Examples are `83,990 B`, `36` and `54,168..55,288 B`.
    """
    if isinstance(value, Spread):
        return f"{value.low:,}..{value.high:,}{SUFFIX[unit]}"
    if value is None:
        return UNKNOWN
    return f"{value:,}{SUFFIX[unit]}"


def human(size_bytes: int | None) -> str:
    """Return bytes rounded to a binary unit: `82.0 KiB`; exact below 1 KiB."""
    if size_bytes is None or abs(size_bytes) < 1024:
        return amount(size_bytes)
    size = float(size_bytes)
    unit = "B"
    for larger_unit in ("KiB", "MiB", "GiB", "TiB"):
        if round(abs(size), 1) < 1024:
            break
        size /= 1024
        unit = larger_unit
    return f"{size:,.1f} {unit}"


def signed(change: Value, unit: str = "bytes") -> str:
    """Return a difference with its sign and unit: `+33,552 B`, `−304..+1,968 B`.

    Return `±0` for no difference, `n/a` for None.
    """
    if isinstance(change, Spread):
        low, high = (f"{end:+,}" if end else "0" for end in change)
        return f"{low}..{high}{SUFFIX[unit]}".replace("-", MINUS)
    if change is None:
        return UNKNOWN
    if not change:
        return "±0"
    return f"{change:+,}{SUFFIX[unit]}".replace("-", MINUS)


def percent(ratio: float | None) -> str:
    """Return a relative change (0.5 is `+50.0 %`); `–` for None: nothing to relate to.

    A change is never `+0.0 %`, but `+0.004 %`. Less than all is never `−100.0 %`.
    """
    if ratio is None:
        return "–"
    if not ratio:
        return "0 %"
    size = abs(ratio) * 100
    if -1 < ratio < 0:
        size = min(size, 99.9)
    sign = MINUS if ratio < 0 else "+"
    if round(size, 1) == 0:
        return f"{sign}{Decimal(f'{size:.1g}'):f} %"
    digits = 0 if size >= 999.95 else 1
    return f"{sign}{size:,.{digits}f} %"


def share(part: float) -> str:
    """Return a part of a whole (0.56 is `56 %`).

    Less than all is never `100 %`, but `99.6 %`.
    """
    part = round(part, 9)  # a sum of parts may lack a hair
    if 0.995 <= part < 1:
        return f"{min(part * 100, 99.9):.1f} %"
    return f"{part * 100:.0f} %"


def shares(*parts: Fraction) -> list[str]:
    """Return parts of wholes, with enough digits to differ if the parts differ.

    Examples are `68 %` and `61 %`, or `68.4 %` and `68.1 %`. `0 %` and `100 %` stand
    only for nothing and for all.
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
    """Return the relative change between two values.

    Return `new` if a value came from nothing, and `–` if there is no relative change. A
    range that begins at 0 has none, either, as its other values are not 0.
    """
    if base is None or not ends(base)[1]:
        if head:
            return "new"
        return "–"
    if head is None or not ends(base)[0]:
        return "–"
    first, last = map(percent, _ratios(base, head))
    if first == last:
        return last
    return f"{first.removesuffix(' %')}..{last}"


def _ratios(base: int | Spread, head: int | Spread) -> tuple[float, float]:
    """Return the smallest and the largest relative change between two values."""
    base_low, base_high = ends(base)
    head_low, head_high = ends(head)
    return (head_low - base_high) / base_high, (head_high - base_low) / base_low


def sides(base: Value, head: Value, unit: str = "bytes") -> str:
    """Return both values, the unit once: `50,438 → 83,990 B`.

    Return one value if they are equal.
    """
    if base == head:
        return amount(head, unit)
    if head is None:
        return f"{amount(base, unit)} → {UNKNOWN}"
    return f"{amount(base, 'count')} → {amount(head, unit)}"


def change(base: Value, head: Value, unit: str = "bytes") -> str:
    """Return difference and percent in one: `+33,552 B (+66.5 %)`.

    Return `n/a` if a side is not known.
    """
    moved = difference(base, head)
    if base == head and isinstance(base, Spread):
        return "the same range"
    if not moved:
        return signed(moved, unit)
    return f"{signed(moved, unit)} ({relative(base, head)})"


def grew_and_shrank(net_bytes: int, moved_bytes: int) -> str:
    """Return `12,000 B grew, 10,797 B shrank`, of a sum and the sum of the amounts."""
    grew = amount((moved_bytes + net_bytes) // 2)
    shrank = amount((moved_bytes - net_bytes) // 2)
    return f"{grew} grew, {shrank} shrank"


def plural(count: int, noun: str) -> str:
    """Return `1 cell`, `2 cells`, `1,204 dispatches`, `2 families`."""
    return f"{count:,} {noun_of(count, noun)}"


def grid_percent(ratio: float | None) -> str:
    """Return a relative change for narrow columns, in percent without the sign `%`.

    `+67`, `−3.1`, `+0.04`. Less than all is never `−100`.
    """
    if ratio is None or abs(ratio) < 0.0995 or -1 < ratio <= -0.995:
        return percent(ratio).removesuffix(" %")
    return f"{ratio * 100:+,.0f}".replace("-", MINUS)


def grid_relative(base: Value, head: Value) -> str:
    """Return the change from base to head for the grid: `+67`, `+46..+54`.

    It is in percent, without the sign `%`.
    """
    if base is None or head is None or not ends(base)[0]:
        return grid_percent(None)
    first, last = map(grid_percent, _ratios(base, head))
    if first == last:
        return last
    return f"{first}..{last}"


def superscript(number: int) -> str:
    """Return `¹²`: a number that points to a footnote."""
    return str(number).translate(_SUPERSCRIPT)
