"""The smallest differing piece of a changed dispatch: unified diffs of IR and of configurations, capped."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from bot.insight.causes.matching import Match
from bot.insight.facts.precision import Texts

LINES = 40
LINE_CHARACTERS = 200
CONTEXT_LINES = 2
LARGEST_LINES = 2_000
"""Of either text: the comparison is quadratic at worst, and what is beyond would not be shown."""
SHORT_CHARACTERS = 40
NOTED_PARTS = 3
_PIPELINE = "#0"
_OPERAND = re.compile(r", (?=%|affine_map<)")


def unified(base_text: str, head_text: str, limit_lines: int = LINES) -> tuple[str, ...]:
    """Unified diff of two texts; empty where equal; at most `limit_lines` and one that counts the rest."""
    if base_text == head_text:
        return ()
    return _diff(base_text.splitlines(), head_text.splitlines(), limit_lines)


def _diff(base: Sequence[str], head: Sequence[str], limit_lines: int) -> tuple[str, ...]:
    left, right = base[:LARGEST_LINES], head[:LARGEST_LINES]
    lines = difflib.unified_diff(left, right, "base", "head", lineterm="", n=CONTEXT_LINES)
    shown = tuple(_clean(line) for line in islice(lines, limit_lines))
    more = sum(1 for _ in lines)
    return (*shown, f"… {more} more lines") if more else shown


def _clean(line: str) -> str:
    clipped = line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…"
    return clipped if clipped.isprintable() else "".join(c if c.isprintable() else " " for c in clipped)


def pieces(strategy: str) -> list[str]:
    """The parts of a configuration: split at `|` and at commas outside of brackets."""
    result, depth = [""], 0
    for character in strategy:
        depth += (character in "[({") - (character in "])}")
        if character == "|" or (character == "," and depth <= 0):
            result.append("")
        else:
            result[-1] += character
    return [piece.strip() for piece in result if piece.strip()]


@lru_cache(maxsize=4096)
def strategy_diff(base: str, head: str) -> tuple[str, ...]:
    """Unified diff of two configurations, a line for each part."""
    return () if base == head else _diff(pieces(base), pieces(head), LINES)


@lru_cache(maxsize=4096)
def strategy_note(base: str, head: str) -> str:
    """Both configurations, whole where short, else their parts that differ: `Tiling … tile = [8, 0] → [4, 0]`.

    A part that keeps its name (`tile`) is shown with both values; only the first parts are, and the rest is counted.
    """
    if max(len(base), len(head)) <= SHORT_CHARACTERS:
        return _clean(f"{base} → {head}")
    left, right = _named(base), _named(head)
    differing = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    shown = [_change(name, left.get(name), right.get(name)) for name in differing[:NOTED_PARTS]]
    same = "" if _PIPELINE in differing else f"{_short(left.get(_PIPELINE, ''))} … "
    more = f"; {len(differing) - NOTED_PARTS} more" if len(differing) > NOTED_PARTS else ""
    return _clean(same + "; ".join(shown) + more)


def _named(strategy: str) -> dict[str, str]:
    """Name → value of the parts; what has no name goes by its number, the pipeline's is the first."""
    named: dict[str, str] = {}
    for piece in pieces(strategy):
        name, equals, value = piece.partition(" = ")
        if equals and name.isidentifier():
            named[name] = value
        else:
            named[f"#{sum(key.startswith('#') for key in named)}"] = piece
    return named


def _change(name: str, base: str | None, head: str | None) -> str:
    before, after = ("nothing" if value is None else _short(value) for value in (base, head))
    return f"{before} → {after}" if name.startswith("#") else f"{name} = {before} → {after}"


def _short(piece: str) -> str:
    return piece if len(piece) <= SHORT_CHARACTERS else piece[: SHORT_CHARACTERS - 1] + "…"


def source_diff(base: str | None, head: str | None, texts: Texts) -> tuple[str, ...]:
    """Unified diff of the IR of two sources, given by whole digest; empty where either text is not at hand."""
    if base is None or head is None or base == head:
        return ()
    left = texts(base)
    right = texts(head) if left is not None else None
    return () if left is None or right is None else unified(_wrapped(left), _wrapped(right))


def _wrapped(text: str) -> str:
    """One operand a line where a line would be clipped: a signature differs in one argument of many."""
    lines = (_OPERAND.sub(",\n    ", line) if len(line) > LINE_CHARACTERS else line for line in text.splitlines())
    return "\n".join(lines)


def dispatch_diff(match: Match, sources: tuple[str | None, str | None], texts: Texts) -> tuple[str, ...]:
    """The smallest differing piece of a pair: of its IR where that differs, else of its configuration.

    `sources` are the digests to compare: of the pair, or of two executables of one side that were one on the other.
    """
    if sources[0] != sources[1]:
        return source_diff(*sources, texts)
    base, head = match.base, match.head
    if base is None or head is None or base.strategy is None or head.strategy is None:
        return ()
    return strategy_diff(base.strategy, head.strategy)
