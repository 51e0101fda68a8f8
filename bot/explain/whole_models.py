"""Find the edited models, and the operations that they gained or lost, by component.

One compiler must have read the programs of both texts, because another one may read the
same text differently. The programs are those of one target. A target with the same
command on both sides is preferred, because flags, too, decide what is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bot.core.explanation import UNATTRIBUTED
from bot.core.json_text import known_counts, nonzero
from bot.core.program import Program
from bot.core.snapshot import Cell, ModelEdit, Snapshot
from bot.explain.components import Sections, name_places

_NOTHING = Program(operations="")  # The program of a model that a side does not have
_UNKNOWN = ""  # stands for the digest of a model whose text a side does not know


def model_edits(
    base: Snapshot, head: Snapshot, sections: Sections = ()
) -> tuple[ModelEdit, ...]:
    """Return the models whose text is known to differ, sorted.

    Models that only one side has are among them. `sections`: as the configuration names
    the parts of models.
    """
    one_compiler = base.compiler.digest == head.compiler.digest != ""
    texts = []
    for side in (base, head):
        models = [cell.key.model for cell in side.cells]
        texts.append({**dict.fromkeys(models, _UNKNOWN), **side.models})
    base_models = _cells_by_model(base)
    head_models = _cells_by_model(head)
    edits = []
    for model in sorted(texts[0].keys() | texts[1].keys()):
        base_digest = texts[0].get(model)
        head_digest = texts[1].get(model)
        if base_digest == head_digest or _UNKNOWN in (base_digest, head_digest):
            continue
        base_cells = base_models.get(model, {})
        head_cells = head_models.get(model, {})
        if base_digest is None or head_digest is None:
            programs = _programs_of_one_side(base_cells, head_cells)
        elif one_compiler:
            programs = _programs_of_both(base_cells, head_cells)
        else:
            programs = None
        changes = _changes(*programs, sections) if programs else ()
        edits.append(ModelEdit(model, base_digest, head_digest, *changes))
    return tuple(edits)


def _programs_of_one_side(
    base: Mapping[str, Cell], head: Mapping[str, Cell]
) -> tuple[Program, Program] | None:
    """Return the programs of a model that only one side has.

    Return None if its program was not read.
    """
    base_program = next((cell.program for cell in base.values()), None)
    head_program = next((cell.program for cell in head.values()), None)
    if base_program is None and head_program is None:
        return None
    return base_program or _NOTHING, head_program or _NOTHING


def _programs_of_both(
    base: Mapping[str, Cell], head: Mapping[str, Cell]
) -> tuple[Program, Program] | None:
    """Return both sides' programs of one target; None if they share no target.

    A target with the same command on both sides is preferred.
    """
    targets = sorted(
        base.keys() & head.keys(),
        key=lambda target: (base[target].command != head[target].command, target),
    )
    if not targets:
        return None
    base_program = base[targets[0]].program
    head_program = head[targets[0]].program
    if base_program is None or head_program is None:
        return None
    return base_program, head_program


def _cells_by_model(side: Snapshot) -> dict[str, dict[str, Cell]]:
    """Return model → target → cell; each cell's program has counts of operations."""
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
    sites = (*base.sites, *head.sites)
    launched = frozenset(site.component for site in sites if site.component)
    all_places = launched.union(base.places, head.places) - {""}
    named = tuple(sections)
    # A place that a dispatch has is called what the cells' components call it.
    names = {**name_places(all_places, named), **name_places(launched, named)}
    operations = Counter[str]()
    by_component = Counter[str]()
    for sign, program in ((1, head), (-1, base)):
        for name, count in (known_counts(program.operations) or {}).items():
            operations[name] += sign * count
        for place, count in program.places.items():
            component = names[place][0] if place in names else UNATTRIBUTED
            by_component[component] += sign * count
    return nonzero(operations), nonzero(by_component)
