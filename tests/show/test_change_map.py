"""Where the bytes went, on real comparisons: every sum is true, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator

import everyday
import pytest
from replacing import replace

from bot.core.report import Report
from bot.core.snapshot import CellKey
from bot.show.facts import build_facts, cell_address
from bot.show.page import Place, change_map, pruned


def places(place: Place) -> Iterator[Place]:
    yield place
    for one in place.inside:
        yield from places(one)


def leaves(place: Place) -> Iterator[Place]:
    return (one for one in places(place) if not one.inside)


def cells_of(tree: Place) -> dict[str, Place]:
    return {cell.address: cell for target in tree.inside for cell in target.inside}


def assert_sums(tree: Place, report: Report) -> None:
    for place in places(tree):
        ends = list(leaves(place))
        assert (place.net_bytes, place.moved_bytes) == (
            sum(one.net_bytes for one in ends),
            sum(one.moved_bytes for one in ends),
        )
    cells = cells_of(tree)
    for delta in report.deltas:
        change = delta.metrics["artifact_bytes"].change if delta.metrics else None
        cell = cells.get(cell_address(delta.key))
        assert (cell.net_bytes if cell else 0) == (change or 0), delta.key


@pytest.mark.parametrize("case", everyday.CASES)
def test_leaves_sum_to_the_change_of_each_artifact(case: str) -> None:
    report = everyday.report(case)
    tree = change_map(build_facts(report))
    assert_sums(tree, report)
    assert tree.moved_bytes == sum(root.total.absolute_bytes for root in report.root_causes)
    largest = max((one.moved_bytes for one in leaves(tree)), default=0)
    for least in (2, 500, largest + 1):
        small = pruned(tree, least)
        assert (small.net_bytes, small.moved_bytes) == (tree.net_bytes, tree.moved_bytes)
        assert small.moved_bytes == sum(one.moved_bytes for one in leaves(small))


def test_what_nothing_explains_is_a_rectangle_of_its_own() -> None:
    report = everyday.report("two_releases")
    key = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")
    for told in ({}, {key: replace(report.explanations[key], dispatches=report.explanations[key].dispatches[3:])}):
        made = replace(report, explanations={**{k: v for k, v in report.explanations.items() if k != key}, **told})
        tree = change_map(build_facts(made))
        assert_sums(tree, made)
        (rest,) = (one for one in cells_of(tree)[cell_address(key)].inside if one.name == "unattributed")
        assert rest.net_bytes and ("dispatch" in rest.inside[0].name)
