"""`fold` from a configuration to an audit, with a real compiler and a real runtime.

And programs that rarely differ.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fold_programs import barrier, layers, mapped
from json_rows import fold_of
from places import ROOT
from real_compilers import own_cache

from bot.cli.main import main
from bot.compiler.bindings import IR_WORKER
from bot.compiler.compiler import Compiled
from bot.compiler.compiling import CompileInput, CompileSetup, compile_directly
from bot.compiler.toolchain import resolve
from bot.core.runs import Price
from bot.core.snapshot import Failure
from bot.fold.attempts import Attempt
from bot.fold.audit import FoldAudit, FoldCell
from bot.fold.auditing import NOT_ASKED, NOTHING_FOLDED, Bench
from bot.fold.rewriting import Group
from bot.running.runner import Equality
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.usefixtures("runtime", "short_runs"),
]
RELEASE = "3.13.0"
TARGETS = ("cuda", "llvm-cpu-x86_64", "vmvx")
RUN = ("llvm-cpu-x86_64", "vmvx")
NORM = ROOT / "tests/fixtures/e2e/models/embedding_norm.mlir"
LAYERS = layers([(3, 4), (5, 5), (7, 6), (11, 7)])
WRONG_WORKER = """
import sys
sys.path.insert(0, {folder!r})
from ir_worker import ir_fold, ir_worker
right = ir_fold._rewrite_site
def wrong(ir, op, member, varying, position):
    if varying:
        position = (position + 1) % len(varying[0].attributes)
    right(ir, op=op, member=member, varying=varying, position=position)
ir_fold._rewrite_site = wrong
sys.exit(ir_worker.main(sys.argv[1]))
"""
"""Each site passes the values of the next executable: the program verifies, and computes something else."""
Fold = Callable[..., FoldAudit]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small models, and a cache of their cells that all tests share."""
    home = tmp_path_factory.mktemp("audit")
    own_cache(home / "cache", RELEASE)
    write(
        home,
        "c.yml",
        layers=LAYERS,
        plain="func.func @main(%x: tensor<64xi32>) -> tensor<64xi32> {\n"
        "  %0 = arith.addi %x, %x : tensor<64xi32>\n  return %0 : tensor<64xi32>\n}\n",
    )
    return home


def write(
    home: Path, name: str, targets: Sequence[str] = TARGETS, **models: str
) -> None:
    """A configuration and its models."""
    for model, text in models.items():
        (home / f"{model}.mlir").write_text(text, encoding="utf-8")
    config = {
        "schema": "code-size-config/1",
        "models": [f"{model}.mlir" for model in models],
        "targets": list(targets),
    }
    (home / name).write_text(json.dumps(config), encoding="utf-8")


def folded(home: Path, out: str, *arguments: str, config: str = "c.yml") -> FoldAudit:
    """What `fold` writes."""
    options = [
        "fold",
        "-q",
        "--compiler",
        RELEASE,
        "--config",
        str(home / config),
        "--cache",
        str(home / "cache"),
    ]
    code = main((*options, "--jobs", "2", "--out", str(home / out), *arguments))
    assert code == 0
    return fold_of((home / out / "fold.json").read_bytes())


def cells(audit: FoldAudit, model: str) -> dict[str, FoldCell]:
    return {cell.target: cell for cell in audit.cells if cell.model == model}


@pytest.fixture(scope="module")
def audit(home: Path) -> FoldAudit:
    """With everything run and timed; any price is allowed."""
    return folded(home, "run", "--max-slowdown", "5000%")


def printed(home: Path, out: str, cell: FoldCell) -> int:
    """The size of what a shell makes of the printed command, in the directory of `fold.json`."""
    binary = resolve(RELEASE, default_cache(), Cancel(), print).binary
    assert cell.command.startswith("iree-compile - ")
    environment = {"PATH": f"{binary.parent}:{os.defpath}"}
    argv = ["sh", "-c", cell.command]
    subprocess.run(
        argv,
        cwd=home / out,
        env=environment,
        check=True,
        capture_output=True,
        timeout=120,
    )
    artifact = home / out / f"{cell.model}.vmfb"
    size = artifact.stat().st_size
    artifact.unlink()
    return size


