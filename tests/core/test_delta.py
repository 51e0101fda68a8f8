"""bot.core.delta: the table of states, and the arithmetic that a reader trusts at a glance."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from replacing import replace
from strategies import plain_snapshot, snapshots

from bot.core.comparable import ASSEMBLED, FIRST, TOO_OLD, comparable, other_version
from bot.core.delta import STATES, CellDelta, MetricDelta, diff, exact_changes
from bot.core.metrics import METRIC_IDS
from bot.core.policy import judge
from bot.core.rules import LevelSpec, Ratio, Rule
from bot.core.snapshot import (
    STATUSES,
    Cell,
    CellKey,
    CompileOutcome,
    Dispatch,
    Failure,
    Snapshot,
)

KEY = CellKey("bert", "vmvx")
COLUMNS = (*STATUSES, "absent", "lost")
# Rows: base; columns: head. `absent` was never planned on that side, `lost` was,
# without result.
TABLE = """
                   ok            over-stack-limit  failed        timeout       unsupported  absent      lost
ok                 same          newly-broken      newly-broken  unmeasured    unmeasured   removed     unmeasured
over-stack-limit   fixed         same              newly-broken  unmeasured    unmeasured   removed     unmeasured
failed             fixed         broken            broken        unmeasured    unmeasured   removed     unmeasured
timeout            unmeasured    unmeasured        unmeasured    unmeasured    unmeasured   removed     unmeasured
unsupported        new           newly-broken      newly-broken  unmeasured    unmeasured   unmeasured  unmeasured
absent             new           newly-broken      newly-broken  unmeasured    unmeasured   -           unmeasured
lost               unmeasured    unmeasured        unmeasured    unmeasured    unmeasured   unmeasured  unmeasured
"""
_HEAD, *_ROWS = (line.split() for line in TABLE.strip().splitlines())
EXPECTED = {
    (row[0], head): state
    for row in _ROWS
    for head, state in zip(_HEAD, row[1:], strict=True)
}
MIRRORED = {
    "new": "removed",
    "removed": "new",
    "newly-broken": "fixed",
    "fixed": "newly-broken",
}


def side(status: str) -> Snapshot:
    """A side that has the cell bert on vmvx with this status, lost it, or never had the model.

    And a cell beside it.
    """
    unrelated = ("other", "vmvx", "ok")
    if status == "absent":
        return plain_snapshot(unrelated)
    if status == "lost":
        return plain_snapshot(unrelated, models={"bert": "m" * 64, "other": "m" * 64})
    return plain_snapshot(("bert", "vmvx", status), unrelated)


def only(base: Snapshot, head: Snapshot) -> CellDelta:
    """What became of the cell bert on vmvx."""
    (delta,) = (candidate for candidate in diff(base, head) if candidate.key == KEY)
    return delta


def with_cell(**changes: Any) -> Snapshot:
    """The one-cell snapshot with other values in its cell."""
    snapshot = plain_snapshot(("bert", "vmvx", "ok"))
    return replace(snapshot, cells=(replace(snapshot.cells[0], **changes),))


def elsewhere(snapshot: Snapshot) -> Snapshot:
    """The same of another compiler: with one compiler two artifacts are noise."""
    return replace(snapshot, compiler=replace(snapshot.compiler, digest="f" * 64))


def state_of(base: Snapshot, head: Snapshot) -> str:
    return only(base, elsewhere(head)).state


# The states.


def test_the_table_is_complete_and_the_states_are_those_of_the_contract() -> None:
    assert EXPECTED.keys() == set(product(COLUMNS, COLUMNS))
    contract = {
        "same",
        "changed",
        "new",
        "removed",
        "newly-broken",
        "fixed",
        "broken",
        "unmeasured",
    }
    assert set(STATES) == contract
    assert set(EXPECTED.values()) == contract - {"changed"} | {"-"}


# Refusals are not symmetric: head's are loud whatever base was, and base's are over.
LOUD = {
    ("over-stack-limit", "failed"),
    *product(("absent", "unsupported"), ("over-stack-limit", "failed")),
    ("absent", "timeout"),
    ("unsupported", "ok"),
}
EXCUSED = {
    ("unsupported", "unsupported"),
    ("unsupported", "absent"),
    ("absent", "unsupported"),
}


@pytest.mark.parametrize(("base", "head"), EXPECTED, ids=lambda word: word)
def test_the_statuses_of_both_sides_decide_the_state(base: str, head: str) -> None:
    state = EXPECTED[base, head]
    back = EXPECTED[head, base]
    if state == "-":
        assert not [delta for delta in diff(side(base), side(head)) if delta.key == KEY]
        return
    assert state_of(side(base), side(head)) == state
    assert only(side(base), side(head)).excused == ((base, head) in EXCUSED), (
        "only what nobody can compile"
    )
    is_loud = (base, head) in LOUD or (head, base) in LOUD
    assert (state == MIRRORED.get(back, back)) is not is_loud


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ("ok", "unsupported", "bert is refused"),
        ("unsupported", "unsupported", "bert is refused"),
        ("unsupported", "absent", "bert is refused"),
        ("ok", "lost", "not measured on head"),
        ("lost", "failed", "not measured on base"),
        ("lost", "lost", "not measured on either side"),
        ("ok", "timeout", "timed out on head: bert is refused"),
        ("timeout", "failed", "timed out on base: bert is refused"),
        ("timeout", "timeout", "timed out on both sides: bert is refused"),
        ("timeout", "lost", "not measured on head"),
        ("absent", "timeout", "timed out on head: bert is refused"),
        ("absent", "lost", "not measured on head"),
        ("unsupported", "timeout", "timed out on head: bert is refused"),
        ("unsupported", "lost", "not measured on head"),
        ("timeout", "unsupported", "bert is refused"),
    ],
)
def test_an_unmeasured_cell_says_why(base: str, head: str, reason: str) -> None:
    delta = only(side(base), side(head))
    assert (delta.state, delta.reason) == ("unmeasured", reason)
    young = [
        with_cell(status="unsupported", failure=Failure("target", word))
        for word in ("old", "young")
    ]
    assert only(*young).reason == "young", "what the head says comes first"


@pytest.mark.parametrize("status", ["ok", "over-stack-limit"])
@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "same"),
        ({"artifact_digest": None}, "same"),
        ({"artifact_digest": "e" * 64}, "changed"),
        ({"metrics": {"artifact_bytes": 1001, "executables": 2}}, "changed"),
        ({"metrics": {"artifact_bytes": 1000}}, "changed"),
        ({"metrics": {"artifact_bytes": 1000, "executables": None}}, "changed"),
        (
            {"metrics": {"artifact_bytes": 1000, "executables": 2, "vm_bytes": 0}},
            "changed",
        ),
        (
            {"metrics": {"artifact_bytes": 1000, "executables": 2, "vm_bytes": None}},
            "same",
        ),
        (
            {
                "metrics": {
                    "artifact_bytes": 1000,
                    "executables": 2,
                    "compile_cpu_ms": 5,
                }
            },
            "same",
        ),
        ({"command": "another", "reasons": {"*": "another"}}, "same"),
    ],
)
def test_what_counts_as_a_change(
    status: str, changes: dict[str, object], state: str
) -> None:
    base = with_cell(status=status)
    head = with_cell(status=status, **changes)
    assert state_of(base, head) == state_of(head, base) == state


@pytest.mark.parametrize(
    ("base", "head", "identical"),
    [
        ("d", "d", True),
        ("d", "e", False),
        ("d", None, None),
        (None, "d", None),
        (None, None, None),
    ],
)
def test_identical_artifacts_are_said_to_be_and_unknown_ones_are_not(
    base: str | None, head: str | None, identical: bool | None
) -> None:
    assert (
        only(
            with_cell(artifact_digest=base), elsewhere(with_cell(artifact_digest=head))
        ).identical
        is identical
    )


# A compiler that does not repeat itself.


def gave(*sizes: int | None, status: str = "ok") -> dict[str, object]:
    """The fields of a cell whose command gave artifacts of these sizes, or failed (None)."""
    outcomes = [
        (
            CompileOutcome("failed")
            if size is None
            else CompileOutcome(status, {"artifact_bytes": size}, f"{size:064x}")
        )
        for size in sizes
    ]
    first = outcomes[0]
    return {
        "status": first.status,
        "metrics": first.metrics,
        "artifact_digest": first.artifact_digest,
        "others": tuple(outcomes[1:]),
        "failure": Failure("compile", "no") if first.status == "failed" else None,
        "compiles": len(sizes),
    }


def compared(base: dict[str, object], head: dict[str, object]) -> CellDelta:
    return only(with_cell(**base), elsewhere(with_cell(**head)))


@pytest.mark.parametrize(
    ("base", "head", "state", "change", "change_bytes"),
    [
        ((246, 310), (310,), "same", None, 0),
        ((246,), (310, 246), "same", None, 0),
        ((246, 310), (310, 246), "same", 0, -64),
        ((246, 310), (250, 300), "changed", None, -60),
        ((246, 310), (320, 400), "changed", 10, 10),
        ((310, 246), (200, 100), "changed", -46, -210),
        ((1_000_000,), (10_000_000, 10_000_016), "changed", 9_000_000, 9_000_000),
        ((310,), (None, 310), "same", 0, 0),
        ((310,), (None, 320), "changed", 10, 10),
        ((310, None), (None,), "broken", None, None),
        ((None, 310), (310,), "same", 0, 0),
    ],
)
def test_what_does_not_repeat_itself_is_compared_as_the_pair_that_differs_least(
    base: tuple[int | None, ...],
    head: tuple[int | None, ...],
    state: str,
    change: int | None,
    change_bytes: int | None,
) -> None:
    delta = compared(gave(*base), gave(*head))
    assert (delta.state, delta.metrics["artifact_bytes"].change) == (state, change)
    assert delta.metrics["artifact_bytes"].least_alarming.change == change_bytes
    assert delta.unstable and delta.noise.startswith(
        "non-deterministic: the same command gives on "
    )
    assert delta.base and delta.metrics["artifact_bytes"].base == delta.base.value(
        "artifact_bytes"
    )


def test_noise_names_all_that_was_seen_on_each_side() -> None:
    assert (
        compared(gave(246_296, 309_960), gave(320_000, None)).noise
        == "non-deterministic: the same command gives on base 246,296 B or 309,960 B,"
        " on head 320,000 B or a failure"
    )
    two_artifacts = with_cell(
        artifact_digest="a" * 64,
        others=(CompileOutcome("ok", {"artifact_bytes": 1000}, "b" * 64),),
    )
    same_size = only(two_artifacts, with_cell(artifact_digest="c" * 64)).noise
    assert (
        same_size
        == "non-deterministic: the same command gives on base 2 artifacts of 1,000 B"
    )
    assert compared(gave(310, 246), gave(None)).state == "newly-broken", (
        "a refusal that always comes is not hidden"
    )
    assert (
        compared(gave(310, 246), gave(310, status="over-stack-limit")).state
        == "newly-broken"
    )


@pytest.mark.parametrize(
    ("metrics", "status", "repeat"),
    [
        ({}, "ok", True),
        ({"compile_cpu_ms": 9}, "ok", True),
        ({"artifact_bytes": 1001}, "ok", False),
        ({"executables": 3}, "ok", False),
        ({"executables": None}, "ok", False),
        ({"vm_bytes": 4}, "ok", False),
        ({}, "over-stack-limit", False),
    ],
)
def test_other_bytes_of_the_same_numbers_are_compared_as_the_first_compiles(
    metrics: dict[str, int | None], status: str, repeat: bool
) -> None:
    first_metrics = {"artifact_bytes": 1000, "executables": 2}
    outcomes = tuple(
        CompileOutcome(status, {**first_metrics, **metrics}, digest * 64)
        for digest in "ab"
    )
    base = with_cell(
        metrics=first_metrics,
        dispatches=(Dispatch("e", "f"),),
        artifact_digest="c" * 64,
        others=outcomes,
    )
    head = with_cell(
        metrics={**first_metrics, "executables": 4}, artifact_digest="d" * 64
    )
    for sides in ((base, head), (head, base)):
        delta = only(sides[0], elsewhere(sides[1]))
        assert delta.unstable and (delta.numbers_repeat, delta.explainable) == (
            repeat,
            repeat,
        )
        assert not repeat or (delta.base, delta.head) == (
            sides[0].cells[0],
            sides[1].cells[0],
        )


def test_other_bytes_alone_may_be_the_compiler_s_own_doing() -> None:
    same_metrics = {"artifact_bytes": 1000}
    second_outcome = (CompileOutcome("ok", same_metrics, "b" * 64),)
    base = with_cell(
        metrics=same_metrics, artifact_digest="a" * 64, others=second_outcome
    )
    head = with_cell(metrics=same_metrics, artifact_digest="c" * 64)
    noisy = only(base, elsewhere(head))
    stable = only(head, elsewhere(with_cell(metrics=same_metrics)))
    assert (noisy.state, noisy.numbers_repeat, noisy.explainable) == (
        "changed",
        True,
        False,
    )
    assert (stable.state, stable.numbers_repeat, stable.explainable) == (
        "changed",
        False,
        True,
    )


def test_one_compiler_with_two_artifacts_for_one_command_is_proof_without_another_compile() -> (
    None
):
    command = (
        "iree-compile - --iree-hal-target-backends=vmvx -o bert.vmfb < {}/bert.mlir"
    )
    base, head = (
        with_cell(**gave(size), command=command.format(size)) for size in (246, 310)
    )
    delta = only(base, head)
    assert (delta.state, delta.unstable) == ("same", True)
    assert (
        delta.noise
        == "non-deterministic: the same command gives on base 246 B or 310 B, on head"
        " 310 B or 246 B"
    )
    for head_cell in (
        elsewhere(head),
        replace(head, models={**head.models, "bert": "0" * 64}),
        with_cell(**gave(310), command=command.replace("vmvx", "rocm")),
        with_cell(**gave(310), command="of which nothing is known"),
    ):
        assert (only(base, head_cell).state, only(base, head_cell).noise) == (
            "changed",
            "",
        )


def swapped(metric: MetricDelta) -> MetricDelta:
    return MetricDelta(metric.id, metric.head, metric.base)


@given(snapshots(has_others=True), snapshots(has_others=True))
def test_with_noise_too_swapping_negates_and_nothing_grows_less_than_what_is_judged(
    base: Snapshot, head: Snapshot
) -> None:
    for forward, backward in zip(diff(base, head), diff(head, base), strict=True):
        for id_, metric in forward.metrics.items():
            assert backward.metrics[id_] == swapped(metric) or forward.unstable
            if forward.unstable and metric.change is not None:
                least_change = metric.least_alarming.change
                assert least_change is not None and least_change <= metric.change


# What two sides made in different ways is not held against each other.

MADE = {"registers_max": 32, "spill_bytes": 0, "sass_bytes": 900}
OLD = {"artifact_bytes": 1000, "executables": 2}
RULES = (Rule("all", ("*",), fail=LevelSpec(relative=Ratio(Fraction(0), "0%"))),)


def made(by: str | None, **metrics: int | None) -> Snapshot:
    """The one-cell snapshot whose machine code that assembler made."""
    values = {**OLD, **(MADE if by else dict.fromkeys(MADE)), **metrics}
    return with_cell(
        metrics=values, assembler=by, dispatches=(Dispatch("e", "e_0", sass_bytes=1),)
    )


def test_only_machine_code_of_one_assembler_is_compared() -> None:
    delta = only(made("ptxas 1 -O3"), made("ptxas 1 -O3", sass_bytes=901))
    assert delta.metrics["sass_bytes"].change == 1 and delta.state == "changed"
    assert [finding.metric for finding in judge([delta], RULES).findings] == [
        "sass_bytes"
    ]
    for base_assembler, head_assembler in (
        ("ptxas 1 -O3", "ptxas 2 -O3"),
        (None, "ptxas 2 -O3"),
        ("ptxas 1 -O3", None),
    ):
        delta = only(
            made(base_assembler), made(head_assembler, sass_bytes=5_000, spill_bytes=99)
        )
        assert delta.state == "same" and judge([delta], RULES).findings == ()
        for cell in (delta.base, delta.head):
            assert cell is not None and {cell.value(name) for name in ASSEMBLED} == {
                None
            }
            assert all(
                "not compared: base has " in cell.reasons[name] for name in ASSEMBLED
            )
            assert cell.dispatches[0].sass_bytes is None
    (cell,), (other_cell,) = made("ptxas 1 -O3").cells, made("ptxas 2 -O3").cells
    base, _ = comparable(
        replace(cell, others=(CompileOutcome("ok", {**OLD, **MADE}, "e" * 64),)),
        other_cell,
    )
    assert base is not None and base.others[0].metrics["sass_bytes"] is None
    failed = replace(cell, status="failed", metrics={})
    assert comparable(failed, cell) == (failed, cell) and comparable(None, cell) == (
        None,
        cell,
    )


def test_a_metric_of_a_later_version_did_not_come_or_go_and_the_report_says_so() -> (
    None
):
    assert set(METRIC_IDS) > FIRST
    old = with_cell(metrics=OLD)
    new = with_cell(metrics={**OLD, "vgprs_max": 42})
    for base, head, lacking in ((old, new, "base"), (new, old, "head")):
        delta = only(base, head)
        assert (delta.metrics["vgprs_max"].base, delta.metrics["vgprs_max"].head) == (
            None,
            None,
        )
        assert delta.state == "same" and judge([delta], RULES).findings == ()
        assert delta.head is not None and delta.head.reasons["vgprs_max"] == TOO_OLD
        message = (
            f"not compared: {lacking} was measured by another version of code-size-bot,"
            " without vgprs_max"
        )
        assert other_version(base, head) == message
    assert other_version(new, new) == other_version(replace(new, cells=()), new) == ""
    lost = only(new, with_cell(metrics={**OLD, "vgprs_max": None}))
    assert lost.state == "changed" and lost.metrics["vgprs_max"].base == 42, (
        "a value that is lost still counts"
    )


# Invariants.


@given(snapshots())
def test_a_snapshot_does_not_differ_from_itself(snapshot: Snapshot) -> None:
    for delta in diff(snapshot, snapshot):
        assert delta.state in {"same", "broken", "unmeasured"}
        assert not [
            metric
            for metric in delta.metrics.values()
            if metric.change not in (None, 0)
        ]
        assert not exact_changes(delta.metrics.values())


@given(snapshots(), snapshots())
def test_every_cell_of_both_sides_is_there_once_with_its_sides_and_every_metric(
    base: Snapshot, head: Snapshot
) -> None:
    base_cells, head_cells = (
        {cell.key: cell for cell in snapshot.cells} for snapshot in (base, head)
    )
    deltas = diff(base, head)
    keys = [delta.key for delta in deltas]
    assert keys == sorted(set(keys)) and base_cells.keys() | head_cells.keys() <= set(
        keys
    )
    assert {
        CellKey(m, t)
        for snapshot in (base, head)
        for m in snapshot.models
        for t in snapshot.targets
    } <= set(keys)
    for delta in deltas:
        assert not delta.reason or delta.state == "unmeasured"
        assert (delta.base, delta.head) == comparable(
            base_cells.get(delta.key), head_cells.get(delta.key)
        )
        for metric in delta.metrics.values():
            assert metric.base == (delta.base.value(metric.id) if delta.base else None)
            assert metric.head == (delta.head.value(metric.id) if delta.head else None)
        if delta.base or delta.head:
            assert tuple(delta.metrics) == METRIC_IDS


@given(snapshots(), snapshots())
def test_deltas_sum_to_head_minus_base(base: Snapshot, head: Snapshot) -> None:
    def total(cells: list[Cell], id_: str) -> int:
        return sum(cell.value(id_) or 0 for cell in cells)

    for id_ in METRIC_IDS:
        compared_deltas = [
            d
            for d in diff(base, head)
            if id_ in d.metrics and d.metrics[id_].change is not None
        ]
        heads = [d.head for d in compared_deltas if d.head]
        bases = [d.base for d in compared_deltas if d.base]
        assert sum(d.metrics[id_].change or 0 for d in compared_deltas) == total(
            heads, id_
        ) - total(bases, id_)


@given(snapshots(), snapshots())
def test_swapping_the_sides_negates(base: Snapshot, head: Snapshot) -> None:
    forward_deltas = diff(base, head)
    backward_deltas = diff(head, base)
    assert [delta.key for delta in forward_deltas] == [
        delta.key for delta in backward_deltas
    ]
    for forward, backward in zip(forward_deltas, backward_deltas, strict=True):
        assert forward.identical == backward.identical
        for state in ("same", "changed"):
            assert (forward.state == state) == (backward.state == state)
        for id_, metric in forward.metrics.items():
            assert backward.metrics[id_] == swapped(metric)
            assert backward.metrics[id_].change == (
                None if metric.change is None else -metric.change
            )


# One metric.


def test_change_and_ratio() -> None:
    rows: list[tuple[int | None, int | None, int | None, float | None]] = [
        *(
            (50_438, 83_990, 33_552, 33_552 / 50_438),
            (100, 50, -50, -0.5),
            (7, 7, 0, 0.0),
            (7, 0, -7, -1.0),
        ),
        *(
            (0, 7, 7, None),
            (0, 0, 0, None),
            (None, 7, None, None),
            (7, None, None, None),
            (None, None, None, None),
        ),
    ]
    for base, head, change, ratio in rows:
        metric = MetricDelta("artifact_bytes", base, head)
        assert (metric.change, metric.ratio) == (change, ratio)
