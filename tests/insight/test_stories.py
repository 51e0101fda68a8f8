"""The whole story of every changed cell of two snapshots: which cells have one, and that its parts fit each other."""

from __future__ import annotations

from hypothesis import given
from matched_cells import Row, cells, made, whole
from replacing import replace
from strategies import plain_snapshot

from bot.core.rules.delta import diff
from bot.core.values.explanation import UNATTRIBUTED, Explanation
from bot.core.values.snapshot import Cell, CellKey, Failure, Snapshot
from bot.insight.explanations import explanations

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


def test_a_cell_that_got_over_the_stack_gate_is_explained() -> None:
    head = replace(
        made(replace(ROWS[0], code="d", stack_bytes=40_000), ROWS[1], artifact="b"), status="over-stack-limit"
    )
    [told] = _told(_side(made(*ROWS)), _side(head)).values()
    assert told.cause == "codegen" and told.components[0].change("stack_bytes") == 40_000 - 16


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
