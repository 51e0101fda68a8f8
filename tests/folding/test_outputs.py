"""`fold` on programs whose outputs differ for few inputs only: large ones, in a second call, or for none at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fold_programs import barrier, mapped
from test_auditing import WRONG_WORKER, folded, home, write

from bot.compiler.bindings import IR_WORKER
from bot.core.fold import FoldCell
from bot.study.folding import Bench

__all__ = ["home"]
pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("runtime")]

TARGET = "vmvx"
IDS = "tensor<64xi32>"
Audit = Callable[[str, str], FoldCell]


def capped(kind: str, operation: str, low: str, high: str) -> str:
    """Two executables that let nothing through that is above a cap of their own."""
    type_ = f"tensor<64x{kind}>"

    def body(cap: str) -> str:
        return f"""
      %cap = arith.constant {cap} : {kind}
      %1 = arith.{operation} %in, %cap : {kind}
      linalg.yield %1 : {kind}"""

    both = mapped("%x", "%a", type_, body(low)) + barrier("%y", "%x", type_) + mapped("%y", "%b", type_, body(high))
    return f"func.func @main(%x: {type_}) -> ({type_}, {type_}) {{{both}\n  return %a, %b : {type_}, {type_}\n}}\n"


def gathered() -> str:
    """The same of what token ids find in a table of sixteen rows."""

    def body(cap: int) -> str:
        return f"""
      %cap = arith.constant {cap} : i32
      %at = arith.index_cast %in : i32 to index
      %row = tensor.extract %table[%at] : tensor<16xi32>
      %1 = arith.minsi %row, %cap : i32
      linalg.yield %1 : i32"""

    both = mapped("%x", "%a", IDS, body(105)) + barrier("%y", "%x", IDS) + mapped("%y", "%b", IDS, body(107))
    return f"""
util.global private @rows = dense<[{", ".join(str(100 + at) for at in range(16))}]> : tensor<16xi32>
func.func @main(%x: {IDS}) -> ({IDS}, {IDS}) {{
  %rows = util.global.load @rows : tensor<16xi32>
  %table = util.optimization_barrier %rows : tensor<16xi32>{both}
  return %a, %b : {IDS}, {IDS}
}}
"""


def remembering() -> str:
    """Two executables that multiply what the call before was given, which is nothing at first; and one of this call."""

    def body(factor: int, operation: str = "muli") -> str:
        return f"""
      %factor = arith.constant {factor} : i32
      %1 = arith.{operation} %in, %factor : i32
      linalg.yield %1 : i32"""

    all_three = mapped("%s", "%a", IDS, body(3)) + barrier("%t", "%s", IDS) + mapped("%t", "%b", IDS, body(5))
    all_three += mapped("%x", "%c", IDS, body(7, "addi"))
    return f"""
util.global private mutable @state = dense<0> : {IDS}
func.func @main(%x: {IDS}) -> ({IDS}, {IDS}, {IDS}) {{
  %s = util.global.load @state : {IDS}{all_three}
  util.global.store %x, @state : {IDS}
  return %a, %b, %c : {IDS}, {IDS}, {IDS}
}}
"""


def constant() -> str:
    """Two executables that give the same numbers whatever they are given, another one in each place."""

    def body(term: int) -> str:
        return f"""
      %at = linalg.index 0 : index
      %place = arith.index_cast %at : index to i32
      %term = arith.constant {term} : i32
      %most = arith.addi %place, %term : i32
      %1 = arith.maxsi %in, %most : i32
      linalg.yield %1 : i32"""

    both = mapped("%x", "%a", IDS, body(2147483000)) + barrier("%y", "%x", IDS)
    both += mapped("%y", "%b", IDS, body(2147483500))
    return f"func.func @main(%x: {IDS}) -> ({IDS}, {IDS}) {{{both}\n  return %a, %b : {IDS}, {IDS}\n}}\n"


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewriting that mixes up the constants of the executables that it makes one."""
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_WORKER.format(folder=str(IR_WORKER.parents[1])))
    monkeypatch.setattr("bot.compiler.bindings.IR_WORKER", script)


@pytest.fixture
def audit(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Audit]:
    """What `fold` says of a model of this text; nothing is timed."""
    monkeypatch.setattr(Bench, "price", lambda _self, _attempt: "not timed here")

    def run(name: str, text: str) -> FoldCell:
        write(home, f"{name}.yml", [TARGET], **{name: text})
        (cell,) = folded(home, tmp_path.name, config=f"{name}.yml").cells
        return cell

    yield run
    shutil.rmtree(home / tmp_path.name, ignore_errors=True)


PROGRAMS = {
    "integers_above_5": capped("i32", "minsi", "5", "7"),
    "bytes_above_100": capped("i8", "minsi", "100", "107"),
    "floats_above_5": capped("f32", "minimumf", "5.0", "7.0"),
    "wide_integers": capped("i64", "minsi", "1099511627776", "1099511628000"),
    "ids_above_5": gathered(),
    "second_call": remembering(),
}


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_difference_that_few_inputs_show_is_found(audit: Audit, name: str) -> None:
    cell = audit(name, PROGRAMS[name])
    assert cell.state == "nothing-to-fold" and [one.why for one in cell.left] == [f"it gives other outputs on {TARGET}"]


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("bytes_above_100", "3 random inputs of i8 over its range"),
        ("floats_above_5", "3 random inputs: 1 of f32 of about 0.25; 2 of f32 of about 0.001 to 64"),
        ("ids_above_5", "3 random inputs: 1 of i32 from 0 to 1; 2 of i32 from 0 to 15"),
        (
            "second_call",
            "3 random inputs: 2 of i32 from 0 to 1; 1 of i32 over its range, called twice on each; "
            "2 of 6 outputs proved nothing: all values are one constant",
        ),
    ],
)
def test_what_is_the_same_says_on_what(audit: Audit, home: Path, tmp_path: Path, name: str, drawn: str) -> None:
    cell = audit(name, PROGRAMS[name])
    assert (cell.state, cell.equal, cell.equal_note) == ("folded", True, f"bit-equal on {drawn}")
    assert f"<sub>¹ bit-equal on {drawn}" in (home / tmp_path.name / "fold.md").read_text(encoding="utf-8")


def test_what_is_the_same_whatever_the_input_is_no_evidence_and_has_no_price(
    audit: Audit, home: Path, tmp_path: Path
) -> None:
    cell = audit("constant", constant())
    why = "nothing to compare: it is the same whatever the input, on 3 random inputs"
    assert (cell.state, cell.equal, cell.price) == ("folded", None, None) and why in cell.equal_note
    assert cell.price_note == "outputs are not known to be equal"
    text = (home / tmp_path.name / "fold.md").read_text(encoding="utf-8")
    assert "<sub>not known¹</sub>" in text and why in text and "not run" not in text and "equal in" not in text
