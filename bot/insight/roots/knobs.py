"""Owns the knobs of a configuration: what the compiler chose, name by name, and what of it differs between two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

PIPELINE = "pipeline"
_NAMED = re.compile(r"([A-Za-z_]\w*) = ((?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])|[\w.+-]+)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+")
_SHORT_CHARACTERS = 40
_MOST_PAIRS = 2
OTHER = "other values"
_LONGEST = 4_000
"""Of a configuration, in characters: real ones have hundreds."""
SET, UNSET = "set", "not set"


@lru_cache(maxsize=4096)
def knobs(configuration: str) -> Mapping[str, str]:
    """Name → value; a name that several operations have has all its values, a word alone is `set`."""
    configuration, found = configuration[:_LONGEST], dict[str, str]()
    for name, value in _NAMED.findall(configuration):
        found[name] = f"{found[name]}; {value}" if name in found and value not in found[name] else value
    pipeline, *words = _WORD.findall(_NAMED.sub(" ", configuration)) or [""]
    return {PIPELINE: pipeline, **dict.fromkeys(words, SET), **found}


@lru_cache(maxsize=4096)
def turned(base: str, head: str) -> Mapping[str, str]:
    """Knob that differs → its pattern of values: `1 → 8` for elements that differ, `other values` where many do."""
    left, right = knobs(base), knobs(head)
    names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    return {name: _pattern(name, left.get(name, UNSET), right.get(name, UNSET)) for name in names}


def _pattern(name: str, base: str, head: str) -> str:
    left, right = _NUMBER.findall(base), _NUMBER.findall(head)
    if _NUMBER.sub("", base) == _NUMBER.sub("", head):
        moved = sorted({pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]})
        return " and ".join(f"{a} → {b}" for a, b in moved) if len(moved) <= _MOST_PAIRS else OTHER
    whole = f"{base} → {head}"
    return whole if name == PIPELINE or len(whole) <= _SHORT_CHARACTERS else OTHER
