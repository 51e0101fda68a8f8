"""A configuration is proved or refuted by compiles with real releases.

The rules of it by arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from alone_stage import AloneStage, compile_setup, measured
from hypothesis import given
from hypothesis import strategies as some
from places import FIXTURES
from product_model import PRODUCT

from bot.compiler.compiling import CompileSetup
from bot.core.proof import (
    NOT_TRIED,
    PARTLY,
    PROVED,
    REFUTED,
    KnobProof,
    joint_proof,
    status_of,
)
from bot.core.snapshot import Cell, Dispatch, Failure
from bot.readers.configurations import (
    NotTransplantable,
    configurations,
    differing_knobs,
    transplanted,
)
from bot.study.compiling_alone import CONFIGURATIONS, SOURCES, AloneCode, compile_from
from bot.study.ladder import LadderSide
from bot.study.proving import ConfiguredPair, proof_of, prove_configuration, prove_with

BASE = "3.11.0"
HEAD = "3.13.0"
TARGETS = (
    "llvm-cpu-x86_64, llvm-cpu-aarch64, llvm-cpu-riscv64, cuda, rocm, vulkan-spirv,"
    " metal-spirv, vmvx"
)
FLAGS = {
    "aarch64": (
        "--iree-hal-target-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu",
        "--iree-llvmcpu-target-cpu=generic",
        "--iree-llvmcpu-debug-symbols=false",
    ),
    "rocm": ("--iree-hal-target-backends=rocm", "--iree-rocm-target=gfx942"),
    "cuda": ("--iree-hal-target-backends=cuda", "--iree-cuda-target=sm_80"),
}
compiled = pytest.mark.compiler
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def setups() -> Iterator[dict[str, CompileSetup]]:
    """Release → how it compiles."""
    with compile_setup(BASE) as base, compile_setup(HEAD) as head:
        yield {BASE: base, HEAD: head}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AloneStage]:
    """Release → builds of a matrix product."""
    return {
        release: measured(tmp_path_factory.mktemp("side"), release, PRODUCT, TARGETS)
        for release in (BASE, HEAD)
    }


def dispatch(setup: CompileSetup, flags: tuple[str, ...], text: str) -> Dispatch:
    """The only dispatch of a configured executable, as this release compiles it."""
    heading = re.search(r"func\.func @(\S+)\(", text)
    assert heading
    code = compile_from(
        setup, argv=flags, text=text, phase=CONFIGURATIONS, entry_point=heading[1]
    )
    assert not isinstance(code, Failure), code
    return Dispatch("e", heading[1], code_bytes=code.code_bytes, code=code.code)


def proof_of_fixture(
    setups: dict[str, CompileSetup], name: str, base: str = BASE, head: str = HEAD
) -> KnobProof:
    flags = FLAGS[name.partition("-")[0]]
    texts = {
        release: (
            (FIXTURES / "configured" / f"{name}.{release}.mlir").read_text(
                encoding="utf-8"
            )
        )
        for release in (base, head)
    }
    rows = {
        release: dispatch(setups[release], flags, text)
        for release, text in texts.items()
    }
    pair = ConfiguredPair(rows[base], rows[head], texts[base], texts[head])
    return prove_configuration(setups[head], flags, pair)


def x86_cell(stage: AloneStage) -> Cell:
    """Return the one build of a stage on x86-64."""
    (cell,) = (
        cell for cell in stage.side.cells if cell.key.target == "llvm-cpu-x86_64"
    )
    return cell


@compiled
@slow
def test_a_tile_size_that_carries_the_growth_is_proved(
    setups: dict[str, CompileSetup], stages: dict[str, AloneStage]
) -> None:
    """A matrix product on x86-64: `vector_common_parallel` 1 → 8 makes it more than ten times as large."""
    rows = {}
    texts = {}
    for release, stage in stages.items():
        cell = x86_cell(stage)
        (rows[release],) = cell.dispatches
        texts[release] = stage.texts(setups[release], cell, CONFIGURATIONS)[
            rows[release].executable
        ]
    argv = stages[HEAD].argv(x86_cell(stages[HEAD]))
    proof = prove_configuration(
        setups[HEAD], argv, ConfiguredPair(rows[BASE], rows[HEAD], *texts.values())
    )
    assert (proof.status, proof.knobs, proof.compiles) == (
        PROVED,
        ("vector_common_parallel",),
        2,
    )
    base_bytes = rows[BASE].code_bytes
    head_bytes = rows[HEAD].code_bytes
    assert base_bytes and head_bytes and proof.bytes_after
    assert proof.moved_bytes == head_bytes - base_bytes
    assert proof.restored_bytes == head_bytes - proof.bytes_after
    assert head_bytes > 10 * base_bytes
    # The same from the source of the executable.
    sides = []
    for release, stage in stages.items():
        cell = x86_cell(stage)
        source = stage.texts(setups[release], cell, SOURCES)[rows[release].executable]
        sides.append(
            LadderSide(setups[release], stage.argv(cell), rows[release], source)
        )
    assert proof_of(sides[0], sides[1]) == proof
    lost = replace(sides[1], source=Failure("read", "no source"))
    assert (
        proof_of(sides[0], lost).why
        == "the configuration is not known on head: no source"
    )
    assert proof_of(sides[0], sides[0]).why == "the code is the same on both sides"
    swapped = ConfiguredPair(rows[HEAD], rows[BASE], texts[HEAD], texts[BASE])
    back = prove_configuration(setups[BASE], argv, swapped)
    assert (back.knobs, back.moved_bytes) == (proof.knobs, base_bytes - head_bytes)
    # the other compiler makes more of the same value
    assert back.status in (
        PROVED,
        PARTLY,
    )


@compiled
@slow
def test_tile_sizes_that_differ_and_do_not_carry_the_bytes_are_refuted(
    setups: dict[str, CompileSetup],
) -> None:
    """The tile sizes differ, but LLVM's code generator carries the bytes."""
    proof = proof_of_fixture(setups, "aarch64-tiles")
    assert (proof.status, proof.knobs) == (REFUTED, ("cache_parallel", "distribution"))
    assert proof.moved_bytes == -2720
    back = proof_of_fixture(setups, "aarch64-tiles", HEAD, BASE)
    assert (back.status, back.moved_bytes) == (REFUTED, 2720)
    assert back.share is not None and back.share < 0