def test_what_is_alike_is_folded_run_and_timed(audit: FoldAudit) -> None:
    by_target = cells(audit, "layers")
    assert tuple(by_target) == TARGETS
    for target, cell in by_target.items():
        assert cell.state == "folded" and cell.note == ""
        assert cell.executables.change is not None and cell.executables.change <= -3
        assert cell.artifact_bytes.change is not None and cell.artifact_bytes.change < 0
        assert cell.resumed_bytes == cell.artifact_bytes.before
        assert [family.kind for family in cell.folded] == [
            "constants"
        ] and cell.left == ()
        assert [len(family.members) for family in cell.folded] == [4] and cell.folded[
            0
        ].operands == ("i32", "i32")
        assert cell.equal is (True if target in RUN else None)
        assert (cell.price is not None) == (target in RUN) == (cell.price_note == "")
    assert (
        by_target["cuda"].equal_note
        == "on this machine: cuda code needs its device, and does not run on a"
        " processor"
    )
    assert by_target["vmvx"].equal_note.startswith("bit-equal on ")
    assert audit.max_slowdown == 50 and "iree-base-runtime" in audit.machine


def test_where_nothing_is_alike_all_figures_stay(audit: FoldAudit, home: Path) -> None:
    for cell in cells(audit, "plain").values():
        assert (cell.state, cell.folded, cell.left, cell.module, cell.command) == (
            "nothing-to-fold",
            (),
            (),
            "",
            "",
        )
        for pair in (cell.executables, cell.artifact_bytes):
            assert pair.before == pair.after and pair.before
        assert (
            (cell.equal, cell.equal_note)
            == (cell.price, cell.price_note)
            == (None, NOTHING_FOLDED)
        )
    assert {path.name for path in (home / "run/folded").iterdir()} == {
        f"layers.{target}.mlir" for target in TARGETS
    }


