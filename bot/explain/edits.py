"""Which models were edited, and how: operations that came and went, and in which of the model's components.

Told by the programs that one compiler read out of both texts: another one may read the same text differently. They are
those of one target, the same command on both sides where there is one, as flags may decide too what is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bot.core.explanation import UNATTRIBUTED
from bot.core.json_text import known_counts
from bot.core.program import Program
from bot.core.snapshot import Cell, ModelEdit, Snapshot
from bot.explain.components import Sections, name_places

_NOTHING = Program(operations="")
"""The program of a model that a side does not have."""
_UNKNOWN = ""
"""The digest of a model that a side has, and says no more of."""
_Cells = Mapping[str, Cell]


def model_edits(base: Snapshot, head: Snapshot, sections: Sections = ()) -> tuple[ModelEdit, ...]:
    """The models whose text is known not to be the same on both sides, with those that one side alone has; sorted.

    `sections`: as the configuration names the parts of models.
    """
    one_compiler = base.compiler.digest == head.compiler.digest != ""
    texts, told = (_texts(base), _texts(head)), (_told(base), _told(head))
    edits = []
    for model in sorted(texts[0].keys() | texts[1].keys()):
        left, right = (side.get(model) for side in texts)
        if left == right or _UNKNOWN in (left, right):
            continue
        cells = [side.get(model, {}) for side in told]
        programs = _together(*cells) if one_compiler else None
        if left is None or right is None:
            alone = [next((cell.program for cell in side.values()), None) for side in cells]
            programs = (alone[0] or _NOTHING, alone[1] or _NOTHING) if any(alone) else None
        edits.append(ModelEdit(model, left, right, *(_changes(*programs, sections) if programs else ())))
    return tuple(edits)


def _texts(side: Snapshot) -> dict[str, str]:
    return {**{cell.key.model: _UNKNOWN for cell in side.cells}, **side.models}


def _told(side: Snapshot) -> dict[str, dict[str, Cell]]:
    """Model → target → cell, those that say what the model consists of."""
    cells: dict[str, dict[str, Cell]] = {}
    for cell in side.cells:
        if cell.program is not None and known_counts(cell.program.operations) is not None:
            cells.setdefault(cell.key.model, {})[cell.key.target] = cell
    return cells


def _together(base: _Cells, head: _Cells) -> tuple[Program, Program] | None:
    common = sorted(
        base.keys() & head.keys(), key=lambda target: (base[target].command != head[target].command, target)
    )
    left, right = (side[common[0]].program if common else None for side in (base, head))
    return (left, right) if left and right else None


def _changes(base: Program, head: Program, sections: Sections) -> tuple[dict[str, int], dict[str, int]]:
    launched = frozenset(site.component for program in (base, head) for site in program.sites if site.component)
    every = launched.union(base.places, head.places) - {""}
    named = tuple(sections)
    # A place that a dispatch has is called what the cells' components call it.
    names = {**name_places(every, named).components, **name_places(launched, named).components}
    by_component = [Counter[str](), Counter[str]()]
    for program, counts in zip((base, head), by_component, strict=True):
        for place, count in program.places.items():
            counts[names.get(place, UNATTRIBUTED)] += count
    operations = _change(known_counts(base.operations) or {}, known_counts(head.operations) or {})
    return operations, _change(*by_component)


def _change(base: Mapping[str, int], head: Mapping[str, int]) -> dict[str, int]:
    both = sorted(base.keys() | head.keys())
    return {name: change for name in both if (change := head.get(name, 0) - base.get(name, 0))}