@compiled
@slow
@pytest.mark.parametrize(
    ("name", "needed", "other_knobs"),
    [
        ("rocm-tiles", ("padding", "promote_operands", "workgroup"), ("subgroup",)),
        ("cuda-threads", ("subgroup_basis", "thread"), ("workgroup_size",)),
    ],
)
def test_the_smallest_set_of_knobs_is_found(
    setups: dict[str, CompileSetup],
    name: str,
    needed: tuple[str, ...],
    other_knobs: tuple[str, ...],
) -> None:
    proof = proof_of_fixture(setups, name)
    assert (proof.status, proof.knobs, proof.others) == (PROVED, needed, other_knobs)
    assert proof.compiles == 2 + len(needed + other_knobs)


@compiled
@slow
def test_tile_sizes_of_other_loops_are_not_tried(
    setups: dict[str, CompileSetup],
) -> None:
    proof = proof_of_fixture(setups, "aarch64-loops")
    assert (proof.status, proof.compiles, proof.restored_bytes) == (NOT_TRIED, 0, None)
    assert (
        proof.why
        == "base's values do not fit into head: `linalg.fill` has other loops:"
        " `vector_common_parallel` has 3 values on base and 4 on head"
    )


@compiled
@slow
def test_every_configuration_of_every_target_is_read_and_written_as_it_was(
    setups: dict[str, CompileSetup], stages: dict[str, AloneStage]
) -> None:
    texts = dict[str, dict[str, str]]()
    for release, stage in stages.items():
        for cell in stage.side.cells:
            (text,) = stage.texts(setups[release], cell, CONFIGURATIONS).values()
            all_configurations = configurations(text)
            assert (
                len(all_configurations)
                == text.count("lowering_config = #")
                + text.count("translation_info = #")
                > 1
            )
            assert all(
                text[configuration.start : configuration.end]
                == configuration.written(configuration.values)
                for configuration in all_configurations
            )
            texts.setdefault(cell.key.target, {})[release] = text
    assert len(texts) == 8
    turned = set[str]()
    for target, pair in texts.items():
        knobs = differing_knobs(pair[BASE], pair[HEAD])
        assert not isinstance(knobs, NotTransplantable), (target, knobs)
        moved = transplanted(pair[HEAD], pair[BASE], knobs)
        assert isinstance(moved, str)
        assert differing_knobs(pair[BASE], moved) == (), target
        assert transplanted(moved, pair[HEAD], knobs) == pair[HEAD], target
        turned.update(knobs)
    assert turned


