"""Where two compilers part over one dispatch: known answers, and what must not be named."""

from __future__ import annotations

import pytest
from replacing import replace
from trace_factory import Counts, trace

from bot.core.parting import parting
from bot.core.program_proof import ProgramPassProof, ProgramProof
from bot.core.trace import LLVM, MACHINE, PROGRAM, REGION, DispatchTrace

SLOWLY = "traced: no single printed pass makes most of the difference"


def named(base: DispatchTrace | None, head: DispatchTrace | None) -> tuple[str, Counts]:
    result = parting(base, head)
    return (
        (result.row.name, dict(result.operations)) if result.row else (result.why, {})
    )


def in_llvm(gep: int, spills: int, *, is_detailed: bool) -> DispatchTrace:
    """Of one more look at LLVM's own IR, or of milestones alone."""
    looks = [("GVNPass", {"load": 500}, LLVM)] if is_detailed else []
    machine = [
        ("isel", {"ADD": 600}, MACHINE),
        ("greedy", {"ADD": 600, "SPILL": spills}, MACHINE),
    ]
    return trace(("a", {"gep": gep, "x": 500}), *looks, *machine)


def lowered(reads: int, gep: int) -> DispatchTrace:
    """As a layer norm on riscv64: fewer reads become fewer `gep` when LLVM's IR is made."""
    before = [
        ("peel", {"x": 300}),
        ("slices", {"x": 300, "read": reads}),
        ("cse", {"x": 9000, "read": reads}),
    ]
    return trace(*before, ("llvm", {"y": 9900, "gep": gep}))


def hoisted(adds: int) -> DispatchTrace:
    """As a matmul on riscv64: `consthoist` shows more adds, which loop strength reduction made.

    LLVM prints nothing for that pass, so no pass may be named.
    """
    return trace(
        ("GVNPass", {"x": 90}, LLVM), ("consthoist", {"x": 90, "add": adds}, LLVM)
    )


