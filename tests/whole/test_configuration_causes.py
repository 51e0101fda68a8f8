"""3.10.0 → 3.11.0 on a layer norm: what a report says of its configuration, and what experiments say of the cause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from alone_stage import AloneStage, compile_setup, measured
from layer_norm_model import LAYER_NORM
from real_compilers import bot

from bot.compiler.compiling import CompileSetup
from bot.core.defaults import DefaultChange
from bot.core.proof import NOT_TRIED, REFUTED
from bot.core.snapshot import Dispatch
from bot.show.proofs import knob_proof_words
from bot.study.compiling_alone import CONFIGURATIONS
from bot.study.proving import ConfiguredPair, prove_configuration
from bot.study.proving_defaults import BuildSide, base_default, prove_default

pytestmark = pytest.mark.compiler

BASE = "3.10.0"
HEAD = "3.11.0"
TRACED = "a trace names the pass"
REASSOCIATE = "--iree-llvmcpu-reassociate-fp-reductions"
CONFIG = "schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [llvm-cpu-x86_64]\n"


@pytest.fixture(scope="module")
def setups() -> Iterator[dict[str, CompileSetup]]:
    """Release → how it compiles."""
    with compile_setup(BASE) as base, compile_setup(HEAD) as head:
        yield {BASE: base, HEAD: head}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AloneStage]:
    """Release → the build of the layer norm."""
    return {
        release: measured(
            tmp_path_factory.mktemp("side"), release, LAYER_NORM, "llvm-cpu-x86_64"
        )
        for release in (BASE, HEAD)
    }


def row_of(stage: AloneStage) -> Dispatch:
    (cell,) = stage.side.cells
    (row,) = cell.dispatches
    return row


def test_a_refuted_setting_is_no_cause_in_a_report(tmp_path: Path) -> None:
    """It read "`vector_common_parallel` [8, 0] in 1 configuration more, with vector_inner_parallel, …"."""
    (tmp_path / "m.mlir").write_text(LAYER_NORM, encoding="utf-8")
    (tmp_path / "c.yml").write_text(CONFIG, encoding="utf-8")
    bot(
        "compare",
        "--base",
        BASE,
        "--head",
        HEAD,
        "--config",
        "c.yml",
        "--out",
        "out",
        cwd=tmp_path,
    )
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert not [root for root in report["root_causes"] if root["cause"] == "strategy"]
    (cause,) = (root for root in report["root_causes"] if root["cause"] == "codegen")
    assert cause["pass"] == "iree-llvmcpu-split-reduction"
    assert cause["parts"] == {"mlir": 23_845}
    assert cause["proof"] == {
        "members": 0,
        "moved_bytes": 0,
        "restored_bytes": 0,
        "status": NOT_TRIED,
        "why": TRACED,
    }
    ((dispatch,),) = (cell["dispatches"] for cell in report["cells"])
    assert (dispatch["proof"]["status"], dispatch["proof"]["knobs"]) == (
        REFUTED,
        ["vector_reduction"],
    )
    refuted = "different code, and a different configuration that does not make it"
    assert dispatch["note"].startswith(
        f"{refuted}; MLIR code generation carries 99 % of the change; "
    )
    comment = (tmp_path / "out" / "comment.md").read_text(encoding="utf-8")
    assert "different code that the configuration does not make" in comment


def test_the_configuration_is_refuted(
    setups: dict[str, CompileSetup], stages: dict[str, AloneStage]
) -> None:
    rows = {}
    texts = {}
    for release, stage in stages.items():
        (cell,) = stage.side.cells
        rows[release] = row_of(stage)
        texts[release] = stage.texts(setups[release], cell, CONFIGURATIONS)[
            rows[release].executable
        ]
    pair = ConfiguredPair(rows[BASE], rows[HEAD], texts[BASE], texts[HEAD])
    (cell,) = stages[HEAD].side.cells
    proof = prove_configuration(setups[HEAD], stages[HEAD].argv(cell), pair)
    assert (proof.status, proof.knobs) == (REFUTED, ("vector_reduction",))
    assert knob_proof_words(proof).startswith("refuted: with base's value ")


def test_a_changed_default_that_carries_a_part_is_refuted(
    setups: dict[str, CompileSetup], stages: dict[str, AloneStage]
) -> None:
    sides = {}
    for release, stage in stages.items():
        (cell,) = stage.side.cells
        sides[release] = BuildSide(
            setups[release], stage.argv(cell), stage.source, row_of(stage)
        )
    found = base_default(sides[BASE], DefaultChange(REASSOCIATE, None, "false"))
    assert found.value == "true"
    known = DefaultChange(REASSOCIATE, found.value, "false")
    proof = prove_default(sides[BASE], sides[HEAD], known)
    assert (proof.status, proof.knobs) == (REFUTED, (f"{REASSOCIATE}=true",))
    assert proof.restored_bytes and proof.restored_bytes > 1000  # of more than 20,000