def test_the_counts_of_each_model(audit: FoldAudit) -> None:
    models = {model.model: model for model in audit.models}
    assert list(models) == ["layers", "plain"]
    assert [(model.today, model.folded) for model in models.values()] == [
        (4, 1),
        (1, 1),
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_the_printed_command_gives_the_measured_artifact(
    audit: FoldAudit, home: Path, target: str
) -> None:
    cell = cells(audit, "layers")[target]
    assert (
        cell.module == f"folded/layers.{target}.mlir"
        and (home / "run" / cell.module).is_file()
    )
    assert printed(home, "run", cell) == cell.artifact_bytes.after


def test_without_running_the_figures_and_programs_are_the_same(
    audit: FoldAudit, home: Path
) -> None:
    without_run = folded(home, "not-run", "--no-run")
    assert without_run.machine == "" and without_run.models == audit.models
    for cell, run_cell in zip(without_run.cells, audit.cells, strict=True):
        assert (cell.equal, cell.equal_note, cell.price, cell.price_note) == (
            None,
            NOT_ASKED,
            None,
            NOT_ASKED,
        )
        assert (cell.artifact_bytes, cell.folded, cell.left, cell.command) == (
            run_cell.artifact_bytes,
            run_cell.folded,
            run_cell.left,
            run_cell.command,
        )
    for path in (home / "run/folded").iterdir():
        assert path.read_bytes() == (home / "not-run/folded" / path.name).read_bytes()


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewriting that mixes up the constants of the executables that it makes one."""
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_WORKER.format(folder=str(IR_WORKER.parents[1])))
    monkeypatch.setattr("bot.compiler.bindings.IR_WORKER", script)


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "price", lambda _self, _attempt: "not timed here")


@pytest.mark.usefixtures("untimed", "wrong")
def test_a_rewriting_that_changes_outputs_is_found_out_and_folded_nowhere(
    home: Path,
) -> None:
    wrong_audit = folded(home, "wrong", "--model", "layers")
    for cell in wrong_audit.cells:
        assert (
            cell.state == "nothing-to-fold"
            and cell.artifact_bytes.change == 0
            and cell.folded == ()
        )
        assert [(group.kind, len(group.members)) for group in cell.left] == [
            ("constants", 4)
        ]
        assert re.fullmatch(
            r"its outputs differ on (vmvx|llvm-cpu-x86_64)", cell.left[0].why
        )
    assert wrong_audit.models[0].folded == wrong_audit.models[0].today
    assert not (home / "wrong/folded").exists()


@pytest.mark.usefixtures("untimed")
def test_a_group_that_differs_on_one_target_is_folded_on_none_and_the_others_stay(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "two.yml", two=two_kinds())
    bad: set[Group] = set()

    def equal(bench: Bench, attempt: Attempt) -> Equality:
        bad.update(group for group in attempt.groups if len(group) == 2)
        is_vmvx = "vmvx" in bench.before.name
        worse = is_vmvx and not bad.isdisjoint(attempt.groups)
        return (
            Equality(False, "output 0 differs in 3 of 4 values")
            if worse
            else Equality(True, "bit-equal")
        )

    monkeypatch.setattr(Bench, "equal", equal)
    audited = folded(home, "two", config="two.yml")
    assert len(bad) == 1
    for cell in audited.cells:
        assert cell.state == "folded" and [
            len(family.members) for family in cell.folded
        ] == [3], cell
        assert {(group.members, group.why) for group in cell.left} >= {
            (*bad, "its outputs differ on vmvx")
        }
        assert cell.equal is (None if cell.target == "cuda" else True)


def two_kinds() -> str:
    """Three layers that differ in constants, and two that shift without a multiplier."""
    text = layers([(3, 4), (5, 5), (7, 6), (1000, 9), (2000, 10)])
    return "".join(
        (
            re.sub(r"arith\.muli %in, %factor", "arith.subi %in, %factor", line)
            if number > 3
            else line
        )
        for number, line in enumerate(re.split(r"(?=  %f\d = )", text))
    )


def test_what_is_too_dear_is_left_and_nothing_is_folded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dear = Price(before_us=100, after_us=150, pairs=12, ratio=1.5, low=1.4, high=1.6)
    monkeypatch.setattr(Bench, "price", lambda _self, _attempt: dear)
    by_target = cells(
        folded(home, "dear", "--model", "layers", "--max-slowdown", "1%"), "layers"
    )
    assert by_target["cuda"].state == "folded"
    for target in RUN:
        cell = by_target[target]
        assert (cell.state, cell.artifact_bytes.change, cell.price) == (
            "nothing-to-fold",
            0,
            None,
        )
        assert (cell.equal, cell.equal_note) == (None, NOTHING_FOLDED)
        assert [(group.kind, group.why) for group in cell.left] == [
            ("constants", "it is slower by more than 1.0%")
        ]
        assert cell.price_note == "no remaining group is worth its slowdown"


@pytest.mark.usefixtures("untimed")
def test_a_cell_that_does_not_compile_is_failed_and_the_others_are_audited(
    home: Path,
) -> None:
    write(
        home,
        "broken.yml",
        ["vmvx"],
        layers=LAYERS,
        broken="func.func @main() { nonsense }\n",
    )
    audited = folded(home, "broken", config="broken.yml")
    broken = cells(audited, "broken")["vmvx"]
    assert (
        broken.state,
        broken.artifact_bytes.before,
        broken.artifact_bytes.after,
    ) == (
        "failed",
        None,
        None,
    )
    assert broken.note and "\n" not in broken.note and broken.left == ()
    assert cells(audited, "layers")["vmvx"].state == "folded"


def test_where_nothing_folded_does_not_resume_either_the_cell_is_failed_with_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.fold.attempts.RESUME", "--no-such-option")
    for cell in folded(
        home, "no-resume", "--model", "layers", "--target", "vmvx"
    ).cells:
        assert (cell.state, cell.folded, cell.left, cell.resumed_bytes) == (
            "failed",
            (),
            (),
            None,
        )
        reason = "this compiler does not know the option --no-such-option"
        assert cell.note == cell.equal_note == f"resumed with nothing folded: {reason}"
        assert cell.artifact_bytes.before and cell.artifact_bytes.after is None


def twice_the_norm() -> str:
    """Two layer norms with other constants, each with more stack than the compiler's gate allows."""
    text = NORM.read_text(encoding="utf-8")
    head = text[: text.index("{\n") + 2]
    body = text[text.index("{\n") + 2 : text.index("  return ")]
    again = re.sub(
        r"%(?!(?:table|ids|x|g|b)\b)(\w+)", r"%\1_2", body.replace("1.0e-05", "1.0e-03")
    )
    again = re.sub(r"%x\b", "%again", again)
    barrier_line = "  %again = util.optimization_barrier %r : tensor<128x768xf32>\n"
    return f"{head}{body}{barrier_line}{again}  return %r_2 : tensor<128x768xf32>\n}}\n"


@pytest.mark.usefixtures("untimed")
def test_a_cell_over_the_stack_limit_is_folded_with_the_limit_lifted(
    home: Path,
) -> None:
    write(home, "norms.yml", ["llvm-cpu-x86_64"], norms=twice_the_norm())
    cell = folded(home, "norms", config="norms.yml").cells[0]
    assert cell.state == "folded" and (
        cell.executables.before,
        cell.executables.after,
    ) == (2, 1)
    assert cell.command.count("--iree-llvmcpu-stack-allocation-limit=") == 1
    assert cell.equal is True, cell.equal_note
    assert printed(home, "norms", cell) == cell.artifact_bytes.after


@pytest.mark.usefixtures("untimed")
def test_what_the_stack_limit_refuses_is_not_folded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "within.yml", ["llvm-cpu-x86_64"], within=layers([(5, 3), (6, 4)]))

    def refused(
        setup: CompileSetup, argv: Sequence[str], source: CompileInput
    ) -> Compiled | Failure:
        compiled = compile_directly(setup, argv, source)
        if source.path.name.endswith(".0.mlir"):  # of nothing folded
            return compiled
        assert isinstance(compiled, Compiled)
        message = (
            "error: 'func.func' op exceeded stack allocation limit of 32768 bytes for"
            " function. Got 40000 bytes"
        )
        return replace(
            compiled,
            refusal=Failure(
                stage="stack-limit",
                message=message,
                exit_code=1,
                signal=None,
                figure_bytes=40_000,
            ),
        )

    monkeypatch.setattr("bot.fold.attempts.compile_directly", refused)
    cell = folded(home, "within", config="within.yml").cells[0]
    assert (cell.state, cell.folded, cell.command) == ("nothing-to-fold", (), "")
    assert any("exceeded stack allocation limit" in group.why for group in cell.left)


