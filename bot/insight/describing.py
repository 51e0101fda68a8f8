"""From the facts of one model's IR to what a snapshot keeps of it."""

from __future__ import annotations

from bot.core.program import Family, Program
from bot.core.reading import ProgramFacts
from bot.insight.families import families
from bot.insight.fingerprints import fingerprint
from bot.insight.tokens import Reader


def describe(facts: ProgramFacts) -> tuple[Program, tuple[Family, ...]]:
    """The program as digests, and the families of executables that deduplication left behind."""
    reader = Reader()
    program = Program(
        phases=dict(facts.phases),
        linalg_ops_before=facts.linalg_ops_before,
        sources=tuple(fingerprint(text, reader) for text in facts.sources),
        sites=facts.sites,
        arguments=facts.arguments,
    )
    return program, families(facts.sources, reader)


def shown_texts(facts: ProgramFacts) -> dict[str, str]:
    """Source digest → the executable's IR for people; the first one where several are equal."""
    reader = Reader()
    found: dict[str, str] = {}
    for text in facts.sources:
        found.setdefault(fingerprint(text, reader).source, text.shown)
    return found
