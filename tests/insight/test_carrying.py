"""What experiments on a dispatch make of its cause.

The sizes are those of real dispatches from 3.10.0 to 3.13.0.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from matched_cells import KEY, Row, made
from replacing import replace
from strategies import plain_snapshot
from trace_factory import trace

from bot.core.delta import diff
from bot.core.explanation import DispatchDelta, RootCause
from bot.core.ladder import Climb, Ladder, Rung, carried
from bot.core.proof import NOT_TRIED, PARTLY, PROVED, REFUTED, KnobProof
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_json, snapshot_lines
from bot.core.trace import LLVM
from bot.errors import InputError
from bot.explain.carrying import OTHER_SOURCE, claim_of
from bot.explain.cause_words import described
from bot.explain.clusters import NOT_BY_VALUES, Phases
from bot.explain.explanations import explanations
from bot.explain.root_causes import root_causes

COMPILER = "0" * 64
BASE_KNOBS = "Expert | tile = [8], vector = [4]"
HEAD_KNOBS = "Expert | tile = [16], vector = [2]"
TILE_AND_VECTOR = "tile 8 → 16, with vector"


def ladder(sizes: tuple[int | None, ...], knobs: KnobProof | None = None) -> Ladder:
    """Make a ladder of the sizes of head, source, configured, translated, optimized, control and base."""
    rungs = [Rung(why="it failed") if size is None else Rung(size) for size in sizes]
    head, source, configured, translated, optimized, control, base = rungs
    climb = Climb(
        source=source,
        configured=configured,
        translated=translated,
        optimized=optimized,
        control=control,
    )
    return Ladder(
        head_code="h".ljust(16, "-"),
        base_code="b".ljust(16, "-"),
        base_compiler=COMPILER,
        head=head,
        base=base,
        climb=climb,
        knobs=knobs,
    )


def side(
    code: str, code_bytes: int | None, knobs: str, experiments: Ladder | None = None
) -> Snapshot:
    cell = made(
        Row("s", code=code, code_bytes=code_bytes, strategy=knobs), artifact=code
    )
    name = cell.dispatches[0].name
    cell = replace(cell, ladders={name: experiments} if experiments else {})
    snapshot = plain_snapshot(
        cells=(cell,), models={KEY.model: "m"}, targets={KEY.target: "llvm-cpu"}
    )
    return replace(snapshot, compiler=replace(snapshot.compiler, digest=COMPILER))


def explained(
    experiments: Ladder, base_knobs: str = BASE_KNOBS, head_knobs: str = HEAD_KNOBS
) -> tuple[DispatchDelta, RootCause]:
    base = side("b", experiments.base.code_bytes, base_knobs)
    head = side("h", experiments.head.code_bytes, head_knobs, experiments)
    assert from_json(b"".join(snapshot_lines(head))) == head
    deltas = diff(base, head)
    explanation_by_key = explanations(base, head, deltas)
    (delta,) = explanation_by_key[KEY].dispatches
    (root,) = (
        root for root in root_causes(deltas, explanation_by_key) if root.dispatches
    )
    assert root.cause == delta.cause
    return delta, root


def tried(
    moved_bytes: int,
    restored_bytes: int,
    status: str,
    knobs: tuple[str, ...] = ("tile", "vector"),
) -> KnobProof:
    return KnobProof(
        status,
        moved_bytes=moved_bytes,
        bytes_after=1,
        restored_bytes=restored_bytes,
        knobs=knobs,
    )


UNTRIED = KnobProof(
    NOT_TRIED, "base's values do not fit into head: the operation has other loops"
)


def test_a_proved_setting_is_the_cause_and_only_what_is_needed_is_named() -> None:
    proof = tried(12226, 12191, PROVED, knobs=("vector",))
    delta, root = explained(ladder((14419, 14419, 2228, 2228, 2228, 2193, 2193), proof))
    assert (delta.cause, root.what) == ("strategy", "vector 4 → 2")
    assert (root.proof.status, root.proof.restored_bytes, root.proof.moved_bytes) == (
        PROVED,
        12191,
        12226,
    )
    assert root.proof.members == 1


def test_a_refuted_setting_is_no_cause_and_the_phase_that_carries_the_bytes_is() -> (
    None
):
    """3.10.0 → 3.11.0: `vector_reduction` was named for 24,064 B that MLIR code generation makes."""
    proof = tried(24064, -42, REFUTED)
    delta, root = explained(
        ladder((32013, 32013, 32055, 7949, 7949, 7949, 7949), proof)
    )
    assert (delta.cause, root.what) == ("codegen", "MLIR code generation changed")
    assert root.parts == {"mlir": 24106}
    assert (root.proof.status, root.proof.restored_bytes) == (PROVED, 24106)
    meaning = "different code, and a different configuration that does not make it"
    assert delta.note == f"{meaning}; MLIR code generation carries 100 % of the change"


def test_a_code_generator_is_named_where_a_tile_size_differs_too() -> None:
    """3.11.0 → 3.13.0, aarch64: `cache_parallel` was named for 2,720 B."""
    proof = tried(3668 - 6388, 168, REFUTED)
    delta, root = explained(ladder((3668, 3668, 3836, 3836, 3832, 6388, 6388), proof))
    assert (delta.cause, root.what) == ("codegen", "LLVM's code generator changed")
    assert root.proof.status == PROVED


def test_a_mixture_has_no_single_name() -> None:
    delta, root = explained(
        ladder((27604, 27604, 27604, 28716, 28712, 26004, 26004)),
        BASE_KNOBS,
        BASE_KNOBS,
    )
    assert delta.cause == "codegen"
    assert (
        root.what
        == "several phases: MLIR code generation −1,112 B, code generator +2,708 B"
    )
    assert root.parts == {"mlir": -1112, "code_generator": 2708}
    assert root.proof.status == PARTLY


def test_phases_whose_parts_cancel_out_are_named_without_numbers() -> None:
    phases = Phases(("mlir", "code_generator"))
    words = described("codegen", phases, Counter(), {})
    assert words == "several phases: MLIR code generation, code generator"


def test_a_pass_of_llvm_is_not_named_where_its_code_generator_carries_most() -> None:
    """3.11.0 → 3.12.0, riscv64: `VectorCombinePass` was named for 8,576 B, of which it made 28 %."""
    experiments = ladder((59072, 59072, 59072, 59072, 56671, 50496, 50496))
    sides = {
        "base": side("b", 50496, BASE_KNOBS),
        "head": side("h", 59072, BASE_KNOBS, experiments),
    }
    shuffles = {"base": 10, "head": 132}
    for label, count in shuffles.items():
        passes = trace(
            ("EarlyCSEPass", {"load": 900}, LLVM),
            ("GVNPass", {"load": 890}, LLVM),
            ("VectorCombinePass", {"load": 890, "shufflevector": count}, LLVM),
        )
        (cell,) = sides[label].cells
        cell = replace(cell, traces={cell.dispatches[0].name: passes})
        sides[label] = replace(sides[label], cells=(cell,))
    deltas = diff(sides["base"], sides["head"])
    causes = explanations(sides["base"], sides["head"], deltas)
    (delta,) = causes[KEY].dispatches
    (root,) = (root for root in root_causes(deltas, causes) if root.dispatches)
    assert (delta.passed, root.passed, root.proof.status) == (None, None, PARTLY)
    parts = "LLVM optimizer +2,401 B, code generator +6,175 B"
    assert root.what == f"several phases: {parts}"
    traced = "traced: the sides diverge after VectorCombinePass"
    assert delta.untraced == f"{traced}, but no single phase carries the change"


def test_another_source_does_not_prove_why_regions_are_formed_otherwise() -> None:
    """`--iree-opt-level=O3`: "proved: with base's value 100 % …", with neither a value nor a pass."""
    experiments = ladder((14419, 2193, 2193, 2193, 2193, 2193, 2193))
    delta, _ = explained(experiments, BASE_KNOBS, BASE_KNOBS)
    claim = claim_of(replace(delta, cause="fusion"))
    assert (claim.status, claim.restored_bytes) == (NOT_TRIED, None)
    assert claim.why == OTHER_SOURCE


def test_a_setting_that_makes_a_part_stays_with_its_share() -> None:
    """3.11.0 → 3.13.0, rocm: 63 % of 1,360 B."""
    proof = tried(1360, 860, PARTLY)
    delta, root = explained(ladder((4060, 4060, 3200, 3200, 3200, 2700, 2700), proof))
    assert (delta.cause, root.what, root.proof.status) == (
        "strategy",
        TILE_AND_VECTOR,
        PARTLY,
    )


def test_a_configuration_that_cannot_be_transplanted_is_proved_as_a_whole() -> None:
    delta, root = explained(ladder((2324, 2324, 484, 484, 488, 488, 488), UNTRIED))
    assert (delta.cause, root.what, root.proof.status) == (
        "strategy",
        TILE_AND_VECTOR,
        PROVED,
    )
    assert root.proof.restored_bytes == 1840


def test_values_that_are_refuted_are_not_named_where_the_configured_ir_does_it() -> (
    None
):
    proof = tried(2324 - 488, 0, REFUTED)
    delta, root = explained(ladder((2324, 2324, 484, 484, 488, 488, 488), proof))
    assert (delta.cause, root.what, root.proof.status) == (
        "strategy",
        NOT_BY_VALUES,
        PROVED,
    )


def test_without_experiments_the_first_difference_is_named_and_nothing_is_proved() -> (
    None
):
    base = side("b", 60, BASE_KNOBS)
    head = side("h", 100, HEAD_KNOBS)
    deltas = diff(base, head)
    (root,) = root_causes(deltas, explanations(base, head, deltas))
    assert (root.cause, root.what) == ("strategy", TILE_AND_VECTOR)
    assert (root.proof.status, root.proof.members, root.parts) == (NOT_TRIED, 0, {})


def test_an_experiment_of_another_base_says_nothing() -> None:
    experiments = ladder(
        (32013, 32013, 32055, 7949, 7949, 7949, 7949), tried(24064, -42, REFUTED)
    )
    base = side("o", 7949, BASE_KNOBS)
    head = side("h", 32013, HEAD_KNOBS, experiments)
    (explanation,) = explanations(base, head, diff(base, head)).values()
    (delta,) = explanation.dispatches
    assert (delta.cause, delta.attribution, delta.proof) == ("strategy", None, None)


def test_an_older_llvm_leaves_its_phases_together() -> None:
    carrier = carried(
        {
            "source": 0,
            "configuration": 0,
            "mlir": 4,
            "llvm_optimizer": None,
            "code_generator": None,
        },
        100,
    )
    assert carrier is not None
    assert (carrier.phase, carrier.parts) == ("back_end", {"back_end": 96})
    assert (
        carried({"source": 0, "configuration": None, "mlir": 4, "back_end": 9}, 100)
        is None
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "proved"}, "the status is not the one of these bytes"),
        ({"status": "certain"}, "the status is not the one of these bytes"),
        ({"restored_bytes": None}, "an experiment without a result was not tried"),
        ({"moved_bytes": 0}, "an experiment has a change to restore"),
        ({"knobs": ["k" * 201]}, "length <= 200"),
    ],
)
def test_a_forged_proof_is_refused(change: dict[str, object], reason: str) -> None:
    proof = tried(24064, -42, REFUTED)
    head = side(
        "h",
        32013,
        HEAD_KNOBS,
        ladder((32013, 32013, 32055, 7949, 7949, 7949, 7949), proof),
    )
    document = json.loads(b"".join(snapshot_lines(head)))
    (experiments,) = document["cells"][0]["ladders"].values()
    experiments["knobs"] |= change
    with pytest.raises(InputError, match=r"\S") as refused:
        from_json(json.dumps(document))
    assert reason in str(refused.value)


def test_a_proof_of_another_change_is_not_shown() -> None:
    proof = tried(9, 9, PROVED)
    base = side("b", 7949, BASE_KNOBS)
    head = side(
        "h",
        32013,
        HEAD_KNOBS,
        ladder((32013, 32013, 32055, 7949, 7949, 7949, 7949), proof),
    )
    (explanation,) = explanations(base, head, diff(base, head)).values()
    assert explanation.dispatches[0].proof is None