def test_no_reason_names_figures_executables_or_places(
    audit: FoldAudit, home: Path
) -> None:
    audits = [audit, *(fold_of(path.read_bytes()) for path in home.glob("*/fold.json"))]
    for reason in {
        group.why for audit in audits for cell in audit.cells for group in cell.left
    }:
        assert not re.search(r"main|dispatch_|<stdin>|:\d+:\d+|\d B\b", reason), reason


# Programs whose outputs differ for few inputs only: large ones, or for none at all.


IDS = "tensor<64xi32>"
Audit = Callable[[str, str], FoldCell]


def two(
    type_: str, body: str, low: object, high: object, between: str = "", head: str = ""
) -> str:
    """Two executables whose bodies differ in the constant `{}`."""
    functions = mapped("%x", "%a", type_, body.format(low)) + barrier("%y", "%x", type_)
    functions += mapped("%y", "%b", type_, body.format(high))
    result_line = f"  return %a, %b : {type_}, {type_}\n"
    return (
        f"{between}func.func @main(%x: {type_}) -> ({type_}, {type_})"
        f" {{\n{head}{functions}\n{result_line}}}\n"
    )


def capped(kind: str, operation: str, low: str, high: str) -> str:
    """They let nothing through that is above a cap of their own."""
    body = (
        f"\n  %cap = arith.constant {{}} : {kind}\n  %1 = arith.{operation} %in, %cap :"
        f" {kind}\n"
    )
    return two(f"tensor<64x{kind}>", f"{body}  linalg.yield %1 : {kind}", low, high)


