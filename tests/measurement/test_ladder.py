"""Ladders that real compilers measure: known answers, controls, and what becomes of an experiment that fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alone_stage import compile_setup, measured
from ladder_models import EMBEDDING_NORM, POINTWISE
from product_model import PRODUCT
from reduction_models import SUMS

from bot.cli.main import main
from bot.core.ladder import (
    Ladder,
    attribution,
    failed_rungs,
    interactions,
    reverse_attribution,
)
from bot.core.snapshot import Failure
from bot.study.foreign_ir import generic_texts, printed
from bot.study.ladder import measured_ladder

pytestmark = [pytest.mark.compiler, pytest.mark.slow]

X86 = "llvm-cpu-x86_64"
AARCH64 = "llvm-cpu-aarch64"
Side = tuple[str, str]  # a release and a model


def ladder_of(
    home: Path,
    base: Side,
    head: Side,
    target: str,
    word: str = "",
    *,
    both_orders: bool = False,
) -> Ladder:
    """Return the ladder of the dispatch with `word` in its name; its parts add up."""
    stages = [
        measured(home / label, *side, target)
        for label, side in (("base", base), ("head", head))
    ]
    with compile_setup(base[0]) as base_setup, compile_setup(head[0]) as head_setup:
        sides = [
            stage.ladder_side(setup, target, word)
            for stage, setup in zip(stages, (base_setup, head_setup), strict=True)
        ]
        ladder = measured_ladder(*sides, both_orders=both_orders)
    assert isinstance(ladder, Ladder), ladder
    parts = attribution(ladder)
    if None not in parts.values():
        change = (sides[1].row.code_bytes or 0) - (sides[0].row.code_bytes or 0)
        assert sum(part or 0 for part in parts.values()) == change
    return ladder


def test_mlir_carries_what_a_changed_knob_does_not(tmp_path: Path) -> None:
    """`vector_reduction` is new in 3.11.0, and with base's configuration the code is as large."""
    sides = ("3.10.0", EMBEDDING_NORM), ("3.11.0", EMBEDDING_NORM)
    ladder = ladder_of(tmp_path, *sides, X86)
    assert (ladder.base.code_bytes, ladder.head.code_bytes) == (7919, 32077)
    assert attribution(ladder) == {
        "source": 0,
        "configuration": 52,
        "mlir": 24106,
        "llvm_optimizer": 0,
        "code_generator": 0,
    }
    assert (ladder.base_same, ladder.head_same) == (True, True)
    assert ladder.climb.control == ladder.base


def test_the_code_generator_carries_what_a_tile_size_does_not(tmp_path: Path) -> None:
    """`cache_parallel` goes from 14 to 28, and base's bitcode in head's code generator is as small."""
    sides = ("3.11.0", POINTWISE), ("3.13.0", POINTWISE)
    ladder = ladder_of(tmp_path, *sides, AARCH64, both_orders=True)
    assert ladder.change_bytes == 3656 - 6364
    parts = attribution(ladder)
    assert parts["code_generator"] == -2556
    assert parts["configuration"] == -152
    assert interactions(ladder) == {"configuration": (-152, 168)}
    backward = reverse_attribution(ladder)
    assert backward is not None
    assert backward["code_generator"] is None, "an older LLVM cannot read newer bitcode"
    assert ladder.back is not None
    assert ladder.back.optimized is not None
    reason = "iree-lld cannot compile this bitcode: Invalid record"
    assert ladder.back.optimized.why == reason


@pytest.mark.parametrize("target", [X86, "llvm-cpu-riscv64", "vmvx"])
def test_nothing_is_attributed_of_a_side_to_itself(tmp_path: Path, target: str) -> None:
    """Not even where its function has another name, or where the linker gives other code than the compiler."""
    renamed = PRODUCT.replace("@main", "@another")
    sides = ("3.13.0", PRODUCT), ("3.13.0", renamed)
    ladder = ladder_of(tmp_path, *sides, target, both_orders=True)
    for parts in (attribution(ladder), reverse_attribution(ladder)):
        assert parts is not None
        assert set(parts.values()) == {0}
    assert failed_rungs(ladder) == {}
    assert ("back_end" in attribution(ladder)) == (target == "vmvx")


