"""Random fold audits: every state, missing figures, and names in any script."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st
from strategies import LARGEST, compilers, names, text, values

from bot.core.runs import Price
from bot.fold import audit

T = TypeVar("T")


def several(
    of: st.SearchStrategy[T], most_values: int, **options: Any
) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(of, max_size=most_values, **options).map(tuple)


def in_order(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        sorted(values, key=lambda value: (value.model, getattr(value, "target", "")))
    )


counts = st.integers(0, LARGEST)
ratios = st.floats(0, 1e9, allow_nan=False)
members = several(names, 3, min_size=1)
before_and_after = st.builds(audit.BeforeAfter, values, values)
families = st.builds(
    audit.FoldedFamily,
    st.sampled_from(audit.FOLD_KINDS),
    members,
    several(st.sampled_from(["i32", "i64", "index"]), 3),
)
cells = st.builds(
    audit.FoldCell,
    model=names,
    target=names,
    state=st.sampled_from(["folded", "nothing-to-fold", "unsupported", "failed"]),
    **dict.fromkeys(("executables", "artifact_bytes"), before_and_after),
    equal=st.none() | st.booleans(),
    folded=several(families, 2),
    left=several(
        st.builds(audit.LeftFamily, kind=names, members=members, why=names), 2
    ),
    resumed_bytes=values,
    price=st.none() | st.builds(Price, counts, counts, counts, ratios, ratios, ratios),
    **dict.fromkeys(("equal_note", "price_note", "command", "module", "note"), text),
)
models = st.builds(
    audit.FoldModel,
    model=names,
    **dict.fromkeys(audit.FoldModel.__struct_fields__[1:], values),
)
audits = st.builds(
    audit.FoldAudit,
    st.just(audit.FOLD_SCHEMA),
    compilers,
    several(text, 2),
    text,
    st.none() | ratios,
    several(models, 2, unique_by=lambda model: model.model).map(in_order),
    several(cells, 4, unique_by=lambda cell: (cell.model, cell.target)).map(in_order),
)
"""Up to 4 cells and 2 models, in order."""
