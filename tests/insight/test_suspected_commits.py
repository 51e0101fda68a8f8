"""Which commits are suspected of a pass over the program, of a pass for one target, and of LLVM.

From a real clone.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from compiler_history import (
    FUSION,
    GPU_CHOICE,
    LOWERING,
    REDUCTION,
    Clone,
    explained,
)
from replacing import replace

from bot.config.configuration import load_config
from bot.core.explanation import LookedUp, PassChange, RootCause, Suspect
from bot.core.report import Baseline, Report
from bot.explain.cloned_history import clone_source
from bot.explain.suspects import with_suspects
from bot.study.comparison import reported
from bot.system.cancel import Cancel

FUSING = PassChange(
    name="iree-dispatch-creation-elementwise-op-fusion",
    operations={"flow.dispatch.region": 1},
    class_name="ElementwiseOpFusionPass",
    experiment="proved",
)
LOADING = PassChange(
    name="iree-llvmcpu-lowering",
    operations={"memref.load": -32},
    class_name="LLVMCPULoweringPass",
)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "iree")


def report_of(base: str, head: str) -> Report:
    """Compare two sides that a compiler of these revisions made."""
    sides = [
        explained(side, revision) for side, revision in (("base", base), ("head", head))
    ]
    return reported(load_config(None), sides[0], sides[1], Baseline("", ""))


def asked(clone: Clone, report: Report, **changes: object) -> RootCause:
    """Look up the largest root cause of a report, with these changes."""
    first = replace(report.root_causes[0], **changes)
    source = clone_source(clone.directory, "iree-org/iree", Cancel())
    return with_suspects(replace(report, root_causes=(first,)), source).root_causes[0]


def titles(suspects: tuple[Suspect, ...]) -> list[str]:
    """Return what the suspected commits are called."""
    return [suspect.title for suspect in suspects]


def test_commits_of_a_pass_that_forms_regions_are_suspected(clone: Clone) -> None:
    base = clone.commit("Start", fusion="int a;\n", lowering="int a;\n")
    clone.commit("Limit attention broadcast fusion (#1)", fusion="int b;\n")
    clone.commit("Rename a variable (#2)", fusion="int c;\n")
    head = clone.commit("Fuse loads when lowering (#3)", lowering="int b;\n")
    root = asked(clone, report_of(base, head), cause="fusion", passed=FUSING)
    assert titles(root.suspects) == ["Limit attention broadcast fusion (#1)"]
    assert root.looked_up == LookedUp((FUSION,), 2)


def test_a_commit_for_one_target_is_suspected_of_a_change_of_this_target_alone(
    clone: Clone,
) -> None:
    """It speaks of scalar loads, and not of `memref.load`."""
    base = clone.commit("Start", lowering="int a;\n")
    title = "[AArch64] Do not break up vector loads into scalar loads (#1)"
    clone.commit(title, lowering="int b;\n")
    head = clone.commit("Speak of nothing (#2)", lowering="int c;\n")
    report = report_of(base, head)
    root = asked(clone, report, passed=LOADING, targets=("llvm-cpu-aarch64",))
    assert titles(root.suspects) == [title]
    assert root.looked_up is not None and root.looked_up.files == (LOWERING,)
    elsewhere = asked(clone, report, passed=LOADING, targets=("llvm-cpu-riscv64",))
    assert not elsewhere.suspects
    both_targets = asked(
        clone, report, passed=LOADING, targets=("llvm-cpu-aarch64", "llvm-cpu-riscv64")
    )
    assert not both_targets.suspects


def test_a_commit_is_suspected_whose_diff_alone_speaks_of_the_setting(
    clone: Clone,
) -> None:
    """3.11.0 → 3.12.0, cuda: iree#23991 changed `subgroup_basis`, and only its code has the word."""
    base = clone.commit("Start", reduction="threadCounts[last] = threadBasis;\n")
    title = (
        "[LLVMGPU] Track shared parallel dimensions better in reduction config (#23991)"
    )
    message = (
        f"{title}\n\nThis allows us to map iteration space dimensions between different"
        " operations instead of assuming everything to be in a certain order."
    )
    text = "subgroupCounts[distributeDim] = subgroupBasis;\n"
    clone.commit(message, reduction=text)
    head = clone.commit("Use range constructors (#2)", reduction=f"{text}int a;\n")
    report = report_of(base, head)
    sides = [
        replace(side, targets={"cuda": "cuda"}) for side in (report.base, report.head)
    ]
    report = replace(report, base=sides[0], head=sides[1])
    setting = "subgroup_basis 8 → 2, with thread"
    root = asked(
        clone, report, cause="strategy", what=setting, passed=None, targets=("cuda",)
    )
    assert titles(root.suspects) == [title]
    assert root.looked_up == LookedUp((REDUCTION,), 2)
    foreign = "padding 1 → 2"
    unrelated = asked(
        clone, report, cause="strategy", what=foreign, passed=None, targets=("cuda",)
    )
    assert not unrelated.suspects


