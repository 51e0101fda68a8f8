"""Numbers as people read them: the only place with units, signs and rounding."""

from __future__ import annotations

_SUFFIX = {"count": "", "bytes": " B", "ms": " ms", "KiB": " KiB"}
UNKNOWN = "n/a"
MINUS = "−"
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def amount(value: int | None, unit: str = "bytes") -> str:
    """The exact value with its unit: `83,990 B`, `36`; `n/a` for None."""
    return UNKNOWN if value is None else f"{value:,}{_SUFFIX[unit]}"


def human(size_bytes: int | None) -> str:
    """A size in bytes, rounded to a binary unit: `82.0 KiB`; exact below 1 KiB."""
    if size_bytes is None or abs(size_bytes) < 1024:
        return amount(size_bytes)
    size, units = float(size_bytes), iter(("KiB", "MiB", "GiB", "TiB"))
    unit = "B"
    while round(abs(size), 1) >= 1024 and (larger := next(units, None)):
        size, unit = size / 1024, larger
    return f"{size:,.1f} {unit}"


def kib(size_bytes: int | None) -> str:
    """A size under a header that says KiB: `82.0`; `n/a` for None."""
    return UNKNOWN if size_bytes is None else f"{size_bytes / 1024:,.1f}"


def signed(change: int | None, unit: str = "bytes") -> str:
    """A difference with its sign and unit: `+33,552 B`; `±0` for none, `n/a` for None."""
    if not change:
        return UNKNOWN if change is None else "±0"
    return f"{change:+,}{_SUFFIX[unit]}".replace("-", MINUS)


def percent(ratio: float | None) -> str:
    """A relative change (0.5 is `+50.0 %`); never `+0.0 %` for a change, nor `−100.0 %` for less than all.

    `–` for None: there is nothing to relate to.
    """
    if not ratio:
        return "–" if ratio is None else "0 %"
    size = min(abs(ratio) * 100, 99.9) if -1 < ratio < 0 else abs(ratio) * 100
    sign = MINUS if ratio < 0 else "+"
    if round(size, 1) == 0:
        return "<0.1 %" if ratio > 0 else f"{MINUS}<0.1 %"
    return f"{sign}{size:,.{0 if size >= 999.95 else 1}f} %"


def relative(base: int | None, head: int | None) -> str:
    """The relative change between two values; `new` where a value came from nothing, `–` where there is none."""
    if not base:
        return "new" if head else "–"
    return "–" if head is None else percent((head - base) / base)


def sides(base: int | None, head: int | None, unit: str = "bytes") -> str:
    """Both values, the unit once: `50,438 → 83,990 B`; one value where they are equal."""
    if base == head:
        return amount(head, unit)
    right = amount(head, unit) if head is not None else UNKNOWN
    left = amount(base, unit if head is None else "count")
    return f"{left} → {right}"


def change(base: int | None, head: int | None, unit: str = "bytes") -> str:
    """Difference and percent in one: `+33,552 B (+66.5 %)`; `n/a` where a side is not known."""
    if base is None or head is None:
        return UNKNOWN
    return signed(head - base, unit) if base == head else f"{signed(head - base, unit)} ({relative(base, head)})"


def plural(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`, `1,204 dispatches`, `2 families`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {_many(noun)}"


def _many(noun: str) -> str:
    noun, of, rest = noun.partition(" of ")
    if noun.endswith("y"):
        return f"{noun[:-1]}ies{of}{rest}"
    return f"{noun}{'es' if noun.endswith(('ch', 'ss')) else 's'}{of}{rest}"


def grid_percent(ratio: float | None) -> str:
    """A relative change for narrow columns, in percent without its sign: `+67`, `−3.1`, `<0.1`."""
    if ratio is not None and abs(ratio) >= 0.0995:
        return f"{ratio * 100:+,.0f}".replace("-", MINUS)
    return percent(ratio).removesuffix(" %")


def superscript(number: int) -> str:
    """`¹²`: a number that points to a footnote."""
    return str(number).translate(_SUPERSCRIPT)
