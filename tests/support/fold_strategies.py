"""Random fold audits: every state, missing figures, and names in any script."""

from __future__ import annotations

from hypothesis import strategies as st
from strategies import LARGEST, compilers, names, text, values

from bot.core.fold import (
    FOLD_KINDS,
    FOLD_SCHEMA,
    BeforeAfter,
    Bound,
    FoldAudit,
    FoldCell,
    FoldedFamily,
    FoldModel,
    LeftFamily,
    Price,
)
from bot.core.snapshot import CellKey

counts = st.integers(0, LARGEST)
ratios = st.floats(0, 1e9, allow_nan=False)
members = st.lists(names, min_size=1, max_size=3).map(tuple)
both = st.builds(BeforeAfter, values, values)
folded = st.builds(
    FoldedFamily,
    kind=st.sampled_from(FOLD_KINDS),
    members=members,
    operands=st.lists(st.sampled_from(["i32", "i64", "index"]), max_size=3).map(tuple),
)
left = st.builds(LeftFamily, kind=names, members=members, why=names)
prices = st.builds(Price, counts, counts, counts, ratios, ratios, ratios)
models = st.builds(FoldModel, model=names, **dict.fromkeys(FoldModel.__struct_fields__[1:], values))


@st.composite
def cells(draw: st.DrawFn, key: CellKey) -> FoldCell:
    """A cell with whatever its fields can hold."""
    return FoldCell(
        key.model,
        key.target,
        draw(st.sampled_from(["folded", "nothing-to-fold", "unsupported", "failed"])),
        executables=draw(both),
        artifact_bytes=draw(both),
        executable_bytes=draw(both),
        equal=draw(st.none() | st.booleans()),
        folded=tuple(draw(st.lists(folded, max_size=2))),
        left=tuple(draw(st.lists(left, max_size=2))),
        resumed_bytes=draw(values),
        bound=draw(st.none() | st.builds(Bound, counts, values)),
        equal_note=draw(text),
        price=draw(st.none() | prices),
        price_note=draw(text),
        command=draw(text),
        module=draw(text),
        note=draw(text),
    )


@st.composite
def audits(draw: st.DrawFn) -> FoldAudit:
    """Up to 4 cells and 2 models, in order."""
    keys = sorted(draw(st.sets(st.builds(CellKey, names, names), max_size=4)))
    told = draw(st.lists(models, max_size=2, unique_by=lambda model: model.model))
    return FoldAudit(
        FOLD_SCHEMA,
        draw(compilers),
        tuple(draw(st.lists(text, max_size=2))),
        draw(text),
        draw(st.none() | ratios),
        tuple(sorted(told, key=lambda model: model.model)),
        tuple(draw(cells(key)) for key in keys),
    )
