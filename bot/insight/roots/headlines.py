"""Owns the headline of a changed cell: the cause of most of its bytes, and one sentence that is true of this cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import MIXED, UNKNOWN, Explanation, PartDelta
from bot.insight.roots.waterfall import headline, largest, rest_parts, waterfall

_NAMED_PARTS = 3


def headlined(told: Explanation, delta: CellDelta, only_model: bool = False) -> Explanation:
    """The explanation with its waterfall, and the cause that the waterfall gives.

    One that moved no byte keeps the cause of the first phase that differs.

    Args:
        only_model: nothing but the model's text differs between the sides: what is no code is its consequence.
    """
    if delta.base is None or delta.head is None or not (delta.base.measured and delta.head.measured):
        return told
    parts = rest_parts(delta.base, delta.head, told.dispatches, told.renamed_bytes)
    if only_model:
        parts = tuple(structs.replace(part, cause="input") for part in parts)
    falls = waterfall(told.dispatches, parts)
    fallen = replace(told, waterfall=falls, parts=parts)
    cause = headline(falls)
    if cause is None:
        return fallen
    if cause == UNKNOWN:
        return replace(fallen, cause=None, why=_unknown(fallen))
    return replace(fallen, cause=cause, why=_why(cause, fallen))


def signed_bytes(size_bytes: int) -> str:
    """`+1,024 B`, `-12 B`."""
    return f"{size_bytes:+,} B"


def _unknown(told: Explanation) -> str:
    if told.cause is None:
        return told.why
    return f"{_amounts(told.waterfall, (UNKNOWN,))} could not be told apart"


def _why(cause: str, told: Explanation) -> str:
    """The sentence of the first phase that differs where that is the cause, else what the cell's own deltas say."""
    if cause == told.cause and cause not in _OF_PARTS:
        return told.why
    return _SENTENCES[cause](cause, told)


def _amounts(falls: Mapping[str, int], causes: Sequence[str]) -> str:
    return ", ".join(f"{cause.replace('-', ' ')} {signed_bytes(falls[cause])}" for cause in causes)


def _mixed(_: str, told: Explanation) -> str:
    falls = told.waterfall
    return f"no cause has half of the change: {_amounts(falls, largest(falls)[:2])}"


def _counted(words: str) -> Callable[[str, Explanation], str]:
    def sentence(cause: str, told: Explanation) -> str:
        count = sum(delta.cause == cause for delta in told.dispatches)
        return f"{count} of {len(told.dispatches) + told.unchanged + told.rebased} dispatches {words}"

    return sentence


def _of_parts(cause: str, told: Explanation) -> str:
    found = [part for part in told.parts if part.cause == cause]
    more = f", and {len(found) - _NAMED_PARTS} more" if len(found) > _NAMED_PARTS else ""
    return f"{_part_amounts(found[:_NAMED_PARTS])}{more}"


def _part_amounts(parts: Sequence[PartDelta]) -> str:
    return ", ".join(f"{part.what} {signed_bytes(part.change_bytes)}" for part in parts)


_OF_PARTS = frozenset({"container", "host", "packaging"})
_SENTENCES: Mapping[str, Callable[[str, Explanation], str]] = {
    "input": _counted("are of a program that differs from its input on"),
    "fusion": _counted("are regions that are formed differently"),
    "dedup-lost": _counted("are executables that were folded into others on base"),
    "dedup-won": _counted("were executables that are folded into others on head"),
    "strategy": _counted("of the same source have another configuration"),
    "codegen": _counted("have the same configuration and other code"),
    "container": _of_parts,
    "host": _of_parts,
    "packaging": _of_parts,
    MIXED: _mixed,
}
