"""From the facts of one model's IR to what a snapshot keeps of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from bot.core.values.program import Family, Program, Source
from bot.core.values.reading import ProgramFacts, SourceText
from bot.insight.facts.fingerprints import digest_of, fingerprint
from bot.insight.facts.tokens import Reader
from bot.insight.families.families import families


def describe(facts: ProgramFacts) -> tuple[Program, tuple[Family, ...]]:
    """The program as digests, and the families of executables that deduplication left behind."""
    reader, bound, parts = Reader(), _bound(facts), _bound_parts(facts)
    program = Program(
        phases=dict(facts.phases),
        linalg_ops_before=facts.linalg_ops_before,
        sources=tuple(_source(text, bound, parts, reader) for text in facts.sources),
        sites=facts.sites,
        arguments=facts.arguments,
    )
    return program, families(facts.sources, reader)


def _source(text: SourceText, bound: Mapping[str, str], parts: Mapping[str, tuple[str, ...]], reader: Reader) -> Source:
    said = bound.get(text.executable, ""), parts.get(text.executable, ())
    return structs.replace(fingerprint(text, reader), bound=said[0], bound_parts=said[1])


def _bound(facts: ProgramFacts) -> dict[str, str]:
    """Executable → digest over its entry points with their buffers."""
    found: dict[str, list[str]] = {}
    for entry in facts.entry_points:
        found.setdefault(entry.executable, []).append(entry.bound)
    return {executable: digest_of(texts) for executable, texts in found.items() if all(texts)}


def _bound_parts(facts: ProgramFacts) -> dict[str, tuple[str, ...]]:
    """Executable → the same for each part of what is bound, where all its entry points have them."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for entry in facts.entry_points:
        found.setdefault(entry.executable, []).append(entry.bound_parts)
    return {
        executable: tuple(map(digest_of, zip(*rows, strict=True)))
        for executable, rows in found.items()
        if len(set(map(len, rows))) == 1
    }


def shown_texts(facts: ProgramFacts, program: Program) -> dict[str, str]:
    """Source digest → the executable's IR for people; the first one where several are equal."""
    found: dict[str, str] = {}
    for text, source in zip(facts.sources, program.sources, strict=True):
        found.setdefault(source.source, text.shown)
    return found
