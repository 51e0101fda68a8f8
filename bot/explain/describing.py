"""What a snapshot keeps of one model's IR: the digests of its executables, and their families."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import structs

from bot.core.json_text import counts_text
from bot.core.program import Family, Program, Source
from bot.core.reading import ProgramFacts, SourceText
from bot.core.snapshot_json import SUM_MODULUS, written
from bot.explain.families.families import families
from bot.explain.families.family_graph import element_of, is_named, is_scalar
from bot.explain.families.family_views import key, structural_constant, without_shapes
from bot.explain.texts import Reader, Text


def describe(facts: ProgramFacts) -> tuple[Program, tuple[Family, ...]]:
    """The program as digests, and the families of executables that deduplication left behind."""
    reader, bound, parts = Reader(), _bound(facts), _bound_parts(facts)
    program = Program(
        phases=dict(facts.phases),
        linalg_ops_before=facts.linalg_ops_before,
        sources=tuple(
            structs.replace(
                fingerprint(text, reader),
                bound=bound.get(text.executable, ""),
                bound_parts=parts.get(text.executable, ()),
            )
            for text in facts.sources
        ),
        sites=facts.sites,
        arguments=facts.arguments,
        operations=None if facts.operations is None else counts_text(facts.operations),
        places=dict(facts.places),
    )
    return program, families(facts.sources, reader)


def _bound(facts: ProgramFacts) -> dict[str, str]:
    """Executable → digest over its entry points with their buffers."""
    digests: dict[str, list[str]] = {}
    for entry in facts.entry_points:
        digests.setdefault(entry.executable, []).append(entry.bound)
    return {executable: _digest_of(texts) for executable, texts in digests.items() if all(texts)}


def _bound_parts(facts: ProgramFacts) -> dict[str, tuple[str, ...]]:
    """Executable → the same for each part of what is bound, where all its entry points have them."""
    parts: dict[str, list[tuple[str, ...]]] = {}
    for entry in facts.entry_points:
        parts.setdefault(entry.executable, []).append(entry.bound_parts)
    return {
        executable: tuple(map(_digest_of, zip(*rows, strict=True)))
        for executable, rows in parts.items()
        if len(set(map(len, rows))) == 1
    }


def shown_texts(facts: ProgramFacts, program: Program) -> dict[str, str]:
    """Source digest → the executable's IR for people; the first one where several are equal."""
    texts: dict[str, str] = {}
    for text, source in zip(facts.sources, program.sources, strict=True):
        texts.setdefault(source.source, text.shown)
    return texts


def _digest_of(parts: Iterable[str]) -> str:
    return written(_sha256("\n".join(parts)))


def _sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


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


def fingerprint(text: SourceText, reader: Reader | None = None) -> Source:
    """The digests of an executable.

    A text that cannot be read has only digests of its bytes, and 0 as the sum of its operations.
    """
    read = (reader or Reader()).read(text.generic)
    if read is None:
        only = _digest_of([text.generic])
        return Source(text.executable, only, only, 0)
    row = key(read, without_shapes, structural_constant)
    # The low half of each hash is the beginning of its SHA-256: the low half of the sum is what baselines always had.
    said = [f"{one.name} {element_of(one)}" for one in read.operations if is_scalar(one)]
    said += [one.name for one in read.operations if is_named(one)]
    hashes = (_sha256(word) for word in said)
    return Source(
        text.executable,
        _digest_of(_normalised(read)),
        _digest_of(map(str, row)),
        sum(int.from_bytes(each[4:8] + each[:4], "big") for each in hashes) % SUM_MODULUS,
    )
