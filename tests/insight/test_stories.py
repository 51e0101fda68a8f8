"""The story of every changed or broken cell: which cells have one, that its parts fit, and that its waterfall sums."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matched_cells import Row, cells, made, whole
from replacing import replace
from strategies import plain_snapshot

from bot.config.configuration import load_config
from bot.core.delta import diff
from bot.core.explanation import (
    CAUSES,
    MIXED,
    UNKNOWN,
    DispatchDelta,
    Explanation,
    moved_bytes,
)
from bot.core.metrics import part_words
from bot.core.report import Baseline
from bot.core.snapshot import Cell, CellKey, CompileOutcome, Dispatch, Failure, Snapshot
from bot.explain.explanations import explanations
from bot.explain.waterfalls import headlined
from bot.show.comment import render_comment
from bot.show.why import dispatch_line
from bot.study.comparison import reported

ROWS = (
    Row("s", code="s", places=("net.layer.0.dense", "net.layer.1.dense")),
    Row("t", kind="conv", code="t", places=("net.head",)),
)


def _side(*drawn_cells: Cell, digest: str = "1") -> Snapshot:
    plain = plain_snapshot()
    models = {cell.key.model: digest for cell in drawn_cells}
    return replace(
        plain,
        cells=tuple(drawn_cells),
        models=models,
        targets={cell.key.target: "llvm-cpu" for cell in drawn_cells},
    )


def _told(
    base: Snapshot, head: Snapshot, sections: tuple[tuple[str, str], ...] = ()
) -> dict[CellKey, Explanation]:
    return explanations(base, head, diff(base, head), sections)


def test_a_changed_cell_has_cause_dispatches_components_and_tree() -> None:
    base = made(*ROWS)
    head = made(replace(ROWS[0], code="d", code_bytes=300), ROWS[1], artifact="b")
    [(key, explanation)] = _told(_side(base), _side(head)).items()
    assert key == base.key
    assert (explanation.cause, [row.component for row in explanation.dispatches]) == (
        "codegen",
        ["layer.*.dense"],
    )
    assert [part.name for part in explanation.components] == ["layer.*.dense"]
    assert {part.name for part in explanation.tree} == {"layer.*.dense", "head"}
    assert (
        explanation.component == "layer.*.dense"
        and explanation.components[0].change("code_bytes") == 200
    )


def test_sections_of_the_configuration_name_the_components() -> None:
    head = made(replace(ROWS[0], code="d", code_bytes=300), ROWS[1], artifact="b")
    [explanation] = _told(
        _side(made(*ROWS)), _side(head), (("dense layers", "*.layer.*"),)
    ).values()
    assert (
        explanation.dispatches[0].component == "dense layers" == explanation.component
    )


def test_another_model_text_is_an_input_change() -> None:
    base = made(*ROWS)
    head = made(
        *ROWS,
        Row("new", code="n"),
        artifact="b",
        phases={"input": whole("j"), "global-optimization": whole("g")},
    )
    [explanation] = _told(_side(base), _side(head, digest="2")).values()
    assert (explanation.cause, explanation.why, len(explanation.dispatches)) == (
        "input",
        "the model itself changed",
        1,
    )


def test_cells_that_are_the_same_or_not_measured_have_no_story() -> None:
    base = made(*ROWS)
    assert _told(_side(base), _side(base)) == {}
    failed = Cell(
        base.model,
        base.target,
        "failed",
        failure=Failure("compile", "x.py:4:0: error: failed to distribute", 1),
    )
    for cell in (base, _again(base), failed):
        assert (
            _told(_side(cell), _side(failed)) == _told(_side(failed), _side(cell)) == {}
        )
    assert _told(_side(base), _side()) == {}


@pytest.mark.parametrize(
    "field",
    [
        "registers",
        "spill_bytes",
        "sass_bytes",
        "vgprs",
        "sgprs",
        "agprs",
        "vgpr_spills",
        "sgpr_spills",
    ],
)
@pytest.mark.parametrize("code", ["s", None])
def test_more_registers_or_spills_of_a_dispatch_are_a_change_of_it(
    field: str, code: str | None
) -> None:
    """Whether its code is the same or could not be compared."""

    def side(value: int | None, artifact: str) -> Snapshot:
        cell = made(replace(ROWS[0], code=code), ROWS[1], artifact=artifact)
        first, *other_dispatches = cell.dispatches
        rows = (replace(first, **{field: value}), *other_dispatches)
        return _side(replace(cell, dispatches=rows, assembler="ptxas 12.9"))

    [explanation] = _told(side(8, "a"), side(999, "b")).values()
    [changed] = explanation.dispatches
    assert (getattr(changed.base, field), getattr(changed.head, field)) == (8, 999)
    assert explanation.unchanged == 1
    texts = [
        number.text
        for number in dispatch_line(changed).numbers.values()
        if number.differs
    ]
    assert texts == ["8 → 999 B" if field.endswith("_bytes") else "8 → 999"]
    for before, after in ((8, 8), (None, 999), (8, None)):
        assert [
            explanation.dispatches
            for explanation in _told(side(before, "a"), side(after, "b")).values()
        ] == [()], (
            before,
            after,
        )


# A compiler that does not repeat itself.

MIRRORED = {"dedup-lost": "dedup-won", "dedup-won": "dedup-lost"}


def _sized(cell: Cell, host_bytes: int, **metrics: int) -> Cell:
    """With an artifact of its code and a host program."""
    code_bytes = sum(row.code_bytes or 0 for row in cell.dispatches)
    parts = {"executables/text": code_bytes, "vm": host_bytes}
    return replace(
        cell,
        metrics={"artifact_bytes": code_bytes + host_bytes, **metrics},
        parts=parts,
    )


def _again(cell: Cell) -> Cell:
    """The cell whose command gave other bytes the second time."""
    second_outcome = CompileOutcome(
        "ok", cell.metrics, f"{cell.artifact_digest}"[1:] + "9"
    )
    return replace(cell, compiles=2, others=(second_outcome,))


BASE = _sized(made(*ROWS), 50, stack_alloca_bytes=64)
HEAD = _sized(
    made(replace(ROWS[0], code="d", code_bytes=300), ROWS[1], artifact="b"),
    60,
    stack_alloca_bytes=96,
)


@given(cells(), cells(), st.integers(0, 2), st.integers(0, 2))
def test_other_bytes_of_the_same_numbers_are_reported_as_those_of_the_first_compile(
    base_cell: Cell, head_cell: Cell, left_host: int, right_host: int
) -> None:
    base_cell = _sized(base_cell, left_host)
    head_cell = replace(_sized(head_cell, right_host), artifact_digest="z" * 64)
    plain = _told(_side(base_cell), _side(head_cell))
    forward = _told(_side(_again(base_cell)), _side(head_cell))
    back = _told(_side(head_cell), _side(_again(base_cell)))
    # the compiler's own doing, as far as anybody knows
    if base_cell.metrics == head_cell.metrics:
        assert forward == back == {}
        return
    assert (
        forward
        == {
            key: replace(explanation, first_compiles=True)
            for key, explanation in plain.items()
        }
        != {}
    )
    for key, explanation in forward.items():
        swapped = {
            MIRRORED.get(cause, cause): -size
            for cause, size in explanation.waterfall.items()
        }
        assert back[key].waterfall == swapped
        sizes = [cell.value("artifact_bytes") or 0 for cell in (base_cell, head_cell)]
        assert sum(swapped.values()) == sizes[0] - sizes[1]


@pytest.mark.parametrize(
    ("base", "head"),
    [(_again(BASE), HEAD), (BASE, _again(HEAD)), (_again(BASE), _again(HEAD))],
)
def test_either_side_may_give_other_bytes(base: Cell, head: Cell) -> None:
    [explanation] = _told(_side(base), _side(head)).values()
    assert explanation.first_compiles and (
        explanation.cause,
        explanation.waterfall,
    ) == (
        "codegen",
        {"codegen": 200, "host": 10},
    )


VULKAN = CellKey("bert", "vulkan-spirv")
PARTS = (
    "vm",
    "constants",
    "tables",
    "executables/text",
    "executables/types",
    "executables/tables",
)
_METRICS = {
    "vm": "vm_bytes",
    "constants": "rodata_bytes",
    "tables": "unattributed_bytes",
}
sizes = st.integers(0, 1 << 20)


def made_of(parts: dict[str, int], *two: Dispatch) -> Cell:
    """A measured cell whose artifact consists of these parts."""
    metrics = {metric: parts.get(part, 0) for part, metric in _METRICS.items()}
    metrics["artifact_bytes"] = sum(parts.values())
    metrics["executable_bytes"] = sum(
        size for part, size in parts.items() if part.startswith("executables/")
    )
    return Cell(VULKAN.model, VULKAN.target, "ok", metrics, two, parts=parts)


def row(
    name: str, code_bytes: int | None, executable_bytes: int | None = None
) -> Dispatch:
    return Dispatch(
        name, name, code_bytes=code_bytes, executable_bytes=executable_bytes
    )


two = st.builds(row, st.just("d"), st.none() | sizes, st.none() | sizes)
deltas = st.builds(
    DispatchDelta,
    two,
    two,
    st.just("same-source"),
    st.sampled_from(
        [
            None,
            "input",
            "fusion",
            "dedup-lost",
            "dedup-won",
            "strategy",
            "codegen",
            "packaging",
        ]
    ),
)
lone = st.builds(
    DispatchDelta,
    st.none(),
    two,
    st.just("added"),
    st.sampled_from([None, "fusion", "dedup-lost"]),
)
gone = st.builds(
    DispatchDelta,
    two,
    st.none(),
    st.just("removed"),
    st.sampled_from([None, "fusion", "dedup-won"]),
)
parts_of = st.dictionaries(
    st.sampled_from(PARTS), sizes.filter(bool), max_size=len(PARTS)
)


def _sides(
    dispatch_deltas: list[DispatchDelta],
    base_parts: dict[str, int],
    head_parts: dict[str, int],
) -> tuple[Cell, Cell]:
    base = made_of(base_parts, *(delta.base for delta in dispatch_deltas if delta.base))
    return base, made_of(
        head_parts, *(delta.head for delta in dispatch_deltas if delta.head)
    )


def _headlined(
    dispatch_deltas: list[DispatchDelta], base: Cell, head: Cell, renamed: int = 0
) -> Explanation:
    return headlined(
        Explanation(None, None, "", tuple(dispatch_deltas), renamed_bytes=renamed),
        base,
        head,
    )


@given(
    st.lists(deltas | lone | gone, max_size=5), parts_of, parts_of, st.booleans(), sizes
)
def test_it_sums_to_the_artifacts_change_and_swapping_the_sides_negates(
    dispatch_deltas: list[DispatchDelta],
    base_parts: dict[str, int],
    head_parts: dict[str, int],
    is_unread: bool,
    renamed: int,
) -> None:
    base, head = _sides(dispatch_deltas, base_parts, head_parts)
    base = replace(base, parts={}) if is_unread else base
    result = _headlined(dispatch_deltas, base, head, renamed)
    falls = result.waterfall
    whole = sum(map(abs, result.waterfall.values()))
    assert sum(falls.values()) == sum(head_parts.values()) - sum(base_parts.values())
    assert set(falls) <= {*CAUSES, UNKNOWN} and 0 not in falls.values()
    if result.cause == MIXED:
        assert all(2 * abs(size) < whole for size in falls.values())
    elif falls:
        size = abs(falls[result.cause or UNKNOWN])
        assert size == max(map(abs, falls.values())) and 2 * size >= whole
    swapped = [
        replace(delta, base=delta.head, head=delta.base) for delta in dispatch_deltas
    ]
    back = _headlined(swapped, head, base, -renamed)
    assert (back.cause, back.waterfall) == (
        result.cause,
        {cause: -size for cause, size in falls.items()},
    )
    assert _headlined([], head, head).waterfall == {}


def test_of_an_edited_model_that_was_not_read_the_parts_are_named() -> None:
    base = made_of({"executables/text": 100, "constants": 1000}, row("a", 100))
    head = made_of({"executables/text": 100, "constants": 5096}, row("a", 100))
    unread = Explanation(None, None, "the program's IR was not read on head")
    result = headlined(unread, base, head, only_model=True)
    assert (result.cause, result.waterfall) == ("input", {"input": 4096})
    assert result.why.endswith(" +4,096 B") and "dispatches have" not in result.why


def test_symbol_tables_and_code_are_told_apart() -> None:
    grown = DispatchDelta(
        row("conv", 1000), row("conv", 6164), "same-source", "strategy"
    )
    base = made_of(
        {"executables/text": 2000, "executables/symbols": 30000}, row("conv", 1000)
    )
    head = made_of(
        {"executables/text": 7164, "executables/symbols": 5440}, row("conv", 6164)
    )
    result = headlined(
        Explanation("strategy", "configuration", "1 of 1", (grown,)), base, head
    )
    assert result.waterfall == {"strategy": 5164, "container": -24560}
    assert (result.cause, result.phase) == ("container", "configuration")
    assert result.why == "symbol tables −24,560 B"


def test_an_executable_that_one_side_alone_has_counts_whole_with_its_dispatch() -> None:
    new = DispatchDelta(
        None, row("conv", 700, executable_bytes=1000), "added", "fusion"
    )
    base = made_of({"executables/text": 100, "executables/types": 10})
    head = made_of(
        {"executables/text": 800, "executables/types": 310}, row("conv", 700, 1000)
    )
    assert (
        _headlined([new], base, head).waterfall
        == {"fusion": moved_bytes(new)}
        == {"fusion": 1000}
    )


def test_what_is_not_known_is_no_cause_and_names_of_kernels_belong_to_the_container() -> (
    None
):
    base, head = (
        replace(
            made_of({"executables/text": size}),
            metrics={"artifact_bytes": size},
            parts={},
        )
        for size in (100, 300)
    )
    result = headlined(Explanation("strategy", "configuration", "…"), base, head)
    assert (result.cause, result.waterfall) == (None, {UNKNOWN: 200})
    assert result.why == "unknown +200 B could not be separated"
    base = made_of({"executables/text": 100}, row("a", None))
    head = made_of({"executables/text": 150}, row("a", None))
    unsized = DispatchDelta(
        base.dispatches[0], head.dispatches[0], "same-source", "codegen"
    )
    assert _headlined([unsized], base, head).waterfall == {UNKNOWN: 50}
    base = made_of({"executables/text": 100}, row("a", 100))
    head = made_of({"executables/text": 101}, row("a", 101))
    assert _headlined([], base, head, renamed=1).waterfall == {"container": 1}


def test_the_headline_has_the_words_of_the_largest_part() -> None:
    base = made_of({"vm": 100, "tables": 100, "executables/types": 100})
    head = made_of(
        {"vm": 400, "tables": 120, "executables/types": 350, "executables/text": 280},
        row("a", 280),
    )
    new = DispatchDelta(None, head.dispatches[0], "added", "fusion")
    result = headlined(Explanation("fusion", None, "…", (new,)), base, head)
    assert (result.cause, result.why) == (
        MIXED,
        "no cause has half of the change: host program +300 B, fusion +280 B",
    )
    base = made_of({"vm": 100, "tables": 50})
    head = made_of({"vm": 300, "tables": 90, "executables/text": 80}, row("tanh", 80))
    new = DispatchDelta(None, row("tanh", 80), "added", "input")
    result = headlined(
        Explanation("input", "input", "the model itself changed", (new,)),
        base,
        head,
        True,
    )
    assert (result.cause, result.why, result.waterfall) == (
        "input",
        "the model itself changed",
        {"input": 320},
    )
    # the first phase's
    none = headlined(
        Explanation("packaging", "layout", "but its layout differs"), base, base
    )
    assert (none.cause, none.why, none.waterfall) == (
        "packaging",
        "but its layout differs",
        {},
    )
    unsized = replace(base, metrics={**base.metrics, "artifact_bytes": None}, parts={})
    # of a size that is not known there is no change
    for sides in (
        (unsized, head),
        (head, unsized),
    ):
        unknown = headlined(
            Explanation("packaging", "layout", "but its layout differs"), *sides
        )
        assert (unknown.cause, unknown.waterfall, unknown.parts) == (
            "packaging",
            {},
            (),
        )


@pytest.mark.parametrize(
    "name",
    ["vm", "tables", "executables/symbols", "executables/annotations", "executables/x"],
)
def test_parts_have_words(name: str) -> None:
    assert "/" not in part_words(name)


PART_CAUSES = {
    "vm": ("host", "VM bytecode"),
    "constants": ("host", "constants of the host program"),
    "tables": ("packaging", "tables and padding of the artifact"),
    "executables/tables": ("container", "names, tables and padding of the executables"),
    "executables/unread": ("container", "executables that could not be read"),
    "executables/rodata": ("container", "read-only data"),
    "executables/header": ("container", "headers of the containers"),
    "executables/symbols": ("container", "symbol tables"),
}
"""Part of an artifact → the cause that it counts under, and what a comment calls it."""


@pytest.mark.parametrize("part", PART_CAUSES)
def test_each_part_of_an_artifact_has_its_own_cause_in_report_and_comment(
    part: str,
) -> None:
    cause, phrase = PART_CAUSES[part]
    same = row("a", 100)
    base = replace(
        made_of({"executables/text": 100, part: 1_000}, same), artifact_digest="a" * 64
    )
    head = replace(
        made_of({"executables/text": 100, part: 9_000}, same), artifact_digest="b" * 64
    )
    report = reported(
        load_config(models=False),
        _side(base),
        _side(head),
        Baseline("snapshot base.json"),
    )
    [explanation] = report.explanations.values()
    assert (explanation.cause, explanation.waterfall, explanation.why) == (
        cause,
        {cause: 8_000},
        f"{phrase} +8,000 B",
    )
    [root] = report.root_causes
    assert (root.cause, root.what, root.total.net_bytes) == (cause, phrase, 8_000)
    assert phrase in render_comment(report)
