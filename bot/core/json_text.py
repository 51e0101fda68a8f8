"""Read and write JSON; wrong text is refused with the key and the line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar

import msgspec

from bot.errors import InputError

_TEXT = re.compile(r"(?:[\w.:$-]+ [1-9]\d{0,15}(?: (?!$)|$))*")


def without_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not 0, in their own order."""
    return {name: count for name, count in counts.items() if count}


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not 0, in the names' order."""
    return dict(sorted(without_zeros(counts).items()))


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts that are not 0 as text, in the order of their names.

    The names have no blanks.
    """
    return " ".join(f"{name} {count}" for name, count in nonzero(counts).items())


@lru_cache(maxsize=1024)
def known_counts(text: str | None) -> Counter[str] | None:
    """Return the counts of such a text, which no caller may change.

    None without a text, and for a text of a foreign snapshot that is no such text.
    """
    if text is None or not _TEXT.fullmatch(text):
        return None
    fields = text.split()
    return Counter(dict(zip(fields[::2], map(int, fields[1::2]), strict=True)))


def parse_json(text: str | bytes) -> Any:
    """Return the value of JSON of anybody.

    Raises ValueError for what is none, or is nested deeper than the parser follows.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


_T = TypeVar("_T")
_SHOWN_CHARACTERS = 200
_ENCODER = msgspec.json.Encoder(order="sorted")
_made: Callable[[Any], msgspec.json.Decoder[Any]] = lru_cache(msgspec.json.Decoder)
_ONE_AT_A_TIME = Lock()
"""The library fills in what it knows of a type when it is first asked for.

Two threads that ask at once crash it.
"""


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _ONE_AT_A_TIME:
        return _made(kind)


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys, without blanks, in UTF-8: equal values give equal bytes."""
    return _ENCODER.encode(value)


def decoded(
    text: bytes | str, kind: type[_T], where: str, hint: str = "", noun: str = ""
) -> _T:
    """Return the value of the text.

    Raises InputError naming `where` and the field, and UnicodeDecodeError.

    `noun`: what the text should be, for the message.
    """
    try:
        value: _T = _decoder(kind).decode(text)
        return value
    except msgspec.ValidationError as error:
        raise _refused(error, where=where, hint=hint, noun=noun) from None
    except (msgspec.DecodeError, RecursionError) as error:
        problem = f"is not JSON, or was cut off: {error}"
        raise InputError(
            f"is not a {noun}: it {problem}" if noun else problem,
            where=where,
            hint=hint,
        ) from None


def converted(plain: Any, kind: type[_T], where: str) -> _T:
    """Return the value of plain dicts and lists, as one type.

    Raises InputError naming the field.
    """
    _decoder(kind)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _refused(error, where) from None


class _TwiceError(Exception):
    """A key that stands twice in one object; args: the key."""


def _require_single(pairs: list[tuple[str, Any]]) -> None:
    counts = Counter(key for key, _ in pairs)
    if len(counts) < len(pairs):
        raise _TwiceError(counts.most_common(1)[0][0])


def require_single_keys(text: bytes | str, where: str, hint: str = "") -> None:
    """Raise InputError for JSON with an object that has a key twice.

    Readers disagree about which value counts.
    """
    try:
        json.loads(text, object_pairs_hook=_require_single)
    except _TwiceError as error:
        raise InputError(
            f"has the key {str(error)[:60]!r} twice in one object",
            where=where,
            hint=hint,
        ) from None
    except (ValueError, RecursionError) as error:
        message = f"is not JSON, or was cut off: {str(error)[:_SHOWN_CHARACTERS]}"
        raise InputError(message, where=where, hint=hint) from None


class _Headed(msgspec.Struct):
    schema: str = ""


def require_schema(
    text: bytes | str, schema: str, noun: str, where: str, hint: str
) -> None:
    """Raise InputError for text of another schema, and for a repeated key of an object."""
    actual = decoded(text, kind=_Headed, where=where, hint=hint, noun=noun).schema
    if actual != schema:
        if actual:
            actual_text = repr(actual if len(actual) <= 60 else f"{actual[:57]}...")
        else:
            actual_text = "missing"
        message = (
            f"is not a {noun} that this version reads: its schema is {actual_text}, not"
            f" {schema!r}"
        )
        raise InputError(message, where=where, hint=hint)
    require_single_keys(text, where, hint)


def _refused(
    error: msgspec.ValidationError, where: str, hint: str = "", noun: str = ""
) -> InputError:
    """Return the library's message, with its place where our messages have theirs.

    The place is such as `$.cells[3].status`.
    """
    problem, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").lstrip(".")[:_SHOWN_CHARACTERS]
    message = f"{problem[:1].lower()}{problem[1:_SHOWN_CHARACTERS]}"
    if noun:
        return InputError(
            f"is not a {noun}: {f'{place}: ' if place else ''}{message}",
            where=where,
            hint=hint,
        )
    return InputError(message, where=f"{where}: {place}" if place else where, hint=hint)