def remembering() -> str:
    """Two executables that multiply what the call before was given."""

    def body(factor: int) -> str:
        return f"""
      %factor = arith.constant {factor} : i32
      %1 = arith.muli %in, %factor : i32
      linalg.yield %1 : i32"""

    functions = (
        mapped("%s", "%a", IDS, body(3))
        + barrier("%t", "%s", IDS)
        + mapped("%t", "%b", IDS, body(5))
    )
    return f"""
util.global private mutable @state = dense<0> : {IDS}
func.func @main(%x: {IDS}) -> ({IDS}, {IDS}) {{
  %s = util.global.load @state : {IDS}{functions}
  util.global.store %x, @state : {IDS}
  return %a, %b : {IDS}, {IDS}
}}
"""


CONSTANT = """
      %at = linalg.index 0 : index
      %place = arith.index_cast %at : index to i32
      %term = arith.constant {} : i32
      %most = arith.addi %place, %term : i32
      %1 = arith.maxsi %in, %most : i32
      linalg.yield %1 : i32"""
"""The same numbers whatever is given, another one in each place."""


@pytest.fixture
def audit_of(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Audit]:
    """What `fold` says of a model of this text; nothing is timed."""
    monkeypatch.setattr(Bench, "price", lambda _self, _attempt: "not timed here")

    def run(name: str, text: str) -> FoldCell:
        write(home, f"{name}.yml", ["vmvx"], **{name: text})
        (cell,) = folded(home, tmp_path.name, config=f"{name}.yml").cells
        return cell

    yield run
    shutil.rmtree(home / tmp_path.name, ignore_errors=True)


PROGRAMS = {
    "integers_above_5": capped("i32", "minsi", "5", "7"),
    "bytes_above_100": capped("i8", "minsi", "100", "107"),
    "floats_above_5": capped("f32", "minimumf", "5.0", "7.0"),
    "wide_integers": capped("i64", "minsi", "1099511627776", "1099511628000"),
}


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_difference_that_few_inputs_show_is_found(audit_of: Audit, name: str) -> None:
    cell = audit_of(name, PROGRAMS[name])
    assert cell.state == "nothing-to-fold" and [group.why for group in cell.left] == [
        "its outputs differ on vmvx"
    ]


def test_what_is_the_same_says_on_what(
    audit_of: Audit, home: Path, tmp_path: Path
) -> None:
    cell = audit_of("bytes_above_100", PROGRAMS["bytes_above_100"])
    note = "bit-equal on 3 random inputs"
    assert (cell.state, cell.equal, cell.equal_note) == ("folded", True, note)
    assert f"<sub>¹ {note}" in (home / tmp_path.name / "fold.md").read_text(
        encoding="utf-8"
    )


def test_what_is_the_same_whatever_the_input_is_no_evidence_and_has_no_price(
    audit_of: Audit, home: Path, tmp_path: Path
) -> None:
    cell = audit_of("constant", two(IDS, CONSTANT, 2147483000, 2147483500))
    reason = "nothing to compare: it is the same for all inputs, on 3 random inputs"
    assert (cell.state, cell.equal, cell.price) == (
        "folded",
        None,
        None,
    ) and reason in cell.equal_note
    assert cell.price_note == "equal outputs are not proved"
    text = (home / tmp_path.name / "fold.md").read_text(encoding="utf-8")
    assert (
        "<sub>not known¹</sub>" in text
        and reason in text
        and "not run" not in text
        and "equal in" not in text
    )


def test_a_program_with_state_is_folded_and_not_run(audit_of: Audit) -> None:
    cell = audit_of("stateful", remembering())
    assert (cell.state, cell.equal, cell.price) == ("folded", None, None)
    assert cell.equal_note == "has state: one call changes the result of the next call"
