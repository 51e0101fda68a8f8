"""Find the knobs in which two configurations differ, and say how each changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from bot.core.explanation import OTHER_CONFIGURATION
from bot.core.words import noun_of
from bot.explain.strategies import without_operations

PIPELINE = "pipeline"
_KNOB = re.compile(
    r"([A-Za-z_]\w*) = ((?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])|[\w.+-]+)"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+")
_MOST_PAIRS = 2
_LONGEST = 16_000  # Of a configuration, in characters: real ones have hundreds
SET = "set"
UNSET = "not set"
ON_OTHER_OPERATIONS = "with the same values on other operations"
UNNAMED = f"{OTHER_CONFIGURATION}, but all named values are equal"


@lru_cache(maxsize=4096)
def knobs(parts: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return name → its values, one for each configuration that has it, in order.

    The value of a word without a value is `set`.

    Args:
        parts: the pipeline and the configurations, without the names of their
            operations.
    """
    configuration = " | ".join(parts)[:_LONGEST]
    values = dict[str, tuple[str, ...]]()
    for name, value in _KNOB.findall(configuration):
        values[name] = (*values.get(name, ()), value)
    pipeline, *bare_words = _WORD.findall(_KNOB.sub(" ", configuration)) or [""]
    return {PIPELINE: (pipeline,), **dict.fromkeys(bare_words, (SET,)), **values}


@lru_cache(maxsize=4096)
def turned(base: str, head: str) -> Mapping[str, str]:
    """Return knob that differs → its change.

    `1 → 8` for elements that differ, else both values.
    """
    base_parts, head_parts = without_operations(base, head)
    base_knobs = knobs(base_parts)
    head_knobs = knobs(head_parts)
    changes = dict[str, str]()
    for name in {**base_knobs, **head_knobs}:
        base_values = base_knobs.get(name, ())
        head_values = head_knobs.get(name, ())
        if base_values != head_values:
            changes[name] = _change(base_values, head_values)
    return changes or _on_other_operations(base_parts, head_parts)


def _on_other_operations(
    base: tuple[str, ...], head: tuple[str, ...]
) -> dict[str, str]:
    """Return the knobs whose values are the same, and on other operations.

    Nothing is returned if the sides have different numbers of operations.
    """
    if len(base) != len(head):
        return {}
    changes = dict[str, str]()
    for base_part, head_part in zip(base, head, strict=True):
        base_values = dict(_KNOB.findall(base_part[:_LONGEST]))
        head_values = dict(_KNOB.findall(head_part[:_LONGEST]))
        for name in {**base_values, **head_values}:
            if base_values.get(name) != head_values.get(name):
                changes[name] = ON_OTHER_OPERATIONS
    return changes


def _change(base: tuple[str, ...], head: tuple[str, ...]) -> str:
    """Return how the values of a knob changed.

    Two changes have the same words only if their values are the same.
    """
    moved = _moved_numbers(base, head)
    if moved is not None and len(moved) <= _MOST_PAIRS:
        return " and ".join(f"{before} → {after}" for before, after in moved)
    gone = Counter(base) - Counter(head)
    come = Counter(head) - Counter(base)
    # other configurations have it, too, or no longer
    if base and head and bool(gone) != bool(come):
        differing = gone or come
        count = differing.total()
        direction = "fewer" if gone else "more"
        return (
            f"{'; '.join(differing)} in {count} {noun_of(count, 'configuration')}"
            f" {direction}"
        )
    distinct_base = tuple(dict.fromkeys(base))
    distinct_head = tuple(dict.fromkeys(head))
    if distinct_base != distinct_head:
        base = distinct_base
        head = distinct_head
    return f"{'; '.join(base) or UNSET} → {'; '.join(head) or UNSET}"


def _moved_numbers(
    base: tuple[str, ...], head: tuple[str, ...]
) -> list[tuple[str, str]] | None:
    """Return the pairs of numbers that differ; None if not only numbers do."""
    base_text = "; ".join(base)
    head_text = "; ".join(head)
    is_same = _NUMBER.sub("0", base_text) == _NUMBER.sub("0", head_text)
    if not is_same or len(base) != len(head):
        return None
    pairs = set[tuple[str, str]]()
    base_numbers = _NUMBER.findall(base_text)
    head_numbers = _NUMBER.findall(head_text)
    for before, after in zip(base_numbers, head_numbers, strict=True):
        if before != after:
            pairs.add((before, after))
    return sorted(pairs)
