"""Which models were edited, and how: operations that came and went, and in which of the model's components.

Told by the programs that one compiler read out of both texts: another one may read the
same text differently. They are those of one target, the same command on both sides
where there is one, as flags may decide too what is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bot.core.explanation import UNATTRIBUTED
from bot.core.json_text import known_counts
from bot.core.program import Program
from bot.core.snapshot import Cell, ModelEdit, Snapshot
from bot.explain.components import Sections, name_places

_NOTHING = Program(operations="")  # The program of a model that a side does not have
_UNKNOWN = ""  # The digest of a model that a side has, and says no more of


def model_edits(
    base: Snapshot, head: Snapshot, sections: Sections = ()
) -> tuple[ModelEdit, ...]:
    """The models whose text is known not to be the same on both sides, with those that one side alone has; sorted.

    `sections`: as the configuration names the parts of models.
    """
    one_compiler = base.compiler.digest == head.compiler.digest != ""
    texts = [
        {**{cell.key.model: _UNKNOWN for cell in side.cells}, **side.models}
        for side in (base, head)
    ]
    by_model = _cells_by_model(base), _cells_by_model(head)
    edits = []
    for model in sorted(texts[0].keys() | texts[1].keys()):
        base_digest, head_digest = (side.get(model) for side in texts)
        if base_digest == head_digest or _UNKNOWN in (base_digest, head_digest):
            continue
        ours, theirs = cells = [side.get(model, {}) for side in by_model]
        known = [next((cell.program for cell in side.values()), None) for side in cells]
        programs = (known[0] or _NOTHING, known[1] or _NOTHING) if any(known) else None
        if base_digest is not None and head_digest is not None:
            common_targets = sorted(
                ours.keys() & theirs.keys(),
                key=lambda key: (ours[key].command != theirs[key].command, key),
            )
            pair = (
                (ours[common_targets[0]].program, theirs[common_targets[0]].program)
                if one_compiler and common_targets
                else (None, None)
            )
            programs = (pair[0], pair[1]) if pair[0] and pair[1] else None
        edits.append(
            ModelEdit(
                model,
                base_digest,
                head_digest,
                *(_changes(*programs, sections) if programs else ()),
            )
        )
    return tuple(edits)


def _cells_by_model(side: Snapshot) -> dict[str, dict[str, Cell]]:
    """Model → target → cell, those that say what the model consists of."""
    cells: dict[str, dict[str, Cell]] = {}
    for cell in side.cells:
        if (
            cell.program is not None
            and known_counts(cell.program.operations) is not None
        ):
            cells.setdefault(cell.key.model, {})[cell.key.target] = cell
    return cells


def _changes(
    base: Program, head: Program, sections: Sections
) -> tuple[dict[str, int], dict[str, int]]:
    launched = frozenset(
        site.component
        for program in (base, head)
        for site in program.sites
        if site.component
    )
    all_places = launched.union(base.places, head.places) - {""}
    named = tuple(sections)
    # A place that a dispatch has is called what the cells' components call it.
    names = {**name_places(all_places, named), **name_places(launched, named)}
    by_component = [Counter[str](), Counter[str]()]
    for program, counts in zip((base, head), by_component, strict=True):
        for place, count in program.places.items():
            counts[names[place][0] if place in names else UNATTRIBUTED] += count
    changes = list[dict[str, int]]()
    operations: list[Mapping[str, int]] = [
        known_counts(side.operations) or {} for side in (base, head)
    ]
    for old, new in (operations, by_component):
        names_of_both = sorted(old.keys() | new.keys())
        changes.append(
            {
                name: change
                for name in names_of_both
                if (change := new.get(name, 0) - old.get(name, 0))
            }
        )
    return changes[0], changes[1]
