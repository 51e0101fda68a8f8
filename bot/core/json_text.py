"""Read and write JSON; wrong text is refused with the key and the line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar

import msgspec

from bot.errors import InputError

_K = TypeVar("_K")
_TEXT = re.compile(r"(?:[\w.:$-]+ [1-9]\d{0,15}(?: (?!$)|$))*")


def without_zeros(counts: Mapping[_K, int]) -> dict[_K, int]:
    """Return the counts that are not 0, in their own order."""
    return {name: count for name, count in counts.items() if count}


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not 0, in the names' order."""
    return dict(sorted(without_zeros(counts).items()))


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts that are not 0 as text, in the order of their names.

    No name may have a blank.
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
    """Parse untrusted JSON.

    Raises ValueError if it is malformed or nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


_T = TypeVar("_T")
_SHOWN_CHARACTERS = 200
_ENCODER = msgspec.json.Encoder(order="sorted")
_made: Callable[[Any], msgspec.json.Decoder[Any]] = lru_cache(msgspec.json.Decoder)
_PILED = frozenset({"cells", "points"})  # each entry on a line of its own
_ONE_AT_A_TIME = Lock()
"""Held while a decoder is made: two threads that do so at once crash the library."""


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type, for any thread."""
    with _ONE_AT_A_TIME:
        return _made(kind)


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys, without blanks, in UTF-8.

    Equal values give equal bytes.
    """
    return _ENCODER.encode(value)


def lines(
    record: msgspec.Struct | Mapping[str, Any], cells: Iterable[Any] | None = None
) -> Iterator[bytes]:
    """Yield the canonical JSON of one object.

    Sorted keys, and a line for each field that is set, for each cell and program.

    `cells`: come one by one, in place of the record's own.
    """
    if not isinstance(record, Mapping):
        record = msgspec.structs.asdict(record)
    fields = []
    for name, value in sorted(record.items()):
        if value is not msgspec.UNSET:
            fields.append((name, value))
    for index, (name, value) in enumerate(fields):
        yield b"%c%s:" % (b"{,"[index > 0], canonical(name))
        if name in _PILED:
            yield from _piled(b"[]", map(canonical, value if cells is None else cells))
        elif name == "programs":
            yield from _piled(b"{}", _entries(value))
        else:
            yield canonical(value) + b"\n"
    yield b"}\n"


def _entries(values: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the entries of an object, sorted by their names."""
    for name in sorted(values):
        yield canonical(name) + b":" + canonical(values[name])


def _piled(brackets: bytes, entries: Iterable[bytes]) -> Iterator[bytes]:
    yield brackets[:1]
    for number, entry in enumerate(entries):
        yield (b",\n" if number else b"\n") + entry
    yield brackets[1:] + b"\n"


def filled(**values: object) -> dict[str, object]:
    """Return the values without those that are empty; numbers stay, even 0."""
    result = {}
    for name, value in values.items():
        if value or isinstance(value, int):
            result[name] = value
    return result


def decoded(
    text: bytes | str, kind: type[_T], where: str, hint: str = "", noun: str = ""
) -> _T:
    """Return the value of the text.

    Raises InputError naming `where` and the field, and UnicodeDecodeError.

    `noun`: what the text should be, for the message.
    """
    try:
        value: _T = decoder(kind).decode(text)
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
    """Return plain dicts and lists as a value of one type.

    Raises InputError that names the field.
    """
    decoder(kind)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _refused(error, where) from None


class _TwiceError(Exception):
    """A key that stands twice in one object; args: the key."""


def _require_single(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    counts = Counter(key for key, _ in pairs)
    raise _TwiceError(counts.most_common(1)[0][0])


def require_single_keys(text: bytes | str, where: str, hint: str = "") -> None:
    """Raise InputError for JSON with an object that has a key twice.

    Readers disagree about the value of such a key.
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
    """Raise InputError for text of another schema, or with a repeated key."""
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
    """Return the library's message as an InputError that names the place.

    An example of a place is `$.cells[3].status`.
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
