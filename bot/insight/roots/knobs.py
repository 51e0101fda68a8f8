"""The knobs of a configuration: what the compiler chose, name by name, and what of it differs between two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

PIPELINE = "pipeline"
_NAMED = re.compile(r"([A-Za-z_]\w*) = ((?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])|[\w.+-]+)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+")
_MOST_PAIRS = 2
_LONGEST = 4_000
"""Of a configuration, in characters: real ones have hundreds."""
SET, UNSET = "set", "not set"


@lru_cache(maxsize=4096)
def knobs(configuration: str) -> Mapping[str, tuple[str, ...]]:
    """Name → its values, one for each configuration that has it, in order; a word alone is `set`."""
    configuration, values = configuration[:_LONGEST], dict[str, tuple[str, ...]]()
    for name, value in _NAMED.findall(configuration):
        values[name] = (*values.get(name, ()), value)
    pipeline, *words = _WORD.findall(_NAMED.sub(" ", configuration)) or [""]
    return {PIPELINE: (pipeline,), **dict.fromkeys(words, (SET,)), **values}


@lru_cache(maxsize=4096)
def turned(base: str, head: str) -> Mapping[str, str]:
    """Knob that differs → its change: `1 → 8` for elements that differ, else both values."""
    left, right = knobs(base), knobs(head)
    names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    return {name: _change(left.get(name, ()), right.get(name, ())) for name in names}


def _change(base: tuple[str, ...], head: tuple[str, ...]) -> str:
    """The very values: two changes are told alike only where they are."""
    if len(base) == len(head) and [_NUMBER.sub("", one) for one in base] == [_NUMBER.sub("", one) for one in head]:
        pairs = zip(_NUMBER.findall("; ".join(base)), _NUMBER.findall("; ".join(head)), strict=True)
        moved = sorted({pair for pair in pairs if pair[0] != pair[1]})
        if len(moved) <= _MOST_PAIRS:
            return " and ".join(f"{one} → {other}" for one, other in moved)
    gone, come = Counter(base) - Counter(head), Counter(head) - Counter(base)
    if base and head and not (gone and come):  # other configurations have it, too, or no longer
        count, of = (gone or come).total(), "; ".join(gone or come)
        return f"{of} in {count} {'configuration' if count == 1 else 'configurations'} {'fewer' if gone else 'more'}"
    return f"{'; '.join(base) or UNSET} → {'; '.join(head) or UNSET}"