@compiled
def test_values_that_head_refuses_are_not_tried(
    setups: dict[str, CompileSetup],
) -> None:
    head = (FIXTURES / "configured" / f"aarch64-tiles.{HEAD}.mlir").read_text(
        encoding="utf-8"
    )
    row = dispatch(setups[HEAD], FLAGS["aarch64"], head)
    base = head.replace("vector_common_parallel = [", "vector_no_such = [")
    assert base != head and row.code_bytes
    larger = Dispatch("e", row.name, code_bytes=row.code_bytes + 1000)
    proof = prove_configuration(
        setups[HEAD], FLAGS["aarch64"], ConfiguredPair(larger, row, base, head)
    )
    assert (proof.status, proof.compiles, proof.restored_bytes) == (NOT_TRIED, 2, None)
    assert proof.why.startswith("head does not compile with base's values: ")


# These tests replace the compiler by arithmetic: head has 10,000 B, and base's value of a
# knob removes that knob's effect.

KNOBS = ("a", "b", "c", "d")
EFFECTS = some.dictionaries(
    some.sampled_from(KNOBS), some.integers(-600, 600), min_size=1
)
HEAD_BYTES = 10_000


def text_with(values: dict[str, int]) -> str:
    body = ", ".join(f"{knob} = {value}" for knob, value in values.items())
    return f"x.y {{lowering_config = #iree_cpu.lowering_config<{body}>}}"


def proof_by_arithmetic(
    effects: dict[str, int], moved_bytes: int, most_compiles: int = 10
) -> KnobProof:
    """The proof where base's value of a knob takes its effect away from head's 10,000 B."""

    def compile_head(text: str) -> AloneCode | Failure:
        (configuration,) = configurations(text)
        gone = sum(
            effects[knob]
            for knob, value in configuration.values.items()
            if value == "1"
        )
        return AloneCode(HEAD_BYTES - gone, None)

    pair = ConfiguredPair(
        Dispatch("e", "f", code_bytes=HEAD_BYTES - moved_bytes),
        Dispatch("e", "f", code_bytes=HEAD_BYTES),
        text_with(dict.fromkeys(effects, 1)),
        text_with(dict.fromkeys(effects, 2)),
    )
    return prove_with(compile_head, pair, most_compiles)


