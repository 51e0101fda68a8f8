"""The explanation of every changed cell: dispatches and components, waterfall, and the headline that it gives.

The headline is the cause of most of the cell's bytes, and one sentence that is true of this cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from bot.core.delta import CellDelta
from bot.core.explanation import MIXED, UNKNOWN, Explanation
from bot.core.snapshot import CellKey, Snapshot
from bot.explain.causes import broken, explain
from bot.explain.components import Sections, component_of, components, naming, tree
from bot.explain.texts import Texts, no_texts
from bot.explain.waterfall import headline, largest, rest_parts, waterfall

_NAMED_PARTS = 3


def explanations(
    base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta], sections: Sections = (), texts: Texts = no_texts
) -> dict[CellKey, Explanation]:
    """Why the cells changed that both sides measured, and why those broke that head fails.

    `texts`: as `bot.explain.texts` has it.
    """
    same = base.models.keys() - changed_models(base, head)
    one_compiler = base.compiler.digest == head.compiler.digest
    result = {}
    for delta in deltas:
        has_words = _measured(delta) or broken(delta.base, delta.head) is not None
        if not has_words or delta.state in ("same", "unmeasured") or not delta.explainable:
            continue
        names = naming(delta, sections).components
        same_model, base_cell, head_cell = delta.key.model in same, delta.base, delta.head
        explanation = explain(delta, same_model, texts, partial(component_of, names=names))
        if _measured(delta):
            parts, levels = components(delta, sections), tree(delta, sections)
            explanation = replace(explanation, components=parts, tree=levels, first_compiles=delta.unstable)
        same_command = bool(base_cell and head_cell and base_cell.command == head_cell.command)
        result[delta.key] = headlined(explanation, delta, one_compiler and not same_model and same_command)
    return result


def changed_models(base: Snapshot, head: Snapshot) -> frozenset[str]:
    """Models whose text is not known to be the same on both sides."""
    return frozenset(m for m in {*base.models, *head.models} if base.models.get(m) != head.models.get(m))


def _measured(delta: CellDelta) -> bool:
    return delta.base is not None and delta.head is not None and delta.base.measured and delta.head.measured


def headlined(explanation: Explanation, delta: CellDelta, only_model: bool = False) -> Explanation:
    """The explanation with its waterfall, and the cause that the waterfall gives.

    One that moved no byte keeps the cause of the first phase that differs.

    `only_model`: nothing but the model's text differs between the sides: what is no code is its consequence.
    """
    if delta.base is None or delta.head is None or not (delta.base.measured and delta.head.measured):
        return explanation
    parts = rest_parts(delta.base, delta.head, explanation.dispatches, explanation.renamed_bytes)
    if only_model:
        parts = tuple(structs.replace(part, cause="input") for part in parts)
    falls = waterfall(explanation.dispatches, parts)
    fallen = replace(explanation, waterfall=falls, parts=parts)
    cause = headline(falls)
    if cause is None:
        return fallen
    if cause == UNKNOWN:
        unknown = f"{_amounts(falls, (UNKNOWN,))} could not be told apart"
        return replace(fallen, cause=None, why=explanation.why if explanation.cause is None else unknown)
    is_first = cause == explanation.cause and cause not in ("container", "host", "packaging")
    return replace(fallen, cause=cause, why=explanation.why if is_first else _SENTENCES[cause](cause, fallen))


def signed_bytes(size_bytes: int) -> str:
    """`+1,024 B`, `-12 B`."""
    return f"{size_bytes:+,} B"


def _amounts(falls: Mapping[str, int], causes: Sequence[str]) -> str:
    return ", ".join(f"{cause.replace('-', ' ')} {signed_bytes(falls[cause])}" for cause in causes)


def _mixed(_: str, explanation: Explanation) -> str:
    falls = explanation.waterfall
    return f"no cause has half of the change: {_amounts(falls, largest(falls)[:2])}"


def _counted(words: str) -> Callable[[str, Explanation], str]:
    def sentence(cause: str, explanation: Explanation) -> str:
        count = sum(delta.cause == cause for delta in explanation.dispatches)
        return (
            f"{count} of {len(explanation.dispatches) + explanation.unchanged + explanation.rebased} dispatches {words}"
        )

    return sentence


def _of_parts(cause: str, explanation: Explanation) -> str:
    parts = [part for part in explanation.parts if part.cause == cause]
    more = f", and {len(parts) - _NAMED_PARTS} more" if len(parts) > _NAMED_PARTS else ""
    return ", ".join(f"{part.what} {signed_bytes(part.change_bytes)}" for part in parts[:_NAMED_PARTS]) + more


_SENTENCES: Mapping[str, Callable[[str, Explanation], str]] = {
    "input": _counted("are of a program that differs from its input on"),
    "fusion": _counted("are regions that are formed differently"),
    "dedup-lost": _counted("are executables that were folded into others on base"),
    "dedup-won": _counted("were executables that are folded into others on head"),
    "strategy": _counted("of the same source have a different configuration"),
    "codegen": _counted("have the same configuration and different code"),
    "container": _of_parts,
    "host": _of_parts,
    "packaging": _of_parts,
    MIXED: _mixed,
}
