"""Small texts whose short digests are equal, found by trying: as programs of a few thousand executables have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count

from bot.core.program import Source
from bot.core.reading import SourceText
from bot.core.snapshot import CODE_CHARACTERS, SOURCE_CHARACTERS
from bot.explain.texts import fingerprint
from bot.readers.elf import code_digest


def source_of(text: str) -> Source:
    """What a snapshot says of an executable `e` with this IR."""
    return fingerprint(SourceText("e", text, f"shown {text}"))


def _collision(digest: Callable[[str], str], characters: int) -> tuple[str, str]:
    seen: dict[str, str] = {}
    for number in count():
        text = f"op {number}"
        other = seen.setdefault(digest(text)[:characters], text)
        if other != text:
            return other, text
    raise AssertionError("numbers do not end")


@cache
def colliding_sources() -> tuple[str, str]:
    """Two texts of IR that share the 30 bits that a baseline keeps of them; about 30,000 tries."""
    return _collision(lambda text: source_of(text).source, SOURCE_CHARACTERS)


@cache
def colliding_code() -> tuple[str, str]:
    """Digests of two pieces of code that share 24 bits."""
    left, right = _collision(lambda text: code_digest(text.encode()), CODE_CHARACTERS)
    return code_digest(left.encode()), code_digest(right.encode())
