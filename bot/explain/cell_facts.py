"""The facts that all dispatches of a changed cell share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bot.core.explanation import PassChange
from bot.core.program import Source
from bot.explain.compared import Compared
from bot.explain.matching import Match
from bot.explain.phases import Cause
from bot.explain.texts import Texts


def source_digest(source: Source | None) -> str | None:
    """Return the digest of a source; None without one."""
    if source:
        return source.source
    return None


class CellFacts(NamedTuple):
    """The facts that all dispatches of a cell share."""

    compared: Compared
    cause: Cause
    texts: Texts
    components: Sequence[Mapping[str, str]]
    base_compiler: str

    def sources(self, match: Match) -> tuple[Source | None, Source | None]:
        """Return the sources of a match on base and on head."""
        base = self.compared.base.source(match.base) if match.base else None
        head = self.compared.head.source(match.head) if match.head else None
        return base, head


Traced = tuple[PassChange | None, str]
"""The pass that parts two dispatches, or why none can be named."""
