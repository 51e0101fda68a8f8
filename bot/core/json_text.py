"""JSON text to values and back, bounded, and refused with the key and the line where something is wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import accumulate
from threading import Lock
from typing import Any, TypeVar

import msgspec

from bot.errors import InputError

_TEXT = re.compile(r"(?:[\w.:$-]+ [1-9]\d{0,15}(?: (?!$)|$))*")


def counts_text(counts: Mapping[str, int]) -> str:
    """Names and counts in the names' order; names have no blanks, what is 0 is left out."""
    return " ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)


@lru_cache(maxsize=1024)
def known_counts(text: str | None) -> Counter[str] | None:
    """The counts of such a text; None without one, and for a foreign snapshot's that is none. Not to be changed."""
    if text is None or not _TEXT.fullmatch(text):
        return None
    words = text.split()
    return Counter(dict(zip(words[::2], map(int, words[1::2]), strict=True)))


# JSON from strangers. Nesting that is too deep is refused before a parser recurses into it: at the end of the stack
# RecursionError comes wherever it happens to be, in a finalizer too, where nobody can catch it.

MAX_DEPTH = 100  # no document that is read here has a tenth of it

_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""As signed bytes: +1 where an array or object begins, -1 where it ends."""
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))


def refuse_deep(text: str | bytes) -> None:
    """Raises ValueError where arrays and objects stand more than MAX_DEPTH deep in each other; in linear time.

    Of text (bytes are UTF-8) that is no JSON it is exact up to the first mistake, as far as any parser comes.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    depths = accumulate(memoryview(outside_strings.translate(_STEPS, _OTHERS)).cast("b"))
    if max(depths, default=0) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def parse_json(text: str | bytes) -> Any:
    """The value of JSON of anybody; raises ValueError for what is none, or is nested too deep.

    Bytes are UTF-8, as RFC 8259 has it (8.1), with or without a byte order mark.
    """
    refuse_deep(text)
    return json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))


_T = TypeVar("_T")
_SHOWN_CHARACTERS = 200
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


def decoded(text: bytes | str, kind: type[_T], where: str, hint: str = "", noun: str = "") -> _T:
    """The value of the text; raises InputError naming `where` and the field, and UnicodeDecodeError.

    `noun`: what the text should be, for the message.
    """
    try:
        value: _T = _decoder(kind).decode(text)
        return value
    except msgspec.ValidationError as error:
        raise _refused(error, where, hint, noun) from None
    except (msgspec.DecodeError, RecursionError) as error:
        what = f"is not JSON, or was cut off: {error}"
        raise InputError(f"is not a {noun}: it {what}" if noun else what, where=where, hint=hint) from None


def converted(plain: Any, kind: type[_T], where: str) -> _T:
    """The value of plain dicts and lists, as one type; raises InputError naming the field."""
    _decoder(kind)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _refused(error, where) from None


class _Headed(msgspec.Struct):
    schema: str = ""


def require_schema(text: bytes | str, schema: str, noun: str, where: str, hint: str) -> None:
    """Raises InputError for text of another schema: its other fields are none that anybody has to look at."""
    own = decoded(text, _Headed, where, hint, noun).schema
    if own != schema:
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