def test_a_longer_name_is_source_where_names_are_code(tmp_path: Path) -> None:
    renamed = PRODUCT.replace("@main", "@another")
    ladder = ladder_of(tmp_path, ("3.13.0", PRODUCT), ("3.13.0", renamed), "cuda")
    parts = {"source": 33, "configuration": 0, "mlir": 0, "back_end": 0}
    assert attribution(ladder) == parts
    assert ladder.head_code == ladder.base_code


def test_barriers_are_spelled_as_each_release_reads_them(tmp_path: Path) -> None:
    """Up to 3.11.0 a barrier of a whole workgroup is an operation of its own."""
    sides = ("3.11.0", SUMS), ("3.12.0", SUMS)
    ladder = ladder_of(tmp_path, *sides, "cuda", both_orders=True)
    assert ladder.back is not None
    for climb in (ladder.climb, ladder.back):
        assert climb.translated == ladder.head


def elementwise(number: int) -> str:
    """Return a function that is a kernel of its own."""
    shape = f"tensor<{number + 5}xf32>"
    return (
        f"func.func @f{number}(%a: {shape}) -> {shape} {{\n"
        f"  %0 = arith.mulf %a, %a : {shape}\n  return %0 : {shape}\n}}\n"
    )


def test_labels_with_the_number_of_a_kernel_hide_no_part(tmp_path: Path) -> None:
    """PTX has `$L__BB10_1` in the artifact and `$L__BB0_1` alone, so the sizes differ."""
    model = "".join(map(elementwise, range(10))) + PRODUCT
    sides = ("3.11.0", model), ("3.13.0", model)
    ladder = ladder_of(tmp_path, *sides, "cuda", "matmul", both_orders=True)
    assert ladder.is_whole
    assert (ladder.base_same, ladder.head_same) == (True, True)
    assert ladder.climb.respelled_bytes > 0
    parts = attribution(ladder)
    assert (parts["configuration"], parts["mlir"]) == (0, -458)
    spelled = ladder.back.respelled_bytes if ladder.back else 0
    assert parts["source"] == spelled - ladder.climb.respelled_bytes


def test_swapping_the_sides_exchanges_the_orders_and_negates(tmp_path: Path) -> None:
    older = ("3.11.0", PRODUCT)
    newer = ("3.13.0", PRODUCT)
    ladder = ladder_of(tmp_path / "ab", older, newer, "cuda", both_orders=True)
    swapped = ladder_of(tmp_path / "ba", newer, older, "cuda", both_orders=True)
    assert attribution(ladder) == {
        "source": 0,
        "configuration": 0,
        "mlir": -458,
        "back_end": -20,
    }
    backward = reverse_attribution(ladder)
    assert backward is not None
    assert attribution(swapped) == {
        phase: -(part or 0) for phase, part in backward.items()
    }
    assert (swapped.climb, swapped.back) == (ladder.back, ladder.climb)


def test_a_failed_rung_has_its_reason_and_says_nothing_of_its_neighbours(
    tmp_path: Path,
) -> None:
    sides = ("3.13.0", PRODUCT), ("3.11.0", PRODUCT)
    ladder = ladder_of(tmp_path, *sides, X86)
    parts = attribution(ladder)
    assert (parts["llvm_optimizer"], parts["code_generator"]) == (None, None)
    assert (parts["source"], parts["mlir"]) == (0, 396)
    reason = "iree-lld cannot compile this bitcode: Invalid record"
    assert failed_rungs(ladder) == {"optimized": reason}


