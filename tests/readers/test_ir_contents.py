"""What a real model consists of, as the worker counts it and as its text, the one that people read, does."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ir_child import Child, compiled
from places import ROOT

STRUCTURE = ("builtin.", "func.", "util.", "hal.", "cf.")
BODY = {"linalg.yield", "tensor.yield", "tensor.empty", "linalg.index", "util.return"}
OPERATION = re.compile(r"^ *(?:%[^=\n]*= )?([a-z_]\w*(?:\.[\w$]+)+)", re.MULTILINE)


def asked(child: Child, phase: Path) -> Any:
    """What the worker says of a model, by its `input` phase alone: the others that it needs are empty."""
    empty = phase.with_name("empty.mlir")
    empty.write_text("module {}")
    answer = child.ask(
        op="program", dispatch_creation=str(empty), stream=str(empty), input=str(phase)
    )
    assert "error" not in answer, answer
    return {name: answer[name] for name in ("operations", "places")}


@pytest.fixture
def input_phase(compiler_root: Path, tmp_path: Path) -> Any:
    """The model's text → the file of its first phase, printed with places."""
    options = [
        "--iree-hal-target-backends=vmvx",
        "--mlir-disable-threading",
        "--mlir-print-debuginfo",
    ]

    def first(name: str, text: str) -> Path:
        compiled(compiler_root, text, tmp_path / name, *options, "--compile-to=input")
        (phase,) = (tmp_path / name).glob("*.1.input.mlir")
        return phase

    return first


def counted(text: str) -> Counter[str]:
    """Operation → how many lines begin with one."""
    names = (match[1] for match in OPERATION.finditer(text))
    return Counter(
        name for name in names if not name.startswith(STRUCTURE) and name not in BODY
    )


def difference(base: dict[str, int], head: dict[str, int]) -> dict[str, int]:
    return {
        name: moved
        for name in base | head
        if (moved := head.get(name, 0) - base.get(name, 0))
    }


def with_relu(text: str) -> str:
    """mobilenet_v1 with one operation behind its last."""
    kind = "!torch.vtensor<[1,1001],f32>"
    line = f"    %817 = torch.aten.relu %816 : {kind} -> {kind} loc(#loc118)\n"
    edited = text.replace(
        f"    return %816 : {kind}", f"{line}    return %817 : {kind}"
    )
    assert len(edited) == len(text) + len(line)
    return edited


@pytest.mark.compiler
def test_a_real_model_and_one_line_of_it(worker: Child, input_phase: Any) -> None:
    text = (ROOT / "configs" / "models" / "mobilenet_v1_f32_224.mlir").read_text(
        encoding="utf-8"
    )
    files = [input_phase("base", text), input_phase("head", with_relu(text))]
    base, head = (asked(worker, file) for file in files)
    for contents, file in zip((base, head), files, strict=True):
        assert contents["operations"] == counted(file.read_text())
    assert difference(base["operations"], head["operations"]) == {
        "linalg.generic": 1,
        "arith.cmpf": 1,
        "arith.select": 1,
    }
    assert difference(base["places"], head["places"]) == {"m.classifier": 1}
