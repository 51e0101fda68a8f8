"""bot.study.folding: how far a model is folded, by cells whose folded artifact can be trusted."""

from __future__ import annotations

from typing import cast

import pytest

from bot.core.fold import BeforeAfter, FoldCell
from bot.core.planned import Model, PlannedCell, Target
from bot.core.snapshot import Cell, CellKey
from bot.study.folding import Audited, FoldTools, model_of

BYTES = BeforeAfter(9_000, 5_000)


def cell(target: str, after: int | None, equal: bool | None, model: str = "m") -> FoldCell:
    return FoldCell(model, target, "folded", BeforeAfter(30, after), BYTES, BYTES, equal, (), ())


@pytest.mark.parametrize(
    ("cells", "folded"),
    [
        ([cell("a", 12, True), cell("b", 9, None)], 9),
        ([cell("a", 12, True), cell("b", 9, False)], 12),
        ([cell("a", 9, False)], None),
        ([cell("a", None, None), cell("b", 20, True), cell("c", 1, True, "other")], 20),
        ([], None),
    ],
)
def test_the_fewest_executables_of_cells_whose_outputs_do_not_differ(cells: list[FoldCell], folded: int | None) -> None:
    planned = PlannedCell(Model("m", "", "", "", 0), Target("a", "vmvx"))
    measured = Cell(CellKey("m", "a"), "ok", {"dispatch_regions": 64, "executables": 30})
    found = model_of(cast(FoldTools, None), [Audited(measured, planned, failure="no bindings")], cells)
    assert (found.model, found.regions, found.today, found.folded) == ("m", 64, 30, folded)
    assert (found.not_inlined, found.shapes_erased, found.constants_erased, found.both_erased) == (None,) * 4
