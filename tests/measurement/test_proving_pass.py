"""Passes are proved by compiles with real releases: controls, known answers, and what a wrong experiment would name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alone_stage import AloneStage, compile_setup, measured
from ladder_models import EMBEDDING_NORM, POINTWISE
from reduction_models import MAXIMA, SUMS
from replacing import replace

from bot.cli.main import main
from bot.compiler.compiling import CompileSetup
from bot.core.ladder import Climb, Ladder, Rung
from bot.core.machine_passes import MachineStage
from bot.core.pass_proof import PassProof
from bot.core.proof import NOT_TRIED, PARTLY, PROVED
from bot.core.snapshot import Failure
from bot.readers.printed_ir import Translation
from bot.study.compiling_alone import SOURCES, compile_from
from bot.study.ladder import LadderSide, measured_ladder
from bot.study.machine_passes import machine_passes
from bot.study.proving_pass import prove_pass
from bot.study.splicing import Registered, Splicer, printed_side, registered
from bot.system.files import temporary_directory

pytestmark = [pytest.mark.compiler, pytest.mark.slow]

RELEASE = "3.13.0"
X86 = "llvm-cpu-x86_64"
AARCH64 = "llvm-cpu-aarch64"


@pytest.fixture(scope="module")
def setup() -> Iterator[CompileSetup]:
    """How the release compiles."""
    with compile_setup(RELEASE) as release_setup:
        yield release_setup


def side_of(home: Path, setup: CompileSetup, model: str, flags: str = "") -> LadderSide:
    stage: AloneStage = measured(
        home, release=RELEASE, model=model, targets=X86, flags=flags
    )
    return stage.ladder_side(setup, X86)


def proof_between(base: LadderSide, head: LadderSide) -> PassProof:
    ladder = measured_ladder(base, head, both_orders=False)
    assert isinstance(ladder, Ladder), ladder
    return prove_pass(base, head, ladder)


def ladder_with(configured: Rung, translated: Rung) -> Ladder:
    digest = "A" * 16
    end = Rung(9)
    return Ladder(
        head_code=digest,
        base_code=digest,
        base_compiler="0" * 64,
        head=end,
        base=end,
        climb=Climb(end, configured, translated),
    )


def test_a_pass_of_one_flag_is_named_by_both_orders_and_both_ways(
    tmp_path: Path, setup: CompileSetup
) -> None:
    """Only head runs `iree-codegen-replace-slow-min-max-ops`.

    `arith-expand` rewrites what that pass leaves, and no tool runs it by itself. An
    experiment that runs passes twice would name it.
    """
    plain = side_of(tmp_path / "plain", setup, MAXIMA)
    fast = side_of(
        tmp_path / "fast", setup, MAXIMA, "--iree-llvmcpu-use-fast-min-max-ops"
    )
    ladder = measured_ladder(plain, fast, both_orders=True)
    assert isinstance(ladder, Ladder)
    assert ladder.back is not None
    other_way = replace(
        ladder, head=ladder.base, base=ladder.head, climb=ladder.back, back=ladder.climb
    )
    proof = prove_pass(plain, fast, ladder)
    swapped = prove_pass(fast, plain, other_way)
    assert (proof.status, swapped.status) == (PROVED, PROVED)
    assert proof.lone_passes == ((), ("iree-codegen-replace-slow-min-max-ops",))
    assert proof.last_pass == "arith-expand"
    assert (swapped.base_passes, swapped.head_passes) == (
        proof.head_passes,
        proof.base_passes,
    )
    assert proof.moved_bytes == proof.restored_bytes == proof.reverse_restored_bytes
    assert swapped.moved_bytes == -(proof.moved_bytes or 0)
    assert proof.bytes_before == fast.row.code_bytes
    assert proof.bytes_after == plain.row.code_bytes


def test_the_first_of_two_passes_that_need_each_other_is_partly_proved(
    tmp_path: Path, setup: CompileSetup
) -> None:
    """The flag lets `iree-llvmcpu-split-reduction` reorder, and lets `iree-convert-to-llvm` reassociate."""
    sides = (
        side_of(tmp_path / "base", setup, SUMS),
        side_of(tmp_path / "head", setup, SUMS, "--iree-opt-level=O3"),
    )
    proof = proof_between(*sides)
    assert (proof.status, proof.first_pass, proof.last_pass) == (
        PARTLY,
        *["iree-llvmcpu-split-reduction"] * 2,
    )
    assert "several passes carry the bytes" in proof.why
    assert proof.restored_bytes != proof.moved_bytes


def test_the_own_ir_gives_the_own_code_at_each_cut(
    tmp_path: Path, setup: CompileSetup
) -> None:
    side = side_of(tmp_path, setup, SUMS)
    assert isinstance(side.source, str)
    with temporary_directory("passes-") as directory:
        translation = printed_side(side, directory)
        registered_passes = registered(setup)
        assert isinstance(translation, Translation)
        assert isinstance(registered_passes, Registered)
        splicer = Splicer(side, translation, registered_passes)
        code = compile_from(
            setup,
            argv=side.argv,
            text=side.source,
            phase=SOURCES,
            entry_point=side.row.name,
        )
        counts = [0, 13, 29, translation.lowering_end, 66, len(translation.passes)]
        assert [splicer.own_code(count) for count in counts] == [code] * len(counts)
        assert splicer.compiles == len(counts)


def test_a_pass_between_releases_is_proved_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """3.11.0 cannot run the rest of its passes, and head can."""
    (tmp_path / "m.mlir").write_text(EMBEDDING_NORM, encoding="utf-8")
    config = tmp_path / "c.yml"
    text = f"schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [{X86}]\n"
    config.write_text(text, encoding="utf-8")
    dispatch = (
        "--config",
        str(config),
        "--model",
        "m",
        "--target",
        X86,
        "--dispatch",
        "*",
    )
    assert main(["trace", "--base", "3.11.0", "--head", RELEASE, *dispatch]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    effect = (
        "24,791 B of the 22,723 B shrinkage of the MLIR part disappear; with base's IR"
        " before it, 0 B"
    )
    named = (
        "pass iree-llvmcpu-virtual-vector-lowering: proved: with base's IR after it in"
        " head's passes"
    )
    assert f"{named}, {effect}" in lines
    assert "iree-llvmcpu-virtual-vector-lowering 34,145 B +24,791 B" in lines
    assert (
        lines.index("MLIR code generation")
        < lines.index(named)
        < lines.index("the sides diverge after")
    )


def test_the_code_generators_diverge_where_instructions_are_selected(
    tmp_path: Path,
) -> None:
    """An older linker cannot read newer bitcode: then both compile head's, and the counts are negated."""
    releases = ("3.11.0", RELEASE)
    stages = {
        release: measured(tmp_path / release, release, POINTWISE, AARCH64)
        for release in releases
    }
    with compile_setup("3.11.0") as older, compile_setup(RELEASE) as newer:
        base = stages["3.11.0"].ladder_side(older, AARCH64)
        head = stages[RELEASE].ladder_side(newer, AARCH64)
        measured_passes = machine_passes(base, head)
        swapped = machine_passes(head, base)
        untried = prove_pass(head, base, ladder_with(Rung(9), Rung(5)))
    reason = (
        "prints its passes without their options, so its remaining passes cannot run"
        " (needs 3.12.0 or newer)"
    )
    assert untried.status == NOT_TRIED
    assert untried.why.startswith("3.11.0")
    assert untried.why.endswith(reason)
    assert (measured_passes.bitcode, swapped.bitcode) == ("base", "head")
    assert [stage.name for stage in measured_passes.stages] == [
        *("finalize-isel", "machine-scheduler", "greedy", "prologepilog")
    ]
    first = measured_passes.first_apart
    assert isinstance(first, MachineStage)
    assert (first.name, first.base, first.head, first.changes["COPY"]) == (
        "finalize-isel",
        1771,
        1099,
        -192,
    )
    assert swapped.first_apart is not None
    assert swapped.first_apart.changes == {
        name: -change for name, change in first.changes.items()
    }


def test_what_is_not_known_is_not_tried(tmp_path: Path, setup: CompileSetup) -> None:
    side = side_of(tmp_path, setup, MAXIMA)
    failed = Rung(why="it crashed")
    size = Rung(9)
    smaller = Rung(5)
    unknown = prove_pass(side, side, ladder_with(failed, smaller))
    assert (unknown.status, unknown.why) == (
        NOT_TRIED,
        "the bytes of MLIR code generation are not known",
    )
    assert (
        prove_pass(side, side, ladder_with(size, size)).why
        == "MLIR code generation carries no bytes"
    )
    assert (
        prove_pass(side, side, ladder_with(size, smaller), most_compiles=3).why
        == "compile budget used up"
    )
    lost = LadderSide(setup, side.argv, side.row, Failure("read", "no source"))
    assert prove_pass(side, lost, ladder_with(size, smaller)).why == "head: no source"
    assert prove_pass(lost, side, ladder_with(size, smaller)).why == "base: no source"
    assert machine_passes(lost, side).why == "no source"
