"""The digests of one executable: what it is, its structure, and the sum of its operations."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from bot.core.program import Source
from bot.core.reading import SourceText
from bot.insight.family_graph import element_of, is_named, is_scalar
from bot.insight.family_views import key, structural_constant, without_shapes
from bot.insight.tokens import Reader, Text

SOURCE_CHARACTERS = 5
STRUCTURE_CHARACTERS = 4
BOUND_CHARACTERS = 4
_SUM = 1 << 32


def digest_of(parts: Iterable[str], characters: int) -> str:
    """That many characters of base64url (6 bits each) of the SHA-256 of the parts, a line each."""
    whole = hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).digest()
    return base64.urlsafe_b64encode(whole).decode()[:characters]


def _normalised(text: Text) -> Iterable[str]:
    """Lines without names, and the names as numbers in order of appearance."""
    numbers: dict[str, int] = {}
    for template, names in text.lines:
        defined = len(names) if template.block_types is not None else min(len(names), template.results)
        packed = template.text.startswith("%:")
        for name in names[: 1 if packed else defined]:
            numbers[name] = len(numbers)
        yield template.text
        yield ",".join(_numbered(name, numbers) for name in names)


def _numbered(name: str, numbers: dict[str, int]) -> str:
    value, _, part = name.partition("#")
    number = numbers.setdefault(value, len(numbers))
    return f"{number}#{part}" if part else str(number)


def _operations(text: Text) -> int:
    """Sum of 32-bit hashes of the scalar operations (with their type) and of the named ones."""
    said = [f"{one.name} {element_of(one)}" for one in text.operations if is_scalar(one)]
    said += [one.name for one in text.operations if is_named(one)]
    return sum(int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") for word in said) % _SUM


def fingerprint(text: SourceText, reader: Reader | None = None) -> Source:
    """The digests of an executable; lengths as `bot.core.program` says.

    A text that cannot be read has only digests of its bytes, and 0 as the sum of its operations.
    """
    read = (reader or Reader()).read(text.generic)
    if read is None:
        only = digest_of([text.generic], SOURCE_CHARACTERS)
        return Source(text.executable, only, only[:STRUCTURE_CHARACTERS], 0)
    row = key(read, without_shapes, structural_constant)
    structure = digest_of(map(str, row), STRUCTURE_CHARACTERS)
    return Source(text.executable, digest_of(_normalised(read), SOURCE_CHARACTERS), structure, _operations(read))