ISEL = "isel"
GREEDY = "greedy"
CASES = {
    "the first after which they never meet again": (
        trace(("a", {"x": 10}), ("b", {"x": 10, "y": 5}), ("c", {"z": 20})),
        trace(("a", {"x": 10}), ("b", {"x": 10, "y": 9}), ("c", {"z": 28})),
        ("b", {"y": 4}),
    ),
    "not where they meet again": (
        trace(("a", {"x": 10}), ("b", {"x": 12}), ("c", {"x": 20}), ("d", {"x": 30})),
        trace(("a", {"x": 10}), ("b", {"x": 15}), ("c", {"x": 20}), ("d", {"x": 40})),
        ("d", {"x": 10}),
    ),
    "the larger of two passes that only one side prints each": (
        trace(("a", {"x": 40}), ("fuse", {"x": 36}), ("low", {"l": 60})),
        trace(("a", {"x": 40}), ("split", {"x": 80}), ("low", {"l": 120})),
        ("split", {"x": 40}),
    ),
    "not the first pass of LLVM, whose counts have the translation in them": (
        trace(
            ("tile", {"x": 50}),
            ("lower", {"x": 2_000, "add": 10}),
            ("EarlyCSEPass", {"y": 90, "add": 10}, LLVM),
            ("GVNPass", {"y": 80, "add": 10}, LLVM),
        ),
        trace(
            ("tile", {"x": 50}),
            ("lower", {"x": 2_000, "add": 34}),
            ("EarlyCSEPass", {"y": 90, "add": 34}, LLVM),
            ("GVNPass", {"y": 80, "add": 34}, LLVM),
        ),
        (SLOWLY, {}),
    ),
    "not a pass that moved": (
        trace(
            ("tile", {"x": 4}), ("bufferize", {"x": 4, "m": 2}), ("lower", {"l": 30})
        ),
        trace(
            ("bufferize", {"x": 2, "m": 2}),
            ("tile", {"x": 4, "m": 2}),
            ("lower", {"l": 60}),
        ),
        ("lower", {"l": 30}),
    ),
    "not a handful that differs before": (
        trace(
            ("peel", {"apply": 301, "max": 0}),
            ("vector", {"apply": 301, "index": 4_000}),
            ("low", {"l": 9_000}),
        ),
        trace(
            ("peel", {"apply": 300, "max": 1}),
            ("vector", {"apply": 300, "max": 1, "index": 2_560}),
            ("low", {"l": 4_000}),
        ),
        ("vector", {"index": -1440}),
    ),
    # as a matmul on rocm: a loop's full unrolling is not printed, and is seen after the
    # next pass of that side
    "no pass of LLVM that one side alone prints": (
        trace(
            ("a", {"x": 9}),
            ("GVNPass", {"load": 500}, LLVM),
            (ISEL, {"ADD": 600}, MACHINE),
            (GREEDY, {"ADD": 610}, MACHINE),
        ),
        trace(
            ("a", {"x": 9}),
            ("GVNPass", {"load": 500}, LLVM),
            ("VectorCombinePass", {"load": 900}, LLVM),
            (ISEL, {"ADD": 1000}, MACHINE),
            (GREEDY, {"ADD": 1020}, MACHINE),
        ),
        (SLOWLY, {}),
    ),
    "not what only lowers an earlier difference": (
        lowered(9, 60),
        lowered(0, 30),
        (SLOWLY, {}),
    ),
    "no pass of the code generator over IR": (hoisted(0), hoisted(76), (SLOWLY, {})),
    "not what LLVM folds away": (
        in_llvm(120, 208, is_detailed=True),
        in_llvm(0, 656, is_detailed=True),
        (GREEDY, {"SPILL": 448}),
    ),
    "equal counts of other shapes are apart": (
        trace(
            ("begin", {"fill": 2}), ("tile", {"fill tensor<1x1": 2}), ("end", {"x": 5})
        ),
        trace(
            ("begin", {"fill": 2}), ("tile", {"fill tensor<8x8": 2}), ("end", {"x": 50})
        ),
        ("tile", {"fill tensor<1x1": -2, "fill tensor<8x8": 2}),
    ),
    "one that one side alone runs": (
        trace(("a", {"x": 10}), ("expand", {"x": 40}), ("end", {"y": 40})),
        trace(("a", {"x": 10}), ("end", {"y": 10})),
        ("expand", {"x": -30}),
    ),
    "none of what differs from the beginning": (
        *(trace(("assign", {"x": count}), ("end", {"y": count})) for count in (10, 14)),
        ("traced: the sides differ before the first pass", {}),
    ),
    "none of what is the same to the end": (
        *(trace(("a", {"x": 10}), ("b", {"y": 10})) for _ in range(2)),
        ("traced: both sides have the same operations after each printed pass", {}),
    ),
}


@pytest.mark.parametrize(("base", "head", "expected"), CASES.values(), ids=CASES)
def test_the_pass_that_is_named(
    base: DispatchTrace, head: DispatchTrace, expected: tuple[str, Counts]
) -> None:
    assert named(base, head) == expected
    name, operations = named(head, base)
    assert (
        name,
        {key: -count for key, count in operations.items()},
    ) == expected, "the sides swapped"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("iree-codegen-lower-affine", "iree-lower-affine"),
        ("virtregrewriter", "virt-reg-rewriter"),
    ],
)
def test_a_renamed_pass_is_one_pass(old: str, new: str) -> None:
    result = parting(
        trace((old, {"x": 1}), ("end", {"y": 1})),
        trace((new, {"x": 1}), ("end", {"y": 3})),
    )
    assert [row.name for row in result.rows] == [new, "end"]
    assert result.row is not None
    assert result.row.name == "end"


