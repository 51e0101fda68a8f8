"""bot.running.runner: real artifacts, run by the real runtime; and a runtime that is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ir_child import Child
from replacing import replace
from small_programs import SmallPrograms

from bot.core.this_machine import is_local
from bot.errors import Interrupted
from bot.readers.ir_facts import CompiledFor, Interface
from bot.running import runner as module
from bot.running.runner import MISSING, TOO_LONG, Runner, Runtime, installed, machine
from bot.system.cancel import Cancel

pytestmark = pytest.mark.compiler

INTEGERS = """
util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<4x8xi8>
func.func @main(%x: tensor<8xi8>) -> (tensor<4xi32>, tensor<8xi8>) {{
  %zero = arith.constant dense<{offset}> : tensor<4xi32>
  %w = util.global.load @w : tensor<4x8xi8>
  %0 = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%w, %x : tensor<4x8xi8>, tensor<8xi8>) outs(%zero : tensor<4xi32>) {{
    ^bb0(%a: i8, %b: i8, %sum: i32):
      %1 = arith.extsi %a : i8 to i32
      %2 = arith.extsi %b : i8 to i32
      %3 = arith.muli %1, %2 : i32
      %4 = arith.addi %sum, %3 : i32
      linalg.yield %4 : i32
  }} -> tensor<4xi32>
  %5 = arith.addi %x, %x : tensor<8xi8>
  return %0, %5 : tensor<4xi32>, tensor<8xi8>
}}
"""
FLOATS = """
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %0 = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<?x3xf32>) outs(%e : tensor<?x3xf32>) {{
    ^bb0(%a: f32, %b: f32):
      %c = arith.constant {factor} : f32
      %1 = {operation} %a, %c : f32
      linalg.yield %1 : f32
  }} -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}}