def test_of_two_files_the_newest_commit_is_the_first_suspect(clone: Clone) -> None:
    base = clone.commit("Start", reduction="int a;\n", gpu_choice="int a;\n")
    clone.commit("Track subgroup_basis (#1)", reduction="int b;\n")
    head = clone.commit("Choose subgroup_basis (#2)", gpu_choice="int b;\n")
    report = report_of(base, head)
    sides = [
        replace(side, targets={"cuda": "cuda"}) for side in (report.base, report.head)
    ]
    report = replace(report, base=sides[0], head=sides[1])
    root = asked(
        clone,
        report,
        cause="strategy",
        what="subgroup_basis 8 → 2",
        passed=None,
        targets=("cuda",),
    )
    assert root.looked_up == LookedUp((REDUCTION, GPU_CHOICE), 2)
    assert titles(root.suspects) == [
        "Choose subgroup_basis (#2)",
        "Track subgroup_basis (#1)",
    ]


def test_a_reverted_commit_is_suspected_only_if_the_revert_is_reverted(
    clone: Clone,
) -> None:
    base = clone.commit("Start", lowering="int a;\n")
    title = "Emit fewer memref.load (#1)"
    merged = clone.commit(title, lowering="int b;\n")
    revert = f'Revert "{title}" (#2)'
    reverted = clone.commit(revert, lowering="int a;\n")
    again = f'Revert "{revert}" (#3)'
    applied = clone.commit(again, lowering="int b;\n")
    expected = {merged: [title], reverted: [], applied: [again]}
    for head, suspected in expected.items():
        root = asked(clone, report_of(base, head), passed=LOADING)
        assert titles(root.suspects) == suspected


def test_where_the_sides_differ_in_llvm_its_revisions_are_said(clone: Clone) -> None:
    base = clone.commit("Start", llvm="a", lowering="int a;\n")
    same = clone.commit("Speak of nothing (#1)", llvm="a", lowering="int b;\n")
    head = clone.commit("Bump LLVM (#2)", llvm="b")
    cause_words = (
        "other code; traced: the sides diverge in LLVM, up to greedy, and LLVM does not"
        " print every pass there"
    )
    for revision, note in (
        (head, f"LLVM, {'a' * 10} → {'b' * 10}"),
        (same, f"LLVM, whose revision {'a' * 10} is the same on both sides"),
    ):
        root = asked(clone, report_of(base, revision), what=cause_words, passed=None)
        assert (root.suspects, root.looked_up) == ((), LookedUp((), None, note))


def test_only_wanted_causes_are_looked_up(clone: Clone) -> None:
    """A caller may ask for proved causes alone."""
    base = clone.commit("Start", lowering="int a;\n")
    head = clone.commit("Lower affine.delinearize_index (#1)", lowering="int b;\n")
    report = report_of(base, head)
    source = clone_source(clone.directory, "iree-org/iree", Cancel())
    with_all_causes = with_suspects(report, source)
    none = with_suspects(report, source, is_wanted=lambda root: root.cause == "none")
    assert any(root.suspects for root in with_all_causes.root_causes)
    assert none == report