def test_reports_and_traces_have_the_attribution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measured once: `report` reads it from head's snapshot, and `trace` from the cache."""
    (tmp_path / "m.mlir").write_text(PRODUCT, encoding="utf-8")
    config = tmp_path / "c.yml"
    text = f"schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [{X86}]\n"
    config.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    sides = ("--base", "3.11.0", "--head", "3.13.0", "--config", str(config))
    assert main(["compare", *sides, "--out", str(out)]) == 1
    parts = {
        "source": 0,
        "configuration": 4227,
        "mlir": 14,
        "llvm_optimizer": 0,
        "code_generator": 0,
    }
    assert attributions(out) == [parts]
    stored = [f"--{side}={out / side}.json" for side in ("base", "head")]
    assert main(
        ["report", *stored, "--config", str(config), "--out", str(tmp_path / "again")]
    ) in (0, 1)
    assert attributions(tmp_path / "again") == [parts]
    reversed_sides = [f"--base={out}/head.json", f"--head={out}/base.json"]
    backward = tmp_path / "back"
    assert main(
        ["report", *reversed_sides, "--config", str(config), "--out", str(backward)]
    ) in (0, 1)
    assert attributions(backward) == [None], "base's own ladder is not shown for head"
    capsys.readouterr()
    dispatch = ("--model", "m", "--target", X86, "--dispatch", "*")
    assert main(["trace", *sides, *dispatch, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["attribution"] == parts
    assert document["interactions"] == {"configuration": [4227, 4687]}
    assert document["reverse_attribution"]["code_generator"] is None
    assert document["ladder"]["base_first"]["translated"] == {"code_bytes": 338}
    assert document["proof"] == {
        "status": "proved",
        "restored_bytes": 4227,
        "moved_bytes": 4241,
        "knobs": ["vector_common_parallel"],
        "not_needed": [],
        "why": "",
    }
    assert main(["trace", *sides, *dispatch]) == 0
    lines = capsys.readouterr().out
    assert (
        "configuration vector_common_parallel: proved: with base's value 99 % of the"
        " growth disappears" in lines
    )
    assert main(["trace", *stored, "--config", str(config), *dispatch]) == 5
    lines = capsys.readouterr().out
    assert "configuration" in lines
    assert "+4,227 B" in lines


def attributions(out: Path) -> list[object]:
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return [
        row.get("attribution") for cell in report["cells"] for row in cell["dispatches"]
    ]


def test_texts_are_printed_together_as_they_are_alone() -> None:
    """A text that cannot be read fails alone."""
    texts = [
        "func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }",
        "#map = affine_map<(d0) -> (d0)>\nfunc.func private @b() attributes {m = #map}\n",
        "module {}",
    ]
    with compile_setup("3.11.0") as setup:
        alone = [printed(setup, text, is_generic=True) for text in texts]
        assert generic_texts(setup, texts) == alone
        good, bad = generic_texts(setup, [texts[0], "no module"])
    assert good == alone[0]
    assert isinstance(bad, Failure)


MATRICES = """
func.func @main(%a: tensor<128x256xf32>, %b: tensor<256x512xf32>) -> tensor<128x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x512xf32>) -> tensor<128x512xf32>
  %product = linalg.matmul ins(%a, %b : tensor<128x256xf32>, tensor<256x512xf32>)
      outs(%init : tensor<128x512xf32>) -> tensor<128x512xf32>
  return %product : tensor<128x512xf32>
}
"""


def test_matrix_instructions_of_amd_are_spelled_as_each_release_reads_them(
    tmp_path: Path,
) -> None:
    """Their constants are operands up to 3.10.0, and masks are numbers up to 3.11.0."""
    old = ("3.10.0", MATRICES)
    ladder = ladder_of(
        tmp_path / "a", old, ("3.11.0", MATRICES), "rocm", both_orders=True
    )
    assert ladder.is_whole
    later = ladder_of(tmp_path / "b", old, ("3.12.0", MATRICES), "rocm")
    assert later.climb.translated.why == ""
