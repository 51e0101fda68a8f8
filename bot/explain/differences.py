"""Show the smallest piece that differs in a changed dispatch.

It is a unified diff of IR or of configurations, of a bounded length.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from itertools import islice

from bot.explain.knobs import PIPELINE, UNNAMED, knobs, turned
from bot.explain.strategies import (
    configured_parts,
    without_operations,
)
from bot.explain.texts import Texts

LINES = 40
LINE_CHARACTERS = 200
CONTEXT_LINES = 2
# Of either text: the comparison is quadratic at worst, and what is beyond would not be
# shown
LARGEST_LINES = 2_000
NOTED_KNOBS = 3
_OPERAND = re.compile(r", (?=%|affine_map<)")


def unified(base_text: str, head_text: str) -> tuple[str, ...]:
    """Return the unified diff of two texts; empty if they are equal.

    It has at most LINES, and one that counts the others.
    """
    if base_text == head_text:
        return ()
    lines = difflib.unified_diff(
        base_text.splitlines()[:LARGEST_LINES],
        head_text.splitlines()[:LARGEST_LINES],
        fromfile="base",
        tofile="head",
        lineterm="",
        n=CONTEXT_LINES,
    )
    clipped = tuple(map(_clean, islice(lines, LINES)))
    hidden = len(list(lines))
    if hidden:
        return (*clipped, f"… {hidden} more lines")
    return clipped


def _clean(line: str) -> str:
    """Return a line clipped, with a blank for each character that cannot be printed."""
    clipped = line
    if len(line) > LINE_CHARACTERS:
        clipped = line[: LINE_CHARACTERS - 1] + "…"
    if clipped.isprintable():
        return clipped
    return "".join(letter if letter.isprintable() else " " for letter in clipped)


@lru_cache(maxsize=4096)
def strategy_diff(base: str, head: str) -> tuple[str, ...]:
    """Return the unified diff of two configurations, a line for each named value."""
    return unified(*map(_knob_lines, without_operations(base, head)))


def _knob_lines(parts: tuple[str, ...]) -> str:
    lines = []
    for name, values in knobs(parts).items():
        lines.append(f"{name} = {'; '.join(values)}")
    return "\n".join(lines)


@lru_cache(maxsize=4096)
def strategy_note(base: str, head: str) -> str:
    """Return the first knobs that differ: `Tiling … tile 8 → 4`."""
    changes = turned(base, head)
    if not changes:
        return UNNAMED
    noted = [f"{name} {change}" for name, change in changes.items()]
    note = "; ".join(noted[:NOTED_KNOBS])
    if PIPELINE not in changes:
        note = f"{knobs(configured_parts(head))[PIPELINE][0]} … {note}"
    if len(noted) > NOTED_KNOBS:
        note = f"{note}; {len(noted) - NOTED_KNOBS} more"
    return _clean(note)


def source_diff(base: str | None, head: str | None, texts: Texts) -> tuple[str, ...]:
    """Return the unified diff of the IR of two sources, given by digest.

    It is empty if either text is missing.
    """
    if base is None or head is None or base == head:
        return ()
    base_text = texts(base)
    head_text = texts(head) if base_text is not None else None
    if base_text is None or head_text is None:
        return ()
    return unified(_wrapped(base_text), _wrapped(head_text))


def _wrapped(text: str) -> str:
    """Write one operand a line if a line would be clipped.

    A signature may differ in one argument of many.
    """
    lines = []
    for line in text.splitlines():
        if len(line) > LINE_CHARACTERS:
            line = _OPERAND.sub(",\n    ", line)
        lines.append(line)
    return "\n".join(lines)
