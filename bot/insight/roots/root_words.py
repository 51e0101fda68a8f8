"""Owns what a root cause says: words that are true of every delta in it, with the numbers of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bot.core.instructions import CLASSES
from bot.core.values.explanation import UNKNOWN, DispatchDelta
from bot.core.values.snapshot import CellKey, Dispatch
from bot.insight.causes.evidence import MORE, counts, ir_differs, ir_explains, short_name
from bot.insight.roots.knobs import OTHER, PIPELINE

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Moved:
    """One delta: of a dispatch, or of a part of the artifact that is none.

    Attributes:
        what: the part in words; empty for a dispatch.
        features: the knobs that differ, with the pattern of their values.
        same_model: True where both sides have the same text of the model.
    """

    key: CellKey
    cause: str
    change_bytes: int
    dispatch: DispatchDelta | None = None
    what: str = ""
    features: Mapping[str, str] = field(default_factory=dict)
    same_model: bool = True

    @property
    def name(self) -> str:
        """Of the dispatch, or the part in words."""
        return self.dispatch.name if self.dispatch else self.what


def described(cause: str, moved: Sequence[Moved]) -> str:
    """What changed in all of them."""
    if moved[0].dispatch is None and cause != "input":
        return moved[0].what
    return _WORDS[cause](moved)


def _several(counts: Mapping[str, int]) -> str:
    """`1 → 8 (12), 4 → 8 (3), others (5)`: the most frequent first."""
    ordered = sorted(counts.items(), key=lambda found: (found[0] == OTHER, -found[1], found[0]))
    shown = [f"{name} ({count:,})" for name, count in ordered[:_NAMED] if name != OTHER]
    rest = sum(counts.values()) - sum(counts[name] for name, _ in ordered[: len(shown)])
    return ", ".join([*shown, *([f"others ({rest:,})"] if rest else [])])


def _strategy(moved: Sequence[Moved]) -> str:
    common = set.intersection(*(set(one.features) for one in moved))
    if not common:
        return "a different configuration"
    ordered = sorted(common, key=lambda name: (name != PIPELINE, len(_patterns(moved, name)), name))
    patterns = _patterns(moved, ordered[0])
    values = next(iter(patterns)) if len(patterns) == 1 else _several(patterns)
    also = f", with {', '.join(ordered[1 : 1 + _NAMED])}" if len(ordered) > 1 else ""
    return f"{ordered[0]} {values}{also}"


def _patterns(moved: Sequence[Moved], name: str) -> Counter[str]:
    return Counter(one.features[name] for one in moved)


def _fusion(moved: Sequence[Moved]) -> str:
    if all(one.dispatch and "structure" in one.dispatch.matched for one in moved):
        return "the same regions with different constants, shapes or offsets"
    kinds = Counter(row.kind for one in moved if one.dispatch and (row := one.dispatch.head or one.dispatch.base))
    return f"regions formed differently: {_several(kinds)}"


def _codegen(moved: Sequence[Moved]) -> str:
    if not all(base and head and ir_differs(base, head) is not None for base, head in _pairs(moved)):
        return "the same configuration, different code"
    operations = _moved_counts(Counter((base.operations, head.operations) for base, head in _whole(moved)))
    instructions = Counter((base.instructions, head.instructions) for base, head in _whole(moved))
    decoded = Counter({pair: times for pair, times in instructions.items() if all(pair)})
    made = _made(_moved_counts(decoded))
    if any(ir_explains(base, head) for base, head in _whole(moved)):
        told = f": {_signed(operations)} in all" if operations else ", and balance over all of it"
        return f"the same configuration; the operations before machine code differ{told}"
    few = f"few operations before machine code differ ({_signed(operations)})" if operations else _SAME_IR
    of = "" if decoded == instructions else f" of the {decoded.total():,} that can be decoded"
    return f"the same configuration, different code; {few}{f'; instructions: {made} in all{of}' if made else ''}"


def _pairs(moved: Sequence[Moved]) -> Iterator[tuple[Dispatch | None, Dispatch | None]]:
    """One by one: of a large report there are hundreds of thousands."""
    return ((one.dispatch.base, one.dispatch.head) for one in moved if one.dispatch)


def _whole(moved: Sequence[Moved]) -> Iterator[tuple[Dispatch, Dispatch]]:
    return ((base, head) for base, head in _pairs(moved) if base and head)


_SAME_IR = "no count of operations before machine code differs"


def _made(changes: Mapping[str, int]) -> str:
    """Classes of instructions that changed most, and what else is counted of them."""
    classes = _signed({name: changes[name] for name in changes if name in CLASSES})
    more = [f"{words} {changes[name]:+,}" for name, words in MORE if changes.get(name)]
    return ", ".join(filter(None, (classes, *more)))


def _moved_counts(pairs: Counter[tuple[str | None, str | None]]) -> dict[str, int]:
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
    return ", ".join(f"{short_name(name)} {count:+,}" for name, count in list(counts.items())[:_NAMED])


def _says(words: str) -> Callable[[Sequence[Moved]], str]:
    return lambda _: words


def _input(moved: Sequence[Moved]) -> str:
    """All of one model."""
    model = moved[0].key.model
    if moved[0].same_model:
        return f"the text of {model} is the same, and is read differently by the compiler"
    return f"{model} itself changed"


def _note(moved: Sequence[Moved]) -> str:
    delta = moved[0].dispatch
    return (delta.note if delta else "") or "not known"


_WORDS: Mapping[str, Callable[[Sequence[Moved]], str]] = {
    "input": _input,
    "fusion": _fusion,
    "dedup-lost": _says("executables that were folded into others on base"),
    "dedup-won": _says("executables that are folded into others on head"),
    "strategy": _strategy,
    "codegen": _codegen,
    "container": _says("the same code under other names"),
    "packaging": _says("the same code, laid out differently"),
    UNKNOWN: _note,
}
