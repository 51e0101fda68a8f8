"""What a root cause says: words that are true of every delta in it, with the numbers of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from bot.core.rules.parting import NOT_TRACED
from bot.core.values.explanation import UNKNOWN
from bot.insight.roots.knobs import PIPELINE

_NAMED = 3


def described(cause: str, what: Any, traits: Counter[Any]) -> str:
    """What changed in all of a cluster's deltas.

    `what`: they were clustered by, within their cause; `traits`: what else is told of them → how many of them have it.
    """
    return _WORDS[cause](what, traits)


def _several(counts: Mapping[str, int]) -> str:
    """`matmul (12), conv (3), pack (5)`: the most frequent first; what is beyond is only counted."""
    ordered = sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    shown = [f"{name} ({count:,})" for name, count in ordered[:_NAMED]]
    rest = sum(counts.values()) - sum(count for _, count in ordered[:_NAMED])
    return ", ".join([*shown, *([f"{rest:,} of other kinds"] if rest else [])])


def _strategy(change: tuple[str, str] | None, traits: Counter[tuple[tuple[str, str], ...]]) -> str:
    """`vector_common_parallel 1 → 8`, and the other knobs that all of them turned; traits: what each turned."""
    if change is None:
        return "a different configuration, in which no value with a name differs"
    every = [{name for name, _ in changes} for changes in traits]
    also = sorted(set.intersection(*every) - {change[0]}, key=lambda name: (name != PIPELINE, name))
    name, values = change
    also_words = f", with {', '.join(also[:_NAMED])}" if also else ""
    return f"{name} {values}{also_words}"


def _fusion(same_structure: bool, kinds: Counter[str]) -> str:
    if same_structure:
        return "the same regions with different constants, shapes or offsets"
    return f"regions formed differently: {_several(kinds)}"


def _codegen(what: tuple[Any, ...], traits: Counter[Any]) -> str:
    """`greedy: 448 VS4R_V more`, `cse: 64 to 1,440 arith.addi fewer`; traits: the operations that the pass changes."""
    if what[0] is None:
        return f"other code; {what[1] or NOT_TRACED}"
    name, operation, more = what
    amounts = sorted({abs(dict(changes).get(operation, 0)) for changes in traits})
    count = f"{amounts[0]:,}" if len(amounts) == 1 else f"{amounts[0]:,} to {amounts[-1]:,}"
    return f"{name}: {count} {operation} {'more' if more else 'fewer'}"


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
