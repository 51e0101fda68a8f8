"""The whole story of every changed cell of two snapshots: which cells have one, and that its parts fit each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matched_cells import Row, cells, made, whole
from replacing import replace
from strategies import plain_snapshot

from bot.core.delta import diff
from bot.core.explanation import UNATTRIBUTED, Explanation
from bot.core.snapshot import Cell, CellKey, Failure, Outcome, Snapshot
from bot.explain.explanations import explanations

ROWS = (
    Row("s", code="s", places=("net.layer.0.dense", "net.layer.1.dense")),
    Row("t", kind="conv", code="t", places=("net.head",)),
)


def _side(*found: Cell, digest: str = "1") -> Snapshot:
    plain = plain_snapshot()
    models = {cell.key.model: digest for cell in found}
    return replace(plain, cells=tuple(found), models=models, targets={cell.key.target: "llvm-cpu" for cell in found})


def _told(base: Snapshot, head: Snapshot, sections: tuple[tuple[str, str], ...] = ()) -> dict[CellKey, Explanation]:
    return explanations(base, head, diff(base, head), sections)


def test_a_changed_cell_has_cause_dispatches_components_and_tree() -> None:
    base = made(*ROWS)
    head = made(replace(ROWS[0], code="d", code_bytes=300), ROWS[1], artifact="b")
    [(key, told)] = _told(_side(base), _side(head)).items()
    assert key == base.key
    assert (told.cause, [row.component for row in told.dispatches]) == ("codegen", ["layer.*.dense"])
    assert [part.name for part in told.components] == ["layer.*.dense"]
    assert {part.name for part in told.tree} == {"layer.*.dense", "head"}
    assert told.component == "layer.*.dense" and told.components[0].change("code_bytes") == 200


def test_sections_of_the_configuration_name_the_components() -> None:
    head = made(replace(ROWS[0], code="d", code_bytes=300), ROWS[1], artifact="b")
    [told] = _told(_side(made(*ROWS)), _side(head), (("dense layers", "*.layer.*"),)).values()
    assert told.dispatches[0].component == "dense layers" == told.component


def test_another_model_text_is_an_input_change() -> None:
    base = made(*ROWS)
    head = made(
        *ROWS, Row("new", code="n"), artifact="b", phases={"input": whole("j"), "global-optimization": whole("g")}
    )
    [told] = _told(_side(base), _side(head, digest="2")).values()
    assert (told.cause, told.why, len(told.dispatches)) == ("input", "the model itself changed", 1)


def test_cells_that_are_the_same_or_not_measured_have_no_story() -> None:
    base = made(*ROWS)
    assert _told(_side(base), _side(base)) == {}
    failed = Cell(base.key, "failed")
    assert _told(_side(base), _side(failed)) == _told(_side(failed), _side(base)) == {}
    assert _told(_side(base), _side()) == {}


def test_a_cell_that_head_fails_has_the_compiler_s_words() -> None:
    base = made(*ROWS)
    words = "x.py:4:0: error: 'func.func' op failed to distribute"
    failed = Cell(base.key, "failed", failure=Failure("compile", words, 1))
    [told] = _told(_side(base), _side(failed)).values()
    why = "head fails in code generation at x.py:4: “'func.func' op failed to distribute”"
    assert told == Explanation(None, "code", why)
    assert _told(_side(failed), _side(base)) == _told(_side(failed), _side(failed)) == {}
    other = replace(failed, failure=Failure("compile", "x.py:9:0: error: failed to bufferize op", 1))
    [both] = _told(_side(failed), _side(other)).values()
    assert both.why.startswith(
        "base fails too, with a different message: head says “failed to bufferize op”, base says "
    )


@given(cells(), cells())
def test_swapping_the_sides_negates_and_parts_sum_to_the_whole(left: Cell, right: Cell) -> None:
    right = replace(right, artifact_digest="z" * 64)
    there, back = (_told(*pair) for pair in ((_side(left), _side(right)), (_side(right), _side(left))))
    assert there.keys() == back.keys()
    for key, told in there.items():
        mirrored = {part.name: part for part in back[key].components}
        for part in told.components:
            assert part.change("code_bytes") == -mirrored[part.name].change("code_bytes")
        assert len(told.dispatches) == len(back[key].dispatches)
        assert (told.unchanged, told.rebased) == (back[key].unchanged, back[key].rebased)
        moved = sum(
            (d.head.sites or 0 if d.head else 0) - (d.base.sites or 0 if d.base else 0) for d in told.dispatches
        )
        assert moved == sum(d.sites or 0 for d in right.dispatches) - sum(d.sites or 0 for d in left.dispatches)
        assert all(row.component for row in told.dispatches) and UNATTRIBUTED not in [told.cause]


# A compiler that does not repeat itself.

FOUR_PARTS = ("executable_bytes", "vm_bytes", "rodata_bytes", "unattributed_bytes")
MIRRORED = {"dedup-lost": "dedup-won", "dedup-won": "dedup-lost"}
COMMAND = "iree-compile - --iree-hal-target-backends=llvm-cpu -o bert.vmfb < bert.mlir"


def _sized(cell: Cell, host_bytes: int, **metrics: int) -> Cell:
    """With an artifact of its code and a host program."""
    code_bytes = sum(row.code_bytes or 0 for row in cell.dispatches)
    parts = dict(zip(FOUR_PARTS, (code_bytes, host_bytes, 0, 0), strict=True))
    return replace(cell, metrics={"artifact_bytes": code_bytes + host_bytes, **parts, **metrics})


def _again(cell: Cell, status: str = "ok", **metrics: int | None) -> Cell:
    """The cell whose command gave other bytes the second time, and other values of some metrics."""
    other = Outcome(status, {**cell.metrics, **metrics}, f"{cell.artifact_digest}"[1:] + "9")
    return replace(cell, compiles=2, others=(other,))


BASE = _sized(made(*ROWS), 50, stack_alloca_bytes=64)
HEAD = _sized(made(replace(ROWS[0], code="d", code_bytes=300), ROWS[1], artifact="b"), 60, stack_alloca_bytes=96)


@given(cells(), cells(), st.integers(0, 2), st.integers(0, 2))
def test_other_bytes_of_the_same_numbers_are_told_as_those_of_the_first_compile(
    left: Cell, right: Cell, left_host: int, right_host: int
) -> None:
    left, right = _sized(left, left_host), replace(_sized(right, right_host), artifact_digest="z" * 64)
    plain = _told(_side(left), _side(right))
    there, back = _told(_side(_again(left)), _side(right)), _told(_side(right), _side(_again(left)))
    if left.metrics == right.metrics:  # the compiler's own doing, as far as anybody knows
        assert there == back == {}
        return
    assert there == {key: replace(told, first_compiles=True) for key, told in plain.items()} != {}
    for key, told in there.items():
        swapped = {MIRRORED.get(cause, cause): -size for cause, size in told.waterfall.items()}
        assert back[key].waterfall == swapped
        sizes = [cell.value("artifact_bytes") or 0 for cell in (left, right)]
        assert sum(swapped.values()) == sizes[0] - sizes[1]


@pytest.mark.parametrize(("base", "head"), [(_again(BASE), HEAD), (BASE, _again(HEAD)), (_again(BASE), _again(HEAD))])
def test_either_side_may_give_other_bytes(base: Cell, head: Cell) -> None:
    [told] = _told(_side(base), _side(head)).values()
    assert told.first_compiles and (told.cause, told.waterfall) == ("codegen", {"codegen": 200, "host": 10})


@pytest.mark.parametrize(
    "base",
    [
        _again(BASE, artifact_bytes=1_000),
        _again(BASE, stack_alloca_bytes=128),
        _again(BASE, stack_alloca_bytes=None),
        _again(BASE, "over-stack-limit"),
        replace(BASE, compiles=2, others=(Outcome("failed"),)),
    ],
    ids=["artifact", "another metric", "a metric that is not known", "over the gate", "a failure"],
)
def test_where_the_numbers_do_not_repeat_there_is_no_cause(base: Cell) -> None:
    assert _told(_side(base), _side(HEAD)) == _told(_side(HEAD), _side(base)) == {}


def test_time_need_not_repeat() -> None:
    assert _told(_side(_again(BASE, compile_cpu_ms=5)), _side(HEAD))


def test_one_compiler_has_no_cause_for_what_it_does_not_repeat() -> None:
    base, head = (replace(cell, command=COMMAND) for cell in (_again(BASE), _again(HEAD)))
    assert [delta.state for delta in diff(_side(base), _side(head))] == ["same"]
    assert _told(_side(base), _side(head)) == {}
    twin = replace(base, artifact_digest="8" * 64)
    assert _told(_side(base), _side(twin)) == _told(_side(twin), _side(base)) == {}


def test_an_artifact_that_both_sides_gave_is_no_change() -> None:
    twin = replace(BASE, artifact_digest=_again(BASE).others[0].artifact_digest)
    assert [delta.state for delta in diff(_side(_again(BASE)), _side(twin))] == ["same"]
    assert _told(_side(_again(BASE)), _side(twin)) == {}


def test_a_cell_that_head_fails_is_not_told_as_parts_of_a_compile() -> None:
    words = "x.py:4:0: error: 'func.func' op failed to distribute"
    failed = Cell(BASE.key, "failed", failure=Failure("compile", words, 1))
    [told] = _told(_side(_again(BASE)), _side(failed)).values()
    assert (told.phase, told.first_compiles) == ("code", False)
    assert told == _told(_side(BASE), _side(failed))[BASE.key]
