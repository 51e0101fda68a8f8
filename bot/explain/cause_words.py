"""Describe what changed in all deltas of a root cause.

The words are true of every delta in it, with the numbers of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bot.core.explanation import (
    EARLY_CAUSES,
    OTHER_TYPES,
    UNKNOWN,
)
from bot.core.ladder import PHASE_NAMES, PHASE_WORDS, SEVERAL_PHASES, parts_words
from bot.core.parting import NOT_TRACED
from bot.core.program_proof import EXPERIMENT_WORDS, FORMS_REGIONS
from bot.explain.clusters import (
    NOT_BY_VALUES,
    SOURCE_CHANGED,
    Passed,
    Phases,
)
from bot.explain.knobs import PIPELINE, UNNAMED

_NAMED_LIMIT = 3


def described(
    cause: str, subject: Any, traits: Counter[Any], parts: Mapping[str, int]
) -> str:
    """Return the words for the change in all of a cluster's deltas.

    Args:
        subject: what the cluster's deltas have in common.
        traits: trait → how many of the deltas have it.
        parts: phase → the bytes that it carries in all of them together.
    """
    if isinstance(subject, Passed):
        return _passed_words(subject, traits)
    if isinstance(subject, Phases):
        if len(subject.names) == 1:
            return f"{PHASE_NAMES[subject.names[0]]} changed"
        amounts = parts_words(parts)
        if not amounts:  # growth and shrinkage are equal in each phase
            amounts = ", ".join(PHASE_WORDS[name] for name in subject.names)
        return f"{SEVERAL_PHASES}: {amounts}"
    if cause == "strategy":
        return _turned_words(subject, traits)
    if cause == "codegen":
        return f"other code; {subject or NOT_TRACED}"
    if cause not in EARLY_CAUSES:
        return subject or _WORDS.get(cause, "")
    first, reason = subject
    if cause == "input":
        if traits[SOURCE_CHANGED]:
            return f"another file that {first} reads changed"
        if not traits[True]:
            return f"{first} itself changed"
        text = f"the compiler reads the same text of {first} differently"
    elif first:
        text = "the same regions with different constants, shapes or offsets"
    else:
        text = _formed_words(traits)
    if reason:
        return f"{text}; {reason}"
    return text


def _passed_words(passed: Passed, traits: Counter[Any]) -> str:
    """Return `greedy: 448 VS4R_V more`, or `cse: 64 to 1,440 arith.addi fewer`."""
    if passed.experiment:
        experiment = EXPERIMENT_WORDS.get(passed.experiment, passed.experiment)
        return f"{passed.name} {FORMS_REGIONS}: {experiment}"
    if not passed.operation:
        return f"{passed.name}: {OTHER_TYPES}"
    amounts = {abs(dict(changes).get(passed.operation, 0)) for changes in traits}
    count = f"{min(amounts):,}"
    if len(amounts) > 1:
        count = f"{count} to {max(amounts):,}"
    direction = "more" if passed.more else "fewer"
    return f"{passed.name}: {count} {passed.operation} {direction}"


def _formed_words(traits: Counter[Any]) -> str:
    """Return `regions formed differently: matmul (12), conv (3), 2 of other kinds`.

    The most frequent kinds come first; others are only counted.
    """
    kinds = Counter[str]()
    for (kind, _), number in traits.items():
        kinds[kind] += number
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{name} ({count:,})" for name, count in ranked[:_NAMED_LIMIT]]
    remaining = sum(count for _, count in ranked[_NAMED_LIMIT:])
    if remaining:
        named.append(f"{remaining:,} of other kinds")
    # Where each has a partner of its kind and its place, only its IR is known to
    # differ: an encoding, for example.
    difference = "regions formed differently"
    if all(is_pair for _, is_pair in traits):
        difference = "other IR in regions of the same kinds"
    return f"{difference}: {', '.join(named)}"


def _turned_words(
    change: tuple[str, str] | None, traits: Counter[tuple[tuple[str, str], ...]]
) -> str:
    """Return `vector_common_parallel 1 → 8`, and the knobs that changed in all deltas.

    `traits`: the changed knobs of each delta → how many deltas have these.
    """
    if change is None:
        return UNNAMED
    name, values = change
    if name == NOT_BY_VALUES:
        return name
    common = set.intersection(*(set(dict(changes)) for changes in traits)) - {name}
    also = sorted(common, key=lambda knob: (knob != PIPELINE, knob))
    if not also:
        return f"{name} {values}"
    return f"{name} {values}, with {', '.join(also[:_NAMED_LIMIT])}"


_WORDS = {
    "dedup-lost": "executables that only base folds into others",
    "dedup-won": "executables that only head folds into others",
    "packaging": "the same code, laid out differently",
    UNKNOWN: "not known",
}
"""Cause of a dispatch → its words in a root cause.

Parts of artifacts are clustered by what they are called.
"""
