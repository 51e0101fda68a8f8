"""bot.core.snapshot: cells are sorted and unique, and a value that is not there is None."""

from __future__ import annotations

import pytest
from hypothesis import given
from replacing import replace
from strategies import plain_snapshot, snapshots

from bot.core.snapshot import STATUSES, Cell, CellKey, Snapshot

KEY = CellKey("bert", "vmvx")


@pytest.mark.parametrize("status", STATUSES)
def test_only_a_cell_with_an_artifact_is_measured(status: str) -> None:
    assert Cell(KEY, status).measured is (status in {"ok", "over-stack-limit"})


def test_a_value_is_known_or_none_and_zero_is_known() -> None:
    cell = Cell(KEY, "ok", metrics={"artifact_bytes": 0, "vm_bytes": None})
    assert cell.value("artifact_bytes") == 0
    assert cell.value("vm_bytes") is None
    assert cell.value("stack_max_bytes") is None


def test_keys_sort_by_model_and_then_target_and_read_as_words() -> None:
    keys = [CellKey("b", "a"), CellKey("a", "z"), CellKey("a", "b")]
    assert [str(key) for key in sorted(keys)] == ["a on b", "a on z", "b on a"]


def test_cells_out_of_order_are_no_snapshot() -> None:
    good = plain_snapshot(("a", "vmvx", "ok"), ("b", "vmvx", "ok"))
    with pytest.raises(ValueError, match="sorted and unique"):
        replace(good, cells=good.cells[::-1])


def test_a_cell_twice_is_no_snapshot() -> None:
    good = plain_snapshot(("a", "vmvx", "ok"))
    with pytest.raises(ValueError, match="sorted and unique"):
        replace(good, cells=good.cells * 2)


@given(snapshots())
def test_any_snapshot_holds_each_cell_once_in_order(snapshot: Snapshot) -> None:
    keys = [cell.key for cell in snapshot.cells]
    assert keys == sorted(set(keys))
