"""The measured tables of folding: what stands in them is what the audits say."""

from __future__ import annotations

import pytest
from fold_factory import many, small
from fold_page import SHOWN_IN_README, page_lines, percent, readme_lines, targets, together
from replacing import replace

from bot.core.folds.fold_values import BeforeAfter


def test_every_folded_cell_has_a_row_with_its_figures() -> None:
    audit = many()
    page = "\n".join(page_lines(audit))
    for cell in audit.cells:
        before, after = cell.artifact_bytes.before, cell.artifact_bytes.after
        row = f"| {cell.model} | {cell.target} | "
        assert (row in page) is (cell.state == "folded")
        if cell.state == "folded" and before is not None and after is not None:
            assert f"{before:,} → {after:,}" in page
    readme = "\n".join(readme_lines(audit))
    shown = {cell.model for cell in audit.cells if cell.target == SHOWN_IN_README}
    assert {one.model for one in audit.models if f"\n| {one.model} | " in readme} == shown


def test_a_target_has_the_sums_of_its_folded_cells() -> None:
    audit = many()
    cells = [cell for cell in audit.cells if cell.state == "folded" and cell.target == SHOWN_IN_README]
    [row] = [row for row in targets(audit) if row[0] == SHOWN_IN_README]
    before, after = (sum(getattr(cell.artifact_bytes, side) for cell in cells) for side in ("before", "after"))
    assert row[1] == str(len(cells)) and row[4] == f"{before:,} → {after:,}"


def test_of_several_audits_the_last_word_on_a_cell_counts_and_the_fewest_executables_of_a_model() -> None:
    audit = small()
    cell = next(each for each in audit.cells if each.state == "folded")
    better = replace(cell, executables=BeforeAfter(cell.executables.before, 1), equal=True)
    both = together([audit, replace(audit, cells=(better,))])
    assert better in both.cells and len(both.cells) == len(audit.cells)
    assert next(one.folded for one in both.models if one.model == cell.model) == 1
    wrong = together([audit, replace(audit, cells=(replace(better, equal=False),))])
    assert next(one.folded for one in wrong.models if one.model == cell.model) != 1
    with pytest.raises(ValueError, match="several compilers"):
        together([audit, replace(audit, compiler=replace(audit.compiler, digest="0" * 64))])


@pytest.mark.parametrize(("part", "whole", "told"), [(39, 271, "85.6 %"), (None, 271, "n/a"), (1, 0, "n/a")])
def test_what_is_away(part: int | None, whole: int, told: str) -> None:
    assert percent(part, whole) == told
