"""bot.compiler.rewriting on programs and workers that are odd or none: the very bytes, or one clear line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flow_regions import adding
from flow_texts import program
from fold_stage import FoldStage, stage
from places import ROOT

from bot.compiler.bindings import Bindings
from bot.compiler.rewriting import Rewritten, groups_of, missing_resource, rewritten
from bot.core.fold import FOLD_KINDS
from bot.errors import MalformedBinary
from bot.system.processes import Cancel

NONE = dict.fromkeys(FOLD_KINDS, ())
SMALL = ROOT / "tests/fixtures/e2e/models/embedding_norm.mlir"


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldStage]:
    with stage("3.13.0", tmp_path_factory.mktemp("release")) as found:
        yield found


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["embedding_norm", "mobilenet_v1_f32_224"])
def test_a_program_in_which_nothing_is_asked_for_stays_to_the_byte(at: FoldStage, name: str) -> None:
    source = SMALL if name == SMALL.stem else ROOT / f"configs/models/{name}.mlir"
    flow = at.flow(source.read_text(encoding="utf-8"))
    out, told = at.fold(flow)
    assert out.read_bytes() == flow.read_bytes()
    assert told == Rewritten((), (), len(at.groups(flow).entries)) and told.executables > 0


@pytest.mark.compiler
def test_a_text_of_any_layout_stays_to_the_byte(at: FoldStage) -> None:
    text = program(at.header, [adding("a")]).replace("\n", " // ünï\r\n")
    flow = at.written("")
    flow.write_bytes(text.encode())
    out, told = at.fold(flow)
    assert out.read_bytes() == flow.read_bytes() and (told.folded, told.executables) == ((), 1)


@pytest.mark.compiler
@pytest.mark.parametrize("text", ["", "module {}", "util.global private @g = 3 : i32"])
def test_a_program_without_executables_has_no_groups(at: FoldStage, text: str) -> None:
    flow = at.written(text)
    found = at.groups(flow)
    assert (found.entries, found.unfit, found.groups) == ({}, {}, NONE)
    assert (found.classes.constants, found.classes.shapes, found.classes.both) == (0, 0, 0)
    out, told = at.fold(flow, ("a", "b"))
    assert out.read_text() == text and told.executables == 0
    assert [(one.members, one.why) for one in told.left] == [(("a", "b"), "the program has no such executable")]


@pytest.mark.compiler
def test_sites_in_functions_of_another_dialect_and_in_initializers_are_rewritten(at: FoldStage) -> None:
    a, b, c, d = (adding(name, amount) for name, amount in (("a", 3), ("b", 5), ("c", 7), ("d", 9)))
    held = f"""
  util.global private mutable @g : {c.result}
  util.initializer {{
    %zero = arith.constant dense<1> : {c.result}
{c.launch("%made", ["%zero"])}    util.global.store %made, @g : {c.result}
    util.return
  }}
  func.func private @other(%v: {d.result}) -> {d.result} {{
{d.launch("%made", ["%v"])}    return %made : {d.result}
  }}"""
    flow = at.written(program(at.header, [a, b], c.text + d.text + held))
    out, told = at.fold(flow, ("a", "b", "c", "d"))
    assert told.executables == 1 and [one.operands for one in told.folded] == [("i32",)]
    text = out.read_text()
    assert text.count("flow.dispatch @a::@a_entry(") == 4
    for amount in (3, 5, 7, 9):
        assert f"arith.constant {amount} : i32" in text.partition("util.initializer")[2]


@pytest.mark.compiler
@pytest.mark.parametrize("data", [b"no MLIR {", b"\0\xff\xfe", b"module {\n  flow.executable private @a {", b"\x7fELF"])
def test_what_is_no_program_is_one_line(at: FoldStage, data: bytes) -> None:
    flow = at.written("")
    flow.write_bytes(data)
    for ask in (lambda: at.groups(flow), lambda: at.fold(flow, ("a", "b"))):
        with pytest.raises(MalformedBinary) as error:
            ask()
        assert str(error.value).startswith("folding: ") and "\n" not in str(error.value)
        assert len(str(error.value)) < 600
    assert at.groups(at.written("module {}")).groups == NONE, "the worker lives on"


@pytest.mark.compiler
def test_a_program_that_is_not_there_is_the_machines_fault(at: FoldStage) -> None:
    with pytest.raises(MalformedBinary, match=r"^folding: on this machine: gone\.mlir: No such file or directory"):
        at.groups(at.home / "gone.mlir")


READY = 'print(json.dumps({"ready": True}), flush=True)\n'
DIES = {
    "without a word": "sys.exit(3)\n",
    "at the question": READY + "sys.stdin.readline()\nos.kill(os.getpid(), 9)\n",
    "in the answer": READY + "sys.stdin.readline()\nprint('{\"fol', end='', flush=True)\n",
}


def worker(home: Path, text: str) -> Bindings:
    """A worker that is none."""
    script = home / "worker.py"
    script.write_text(f"import json, os, sys\n{text}")
    return Bindings(home, "", Cancel(), timeout_seconds=20, script=script)


@pytest.mark.parametrize("how", DIES)
def test_a_worker_that_dies_is_one_line(tmp_path: Path, how: str) -> None:
    bindings = worker(tmp_path, DIES[how])
    for _ in range(2):
        with pytest.raises(MalformedBinary) as error:
            groups_of(bindings, tmp_path / "flow.mlir")
        said = str(error.value)
        assert "\n" not in said and ("cannot be loaded" in said or "ended without an answer" in said)
    bindings.close()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        "x",
        {"folded": 3, "left": [], "executables": 1},
        {"folded": [], "left": [], "executables": -1},
        {"folded": [], "left": [{"members": ["a"], "why": ""}], "executables": 1},
        {"error": "two\nlines" * 400},
    ],
)
def test_an_answer_that_is_none_is_one_line(tmp_path: Path, answer: object) -> None:
    line = json.dumps(json.dumps(answer))
    bindings = worker(tmp_path, READY + f"for _ in sys.stdin: print({line}, flush=True)\n")
    with pytest.raises(MalformedBinary) as error:
        rewritten(bindings, tmp_path / "flow.mlir", [("a", "b")], tmp_path / "out.mlir")
    assert str(error.value).startswith("folding") and "\n" not in str(error.value) and len(str(error.value)) < 700
    bindings.close()


def test_a_compiler_without_bindings_says_so(tmp_path: Path) -> None:
    reason = f"its bindings are for another Python than {sys.version_info.major}"
    with pytest.raises(MalformedBinary, match=reason):
        groups_of(Bindings(None, reason, Cancel()), tmp_path / "flow.mlir")


CARRIED = """module {{
  %0 = "x"() {{v = dense_resource<{0}> : t}}
}}

{{-#
  dialect_resources: {{
    builtin: {{
      {1}: "0x0400"
"""


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("module {}", None),
        ("module { %0 = dense_resource<blob> : t }", "blob"),
        (CARRIED.format("blob", "blob"), None),
        (CARRIED.format("blob", "other"), "blob"),
        (CARRIED.format("torch_tensor_32_torch.float32", "torch_tensor_32_torch.float32"), None),
        (CARRIED.format('"a b"', '"a b"'), None),
    ],
)
def test_a_resource_that_is_named_has_to_be_carried(text: str, missing: str | None) -> None:
    assert missing_resource(text) == missing
