"""The kept everyday pull requests are what they are called, and are read as they were measured."""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import everyday
import pytest

from bot.core.rules.delta import CellDelta
from bot.core.rules.quiet import alarms
from bot.core.values.planned import COMMON_FLAGS

TARGETS = {
    "cuda", "llvm-cpu-aarch64", "llvm-cpu-riscv64", "llvm-cpu-x86_64", "metal-spirv", "rocm", "vmvx", "vulkan-spirv",
}  # fmt: skip
MOST_BYTES = 700_000
"""Of all that is kept."""


def deltas(case: str) -> list[CellDelta]:
    """Without what no compiler was asked for."""
    return [delta for delta in everyday.report(case).deltas if not delta.excused]


def states(case: str) -> Counter[str]:
    return Counter(delta.state for delta in deltas(case))


def texts(folder: Path) -> dict[str, bytes]:
    """File → its text; how that is packed is the library's."""
    return {path.name: lzma.decompress(path.read_bytes()) for path in folder.glob("*.xz")}


@pytest.mark.parametrize("case", everyday.CASES)
def test_every_case_is_a_whole_comparison(case: str) -> None:
    base, head = everyday.sides(case)
    for side in (base, head):
        assert {cell.key.target for cell in side.cells if cell.status != "unsupported"} == TARGETS
        assert {cell.key.model for cell in side.cells} == side.models.keys()
        assert side.flags[: len(COMMON_FLAGS)] == COMMON_FLAGS
        assert side.source.sha and not side.source.dirty
    assert base.source.sha != head.source.sha
    assert everyday.report(case).verdict.status != "unknown"


def test_what_is_kept_again_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = ("nothing_changed", "newly_broken")
    before = {case: texts(everyday.HERE / case) for case in cases}
    found = {case: everyday.sides(case) for case in cases}
    monkeypatch.setattr(everyday, "COMMON", tmp_path / everyday.COMMON.relative_to(everyday.HERE))
    monkeypatch.setattr(everyday, "HERE", tmp_path)
    everyday.keep(found)
    assert {case: texts(tmp_path / case) for case in cases} == before
    assert {case: everyday.sides(case) for case in cases} == found
    everyday.forget()


def test_all_of_it_stays_small() -> None:
    assert sum(path.stat().st_size for path in everyday.HERE.rglob("*.xz")) < MOST_BYTES


def test_nothing_changed_has_no_changed_cell_though_some_are_refused_on_both_sides() -> None:
    found = states("nothing_changed")
    assert found.keys() == {"same", "broken"} and found["same"] > found["broken"] > 0
    for side in everyday.sides("nothing_changed"):
        over = {cell.key.model for cell in side.cells if cell.status == "over-stack-limit"}
        assert over == {"bert_l4_f32_s128", "bert_l4_f32_dyn"}
    assert not alarms(everyday.report("nothing_changed"))


def test_one_flag_changes_cells_of_its_target_alone() -> None:
    changed = [delta for delta in deltas("one_flag") if delta.state not in ("same", "broken")]
    assert {delta.key.target for delta in changed} == {"llvm-cpu-x86_64"}
    for delta in changed:
        assert delta.base and "x86-64-v3" in delta.base.command and delta.head and "x86-64-v4" in delta.head.command


def test_a_model_edit_changes_that_model_alone() -> None:
    base, head = everyday.sides("model_edit")
    edited = {name for name in base.models if base.models[name] != head.models[name]}
    assert {delta.key.model for delta in deltas("model_edit") if delta.state == "changed"} == edited
    assert edited == {"mobilenet_v1_f32_224"}


def test_one_cell_is_newly_broken_and_all_else_is_as_it_was() -> None:
    assert states("newly_broken").keys() == {"newly-broken", "same", "broken"}
    [broken] = [delta for delta in deltas("newly_broken") if delta.state == "newly-broken"]
    assert broken.head and broken.head.failure and "ocml.bc" in broken.head.failure.message


def test_an_improvement_has_smaller_artifacts_alone() -> None:
    assert states("improvement").keys() == {"changed", "same", "broken"}
    changes = [delta.metrics["artifact_bytes"].change for delta in deltas("improvement") if delta.state == "changed"]
    assert len(changes) == 4 and all(change is not None and change < 0 for change in changes)


def test_where_everything_broke_nothing_is_compared() -> None:
    assert states("everything_broke").keys() == {"newly-broken", "broken"}
    assert not any(cell.measured for cell in everyday.sides("everything_broke")[1].cells)


def test_two_releases_change_most_cells() -> None:
    base, head = everyday.sides("two_releases")
    assert (base.compiler.spec, head.compiler.spec) == ("iree-base-compiler==3.11.0", "iree-base-compiler==3.13.0")
    found = states("two_releases")
    assert found["changed"] > found["same"] and found["newly-broken"] + found["fixed"] > 0


def test_a_release_further_is_another_compiler_and_nothing_else() -> None:
    base, head = everyday.sides("patch_release")
    assert (base.compiler.spec, head.compiler.spec) == ("iree-base-compiler==3.12.0", "iree-base-compiler==3.13.0")
    assert base.models == head.models and len(base.models) == 2 and base.flags == head.flags
    assert states("patch_release")["changed"] > 0
