"""What is said of a dispatch whose code changed while its configuration did not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES
from reader_checks import fixture
from replacing import replace

from bot.core.codec.counts import counts_text
from bot.core.values.snapshot import Dispatch
from bot.insight.causes.evidence import evidence, ir_differs
from bot.readers.code.object_code import function_codes
from bot.readers.ir_worker.ir_operations import operations

DUMP = FIXTURES / "ir" / "tiny.10.executable-targets.mlir"
NAMES = st.sampled_from(["load", "store", "vector", "total", "vector_bits", "llvm.add", "spill"])
COUNTS = st.none() | st.dictionaries(NAMES, st.integers(0, 10_000)).map(counts_text)


def dispatch(operations: str | None = None, instructions: str | None = None) -> Dispatch:
    return Dispatch("main_dispatch_0", "main_dispatch_0_matmul", operations=operations, instructions=instructions)


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [("llvm.add 1", "llvm.add 1", False), ("llvm.add 1", "llvm.add 2", True), ("", "", False), ("", "vm.br 1", True)],
)
def test_the_ir_differs_where_its_counts_do(base: str, head: str, expected: bool) -> None:
    assert ir_differs(dispatch(base), dispatch(head)) is expected


@pytest.mark.parametrize(("base", "head"), [(None, None), (None, "llvm.add 1"), ("llvm.add 1", None)])
def test_nobody_knows_whether_the_ir_differs_where_a_side_lacks_it(base: str | None, head: str | None) -> None:
    assert ir_differs(dispatch(base), dispatch(head)) is None


def test_the_largest_changes_come_first_and_ties_by_name() -> None:
    said = evidence(dispatch("a 5 b 1 c 10 d 7"), dispatch("a 1 b 5 d 8 e 100"))
    assert said == "the IR before machine code differs: e +100, c -10, a -4"


def test_a_difference_of_the_ir_is_named() -> None:
    base = dispatch("llvm.icmp 3080 llvm.intr.fma 7 llvm.select 2050 spirv.FAdd 9")
    head = dispatch("llvm.icmp 6 llvm.intr.fma 8 spirv.FAdd 9")
    said = evidence(base, head)
    assert said == "the IR before machine code differs: icmp -3,074, select -2,050, intr.fma +1"


def test_then_what_became_of_it() -> None:
    base = dispatch("llvm.icmp 2", "compare 20 load 40 total 60")
    head = dispatch("llvm.icmp 1", "compare 10 load 40 total 50")
    assert evidence(base, head) == "the IR before machine code differs: icmp -1; instructions: compare -10"


def test_the_same_operations_leave_it_to_the_back_end() -> None:
    base = dispatch("llvm.add 1", "load 50 spill 2 total 50 vector 50 vector_bits 512")
    head = dispatch("llvm.add 1", "load 1050 loop 1 spill 14 total 1050 vector 50 vector_bits 256")
    assert evidence(base, head) == (
        "the same operations before machine code; instructions: "
        "load +1,000, stack accesses +12, loops +1, vector 512 → 256 bits"
    )


def test_what_lost_its_vectors() -> None:
    base, head = dispatch(None, "load 9 total 9 vector 9 vector_bits 128"), dispatch(None, "load 36 total 36")
    assert evidence(base, head) == "instructions: load +27, vector instructions -9, vector 128 → no bits"


def test_as_many_of_each_is_not_called_the_same_code() -> None:
    same = dispatch("llvm.add 1", "load 1 total 1")
    said = evidence(same, same)
    assert said == "the same operations before machine code, and as many instructions of each class"
    assert "same IR" not in said


def test_without_instructions_only_the_operations_speak() -> None:
    assert evidence(dispatch("llvm.add 1"), dispatch("llvm.add 1")) == "the same operations before machine code"


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert evidence(dispatch(), dispatch()) == ""
    assert evidence(dispatch("llvm.add 1"), dispatch()) == ""
    assert evidence(dispatch(None, "load 1"), dispatch()) == ""


def test_texts_of_a_foreign_snapshot_break_nothing() -> None:
    said = evidence(dispatch("no counts", "<b> -1"), dispatch("llvm.add 1", "load 1"))
    assert said == "the IR before machine code differs"


@given(base=st.tuples(COUNTS, COUNTS), head=st.tuples(COUNTS, COUNTS))
def test_the_sentence_is_one_short_line(
    base: tuple[str | None, str | None], head: tuple[str | None, str | None]
) -> None:
    said = evidence(dispatch(*base), dispatch(*head))
    assert said.isprintable() and len(said) < 300 and not said.endswith((",", ":", ";", " "))


def test_real_code_of_one_model_for_two_dispatches() -> None:
    """The matmul and the reduction of `dense.mlir` as if the one had become the other."""
    codes = function_codes(fixture("dense.llvm-cpu-x86_64.o"))
    one, two = (code.instructions for name, code in sorted(codes.items()) if "_dispatch_" in name)
    said = evidence(dispatch("llvm.add 1", one), dispatch("llvm.add 1", two))
    assert said == (
        "the same operations before machine code; instructions: load -51, arithmetic +29, shuffle +22, "
        "vector instructions +80, stack accesses -4"
    )


def test_real_ir_of_one_operation_less() -> None:
    text = DUMP.read_bytes()
    name, counts = next(iter(operations(text).items()))
    assert counts is not None
    base = replace(dispatch(counts_text(counts)), name=name)
    head = replace(base, operations=counts_text({**counts, "llvm.shufflevector": counts["llvm.shufflevector"] - 1}))
    assert evidence(base, head) == "the IR before machine code differs: shufflevector -1"
