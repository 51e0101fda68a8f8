"""Look up the IR of a dispatch as people read it, by its digest."""

from __future__ import annotations

from collections.abc import Callable

from bot.core.program import Program
from bot.core.reading import ProgramFacts

Texts = Callable[[str], "str | None"]
"""Digest of a source → its IR as people read it; None if the text is missing."""


def no_texts(_: str) -> str | None:
    """Return None for every digest: the lookup of IR if no side brought any."""
    return None


def shown_texts(facts: ProgramFacts, program: Program) -> dict[str, str]:
    """Return source digest → the executable's IR for people.

    The first of several equal executables counts.
    """
    texts: dict[str, str] = {}
    for text, source in zip(facts.sources, program.sources, strict=True):
        texts.setdefault(source.source, text.shown)
    return texts
