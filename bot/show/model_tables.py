"""What there is to say of whole models, as tables: fusion, deduplication, static and dynamic pairs, compile time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.core.metrics import METRIC_BY_ID
from bot.core.snapshot import PAIR_METRICS, FoldCounts, Folding, Fusion, FusionCounts
from bot.show.blocks import Limits, Listing, Phrase, Row, Table, code, fair_in_order, listed, listing, name_cell, phrase
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import UNKNOWN, relative, sides

_FUSION = {
    "linalg_ops_before": "linalg ops before fusion",
    "linalg_ops_after": "after fusion",
    "compute_bound_sites": "compute-bound sites",
    "memory_bound_sites": "memory-bound sites",
    "initializer_sites": "initializer sites",
    "executables": "executables",
    "fills": "fills",
    "copies": "copies",
}
_FOLDED = {
    "regions": "regions",
    "executables": "executables",
    "folded": "folded",
    "families": "families",
    "surplus_executables": "surplus executables, upper bound",
    "surplus_bytes": "surplus bytes, upper bound",
}
_ABOUT_FUSION = "Linalg operations, and what fusion made of them. The same on every target."
_ABOUT_FOLDING = (
    "Executables of one family are identical, or equal but for what keeps them apart; all but the largest of each "
    "family are surplus, at most. Their bytes are whole executables on vulkan and metal, where each entry point has an "
    "executable of its own, and the device code of their entry points elsewhere."
)
_PAIR_HEADERS = ("metric", "static, base → head", "dynamic, base → head", "dynamic against static, base → head")


def _both(one: Fusion | Folding, field: str) -> str:
    """A count on both sides; a side that was not measured has none."""
    left, right = (None if side is None else getattr(side, field) for side in (one.base, one.head))
    return sides(left, right, "bytes" if field.endswith("bytes") else "count")


def _arrow(base: str, head: str) -> str:
    return head if base == head else f"{base} → {head}"


def _ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def fusion_table(facts: Facts, limits: Limits) -> Table:
    """How coarse fusion is, model by model; without `every` only where that changed."""
    found = [
        one for one in facts.report.overview.fusion if limits.every or (one.base and one.head and one.base != one.head)
    ]
    rows = listing(map(_fusion_row, found[: limits.overview]), len(found), "row of fusion")
    return Table(("model", *_FUSION.values(), "ops per site"), rows, small=True, about=_ABOUT_FUSION)


def _fusion_row(one: Fusion) -> Row:
    left, right = _density(one.base), _density(one.head)
    coarser = ""
    if left is not None and right is not None and left != right:
        coarser = " (coarser)" if right > left else " (finer)"
    told = (*(_both(one, field) for field in _FUSION), f"{_arrow(_ratio(left), _ratio(right))}{coarser}")
    return (name_cell(clip(one.model, NAME_LIMIT)), *map(phrase, told))


def _density(counts: FusionCounts | None) -> float | None:
    """Linalg operations of the regions for each site of the steady state and the initializers, to two digits."""
    if counts is None or counts.linalg_ops_after is None:
        return None
    sites = counts.compute_bound_sites + counts.memory_bound_sites + counts.initializer_sites
    return round(counts.linalg_ops_after / sites, 2) if sites else None


def folding_table(facts: Facts, limits: Limits) -> Table:
    """What deduplication did and left, cell by cell; without `every` only where that changed."""
    counts, told = ("regions", "executables", "families", "surplus_executables"), []
    for one in facts.report.overview.folding:  # bytes differ with any change of code
        left, right = ([getattr(side, name, None) for name in counts] for side in (one.base, one.head))
        if limits.every or (one.base is not None and one.head is not None and left != right):
            told.append(one)
    rows = []
    for one in fair_in_order(told, lambda one: one.key.model, limits.overview):
        folded = _arrow(_folded(one.base), _folded(one.head))
        words = (folded if field == "folded" else _both(one, field) for field in _FOLDED)
        rows.append((*_names(facts, one.key.model, one.key.target), *map(phrase, words)))
    shown = listing(rows, len(told), "row of deduplication")
    return Table(("model", "target", *_FOLDED.values()), shown, numbers_from=2, small=True, about=_ABOUT_FOLDING)


def _folded(counts: FoldCounts | None) -> str:
    return UNKNOWN if counts is None or counts.folded is None else f"{counts.folded * 100:.1f} %"


def _names(facts: Facts, model: str, target: str) -> tuple[Phrase, Phrase]:
    return name_cell(clip(model, NAME_LIMIT)), name_cell(facts.short.get(target) or clip(target, NAME_LIMIT))


def pair_tables(facts: Facts, limits: Limits) -> Listing[Table]:
    """A table for every static and dynamic version of one model on one target; without `every` where one changed."""
    found = [
        pair
        for pair in facts.report.overview.pairs
        if limits.every or (pair.base and pair.head and pair.base != pair.head)
    ]
    shown = fair_in_order(found, lambda pair: pair.static, limits.overview // 4)
    tables = []
    for pair in shown:
        static, target = _names(facts, pair.static, pair.target)
        caption = phrase(static, " against ", code(clip(pair.dynamic, NAME_LIMIT)), " on ", target)
        tables.append(Table(_PAIR_HEADERS, listed(_pair_rows(pair.base, pair.head), "metric"), caption=caption))
    return listing(tables, len(found), "pair of models")


_Kinds = Mapping[str, "Mapping[str, int | None]"]


def _pair_rows(base: _Kinds, head: _Kinds) -> Iterator[Row]:
    """The metrics that some side knows of some version."""
    for metric in map(METRIC_BY_ID.__getitem__, PAIR_METRICS):
        static, dynamic = (
            (base.get(kind, {}).get(metric.id), head.get(kind, {}).get(metric.id)) for kind in ("static", "dynamic")
        )
        if {*static, *dynamic} != {None}:
            against = _arrow(relative(static[0], dynamic[0]), relative(static[1], dynamic[1]))
            told = (metric.label, sides(*static, metric.unit), sides(*dynamic, metric.unit), against)
            yield tuple(map(phrase, told))
