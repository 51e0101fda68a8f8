"""Removes source locations, `loc(…)`, from IR as MLIR prints it, where only the program counts.

Where several are fused the compiler lists them in the order of their addresses, which are random; and a diagnostic has
them only because compiles here ask for them, the printed command does not.
"""

from __future__ import annotations

import re

_PARENTHESES = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_PLACE = " loc("


def without_places(text: str) -> str:
    """The text without its locations, whatever stands in them; one that is cut off ends the text."""
    kept, at = [], 0
    while (start := text.find(_PLACE, at)) >= 0:
        kept.append(text[at:start])
        at = _closing(text, start + len(_PLACE) - 1)
    kept.append(text[at:])
    return "\n".join(line for line in "".join(kept).split("\n") if not line.startswith("#loc"))


def _closing(text: str, opening: int) -> int:
    """Behind the parenthesis that closes the one at `opening`; the end of the text where none does."""
    depth = 0
    for found in _PARENTHESES.finditer(text, opening):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)
