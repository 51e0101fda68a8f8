"""The tables about whole models, put together from both snapshots: fusion, folding, pairs.

Fusion: the program is the same on every target, so any measured cell of a model can say it. Its sites name entry
points; what an entry point does is in the cell's rows. Where a row is missing, the split would be a guess, and there is
none.

Folding: what deduplication left has an upper bound, all of a family but its largest member. What folding saves is whole
executables. On vulkan and metal each entry point has one of its own in the artifact, with tables and padding; elsewhere
they share one, and the device code of an entry point is all that can be told of its part. Where the bytes of one member
are not known, no sum is.

Pairs: static and dynamic versions of one model, side by side: what it costs not to know the shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bot.core.explanation import UNATTRIBUTED
from bot.core.json_text import known_counts
from bot.core.program import Program
from bot.core.snapshot import (
    PAIR_METRICS,
    Cell,
    CellKey,
    Dispatch,
    FoldCounts,
    Folding,
    Fusion,
    FusionCounts,
    ModelEdit,
    Overview,
    Pair,
    Snapshot,
)
from bot.explain.components import Sections, name_places

COMPUTE_BOUND = frozenset({"attention", "conv", "matmul"})
"""Kinds of entry points that compute more than they load and store; all others are memory-bound."""
_Values = dict[str, dict[str, "int | None"]]


def overview(base: Snapshot, head: Snapshot, pairs: Sequence[tuple[str, str]]) -> Overview:
    """What there is to say of whole models; sorted. What neither side knows is left out.

    `pairs`: models as (static, dynamic).
    """
    fusion = [fusion_counts(side) for side in (base, head)]
    folding = [{cell.key: fold_counts(cell) for cell in side.cells} for side in (base, head)]
    models, keys = sorted(fusion[0].keys() | fusion[1].keys()), sorted(folding[0].keys() | folding[1].keys())
    folded = (Folding(key, *(side.get(key) for side in folding)) for key in keys)
    return Overview(
        fusion=tuple(Fusion(model, *(side.get(model) for side in fusion)) for model in models),
        folding=tuple(one for one in folded if one.base or one.head),
        pairs=measured_pairs(base, head, pairs),
    )


def fusion_counts(snapshot: Snapshot) -> dict[str, FusionCounts]:
    """Model → its counts, by the first of its cells that has them all; without the models where none has."""
    counts_by_name: dict[str, FusionCounts] = {}
    for cell in snapshot.cells:
        if cell.measured and cell.key.model not in counts_by_name and (counts := _counts(cell)) is not None:
            counts_by_name[cell.key.model] = counts
    return counts_by_name


def _counts(cell: Cell) -> FusionCounts | None:
    # entry point → is it compute-bound; None where executables share a name and disagree
    bounds: dict[str, bool | None] = {}
    for row in cell.dispatches:
        bound = row.kind in COMPUTE_BOUND
        bounds[row.name] = bound if bounds.get(row.name, bound) is bound else None
    if cell.program is None:
        return None
    sites = cell.program.sites
    steady = [bounds.get(site.entry_point) for site in sites if not site.initializer]
    if None in steady:
        return None
    return FusionCounts(
        linalg_ops_before=cell.program.linalg_ops_before,
        linalg_ops_after=cell.value("linalg_ops"),
        compute_bound_sites=steady.count(True),
        memory_bound_sites=steady.count(False),
        initializer_sites=len(sites) - len(steady),
        **{name: cell.value(name) for name in ("executables", "fills", "copies")},
    )


def fold_counts(cell: Cell) -> FoldCounts | None:
    """The counts of one cell; None where it was not measured."""
    if not cell.measured:
        return None
    regions, executables, families = cell.value("dispatch_regions"), cell.value("executables"), cell.families
    if "families" in cell.reasons:
        return FoldCounts(regions, executables, None, None, None)
    members = {member for family in families for member in family.members}
    rows: dict[str, list[Dispatch]] = {}
    for row in cell.dispatches if members else ():
        if row.executable in members:
            rows.setdefault(row.executable, []).append(row)
    # Whole executables where each entry point has one of its own in the artifact, else the entry points' device code.
    sizes = dict[str, int]()
    for name, of in rows.items():
        for each in [row.executable_bytes for row in of], [row.code_bytes for row in of]:
            if None not in each:
                sizes.setdefault(name, sum(size or 0 for size in each))
    surplus_bytes: int | None = None
    if sizes.keys() == members:
        by_family = ([sizes[member] for member in family.members] for family in families)
        surplus_bytes = sum(sum(each) - max(each) for each in by_family)
    surplus = sum(len(family.members) - 1 for family in families)
    return FoldCounts(regions, executables, len(families), surplus, surplus_bytes)


def measured_pairs(base: Snapshot, head: Snapshot, named: Sequence[tuple[str, str]]) -> tuple[Pair, ...]:
    """The (static, dynamic) pairs on every target where at least one side measured both; sorted by their names."""
    sides = [{cell.key: cell for cell in side.cells if cell.measured} for side in (base, head)]
    targets = sorted({key.target for side in sides for key in side})
    candidates = ((static, dynamic, target) for static, dynamic in sorted(set(named)) for target in targets)

    def values(cells: Mapping[CellKey, Cell], static: str, dynamic: str, target: str) -> _Values:
        keys = {"static": CellKey(static, target), "dynamic": CellKey(dynamic, target)}
        there = {name: cells[key] for name, key in keys.items() if key in cells}
        return {name: {id_: cell.value(id_) for id_ in PAIR_METRICS} for name, cell in there.items()}

    result = (Pair(*names, *(values(side, *names) for side in sides)) for names in candidates)
    return tuple(pair for pair in result if len(pair.base) == 2 or len(pair.head) == 2)


# Which models were edited, and how: operations that came and went, and in which of the model's components.
#
# Told by the programs that one compiler read out of both texts: another one may read the same text differently. They
# are those of one target, the same command on both sides where there is one, as flags may decide too what is read.

_NOTHING = Program(operations="")  # The program of a model that a side does not have
_UNKNOWN = ""  # The digest of a model that a side has, and says no more of


def model_edits(base: Snapshot, head: Snapshot, sections: Sections = ()) -> tuple[ModelEdit, ...]:
    """The models whose text is known not to be the same on both sides, with those that one side alone has; sorted.

    `sections`: as the configuration names the parts of models.
    """
    one_compiler = base.compiler.digest == head.compiler.digest != ""
    texts = [{**{cell.key.model: _UNKNOWN for cell in side.cells}, **side.models} for side in (base, head)]
    told = _told(base), _told(head)
    edits = []
    for model in sorted(texts[0].keys() | texts[1].keys()):
        left, right = (side.get(model) for side in texts)
        if left == right or _UNKNOWN in (left, right):
            continue
        ours, theirs = cells = [side.get(model, {}) for side in told]
        known = [next((cell.program for cell in side.values()), None) for side in cells]
        programs = (known[0] or _NOTHING, known[1] or _NOTHING) if any(known) else None
        if left is not None and right is not None:
            both = sorted(ours.keys() & theirs.keys(), key=lambda key: (ours[key].command != theirs[key].command, key))
            pair = (ours[both[0]].program, theirs[both[0]].program) if one_compiler and both else (None, None)
            programs = (pair[0], pair[1]) if pair[0] and pair[1] else None
        edits.append(ModelEdit(model, left, right, *(_changes(*programs, sections) if programs else ())))
    return tuple(edits)


def _told(side: Snapshot) -> dict[str, dict[str, Cell]]:
    """Model → target → cell, those that say what the model consists of."""
    cells: dict[str, dict[str, Cell]] = {}
    for cell in side.cells:
        if cell.program is not None and known_counts(cell.program.operations) is not None:
            cells.setdefault(cell.key.model, {})[cell.key.target] = cell
    return cells


def _changes(base: Program, head: Program, sections: Sections) -> tuple[dict[str, int], dict[str, int]]:
    launched = frozenset(site.component for program in (base, head) for site in program.sites if site.component)
    every = launched.union(base.places, head.places) - {""}
    named = tuple(sections)
    # A place that a dispatch has is called what the cells' components call it.
    names = {**name_places(every, named), **name_places(launched, named)}
    by_component = [Counter[str](), Counter[str]()]
    for program, counts in zip((base, head), by_component, strict=True):
        for place, count in program.places.items():
            counts[names[place][0] if place in names else UNATTRIBUTED] += count
    changes = list[dict[str, int]]()
    operations: list[Mapping[str, int]] = [known_counts(side.operations) or {} for side in (base, head)]
    for old, new in (operations, by_component):
        both = sorted(old.keys() | new.keys())
        changes.append({name: change for name in both if (change := new.get(name, 0) - old.get(name, 0))})
    return changes[0], changes[1]
