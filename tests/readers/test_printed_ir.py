"""Trees of printed IR: the order of the passes, their operations and options, and pipelines made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.readers.printed_ir import Translation, pipeline_text, printed_translation

EXECUTABLE = "('hal.executable' operation: @e)"
FUNCTION = "('func.func' operation: @f)"
MODULE = "('builtin.module' operation)"
FILES = {
    "6_0_iree-hal-configure-executables.mlir": (
        f"C: iree-hal-configure-executables {EXECUTABLE}"
    ),
    "6_1_0_0_2_cse.mlir": f"CSEPass: cse {FUNCTION}",
    "6_1_0_0_10_iree-llvmcpu-tile.mlir": (
        f"TilePass: iree-llvmcpu-tile{{level=1 list={{a,b}}}} {FUNCTION}"
    ),
    "6_1_0_0_11_iree-llvmcpu-lower-executable-target.mlir": (
        f"L: iree-llvmcpu-lower-executable-target {FUNCTION}"
    ),
    "6_1_0_1_iree-op-pipeline-adaptor.mlir": (
        f"mlir::Adaptor: iree-op-pipeline-adaptor {MODULE}"
    ),
    "6_1_0_2_iree-lower-affine.mlir": f"AffinePass: iree-lower-affine {MODULE}",
    "6_2_iree-hal-translate-all-executables.mlir": (
        f"T: iree-hal-translate-all-executables {EXECUTABLE}"
    ),
}


def tree(directory: Path, files: dict[str, str]) -> Path:
    for name, header in files.items():
        text = f"// -----// IR Dump After {header} //----- //\nafter {name}\n"
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def test_passes_are_in_the_order_in_which_they_ran(tmp_path: Path) -> None:
    translation = printed_translation(tree(tmp_path, FILES))
    assert isinstance(translation, Translation), translation
    assert [printed.step for printed in translation.passes] == [
        ("func.func", "cse"),
        ("func.func", "iree-llvmcpu-tile"),
        ("builtin.module", "iree-lower-affine"),
    ]
    assert [printed.options for printed in translation.passes] == [
        "",
        "{level=1 list={a,b}}",
        "",
    ]
    assert translation.lowering_end == 2
    assert translation.has_options
    assert (
        translation.text_behind(0) == "after 6_0_iree-hal-configure-executables.mlir\n"
    )
    assert translation.text_behind(2) == "after 6_1_0_0_10_iree-llvmcpu-tile.mlir\n"


def test_older_releases_print_no_options(tmp_path: Path) -> None:
    """They have the name in brackets."""
    older = {}
    for name, header in FILES.items():
        class_name, _, remainder = (
            header.rpartition(": ")
            if header.count(": ") == 1
            else header.partition(": ")
        )
        argument, _, operation = remainder.partition(" (")
        older[name] = f"{class_name} ({argument.partition('{')[0]}) ({operation}"
    translation = printed_translation(tree(tmp_path, older))
    assert isinstance(translation, Translation), translation
    assert [printed.name for printed in translation.passes] == [
        "cse",
        "iree-llvmcpu-tile",
        "iree-lower-affine",
    ]
    assert not translation.has_options


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "the compiler printed no passes of the translation"),
        (
            {**FILES, "6_1_0_0_3_cse.mlir": "CSEPass: cse ('func.func' operation: @g)"},
            "the executable has 2 functions",
        ),
        (
            {name: FILES[name] for name in (*list(FILES)[:1], *list(FILES)[-1:])},
            "the executable has 0 functions",
        ),
    ],
)
def test_what_is_no_translation_of_one_function_has_a_reason(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    assert printed_translation(tree(tmp_path, files)) == reason


def test_a_pipeline_keeps_the_order_and_joins_neighbours() -> None:
    passes = [
        ("func.func", "a"),
        ("func.func", "b{x=1}"),
        ("builtin.module", "c"),
        ("func.func", "d"),
        ("hal.executable.variant", "e"),
        ("hal.executable", "f"),
    ]
    inner = "builtin.module(func.func(a,b{x=1}),c,func.func(d))"
    assert (
        pipeline_text(passes)
        == f"builtin.module(hal.executable(hal.executable.variant({inner},e),f))"
    )
    assert pipeline_text([], ["g"]) == "builtin.module(builtin.module(g))"
