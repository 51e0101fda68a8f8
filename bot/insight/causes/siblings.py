"""What is said of an executable that one side lacks, where that side has others of the same structure."""

from __future__ import annotations

from bot.core.values.program import Source
from bot.core.values.snapshot import Cell
from bot.insight.causes.matching import Side
from bot.insight.causes.regions import Census, Compared


def keeps_apart(cell: Cell, executables: tuple[str, ...]) -> str:
    """What keeps these executables apart: their family's kind and its first line; empty where no family has two."""
    wanted = set(executables)
    for family in cell.families:
        if len(wanted.intersection(family.members)) > 1:
            if family.identical:
                return "nothing in their functions, which are identical"
            return f"{family.kind} ({family.varying[0]})" if family.varying else family.kind
    return ""


def of_one_region(compared: Compared, source: Source | None, added: bool) -> str:
    """An executable that folding made or spared, by those of its structure on its own side and on the other."""
    census = compared.right if added else compared.left
    members = _members(census, source)
    elsewhere = elsewhere_named(compared, source, added)
    return f"one of {len(members)} executables of the same region{f', which {elsewhere}' if elsewhere else ''}"


def elsewhere_named(compared: Compared, source: Source | None, added: bool) -> str:
    """`on base is main_dispatch_3_matmul_8x16_f32`: what was split, or what it was folded into; may be empty."""
    side, census = (compared.base, compared.left) if added else (compared.head, compared.right)
    others = _members(census, source)
    if not others:
        return ""
    named = next((row.name for row in side.cell.dispatches if row.executable == others[0]), others[0])
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"on {'base' if added else 'head'} {'are' if more else 'is'} {named}{more}"


def apart(compared: Compared, source: Source | None, added: bool, twin: Source | None) -> str:
    """What keeps the executable apart from `twin`, which the other side has too, else any two of its structure."""
    side: Side = compared.head if added else compared.base
    if source is None:
        return ""
    pair = (twin.executable, source.executable) if twin else ()
    members = _members(compared.right if added else compared.left, source)
    words = keeps_apart(side.cell, pair) or keeps_apart(side.cell, members)
    return f", kept apart by {words}" if words else ""


def _members(census: Census | None, source: Source | None) -> tuple[str, ...]:
    return census.executables.get(source.structure, ()) if census and source else ()
