"""What there is to say of whole models, as tables: fusion, deduplication, static and dynamic pairs, compile time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from bot.core.metrics import METRIC_BY_ID
from bot.core.values.model_counts import PAIR_METRICS, FoldCounts, Folding, Fusion, FusionCounts, Pair, Slope
from bot.render.text.escape import clip
from bot.render.text.filters import UNKNOWN, relative, sides
from bot.render.text.phrase import Phrase, code, joined, phrase, strong
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.view.facts import NAME_LIMIT, Facts
from bot.render.view.text_tables import ABSENT, Row, Table, name_cell

_FUSION = ("linalg_ops_before", "linalg_ops_after", "compute_bound_sites", "memory_bound_sites", "initializer_sites")
_FUSION_HEADERS = (
    "model",
    "linalg ops before fusion",
    "after fusion",
    "compute-bound sites",
    "memory-bound sites",
    "initializer sites",
    "ops per site",
)
_FOLD_HEADERS = (
    "model",
    "target",
    "regions",
    "executables",
    "folded",
    "families",
    "surplus executables, upper bound",
    "surplus bytes, upper bound",
)
_COUNTS = (("families", "count"), ("surplus_executables", "count"), ("surplus_bytes", "bytes"))


def fusion_table(facts: Facts, limits: Limits) -> Table:
    """How coarse fusion is, model by model; without `every` only where that changed."""
    found = [one for one in facts.report.overview.fusion if limits.every or one.base != one.head]
    rows = (_fusion_row(one) for one in found[: limits.overview])
    return Table(_FUSION_HEADERS, listing(rows, len(found), "fusion"), small=True)


def _fusion_row(fusion: Fusion) -> Row:
    values = (_both(fusion.base, fusion.head, field, "count") for field in _FUSION)
    return (name_cell(clip(fusion.model, NAME_LIMIT)), *values, phrase(_coarseness(fusion)))


def _coarseness(fusion: Fusion) -> str:
    left, right = (_density(counts) for counts in (fusion.base, fusion.head))
    if left == right:
        return _ratio(right)
    words = "" if left is None or right is None else " (coarser)" if right > left else " (finer)"
    return f"{_ratio(left)} → {_ratio(right)}{words}"


def _ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def _density(counts: FusionCounts | None) -> float | None:
    """Linalg operations of the regions for each site of the steady state and the initializers, to two digits."""
    if counts is None or counts.linalg_ops_after is None:
        return None
    sites = counts.compute_bound_sites + counts.memory_bound_sites + counts.initializer_sites
    return round(counts.linalg_ops_after / sites, 2) if sites else None


def _both(base: object | None, head: object | None, field: str, unit: str) -> Phrase:
    """Both values; a side that was not measured has none."""
    left, right = (None if side is None else getattr(side, field) for side in (base, head))
    return phrase(sides(left, right, unit))


def folding_table(facts: Facts, limits: Limits) -> Table:
    """What deduplication did and left, cell by cell; without `every` only where that changed."""
    found = [one for one in facts.report.overview.folding if limits.every or _refolded(one)]
    shown = fair_in_order(found, lambda one: one.key.model, limits.overview)
    rows = (_fold_row(facts, one) for one in shown)
    return Table(_FOLD_HEADERS, listing(rows, len(found), "deduplication"), numbers_from=2, small=True)


_FOLDS = ("regions", "executables", "families", "surplus_executables")


def _refolded(folding: Folding) -> bool:
    """True where the counts differ; bytes do with any change of code."""
    left, right = ([getattr(side, name, None) for name in _FOLDS] for side in (folding.base, folding.head))
    return left != right


def _fold_row(facts: Facts, folding: Folding) -> Row:
    names = (clip(folding.key.model, NAME_LIMIT), _short(facts, folding.key.target))
    counts = (_both(folding.base, folding.head, field, "count") for field in ("regions", "executables"))
    left = (_both(folding.base, folding.head, *field) for field in _COUNTS)
    return (*map(name_cell, names), *counts, phrase(_folded(folding.base, folding.head)), *left)


def _short(facts: Facts, target: str) -> str:
    return facts.short.get(target) or clip(target, NAME_LIMIT)


def _folded(base: FoldCounts | None, head: FoldCounts | None) -> str:
    left, right = (_share(counts) for counts in (base, head))
    return right if left == right else f"{left} → {right}"


def _share(counts: FoldCounts | None) -> str:
    return UNKNOWN if counts is None or counts.folded is None else f"{counts.folded * 100:.1f} %"


_PAIR_HEADERS = ("metric", "static, base → head", "dynamic, base → head", "dynamic against static, base → head")


def pair_tables(facts: Facts, limits: Limits) -> Listing[Table]:
    """A table for every static and dynamic version of one model on one target; nothing where nothing is explained."""
    found = facts.report.overview.pairs if limits.every or facts.report.explanations else ()
    shown = fair_in_order(found, lambda pair: pair.static, limits.overview // 4)
    return listing((_pair_table(facts, pair) for pair in shown), len(found), "pair")


def _pair_table(facts: Facts, pair: Pair) -> Table:
    names = [code(clip(name, NAME_LIMIT)) for name in (pair.static, pair.dynamic)]
    caption = phrase(names[0], " against ", names[1], " on ", code(_short(facts, pair.target)))
    known = {id_ for _, side in _sides(pair) for values in side.values() for id_, v in values.items() if v is not None}
    rows = [_pair_row(pair, id_) for id_ in PAIR_METRICS if id_ in known]
    return Table(_PAIR_HEADERS, listing(rows, len(rows), "metric"), caption=caption)


def _pair_row(pair: Pair, metric_id: str) -> Row:
    metric = METRIC_BY_ID[metric_id]
    values = {(name, kind): _of(side, kind, metric_id) for name, side in _sides(pair) for kind in ("static", "dynamic")}
    moved = [relative(values[name, "static"], values[name, "dynamic"]) for name in ("base", "head")]
    both = (sides(values["base", kind], values["head", kind], metric.unit) for kind in ("static", "dynamic"))
    against = moved[1] if moved[0] == moved[1] else " → ".join(moved)
    return (phrase(metric.label), *map(phrase, both), phrase(against))


def _sides(pair: Pair) -> Sequence[tuple[str, Mapping[str, Mapping[str, int | None]]]]:
    return (("base", pair.base), ("head", pair.head))


def _of(side: Mapping[str, Mapping[str, int | None]], kind: str, metric_id: str) -> int | None:
    return side.get(kind, {}).get(metric_id)


_SLOPE_HEADERS = ("family", "target", "exponent, base → head", "points on head")


def slope_table(facts: Facts, limits: Limits) -> Table:
    """How CPU time grows with depth; without `every` only what is superlinear on head."""
    found = [pair for pair in facts.report.overview.slopes if limits.every or _is_superlinear(pair[1])]
    rows = [row for base, head in found[: limits.overview] if (row := _slope_row(facts, base, head))]
    return Table(_SLOPE_HEADERS, listing(rows, len(found), "slope"), numbers_from=2)


def _is_superlinear(slope: Slope | None) -> bool:
    return slope is not None and slope.superlinear


def _slope_row(facts: Facts, base: Slope | None, head: Slope | None) -> Row | None:
    known = head or base
    if known is None:
        return None
    names = (clip(known.family, NAME_LIMIT), _short(facts, known.target))
    left, right = (_exponent(slope) for slope in (base, head))
    grows = phrase(f"{left} → {right}", phrase(" ", strong("superlinear")) if _is_superlinear(head) else "")
    return (*map(name_cell, names), grows, _points(head))


def _exponent(slope: Slope | None) -> str:
    return ABSENT if slope is None else _ratio(slope.exponent)


def _points(slope: Slope | None) -> Phrase:
    if slope is None:
        return phrase(ABSENT)
    told = (_point(*point) for point in slope.points[:8])
    return joined(told, "; ")


def _point(model: str, operations: int, cpu_ms: int) -> Phrase:
    return phrase(code(clip(model, 48)), f" {operations:,} operations: {cpu_ms:,} ms")


OVERVIEWS: Iterable[tuple[str, Callable[[Facts, Limits], Table]]] = (
    ("fusion", fusion_table),
    ("folding", folding_table),
    ("slopes", slope_table),
)
"""Tables of the view, by name."""
