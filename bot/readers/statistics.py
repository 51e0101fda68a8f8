"""The compiler's own scheduling statistics (`--iree-scheduling-dump-statistics-file`, format `json`)."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.codec.checked import is_count
from bot.core.codec.nesting import parse_json
from bot.errors import MalformedBinary


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the statistics count of the program; None where a release does not write the key."""

    dispatch_sites: int | None
    executables: int | None


def read_statistics(text: str) -> Statistics:
    """Read `stream-aggregate`, the totals over the whole program.

    Raises:
        MalformedBinary: the text is not JSON, or a count is no count.
    """
    try:
        document = parse_json(text)
    except ValueError as error:
        raise MalformedBinary(f"not JSON: {error}", where="scheduling statistics") from error
    return Statistics(
        dispatch_sites=_count(document, "execution", "dispatch-count"),
        executables=_count(document, "executable", "executable-count"),
    )


def _count(document: object, group: str, key: str) -> int | None:
    value = document
    for name in ("stream-aggregate", group, key):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None or is_count(value):
        return value
    raise MalformedBinary(f"{group}.{key} is no count: {value!r:.40}", where="scheduling statistics")