"""
CONSTANT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = arith.constant dense<{value}> : tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""
LOOP = """
func.func @main(%x: tensor<8xi8>) -> (tensor<4xi32>, tensor<8xi8>) {
  %c0 = arith.constant 0 : index
  %first = tensor.extract %x[%c0] : tensor<8xi8>
  %start = arith.extsi %first : i8 to i32
  %0 = scf.while (%i = %start) : (i32) -> i32 {
    %c1000 = arith.constant 1000 : i32
    %always = arith.cmpi slt, %i, %c1000 : i32
    scf.condition(%always) %i : i32
  } do {
  ^bb0(%i: i32):
    %c2 = arith.constant 2 : i32
    %next = arith.remsi %i, %c2 : i32
    scf.yield %next : i32
  }
  %1 = tensor.from_elements %0, %0, %0, %0 : tensor<4xi32>
  return %1, %x : tensor<4xi32>, tensor<8xi8>
}
"""
ONE = "1 random input"
THREE = "3 random inputs"
WRITES = "--input=*) given=$each;;\n--output=@*) echo $given > ${each#*@}"
"""What a runtime does for an output, in a fake one: it gives what it was given."""


def fake_runtime(home: Path, program: str, *cases: str, after: str = "") -> Runtime:
    """A runtime of which one program is a script that looks at its arguments, each by itself."""
    path = home / program
    path.write_text(
        "#!/bin/sh\nfor each; do case $each in\n"
        + ";;\n".join(cases)
        + f";;\nesac; done\n{after}\n"
    )
    path.chmod(0o755)
    return Runtime(home, "1.2.3")


@pytest.fixture(scope="module")
def programs(
    compiler_root: Path, worker: Child, tmp_path_factory: pytest.TempPathFactory
) -> SmallPrograms:
    return SmallPrograms(compiler_root, worker, tmp_path_factory.mktemp("programs"))


@pytest.fixture
def runner(runtime: Runtime, tmp_path: Path) -> Callable[[Interface], Runner]:
    return lambda interface: Runner(
        runtime, interface, tmp_path / "data", Cancel(), timeout_seconds=60
    )


@pytest.fixture(scope="module")
def integers(programs: SmallPrograms) -> tuple[Interface, Path]:
    source = INTEGERS.format(offset=0)
    return programs.interface("integers", source), programs.artifact("integers", source)


def test_a_program_without_inputs_and_with_any_name_of_a_parameter_from_any_directory(
    programs: SmallPrograms,
    runtime: Runtime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = """
      util.global private @w = #flow.parameter.named<"größe"::"weights/a b.ü"> : tensor<4xf32>
      func.func @main() -> tensor<4xf32> {
        %w = util.global.load @w : tensor<4xf32>
        %0 = arith.addf %w, %w : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    """
    artifact = programs.artifact("named", source)
    interface = programs.interface("named", source)
    monkeypatch.chdir(tmp_path)
    running = Runner(runtime, interface, Path("a=b ü"), Cancel())
    assert running.outputs_equal(artifact, artifact) == (
        True,
        "bit-equal on 1 random set of parameters",
    )
    assert not isinstance(running.price(artifact, artifact, 6), str)


@pytest.mark.parametrize("target", ["here", "vmvx"])
def test_a_program_and_one_of_another_constant(
    programs: SmallPrograms, runner: Callable[[Interface], Runner], target: str
) -> None:
    source = INTEGERS.format(offset=0)
    zero = programs.artifact("zero", source, target)
    offset_by_one = programs.artifact("one", INTEGERS.format(offset=1), target)
    running = runner(programs.interface("zero", source, target))
    assert running.reason is None
    assert running.outputs_equal(zero, zero) == (True, f"bit-equal on {THREE}")
    equal, note = running.outputs_equal(zero, offset_by_one)
    assert equal is False and note == f"output 0 differs in 4 of 4 values, on {THREE}"


def test_floats_may_differ_in_their_last_bits_only(
    programs: SmallPrograms, runner: Callable[[Interface], Runner]
) -> None:
    def made(name: str, operation: str, factor: str) -> Path:
        return programs.artifact(
            name, FLOATS.format(operation=operation, factor=factor)
        )

    before = made("divided", "arith.divf", "3.0")
    running = runner(
        programs.interface(
            "divided", FLOATS.format(operation="arith.divf", factor="3.0")
        )
    )
    equal, note = running.outputs_equal(
        before, made("multiplied", "arith.mulf", "0.33333334")
    )
    assert equal is True and note.startswith("largest difference ")
    assert note.endswith(
        "of the largest magnitude (0.0001 is allowed), "
        f"on {THREE}, with dynamic dimensions of 16"
    )
    equal, note = running.outputs_equal(before, made("wrong", "arith.mulf", "0.334"))
    assert (
        equal is False
        and "by up to 0.002 of its largest magnitude (0.0001 is allowed)" in note
    )


def test_equal_constants_prove_nothing_and_different_ones_do(
    programs: SmallPrograms, runner: Callable[[Interface], Runner]
) -> None:
    two_constant, three_constant = (
        programs.artifact(f"constant{value}", CONSTANT.format(value=value))
        for value in (2.0, 3.0)
    )
    running = runner(programs.interface("constant", CONSTANT.format(value=2.0)))
    note = f"nothing to compare: all values are the same, on {THREE}"
    assert running.outputs_equal(two_constant, two_constant) == (None, note)
    assert running.outputs_equal(two_constant, three_constant).equal is False
    nan = programs.artifact("nan", CONSTANT.format(value="0x7FC00000"))
    assert running.outputs_equal(nan, nan) == (
        None,
        note.replace("all values are the same", "no value is finite"),
    )


PLACES = """
func.func @main(%x: tensor<64x{kind}>, %rows: tensor<16xi32>) -> tensor<64xi32> {{
  %e = tensor.empty() : tensor<64xi32>
  %0 = linalg.generic {{
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x : tensor<64x{kind}>) outs(%e : tensor<64xi32>) {{
    ^bb0(%in: {kind}, %out: i32):
      %c5 = arith.constant 5 : {kind}
      {body}
      linalg.yield %r : i32
  }} -> tensor<64xi32>
  return %0 : tensor<64xi32>
}}
"""
AT = (
    "%at = arith.index_cast %in : {kind} to index\n      %r = tensor.extract %rows[%at]"
    " : tensor<16xi32>"
)


@pytest.mark.parametrize(
    ("kind", "body", "picks"),
    [
        ("i32", AT, True),
        ("i64", AT, True),
        ("i32", "%r = arith.shli %c5, %in : i32", True),
        ("i32", "%r = arith.shli %in, %c5 : i32", False),
        ("i32", "%r = arith.muli %c5, %in : i32", False),
    ],
)
def test_a_program_that_picks_by_integers_says_so(
    programs: SmallPrograms, kind: str, body: str, picks: bool
) -> None:
    source = PLACES.format(kind=kind, body=body.format(kind=kind))
    assert programs.interface("places", source).picks is picks


def test_one_that_never_ends_is_not_equal(
    programs: SmallPrograms,
    runtime: Runtime,
    integers: tuple[Interface, Path],
    tmp_path: Path,
) -> None:
    interface, before = integers
    running = Runner(runtime, interface, tmp_path, Cancel(), timeout_seconds=5)
    loop = programs.artifact("loop", LOOP)
    equal, note = running.outputs_equal(before, loop)
    assert (
        equal is False
        and note == f"the artifact after folding did not end within 5 s, on {ONE}"
    )
    equal, note = running.outputs_equal(loop, before)
    assert equal is None and note.startswith(
        "the artifact before folding did not end within 5 s"
    )
    assert (
        running.price(before, loop, 6)
        == "the artifact after folding did not end within 5 s"
    )
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [], (
        "nothing but data is left"
    )


def test_what_is_no_artifact_is_refused_in_the_runtime_s_words(
    runner: Callable[[Interface], Runner],
    integers: tuple[Interface, Path],
    tmp_path: Path,
) -> None:
    interface, good = integers
    broken = tmp_path / "broken.vmfb"
    broken.write_bytes(good.read_bytes()[:-4096])
    equal, note = runner(interface).outputs_equal(good, broken)
    assert (
        equal is False
        and note.startswith(
            "the artifact after folding was refused by iree-base-runtime "
        )
        and "\n" not in note
    )
    assert runner(interface).outputs_equal(broken, good).equal is None


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("there", "a "),
        ("bulldozer", "the processor lacks "),
        ("cuda", "cuda code needs its device"),
    ],
)
def test_what_this_machine_cannot_run_is_not_run(
    programs: SmallPrograms,
    runner: Callable[[Interface], Runner],
    target: str,
    message: str,
) -> None:
    source = INTEGERS.format(offset=0)
    running = runner(programs.interface("elsewhere", source, target))
    artifact = programs.home / "never looked at"
    equal, note = running.outputs_equal(artifact, artifact)
    assert (
        (equal, note)
        == (None, running.reason)
        == (None, running.price(artifact, artifact, 6))
    )
    assert message in note and is_local(note)


BEFORE = "the artifact before folding"
AFTER = "the artifact after folding"
ENDS: tuple[tuple[tuple[str, ...], bool | None, str], ...] = (
    (
        (WRITES, "*bad*) kill -SEGV $$"),
        False,
        f"{AFTER} was ended by SIGSEGV, on {ONE}",
    ),
    # One that is merely slower than a slow one may be equal.
    (
        (WRITES, "*good*) sleep 1", "*bad*) sleep 60"),
        None,
        f"{AFTER} did not end within 5 s, on {ONE}",
    ),
    (("*bad*) exit 0", WRITES), False, f"{AFTER} did not give output 0, on {ONE}"),
    # What the machine cannot do says nothing of the artifact.
    (
        (WRITES, "*bad*) kill -ILL $$"),
        None,
        "was ended by SIGILL: this processor lacks an instruction",
    ),
    (
        (WRITES, "*bad*) kill -KILL $$"),
        None,
        "was ended by SIGKILL: memory ran out, most likely",
    ),
    (
        (WRITES, "*bad*) echo 'x.c:1: RESOURCE_EXHAUSTED; no'; exit 1"),
        *(None, "was refused by iree-base-runtime 1.2.3: RESOURCE_EXHAUSTED; no"),
    ),
)


@pytest.mark.parametrize(("cases", "equal", "message"), ENDS)
def test_how_one_of_two_ends(
    integers: tuple[Interface, Path],
    tmp_path: Path,
    cases: tuple[str, ...],
    equal: bool | None,
    message: str,
) -> None:
    runtime = fake_runtime(tmp_path, "iree-run-module", *cases)
    good = tmp_path / "good"
    bad = tmp_path / "bad"
    running = Runner(
        runtime, integers[0], tmp_path / "data", Cancel(), timeout_seconds=5
    )
    result = running.outputs_equal(good, bad)
    assert result.equal is equal and message in result.equal_note
    if "SEGV" in cases[1]:
        assert running.outputs_equal(good, good).equal is True
        assert running.outputs_equal(bad, good) == (
            None,
            message.replace(AFTER, BEFORE),
        )


def test_the_price_is_of_pairs(
    runner: Callable[[Interface], Runner],
    runtime: Runtime,
    integers: tuple[Interface, Path],
    tmp_path: Path,
) -> None:
    interface, artifact = integers
    price = runner(interface).price(artifact, artifact, 6)
    assert (
        not isinstance(price, str)
        and price.pairs == 6
        and price.low <= price.ratio <= price.high
    )
    cancel = Cancel()
    running = Runner(runtime, interface, tmp_path, cancel)
    cancel.set()
    with pytest.raises(Interrupted):
        running.outputs_equal(artifact, artifact)


def test_pairs_alternate_and_the_first_only_warms_up(
    integers: tuple[Interface, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = (
        'echo "{\\"benchmarks\\": [{\\"cpu_time\\": $(wc -l < ../ran), \\"time_unit\\":'
        ' \\"ms\\"}]}"'
    )
    runtime = fake_runtime(
        tmp_path,
        "iree-benchmark-module",
        "--module=*) echo ${each##*/} >> ../ran",
        after=counted,
    )
    running = Runner(runtime, integers[0], tmp_path / "data", Cancel())
    price = running.price(tmp_path / "a", tmp_path / "b", 9)
    ran = tmp_path / "ran"
    assert ran.read_text().split() == ["a", "b", "b", "a"] * 5, (
        "as many pairs on any machine"
    )
    assert not isinstance(price, str) and (
        price.pairs,
        price.before_us,
        price.after_us,
    ) == (9, 12000, 11000)
    ran.unlink()
    monkeypatch.setattr(module, "PAIR_SECONDS", 0)
    assert running.price(tmp_path / "a", tmp_path / "b", 9) == TOO_LONG
    assert ran.read_text().split() == ["a", "b"]


NO_TIME = '{"benchmarks": [{"cpu_time": 0, "time_unit": "s"}]}'


@pytest.mark.parametrize(
    "printed",
    [
        "nothing",
        "",
        "{}",
        '{"benchmarks": []}',
        NO_TIME,
        NO_TIME.replace('"s"', '"days"'),
    ],
)
def test_a_report_that_is_none_is_a_reason(
    integers: tuple[Interface, Path], tmp_path: Path, printed: str
) -> None:
    runtime = fake_runtime(
        tmp_path, "iree-benchmark-module", "x) y", after=f"echo '{printed}'"
    )
    price = Runner(runtime, integers[0], tmp_path / "data", Cancel()).price(
        tmp_path, tmp_path, 6
    )
    assert isinstance(price, str) and "was not timed: " in price


def test_a_program_for_two_targets_is_not_run(
    runner: Callable[[Interface], Runner], integers: tuple[Interface, Path]
) -> None:
    targets = (*integers[0].targets, CompiledFor("vmvx", "vmvx-bytecode-fb", ()))
    reason = (
        "the program is compiled for 2 targets, and the bot can run it for only one"
    )
    assert runner(replace(integers[0], targets=targets)).reason == reason


def test_without_the_package_and_with_a_runtime_that_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch,
    runtime: Runtime,
    integers: tuple[Interface, Path],
    tmp_path: Path,
) -> None:
    description = machine(runtime)
    assert (
        description.endswith(f", {runtime.name}")
        and "\n" not in description
        and runtime.name.startswith("iree-base-runtime ")
    )
    running = Runner(Runtime(tmp_path, "1"), integers[0], tmp_path / "data", Cancel())
    equal, note = running.outputs_equal(tmp_path, tmp_path)
    assert equal is None and is_local(note) and "the runtime cannot be started" in note
    monkeypatch.setattr(module, "PACKAGE", "no-such-package-of-anyone")
    installed.cache_clear()
    try:
        assert (
            installed() is None
            and "pip install 'code-size-bot[run]'" in MISSING
            and is_local(MISSING)
        )
    finally:
        installed.cache_clear()
