"""Owns what a root cause says: words that are true of every delta in it, with the numbers of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from bot.core.instructions import CLASSES
from bot.core.values.explanation import UNKNOWN
from bot.insight.causes.evidence import MORE, counts, short_name
from bot.insight.roots.knobs import OTHER, PIPELINE

_NAMED = 3
_Text = str | None


def described(cause: str, what: Any, traits: Counter[Any]) -> str:
    """What changed in all of a cluster's deltas.

    Args:
        what: they were clustered by, within their cause.
        traits: what else is told of them → how many of them have it.
    """
    return _WORDS[cause](what, traits)


def _several(counts: Mapping[str, int]) -> str:
    """`1 → 8 (12), 4 → 8 (3), others (5)`: the most frequent first."""
    ordered = sorted(counts.items(), key=lambda found: (found[0] == OTHER, -found[1], found[0]))
    shown = [f"{name} ({count:,})" for name, count in ordered[:_NAMED] if name != OTHER]
    rest = sum(counts.values()) - sum(counts[name] for name, _ in ordered[: len(shown)])
    return ", ".join([*shown, *([f"others ({rest:,})"] if rest else [])])


def _strategy(_: object, traits: Counter[tuple[tuple[str, str], ...]]) -> str:
    """Traits: the knobs that differ, with the pattern of their values."""
    patterns: dict[str, Counter[str]] = {}
    for knobs, count in traits.items():
        for name, values in knobs:
            patterns.setdefault(name, Counter())[values] += count
    common = [name for name, values in patterns.items() if values.total() == traits.total()]
    if not common:
        return "a different configuration"
    ordered = sorted(common, key=lambda name: (name != PIPELINE, len(patterns[name]), name))
    first = patterns[ordered[0]]
    values = next(iter(first)) if len(first) == 1 else _several(first)
    also = f", with {', '.join(ordered[1 : 1 + _NAMED])}" if len(ordered) > 1 else ""
    return f"{ordered[0]} {values}{also}"


def _fusion(same_structure: bool, kinds: Counter[str]) -> str:
    if same_structure:
        return "the same regions with different constants, shapes or offsets"
    return f"regions formed differently: {_several(kinds)}"


def _codegen(ir_explains: bool | None, traits: Counter[tuple[_Text, _Text, _Text, _Text]]) -> str:
    """Traits: counts of operations on base and on head, and of instructions."""
    if ir_explains is None:
        return "the same configuration, different code"
    before, instructions = (Counter[tuple[_Text, _Text]]() for _ in range(2))
    for (*pair, left, right), count in traits.items():
        before[pair[0], pair[1]] += count
        instructions[left, right] += count
    operations = _moved_counts(before)
    decoded = Counter({pair: count for pair, count in instructions.items() if all(pair)})
    made = _made(_moved_counts(decoded))
    if ir_explains:
        told = f": {_signed(operations)} in all" if operations else ", which balance over all of it"
        return f"the same configuration, other operations before machine code{told}"
    few = f"few operations before it differ ({_signed(operations)})" if operations else _SAME_IR
    of = "" if decoded == instructions else f" of the {decoded.total():,} that can be decoded"
    return f"the same configuration, other machine code{f' ({made} in all{of})' if made else ''}; {few}"


_SAME_IR = "no count of operations before it differs"


def _made(changes: Mapping[str, int]) -> str:
    """Classes of instructions that changed most, and what else is counted of them, most first."""
    classes = _signed({name: changes[name] for name in changes if name in CLASSES})
    counted = sorted(
        ((name, words) for name, words in MORE if changes.get(name)), key=lambda one: -abs(changes[one[0]])
    )
    more = [f"{words} {changes[name]:+,}".replace("-", "−") for name, words in counted]
    return ", ".join(filter(None, (classes, *more)))


def _moved_counts(pairs: Counter[tuple[_Text, _Text]]) -> dict[str, int]:
    """Name → how many more on head over all pairs, the largest amounts first; empty where a side's are not known."""
    found: Counter[str] = Counter()
    for (left, right), times in pairs.items():
        base, head = counts(left), counts(right)
        if base is None or head is None:
            return {}
        for name in {*base, *head} if left != right else ():
            found[name] += times * (head[name] - base[name])
    changed = [(name, count) for name, count in found.items() if count]
    return dict(sorted(changed, key=lambda one: (-abs(one[1]), one[0])))


def _signed(counts: Mapping[str, int]) -> str:
    told = (f"{short_name(name)} {f'{count:+,}'.replace('-', '−')}" for name, count in list(counts.items())[:_NAMED])
    return ", ".join(told)


def _says(words: str) -> Callable[[str, object], str]:
    return lambda what, _: what or words


def _input(model: str, same_model: Counter[bool]) -> str:
    if same_model[True]:
        return f"the text of {model} is the same, and is read differently by the compiler"
    return f"{model} itself changed"


_WORDS: Mapping[str, Callable[[Any, Counter[Any]], str]] = {
    "input": _input,
    "fusion": _fusion,
    "dedup-lost": _says("executables that were folded into others on base"),
    "dedup-won": _says("executables that are folded into others on head"),
    "strategy": _strategy,
    "codegen": _codegen,
    "container": _says("the same code under other names"),
    "host": _says("the program around the dispatches"),
    "packaging": _says("the same code, laid out differently"),
    UNKNOWN: _says("not known"),
}
"""Parts of artifacts, which are no dispatches, are clustered by what they are called."""
