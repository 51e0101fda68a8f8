"""bot.study.printed_passes: the printed commands of a trace."""

from __future__ import annotations

import shlex

from bot.core.snapshot import Dispatch
from bot.study.printed_passes import trace_commands

ROW = Dispatch("main_dispatch_0", "main_dispatch_0_conv", "conv")
FLAGS = "--iree-hal-target-backends=vmvx"


def test_the_folder_of_a_model_is_not_taken_for_the_compiler() -> None:
    """An ONNX model is imported first, and its path may have the compiler's name."""
    imported = "iree-import-onnx tests/iree-compiler/m.onnx -o m.mlir"
    compiled = f"iree-compile - {FLAGS} -o m.vmfb < m.mlir"
    sources, passes = trace_commands(f"{imported} && {compiled}", ROW)
    assert sources.startswith(f"{imported} && iree-compile - {FLAGS} ")
    words = shlex.split(passes)
    assert words[:3] == ["iree-compile", "sources/*_main_dispatch_0.mlir", FLAGS]
