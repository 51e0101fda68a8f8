"""Counts of named things as one line of text, so that a row of a snapshot stays flat: `addf 12 mulf 8`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

_TEXT = re.compile(r"(?:[\w.:$-]+ [1-9]\d{0,15}(?: (?!$)|$))*")


def counts_text(counts: Mapping[str, int]) -> str:
    """Names and counts in the names' order; names have no blanks, what is 0 is left out."""
    return " ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)


@lru_cache(maxsize=1024)
def known_counts(text: str | None) -> Counter[str] | None:
    """The counts of such a text; None without one, and for a foreign snapshot's that is none. Not to be changed."""
    if text is None or not _TEXT.fullmatch(text):
        return None
    words = text.split()
    return Counter(dict(zip(words[::2], map(int, words[1::2]), strict=True)))
