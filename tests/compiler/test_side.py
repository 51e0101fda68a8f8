"""bot.compiler.side: shared and direct compiles of a fake compiler, which fails in all ways that the real ones do."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fake_compiler import (
    EIGHT,
    ROCM,
    TARGETS,
    VMVX,
    X86,
    FakeCompiler,
    cells_of,
    install,
    is_alive,
    suite,
    wait_until,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from replacing import replace

from bot.compiler.compiling import Compiled, Kit
from bot.compiler.schedule import run_all
from bot.compiler.sharing.proof_book import ProofBook
from bot.compiler.side import Side
from bot.compiler.tools.bindings import Bindings
from bot.compiler.tools.importing import Importer
from bot.compiler.tools.probe import MEASURING_OPTIONS
from bot.core.values.planned import LIFTED, LIFTED_LIMIT_FLAG, PlannedCell, Target
from bot.core.values.snapshot import CellKey, Failure
from bot.errors import Interrupted, OutputError
from bot.system.processes import Cancel, Meter

REASON = "no MLIR Python bindings beside this compiler"
MODELS = ("alpha", "beta", "gamma")


class Silent:
    """A watcher that does not care."""

    def started(self, name: str) -> None: ...

    def ended(self, name: str) -> None: ...


@dataclass
class Run:
    """Cells of one side, compiled."""

    fake: FakeCompiler
    scratch: Path
    timeout_seconds: float = 30
    cancel: Cancel = field(default_factory=Cancel)
    meter: Meter = field(default_factory=Meter)
    results: dict[CellKey, Compiled | Failure] = field(default_factory=dict)
    donors: dict[CellKey, str | None] = field(default_factory=dict)

    def finish(self, cell: PlannedCell, result: Compiled | Failure, donor: str | None) -> None:
        if cell.key in self.results:
            assert self.donors[cell.key] is not None and donor is None, "only a shared result is replaced"
        self.results[cell.key], self.donors[cell.key] = result, donor

    def compile(self, cells: Sequence[PlannedCell], *, jobs: int = 2, share: bool = True) -> list[str]:
        """Compile all; the notes of the side."""
        self.scratch.mkdir(exist_ok=True)
        toolchain = self.fake.toolchain
        bindings = Bindings(Path("none"), None, toolchain.no_bindings, self.cancel)
        kit = Kit(
            "head",
            toolchain,
            MEASURING_OPTIONS,
            bindings,
            self.scratch,
            self.timeout_seconds,
            self.cancel,
            self.meter,
        )
        importer = Importer(toolchain, self.scratch, self.timeout_seconds, self.cancel)
        book = ProofBook(self.scratch.parent / "cache", toolchain.info.digest)
        side = Side(kit, self.finish, importer, book)
        run_all(side.tasks(cells, share=share), jobs, self.cancel.set, Silent())
        assert list(self.scratch.iterdir()) == []
        assert self.results.keys() == {cell.key for cell in cells}
        return side.notes

    def artifact(self, cell: PlannedCell) -> bytes:
        result = self.results[cell.key]
        assert isinstance(result, Compiled), result
        return result.artifact

    def failure(self, cell: PlannedCell) -> Failure:
        result = self.results[cell.key]
        assert isinstance(result, Failure)
        return result

    def check_direct(self, cells: Sequence[PlannedCell], *, lifted: bool = False) -> None:
        """Every artifact is that of the direct compile."""
        for cell in cells:
            assert self.artifact(cell) == self.fake.artifact(cell, lifted=lifted), cell.key


def replace_results(run: Run) -> Run:
    """The same compiler and cache, for another run."""
    return Run(run.fake, run.scratch)


def run_with(home: Path, *rules: dict[str, str], timeout_seconds: float = 30) -> Run:
    return Run(install(home / "fake", rules), home / "scratch", timeout_seconds)


# What is shared


@pytest.mark.parametrize("jobs", [1, 3])
def test_fronts_are_shared_and_artifacts_those_of_the_direct_compile(tmp_path: Path, jobs: int) -> None:
    run, cells = run_with(tmp_path), suite(tmp_path)
    assert run.compile(cells, jobs=jobs) == []
    run.check_direct(cells)
    assert len(set(map(run.artifact, cells))) == len(cells) == 24
    # two front halves a model; the cheapest model is compiled both ways
    assert run.fake.compiles == {"front": 6, "resume": 24, "direct": 8}
    assert {key for key, donor in run.donors.items() if donor is None} == {
        c.key for c in cells if c.model.name == "alpha"
    }


def test_no_target_is_proved_by_a_front_half_of_its_own(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path), suite(tmp_path, ("alpha", "beta"))
    run.compile(cells, jobs=1)
    fronts = [call["argv"] for call in run.fake.calls("front") if call["model"] == "alpha"]
    assert len(fronts) == 2
    donors = {donor for key, donor in run.donors.items() if key.model == "beta"}
    assert len(donors) == 1


def test_what_was_proved_is_kept_for_the_next_run(tmp_path: Path) -> None:
    first, cells = run_with(tmp_path), suite(tmp_path)
    first.compile(cells)
    again = replace_results(first)
    again.compile(cells)
    assert again.fake.compiles == {"front": 12, "resume": 48, "direct": 8}
    again.check_direct(cells)


def test_another_compiler_has_to_prove_it_anew(tmp_path: Path) -> None:
    first, cells = run_with(tmp_path), suite(tmp_path)
    first.compile(cells)
    other = Run(install(tmp_path / "other", version="3.14.0"), tmp_path / "scratch")
    other.compile(cells)
    assert other.fake.compiles["direct"] == 8


def test_each_device_is_asked_for_once(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path), suite(tmp_path)
    run.compile(cells, jobs=1)
    assert len(run.fake.calls("ask")) == len(EIGHT)


def test_without_sharing_all_is_direct(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path), suite(tmp_path)
    assert run.compile(cells, share=False) == []
    run.check_direct(cells)
    assert run.fake.compiles == {"direct": 24}


@pytest.mark.parametrize("targets", [[VMVX], TARGETS])
def test_where_the_proof_would_cost_more_than_it_may_all_is_direct(tmp_path: Path, targets: Sequence[Target]) -> None:
    run, cells = run_with(tmp_path), cells_of(tmp_path, MODELS, targets)
    run.compile(cells)
    run.check_direct(cells)
    assert run.fake.compiles == {"direct": len(cells)}


def test_nothing_to_compile(tmp_path: Path) -> None:
    assert run_with(tmp_path).compile([]) == []


def test_a_target_with_a_flag_that_is_not_known_does_not_share(tmp_path: Path) -> None:
    odd = Target("odd", "vmvx", ("--iree-fake-front-flag=1",))
    run, cells = run_with(tmp_path), suite(tmp_path, targets=[*EIGHT, odd])
    run.compile(cells)
    run.check_direct(cells)
    assert run.fake.compiles == {"front": 6, "resume": 24, "direct": 8 + 3}
    assert [call for call in run.fake.calls("resume") if "--iree-fake-front-flag=1" in call["argv"]] == []


# Where sharing does not hold


@pytest.mark.parametrize("jobs", [1, 3])
def test_artifacts_that_differ_turn_sharing_off(tmp_path: Path, jobs: int) -> None:
    run, cells = run_with(tmp_path, {"do": "differ", "kind": "resume"}), suite(tmp_path)
    [note] = run.compile(cells, jobs=jobs)
    assert note.startswith("front halves were not shared: resumed and direct artifacts of alpha on ")
    assert note.endswith(" differ")
    run.check_direct(cells)
    assert set(run.donors.values()) == {None}
    again = replace_results(run)
    again.compile(cells)
    assert again.fake.calls("resume") == run.fake.calls("resume"), "that is known for good"
    again.check_direct(cells)


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("target", [target.name for target in EIGHT])
def test_a_target_whose_front_half_is_another_one_is_found_on_the_model_that_proves(
    tmp_path: Path, target: str, jobs: int
) -> None:
    [odd] = (one for one in EIGHT if one.name == target)
    rules = {"do": "depend", "kind": "front direct", "argv": " ".join(odd.argv)}
    run, cells = run_with(tmp_path, rules), suite(tmp_path)
    [note] = run.compile(cells, jobs=jobs)
    assert note.startswith("front halves were not shared: ")
    run.check_direct(cells)


def test_a_lie_about_another_model_is_found_by_comparing_its_front_halves(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"do": "depend", "kind": "front direct", "model": "gamma", "argv": "backends=llvm-cpu"})
    cells = suite(tmp_path)
    [note] = run.compile(cells)
    assert note.startswith("front halves were not shared: the front halves of gamma for ")
    run.check_direct(cells)


def test_a_front_half_that_loses_a_resource_is_not_shared(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "lose", "kind": "front", "model": "beta"}), suite(tmp_path)
    assert run.compile(cells) == [
        "the front half of beta was not shared: it names the resource blob and does not carry it"
    ]
    run.check_direct(cells)
    assert run.fake.compiles == {"front": 6, "resume": 16, "direct": 16}


def test_a_compiler_that_does_not_repeat_itself_is_not_blamed_on_sharing(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"do": "random", "kind": "direct resume", "model": "alpha"})
    cells = suite(tmp_path)
    notes = run.compile(cells, jobs=1)
    assert len(notes) == 8
    assert all(note.startswith("not deterministic: the same command for alpha on ") for note in notes)
    run.check_direct([cell for cell in cells if cell.model.name != "alpha"])
    assert set(run.donors.values()) == {None}, "nothing was proved, and nothing disproved"


def test_no_failure_is_told_that_the_printed_command_did_not_give(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"do": "fail", "kind": "resume direct", "argv": "backends=rocm"})
    cells = suite(tmp_path)
    run.compile(cells)
    direct = [call for call in run.fake.calls("direct") if any("backends=rocm" in word for word in call["argv"])]
    assert len(direct) == 3
    said = {run.results[cell.key] for cell in cells if cell.target is ROCM}
    assert len(said) == 1 and isinstance(said.pop(), Failure)


def test_resumed_compiles_that_fail_where_the_direct_ones_do_not(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "fail", "kind": "resume"}), suite(tmp_path)
    assert run.compile(cells) == []
    run.check_direct(cells)


def test_a_model_of_which_one_resumed_compile_fails_alone_is_compiled_directly(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"do": "fail", "kind": "resume", "model": "gamma", "argv": "vmvx"})
    cells = suite(tmp_path)
    assert run.compile(cells, jobs=1) == ["the front half of gamma was not shared: resumed, gamma on vmvx fails"]
    run.check_direct(cells)
    assert {key.model for key, donor in run.donors.items() if donor} == {"beta"}


@pytest.mark.parametrize("action", ["fail", "crash", "nothing", "no-device"])
def test_a_front_half_that_fails(tmp_path: Path, action: str) -> None:
    run, cells = run_with(tmp_path, {"do": action, "kind": "front"}), suite(tmp_path)
    assert run.compile(cells) == []
    run.check_direct(cells)
    assert run.fake.compiles == {"front": 6, "direct": 24}


@pytest.mark.parametrize("model", ["alpha", "beta"])
def test_the_front_half_of_one_model_fails(tmp_path: Path, model: str) -> None:
    run, cells = run_with(tmp_path, {"do": "fail", "kind": "front", "model": model}), suite(tmp_path)
    assert run.compile(cells) == []
    run.check_direct(cells)
    assert run.fake.compiles == {"front": 6, "resume": 16, "direct": 16}


def test_a_compiler_that_never_names_its_device(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "no-device", "kind": "ask front"}), suite(tmp_path)
    assert run.compile(cells) == []
    run.check_direct(cells)
    assert run.fake.compiles == {"direct": 24}


def test_a_target_whose_device_is_not_named(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "no-device", "kind": "ask", "argv": "=metal"}), suite(tmp_path)
    run.compile(cells)
    run.check_direct(cells)
    assert run.fake.compiles == {"front": 6, "resume": 21, "direct": 7 + 3}


# Refusals of the stack gate


def test_a_refused_cell_is_compiled_once_more(tmp_path: Path) -> None:
    rules = {"do": "refuse", "kind": "direct resume", "model": "gamma", "argv": "x86-64-v3"}
    run, cells = run_with(tmp_path, rules), suite(tmp_path)
    assert run.compile(cells, jobs=1) == []
    for cell in cells:
        result = run.results[cell.key]
        assert isinstance(result, Compiled)
        if cell.key == CellKey("gamma", X86.name):
            assert result.refusal is not None
            assert (result.refusal.stage, result.refusal.figure_bytes) == ("stack-limit", 36864)
            assert result.artifact == run.fake.artifact(cell, lifted=True)
        else:
            assert result.refusal is None
            assert result.artifact == run.fake.artifact(cell)
    lifted = [call for call in run.fake.calls() if LIFTED_LIMIT_FLAG in call["argv"]]
    assert [call["kind"] for call in lifted] == ["ask", "resume"]


@pytest.mark.parametrize("share", [True, False])
def test_every_cell_is_refused(tmp_path: Path, share: bool) -> None:
    run, cells = run_with(tmp_path, {"do": "refuse", "kind": "direct resume"}), suite(tmp_path)
    assert run.compile(cells, share=share) == []
    run.check_direct(cells, lifted=True)
    for result in run.results.values():
        assert isinstance(result, Compiled) and result.refusal is not None
        assert (result.refusal.stage, result.refusal.figure_bytes) == ("stack-limit", 36864)


def test_a_cell_that_fails_with_the_gate_lifted_as_well(tmp_path: Path) -> None:
    rules = [{"do": "fail", "argv": LIFTED_LIMIT_FLAG}, {"do": "refuse", "kind": "direct resume"}]
    run, cells = run_with(tmp_path, *rules), cells_of(tmp_path, ["m"])
    run.compile(cells)
    assert {run.failure(cell).message.partition("<stdin>")[0] for cell in cells} == {LIFTED}, "the last one stands"
    assert {run.failure(cell).stage for cell in cells} == {"compile"}


# Compiles that end badly


def test_a_cell_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"do": "fail", "kind": "direct resume", "model": "beta", "argv": "=rocm"})
    cells = suite(tmp_path)
    run.compile(cells)
    [bad] = [cell for cell in cells if cell.key == CellKey("beta", "rocm")]
    run.check_direct([cell for cell in cells if cell is not bad])
    assert run.failure(bad) == Failure(
        "compile",
        "<stdin>:2:23: error: use of undeclared SSA value name\n  %0 = arith.addf %a, %b : f32",
        exit_code=1,
    )


@pytest.mark.parametrize("both", [True, False])
def test_what_failed_on_cuda_is_not_resumed_for_rocm_and_the_printed_command_has_the_word(
    tmp_path: Path, both: bool
) -> None:
    backends = ("=cuda", "=rocm") if both else ("=cuda",)
    run = run_with(tmp_path, *({"do": "fail", "kind": "direct resume", "model": "gamma", "argv": a} for a in backends))
    cells = suite(tmp_path)
    assert run.compile(cells, jobs=1) == []
    [cuda, rocm] = (next(c for c in cells if c.key == CellKey("gamma", name)) for name in ("cuda", "rocm"))
    resumed = [call for call in run.fake.calls("resume") if "--iree-rocm-target=gfx942" in call["argv"]]
    assert len(resumed) == 2, "alpha proves it, beta shares, gamma is not tried"
    assert isinstance(run.results[rocm.key], Failure if both else Compiled) and run.donors[rocm.key] is None
    run.check_direct([cell for cell in cells if cell is not cuda and not (both and cell is rocm)])
    others = [cell for cell in cells if cell.model is cuda.model and cell not in (cuda, rocm)]
    assert all(run.donors[cell.key] for cell in others), "they share as before"


def test_a_model_that_never_compiles_does_not_prove_anything(tmp_path: Path) -> None:
    bad = {"do": "fail", "kind": "direct resume", "model": "alpha"}
    run, cells = run_with(tmp_path, bad), suite(tmp_path)
    assert run.compile(cells) == []
    good = [cell for cell in cells if cell.model.name != "alpha"]
    run.check_direct(good)
    assert {run.failure(cell).stage for cell in cells if cell not in good} == {"compile"}


def test_no_model_compiles_at_all(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "fail", "kind": "direct resume"}), suite(tmp_path)
    assert run.compile(cells) == []
    assert all(isinstance(result, Failure) for result in run.results.values())


@pytest.mark.parametrize("share", [True, False])
def test_a_compiler_that_crashes(tmp_path: Path, share: bool) -> None:
    run = run_with(tmp_path, {"do": "crash", "kind": "direct resume", "argv": "=vmvx"})
    cells = suite(tmp_path)
    run.compile(cells, share=share)
    for cell in cells:
        if cell.target is VMVX:
            assert run.failure(cell) == Failure("compile", "ended by SIGSEGV", None, "SIGSEGV")
    run.check_direct([cell for cell in cells if cell.target is not VMVX])


def test_a_compiler_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    rules = {"do": "hang", "kind": "direct resume", "model": "beta", "argv": "=rocm"}
    run, cells = run_with(tmp_path, rules, timeout_seconds=1), cells_of(tmp_path, ["beta"], [ROCM, VMVX])
    run.compile(cells, share=False)
    assert run.failure(cells[0]) == Failure("timeout", "not finished after 1 s")
    run.check_direct(cells[1:])
    assert len(run.fake.pids) == 2
    assert wait_until(lambda: not any(map(is_alive, run.fake.pids)))


def test_a_compiler_that_prints_100_mb(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "flood", "kind": "direct"}), cells_of(tmp_path, ["m"], [VMVX])
    run.compile(cells)
    run.check_direct(cells)


def test_a_compiler_that_writes_nothing(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "nothing", "kind": "direct"}), cells_of(tmp_path, ["m"], [VMVX])
    run.compile(cells)
    assert run.failure(cells[0]) == Failure("compile", "exit code 0 without a message", 0)


def test_warnings_are_no_failure(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path, {"do": "warn"}), suite(tmp_path)
    run.compile(cells)
    run.check_direct(cells)


def test_a_missing_target_option_is_that_cells_failure(tmp_path: Path) -> None:
    run = Run(install(tmp_path / "fake", unknown=["--iree-rocm-target"]), tmp_path / "scratch")
    cells = cells_of(tmp_path, MODELS)
    run.compile(cells)
    for cell in cells:
        if cell.target is ROCM:
            message = "this compiler does not know the option --iree-rocm-target"
            assert run.failure(cell) == Failure("option", message, 1)
    run.check_direct([cell for cell in cells if cell.target is not ROCM])


def test_a_model_that_cannot_be_imported(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path), cells_of(tmp_path, MODELS)
    cells = tuple(
        replace(cell, model=replace(cell.model, path=cell.model.path.replace(".mlir", ".onnx")))
        if cell.model.name == "alpha"
        else cell
        for cell in cells
    )
    run.compile(cells)
    for cell in cells:
        if cell.model.name == "alpha":
            assert run.failure(cell) == Failure("import", f"cannot import ONNX: {REASON}")
        else:
            assert run.artifact(cell) == run.fake.artifact(cell)


# What a compile leaves


def test_products_and_costs(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path), cells_of(tmp_path, ["m"], [X86, ROCM])
    run.compile(cells)
    by_target = {cell.target.name: run.results[cell.key] for cell in cells}
    for name, result in by_target.items():
        assert isinstance(result, Compiled)
        assert result.stack_usage == "-:1:main_dispatch_0\t64\tstatic\n"
        assert result.statistics is not None and "dispatch-count" in result.statistics
        assert result.objects == ((b"\x7fELF of no use",) if name == X86.name else ())
        assert result.cpu_ms > 0 and (result.peak_rss_kib is None or result.peak_rss_kib > 1000)
        assert result.reasons == dict.fromkeys(("program", "allocas", "strategies"), REASON)
        assert sum(result.phases_ms.values()) <= 60_000
    assert sum(run.meter.cpu_ms.values()) >= sum(r.cpu_ms for r in by_target.values() if isinstance(r, Compiled)) / 2
    assert set(run.meter.cpu_ms) == {"m"}


def test_the_model_arrives_on_stdin_and_no_path_reaches_the_compiler(tmp_path: Path) -> None:
    run, cells = run_with(tmp_path), cells_of(tmp_path, MODELS)
    run.compile(cells)
    for call in run.fake.calls("front", "resume", "direct"):
        assert call["argv"][0] == "-"
        assert not any("/" in word for word in call["argv"])


# Ends before the end


def test_cancel_in_the_middle(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"do": "hang", "kind": "direct"})
    cells = cells_of(tmp_path, MODELS)

    def interrupt() -> None:
        assert wait_until(lambda: len(run.fake.pids) >= 2)
        run.cancel.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted):
        run.compile(cells)
    thread.join()
    assert wait_until(lambda: not any(map(is_alive, run.fake.pids))) and not run.fake.hung_out
    assert list(run.scratch.iterdir()) == []


def test_a_finish_that_fails_ends_the_run(tmp_path: Path) -> None:
    class Full(Run):
        def finish(self, cell: PlannedCell, result: Compiled | Failure, donor: str | None) -> None:
            super().finish(cell, result, donor)
            raise OutputError("disk full", where="cache")

    run = Full(install(tmp_path / "fake"), tmp_path / "scratch")
    with pytest.raises(OutputError, match="disk full"):
        run.compile(cells_of(tmp_path, MODELS))
    assert list(run.scratch.iterdir()) == []


# what goes wrong in a target's half of the compile does so on both ways to it
KINDS = st.sampled_from(["ask", "front", "ask front", "direct resume", "ask front resume direct"])
ACTIONS = st.sampled_from(["fail", "crash", "nothing", "refuse", "no-device", "differ"])
RULES = st.fixed_dictionaries(
    {"do": ACTIONS, "kind": KINDS},
    optional={"model": st.sampled_from(["alpha", "beta"]), "argv": st.sampled_from(["=rocm", "x86-64-v3"])},
)


@settings(max_examples=8, deadline=None)
@given(rules=st.lists(RULES, max_size=3), jobs=st.integers(1, 3))
def test_whatever_happens_each_cell_is_finished_once(
    tmp_path_factory: pytest.TempPathFactory, rules: list[dict[str, str]], jobs: int
) -> None:
    home = tmp_path_factory.mktemp("side")
    rules = [{**rule, "kind": "resume"} if rule["do"] == "differ" else rule for rule in rules]
    shared, alone = run_with(home, *rules), Run(install(home / "again", rules), home / "scratch2")
    cells = cells_of(home, ["alpha", "beta"], [X86, ROCM])
    notes = shared.compile(cells, jobs=jobs)
    alone.compile(cells, jobs=1, share=False)
    unproved = any(rule["do"] == "differ" for rule in rules)
    for cell in cells:
        left, right = shared.results[cell.key], alone.results[cell.key]
        assert type(left) is type(right), (cell.key, notes)
        if isinstance(left, Compiled) and isinstance(right, Compiled) and not unproved:
            assert left.artifact == right.artifact
            assert left.refusal == right.refusal
        elif isinstance(left, Failure):
            assert left == right
