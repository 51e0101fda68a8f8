"""Read amounts and percentages as people write them, exactly.

Examples are `4KiB`, `1.5%`, `120` and `500ms`.

Numbers are decimal: leading zeros, which elsewhere mean octal, are refused. Fractions
go through `Fraction`, never through a float: `0.1MiB` is refused, not rounded, because
it is not a whole number of bytes. The rules of the verdict are imported by those
functions only that make their values: the command line reads sizes before it imports
anything else.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.core.rules import Amount, Dimension, Ratio

_UNITS: dict[str, tuple[Dimension, int]] = {
    "": ("own", 1),
    "B": ("bytes", 1),
    "KiB": ("bytes", 1 << 10),
    "MiB": ("bytes", 1 << 20),
    "GiB": ("bytes", 1 << 30),
    "ms": ("ms", 1),
    "s": ("ms", 1000),
}
_WHOLE: dict[Dimension, str] = {
    "own": "",
    "bytes": " of bytes",
    "ms": " of milliseconds",
}
_NUMBER = re.compile(r"((?:0|[1-9][0-9]*)(?:\.[0-9]+)?) *([A-Za-z%]*)")
_MAX_LENGTH = 40


def _split(text: str) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _MAX_LENGTH:
        raise ValueError(
            f"{text[:_MAX_LENGTH]!r} is not a number with a unit, such as 4KiB, 120,"
            " 500ms or 1.5%"
        )
    return Fraction(match[1]), match[2]


def parse_amount(written: str | int) -> Amount:
    """Return an amount such as `4KiB`, `1.5s` or `120`.

    A plain number is in the metric's own unit. Raises ValueError (one line for the
    user) for anything else, an unknown unit, or a fraction of a byte.
    """
    from bot.core.rules import Amount

    text = str(written)
    return Amount(*_whole(text), text)


def parse_size(text: str) -> int:
    """Return a size such as `5GiB` in bytes.

    Raises ValueError (one line for the user).
    """
    message = f"{text[:_MAX_LENGTH]!r} is not a size with a unit, such as 5GiB"
    try:
        _, unit = _split(text)
    except ValueError:
        raise ValueError(message) from None
    if unit not in _UNITS:
        sizes = []
        for name, (dimension, _) in _UNITS.items():
            if dimension == "bytes":
                sizes.append(name)
        raise ValueError(
            f"{text!r} has an unknown unit; known units: {', '.join(sizes)}"
        )
    value, dimension = _whole(text)
    if dimension != "bytes":
        raise ValueError(message)
    return value


def _whole(text: str) -> tuple[int, Dimension]:
    number, unit = _split(text)
    if unit not in _UNITS:
        raise ValueError(
            f"{text!r} has an unknown unit; known units:"
            f" {', '.join(filter(None, _UNITS))}"
        )
    dimension, scale = _UNITS[unit]
    value = number * scale
    if value.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number{_WHOLE[dimension]}")
    return int(value), dimension


def parse_shard(text: str) -> tuple[int, int]:
    """Return `2/4`: which part of how many.

    Raises ValueError (one line for the user) for anything else.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", text)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError(
            f"{text[:_MAX_LENGTH]!r} is not I/N with 1 <= I <= N, such as 2/4"
        )
    return int(match[1]), int(match[2])


def parse_ratio(written: str) -> Ratio:
    """Return a percentage such as `1.5%`.

    Raises ValueError (one line for the user) for anything else.
    """
    from bot.core.rules import Ratio

    return Ratio(_percentage(written), written)


def _percentage(text: str) -> Fraction:
    message = f"{text[:_MAX_LENGTH]!r} is not a percentage, such as 1.5%"
    try:
        number, unit = _split(text)
    except ValueError:
        raise ValueError(message) from None
    if unit != "%":
        raise ValueError(message)
    return number / 100


def parse_share(text: str) -> float:
    """Return a percentage such as `1%` as a share (0.01).

    Raises ValueError (one line for the user) for anything else.
    """
    return float(_percentage(text))
