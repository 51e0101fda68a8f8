"""JSON text: canonical on the way out; on the way in of one type, or refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar

import msgspec

from bot.core.codec.kinds import Headed, mistaken
from bot.errors import InputError

_T = TypeVar("_T")
_SHOWN_CHARACTERS = 200
_CUT_OFF = "Input data was truncated"
"""The library's words for a text that ends too early."""
_ENCODER = msgspec.json.Encoder(order="sorted")
_made: Callable[[Any], msgspec.json.Decoder[Any]] = lru_cache(msgspec.json.Decoder)
_ONE_AT_A_TIME = Lock()
"""The library fills in what it knows of a type when it is first asked for; two threads that ask at once crash it."""


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _ONE_AT_A_TIME:
        return _made(kind)


def canonical(value: Any) -> bytes:
    """Sorted keys, no blanks, UTF-8: equal values give equal bytes."""
    return _ENCODER.encode(value)


def decoded(
    text: bytes | str, kind: type[_T], where: str, hint: str = "", noun: str = "", size_bytes: int | None = None
) -> _T:
    """The value of the text; raises InputError naming `where`, the field and what is wrong with it.

    Text that is no UTF-8 raises UnicodeDecodeError.

    Args:
        noun: what the text should be, for the message (`report`).
        size_bytes: of the file, where the text is not the whole of it.
    """
    try:
        value: _T = _decoder(kind).decode(text)
        return value
    except (msgspec.DecodeError, RecursionError) as error:
        if other := mistaken(text, noun):
            raise InputError(other[0], where=where, hint=other[1]) from None
        if isinstance(error, msgspec.ValidationError):
            raise _refused(error, where, hint, noun) from None
        what = f"is not JSON, or was cut off: {error}"
        what = f"is not a {noun}: it {_no_json(error, text, size_bytes)}" if noun else what
        raise InputError(what, where=where, hint=hint) from None


def _no_json(error: Exception, text: bytes | str, size_bytes: int | None) -> str:
    read = len(text.encode("utf-8", "replace") if isinstance(text, str) else text)
    if str(error) != _CUT_OFF and not str(error).endswith(f"(byte {read})"):
        return f"is not JSON: {error}"
    size = read if size_bytes is None else size_bytes
    return f"ends after {size:,} {'byte' if size == 1 else 'bytes'}: truncated?" if size else "is empty"


def converted(plain: Any, kind: type[_T], where: str) -> _T:
    """The value of plain dicts and lists, as one type; raises InputError naming the field."""
    _decoder(kind)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _refused(error, where) from None


def require_schema(
    text: bytes | str, schema: str, noun: str, where: str, hint: str, size_bytes: int | None = None
) -> None:
    """Raises InputError for text of another schema: its other fields are none that anybody has to look at."""
    own = decoded(text, Headed, where, hint, noun, size_bytes).schema
    if own != schema:
        if other := mistaken(text, noun):
            raise InputError(other[0], where=where, hint=other[1])
        shown = repr(own if len(own) <= 60 else f"{own[:57]}...") if own else "missing"
        what = f"is not a {noun} that this version reads: its schema is {shown}, not {schema!r}"
        raise InputError(what, where=where, hint=hint)


def _refused(error: msgspec.ValidationError, where: str, hint: str = "", noun: str = "") -> InputError:
    """The library's message, and its place (`$.cells[3].status`) where the project's messages have theirs."""
    what, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").lstrip(".")[:_SHOWN_CHARACTERS]
    said = f"{what[:1].lower()}{what[1:_SHOWN_CHARACTERS]}"
    if noun:
        return InputError(f"is not a {noun}: {f'{place}: ' if place else ''}{said}", where=where, hint=hint)
    return InputError(said, where=f"{where}: {place}" if place else where, hint=hint)