def test_a_pass_that_adds_a_little_to_much_is_not_where_they_part() -> None:
    """As VectorCombinePass, then twoaddressinstruction, of a convolution on riscv64: shuffles, then a few copies."""
    sides = [
        trace(
            ("EarlyCSEPass", {"x": 2000}, LLVM),
            ("VectorCombinePass", {"x": 2000, "shuffle": 62 * head}, LLVM),
            ("select", {"x": 3000, "shuffle": 62 * head}, MACHINE),
            (
                "address",
                {"x": 3000, "copy": 4000 + 10 * head, "shuffle": 150 * head},
                MACHINE,
            ),
            (
                "spill",
                {
                    "x": 3000,
                    "copy": 4000 + 10 * head,
                    "shuffle": 150 * head,
                    "store": 1200 * head,
                },
                MACHINE,
            ),
        )
        for head in (0, 1)
    ]
    selected, address, end = (row.share for row in parting(*sides).rows[2:])
    assert selected < end / 8 < address
    assert named(*sides) == ("VectorCombinePass", {"shuffle": 62})


def test_no_pass_of_llvm_is_named_by_milestones_alone() -> None:
    for detailed in ((False, False), (True, False), (False, True)):
        base, head = (
            in_llvm(0, 208 + 448 * index, is_detailed=detail)
            for index, detail in enumerate(detailed)
        )
        reason = (
            "traced: the sides diverge in LLVM, up to greedy, and LLVM does not print"
            " every pass there"
        )
        assert named(base, head) == (reason, {})


@pytest.mark.parametrize(
    ("base", "reason"),
    [
        (None, "not traced"),
        (
            DispatchTrace((), "not traced: compile budget used up"),
            "not traced: compile budget used up",
        ),
        # as snapshots say it that were stored when budgets counted time
        (
            DispatchTrace((), "no time was left to trace it"),
            "not traced: compile budget used up",
        ),
        (DispatchTrace((), "ended by SIGSEGV"), "base: ended by SIGSEGV"),
        (
            DispatchTrace(trace(("a", {"x": 1})).steps, same_code=False),
            "cannot be traced: a separate compile of the dispatch gives another result",
        ),
        (
            DispatchTrace(trace(("a", {"x": 1})).steps, "not finished after 9 s"),
            "not finished after 9 s",
        ),
    ],
)
def test_no_pass_is_named_of_what_was_not_traced_whole(
    base: DispatchTrace | None, reason: str
) -> None:
    result = parting(base, trace(("a", {"x": 2})))
    assert result.row is None
    assert reason in result.why


def formed(*passes: tuple[str, Counts], proof: str = "") -> DispatchTrace:
    """Passes over a program, with the pass that an experiment names."""
    steps = trace(*((name, counts, PROGRAM) for name, counts in passes))
    passed = (
        ProgramPassProof(
            name=proof,
            class_name="",
            runs_on="both",
            status="proved",
            restored_regions=1,
        )
        if proof
        else None
    )
    program_proof = ProgramProof(
        "proved",
        phase="dispatch-creation",
        regions=1,
        restored_regions=1,
        passed=passed,
    )
    return replace(steps, formed=program_proof)


@pytest.mark.parametrize(
    ("proof", "expected"),
    [("", None), ("form", "form"), ("fuse", "fuse"), ("cse", None)],
    ids=[
        "no experiment",
        "the pass that forms regions",
        "a pass before it",
        "a pass that changes no operation here",
    ],
)
def test_of_other_regions_only_an_experiment_names_a_pass_where_more_differs(
    proof: str, expected: str | None
) -> None:
    """A difference that is there before the regions are formed may have formed them, or not."""
    base = formed(("fuse", {"a": 4}), ("form", {"a": 4, REGION: 1}))
    head = formed(("fuse", {"a": 3}), ("form", {"a": 3, REGION: 2}), proof=proof)
    result = parting(base, head)
    assert result.forms_otherwise
    assert (result.row.name if result.row else None) == expected
    assert bool(result.why) == (expected is None)
    assert (result.formed.pass_name if result.formed else "") == proof


def test_the_pass_that_forms_regions_needs_no_experiment_where_nothing_differs_before_it() -> (
    None
):
    base = formed(("fuse", {"a": 4}), ("form", {"a": 4, REGION: 1}))
    head = formed(("fuse", {"a": 4}), ("form", {"a": 4, REGION: 2}))
    result = parting(base, head)
    assert result.row is not None
    assert result.row.name == "form"