@given(EFFECTS, some.integers(-1000, 1000).filter(bool))
def test_the_rules_hold_for_any_effects(
    effects: dict[str, int], moved_bytes: int
) -> None:
    proof = proof_by_arithmetic(effects, moved_bytes)
    whole = sum(effects.values())
    restored = sum(effects[knob] for knob in proof.knobs)
    assert (proof.restored_bytes, proof.bytes_after) == (
        restored,
        HEAD_BYTES - restored,
    )
    assert {*proof.knobs, *proof.others} == {*effects} and len(
        proof.knobs + proof.others
    ) == len(effects)
    assert proof.compiles <= 2 + len(effects)
    sign = 1 if moved_bytes > 0 else -1
    little = max(8, abs(moved_bytes) * 2 // 100)
    assert sign * restored >= sign * whole - little
    assert abs(moved_bytes - restored) <= abs(moved_bytes - whole) + little
    if status_of(whole, moved_bytes) in (PROVED, REFUTED):
        assert proof.status == status_of(whole, moved_bytes)
    if proof.status == REFUTED:
        assert (set(proof.knobs), proof.compiles) == (set(effects), 2)
    opposite = proof_by_arithmetic(
        {knob: -effect for knob, effect in effects.items()}, -moved_bytes
    )
    assert (opposite.status, opposite.knobs, opposite.restored_bytes) == (
        proof.status,
        proof.knobs,
        -restored,
    )


@pytest.mark.parametrize(
    ("effects", "status", "knobs"),
    [
        ({"a": 1000}, PROVED, "a"),
        ({"a": 900}, PROVED, "a"),
        ({"a": 899}, PARTLY, "a"),
        ({"a": 1100}, PROVED, "a"),
        ({"a": 1101}, PARTLY, "a"),
        ({"a": 100}, PARTLY, "a"),
        ({"a": 99}, REFUTED, "a"),
        ({"a": -1000}, REFUTED, "a"),
        ({"a": 0, "b": 1000, "c": 0}, PROVED, "b"),
        ({"a": 500, "b": 20, "c": 480}, PROVED, "ac"),
        ({"a": 500, "b": 21, "c": 479}, PROVED, "abc"),
        # base's whole configuration changes nothing
        (
            {"a": 1000, "b": -1000},
            REFUTED,
            "ab",
        ),
        ({"a": 20, "b": 880}, PROVED, "ab"),  # without `a` it would be proved no longer
    ],
)
def test_shares_and_sets_at_their_limits(
    effects: dict[str, int], status: str, knobs: str
) -> None:
    for sign in (1, -1):
        signed = {knob: sign * effect for knob, effect in effects.items()}
        proof = proof_by_arithmetic(signed, sign * 1000)
        assert (proof.status, "".join(proof.knobs)) == (status, knobs)


def test_the_budget_of_compiles_is_kept() -> None:
    effects = {"a": 0, "b": 0, "c": 1000}
    for most_compiles, knobs in {5: "c", 4: "c", 3: "bc", 2: "abc"}.items():
        proof = proof_by_arithmetic(effects, 1000, most_compiles)
        assert (proof.status, "".join(proof.knobs), proof.compiles) == (
            PROVED,
            knobs,
            min(4, most_compiles),
        )
        assert proof.is_smallest is (knobs == "c")
    untried = proof_by_arithmetic(effects, 1000, 1)
    assert (untried.status, untried.why, untried.compiles) == (
        NOT_TRIED,
        "compile budget used up",
        0,
    )


def test_what_compiles_to_another_size_alone_is_not_tried() -> None:
    pair = ConfiguredPair(
        Dispatch("e", "f", code_bytes=1000),
        Dispatch("e", "f", code_bytes=2000),
        text_with({"a": 1}),
        text_with({"a": 2}),
    )
    proof = prove_with(lambda _: AloneCode(1970, None), pair)
    assert (proof.status, proof.moved_bytes, proof.compiles) == (NOT_TRIED, 1000, 1)
    assert proof.why == "compiled alone, head's code is 1,970 B and not 2,000 B"
    assert prove_with(lambda _: AloneCode(1985, None), pair).status == REFUTED


def test_a_configuration_that_differs_elsewhere_is_not_called_the_same() -> None:
    pair = ConfiguredPair(
        Dispatch("e", "f", code_bytes=1000),
        Dispatch("e", "f", code_bytes=2000),
        "x.y {decomposition_config = {a = 1}}",
        "x.y {decomposition_config = {a = 2}}",
    )
    proof = prove_with(lambda _: AloneCode(2000, None), pair)
    assert (proof.status, proof.compiles) == (NOT_TRIED, 0)
    assert proof.why == "no value of `lowering_config` or `translation_info` differs"


def test_the_proofs_of_a_root_cause_do_not_cancel() -> None:
    def proof(status: str, moved_bytes: int, restored_bytes: int) -> KnobProof:
        return KnobProof(status, moved_bytes=moved_bytes, restored_bytes=restored_bytes)

    grown = proof(PROVED, 1000, 990)
    shrunk = proof(PROVED, -1000, -980)
    joint = joint_proof([grown, shrunk, KnobProof(NOT_TRIED, "why", moved_bytes=9)])
    assert (joint.status, joint.restored_bytes, joint.moved_bytes, joint.members) == (
        PROVED,
        1970,
        2000,
        2,
    )
    # Half of one and one and a half of another are no proof, though their sum is.
    halves = joint_proof([proof(PARTLY, 1000, 500), proof(PARTLY, 1000, 1500)])
    assert (halves.status, halves.restored_bytes, halves.moved_bytes) == (
        PARTLY,
        2000,
        2000,
    )
    assert joint_proof([grown, proof(REFUTED, -1000, 100)]).status == PARTLY
    assert joint_proof([proof(REFUTED, 1000, -5)]).restored_bytes == -5
    assert joint_proof([], "compile budget used up").why == "compile budget used up"
    assert joint_proof([KnobProof(NOT_TRIED, "other loops")]).why == "other loops"
