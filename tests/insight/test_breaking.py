"""Cells that head fails: what the compiler's words tell of phase, place and dispatch, and not a word more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matched_cells import KEY, Row, made
from places import FIXTURES

from bot.compiler.diagnostics import trim
from bot.core.explanation import PHASES, Explanation
from bot.core.snapshot import Cell, Failure
from bot.explain.explanations import broken, phase_of

SAID = FIXTURES / "diagnostics"
DISTRIBUTE = "torch/nn/modules/normalization.py:228:0: error: 'func.func' op failed to distribute"
TRANSLATION = (
    'a.py:3:0: error: failed to run translation of source executable to target executable for backend #x<"cuda"'
)
TOSA = "m.tflite:0:0: error: 'tosa.rescale' op failed attribute check: rounding_mode requires extension"
BASE = made(Row("s", places=("net.layer.0.dense",)), Row("t", kind="conv", places=("net.head", "net.tail")))


def failed(message: str, status: str = "failed") -> Cell:
    return Cell(KEY, status, failure=Failure("compile", message, 1))


def _why(message: str, base: Cell | None = BASE) -> str:
    found = broken(base, failed(message))
    assert found is not None and found.cause is None and found.dispatches == ()
    return found.why


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        (DISTRIBUTE, "code"),
        (f"x.py:1:0: error: 'arith.addf' op requires the same type\n{TRANSLATION}", "code"),
        (TOSA, "input"),
        ("-:2:23: error: use of undeclared SSA value name", "input"),
        ("x.py:1:0: error: failed to legalize operation 'vector.step'", None),
        ("ended by SIGSEGV", None),
        ("x.py:1:0: error: conversion to vm.module failed", None),
    ],
)
def test_the_phase_is_told_by_words_of_one_phase_only(message: str, phase: str | None) -> None:
    assert phase_of(Failure("compile", message)) == phase


@pytest.mark.parametrize(
    ("name", "phase", "why"),
    [
        (
            "stack-gate",
            "code",
            "head fails in code generation at torch/nn/modules/normalization.py:228: “'func.func' op exceeded stack "
            "allocation limit of 32768 bytes for function. Got 36864 bytes”",
        ),
        (
            "shared-memory",
            "code",
            "head fails in code generation at transformers/models/vit/modeling_vit.py:224 in "
            "main$async_dispatch_10_batch_matmul_12x197x197x64_f32: “function",
        ),
        (
            "parse-error",
            "input",
            "head fails while it reads the model at <stdin>:2: “use of undeclared SSA value name”",
        ),
        ("dot-product", "code", "head fails in code generation at <stdin>:5: “Capability 'DotProduct' requires"),
        ("crash", None, "head fails: “<unknown>:0:0: in function __extendhfdf2 double (float): SSE2 register return"),
        ("link", None, "head fails in f_dispatch_0: “undefined symbol: __addsf3”"),
    ],
)
def test_what_the_compiler_really_said(name: str, phase: str | None, why: str) -> None:
    found = broken(BASE, failed(trim((SAID / f"{name}.txt").read_text(encoding="utf-8"))))
    assert found is not None
    assert (found.phase, found.why[: len(why)]) == (phase, why)


def test_a_dispatch_that_the_words_name_has_the_place_that_base_knows() -> None:
    one = _why("x.py:1:0: error: function 'main_dispatch_0_matmul_8x16_f32' is too large")
    assert one == (
        "head fails at x.py:1 in main_dispatch_0_matmul_8x16_f32, which on base is in net.layer.0.dense: "
        "“function 'main_dispatch_0_matmul_8x16_f32' is too large”"
    )
    two = "x.py:1:0: error: function 'main_dispatch_1_conv_8x16_f32' is too large"
    assert ", which on base" not in _why(two), "at two places"
    assert ", which on base" not in _why(two.replace("_1_", "_7_")), "base has none of that name"
    assert ", which on base" not in _why(two, None)


def test_a_place_of_the_model_names_base_s_dispatch_there_and_what_is_no_place_is_not_said() -> None:
    why = _why('loc("net.layer.0.dense"("dense.py":7:1)): error: cannot be tiled')
    assert why == (
        "head fails at net.layer.0.dense, on base the place of main_dispatch_0_matmul_8x16_f32: “cannot be tiled”"
    )
    for place in ("<unknown>:0", "m.tflite:0:0", "loc(unknown)", "iree-lld"):
        assert _why(f"{place}: error: no") == "head fails: “no”"


def test_where_base_failed_too_the_words_that_differ_are_said() -> None:
    found = broken(failed(TOSA), failed(f"{DISTRIBUTE}\n{TRANSLATION}"))
    assert found == Explanation(
        None,
        "input",
        "base fails too, with a different message: head says “'func.func' op failed to distribute”, base says "
        "“'tosa.rescale' op failed attribute check: rounding_mode requires extension”",
    )
    more = broken(failed(DISTRIBUTE), failed(f"{DISTRIBUTE}\n{TRANSLATION}"))
    assert more is not None and more.why.endswith(", base says nothing of the kind")
    unknown = broken(failed("a.py:1:0: error: one"), failed(DISTRIBUTE))
    assert unknown is not None and unknown.phase is None
    # the same words with other figures are no news
    assert broken(failed(DISTRIBUTE), failed(DISTRIBUTE.replace("228", "230"))) is None
    assert broken(failed("a.py:1:0: error: %4 = x"), failed("a.py:1:0: error: %12 = x")) is None
    for head in (None, BASE, Cell(KEY, "failed"), failed("late", "timeout"), failed("over", "over-stack-limit")):
        assert broken(BASE, head) is None


@given(st.text(), st.none() | st.text())
def test_any_words_have_a_story_or_none(message: str, base: str | None) -> None:
    found = broken(None if base is None else failed(base), failed(message))
    assert found is None or (found.why and found.phase in (None, *PHASES))
