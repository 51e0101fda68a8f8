"""Edits of models with known answers, and the same with the sides exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase

from hypothesis import given
from replacing import replace
from strategies import snapshots as any_snapshots

from bot.core.baseline import kept
from bot.core.json_text import counts_text
from bot.core.program import Program, Site
from bot.core.snapshot import Cell, CompilerInfo, ModelEdit, Snapshot, SourceInfo
from bot.explain.whole_models import model_edits
from bot.store.entries import pack, unpack

COMPILER = CompilerInfo("3.13.0", "", "c" * 64)
CLASSIFIER = "m.net.classifier"
STEM = "m.net.stem.conv"
PLACES = {CLASSIFIER: 4, STEM: 2, "m.net.layer.0": 3, "m.net.layer.1": 3, "": 5}
NET = Program(
    operations=counts_text({"linalg.generic": 12, "arith.addf": 9, "linalg.matmul": 1}),
    places=PLACES,
    sites=(Site("d", CLASSIFIER), Site("e", STEM)),
)
EDITED = replace(
    NET,
    operations=counts_text(
        {"linalg.generic": 13, "arith.maximumf": 1, "arith.addf": 9, "linalg.matmul": 1}
    ),
    places={**PLACES, CLASSIFIER: 5},
)
CAME = {"arith.maximumf": 1, "linalg.generic": 1}


def read(
    model: str, program: Program | None, target: str = "vmvx", command: str = ""
) -> Cell:
    status = "ok" if program else "failed"
    return Cell(
        model,
        target,
        status,
        program=program,
        command=command or f"iree-compile - < {model}.mlir",
    )


def side(*cells: Cell, compiler: CompilerInfo = COMPILER, **models: str) -> Snapshot:
    return Snapshot(
        compiler,
        SourceInfo(),
        tuple(sorted(cells, key=lambda cell: cell.key)),
        models=models,
    )


NET_BASE = side(read("net", NET), net="1" * 64)
NET_HEAD = side(read("net", EDITED), net="2" * 64)


def only(base: Snapshot, head: Snapshot) -> ModelEdit:
    (edit,) = model_edits(base, head)
    return edit


def test_what_came_is_reported_with_its_place_and_what_went_the_other_way_round() -> (
    None
):
    assert only(NET_BASE, NET_HEAD) == ModelEdit(
        model="net",
        base="1" * 64,
        head="2" * 64,
        operations=CAME,
        components={"classifier": 1},
    )
    back = only(NET_HEAD, NET_BASE)
    assert back.operations == {
        "arith.maximumf": -1,
        "linalg.generic": -1,
    } and back.components == {"classifier": -1}
    assert model_edits(NET_BASE, replace(NET_HEAD, models=NET_BASE.models)) == (), (
        "the text is the same"
    )
    none = only(NET_BASE, replace(NET_BASE, models=NET_HEAD.models))
    assert (none.operations, none.components) == (
        {},
        {},
    ), "an edit of no operation is one all the same"
    stored = unpack(pack(NET_BASE), "stored")
    assert stored == kept(NET_BASE) and only(stored, NET_HEAD) == only(
        NET_BASE, NET_HEAD
    )
    (named,) = model_edits(NET_BASE, NET_HEAD, (("the end", "*.classifier"),))
    assert named.components == {"the end": 1}
    base_side, head_side = (
        replace(side(), models=dict.fromkeys("cab", digit * 64)) for digit in "12"
    )
    assert [edit.model for edit in model_edits(base_side, head_side)] == ["a", "b", "c"]


def test_what_a_side_does_not_say_is_not_known() -> None:
    earlier = replace(NET, operations=None, places={})
    uncounted = replace(EDITED, operations="2 arith.addf")
    for base, head in (
        (None, EDITED),
        (NET, None),
        (earlier, EDITED),
        (NET, uncounted),
    ):
        edit = only(
            side(read("net", base), net="1" * 64), side(read("net", head), net="2" * 64)
        )
        assert (edit.base, edit.head, edit.operations, edit.components) == (
            "1" * 64,
            "2" * 64,
            None,
            None,
        )
    untold = side(read("net", NET))  # which text it measured
    assert model_edits(untold, NET_HEAD) == () == model_edits(NET_HEAD, untold)
    # another compiler may read the same text otherwise
    assert (
        only(
            NET_BASE, replace(NET_HEAD, compiler=replace(COMPILER, digest="d" * 64))
        ).operations
        is None
    )
    unknown = replace(COMPILER, digest="")
    assert (
        only(
            replace(NET_BASE, compiler=unknown), replace(NET_HEAD, compiler=unknown)
        ).operations
        is None
    )


def test_a_model_of_one_side_alone_came_or_went_as_a_whole() -> None:
    """Also between two compilers: there is nothing that they could read differently."""
    without = side(compiler=replace(COMPILER, digest="d" * 64))
    came = only(without, NET_HEAD)
    went = only(NET_HEAD, without)
    assert (came.base, came.head) == (None, "2" * 64) == (went.head, went.base)
    assert came.operations == {
        "arith.addf": 9,
        "arith.maximumf": 1,
        "linalg.generic": 13,
        "linalg.matmul": 1,
    }
    assert came.components == {
        "classifier": 5,
        "layer.*": 6,
        "stem.conv": 2,
        "unattributed": 5,
    }
    assert went.operations == {name: -count for name, count in came.operations.items()}
    assert only(without, side(read("net", None), net="2" * 64)).operations is None


def test_the_programs_are_of_one_target_and_of_one_command_if_there_is_one() -> None:
    """Flags may decide what is read: on `cuda` they changed, and `rocm` is on one side alone."""
    odd = replace(NET, operations="tosa.add 99")
    base = side(
        read("net", odd, "cuda", "with a"),
        read("net", NET, "vmvx"),
        read("net", odd, "rocm"),
        net="1" * 64,
    )
    head = side(
        read("net", EDITED, "cuda", "with b"), read("net", EDITED, "vmvx"), net="2" * 64
    )
    assert only(base, head).operations == CAME
    assert only(side(read("net", NET, "rocm"), net="1" * 64), head).operations is None


def test_places_are_called_what_the_components_of_cells_are_called() -> None:
    """A tree of all places would be cut above `stem.conv`, as there are so many that no dispatch is named after."""
    places = {f"m.net.{letter}.part": 1 for letter in ascii_lowercase}
    edit = only(
        NET_BASE,
        side(
            read("net", replace(NET, places={**PLACES, **places, STEM: 3})),
            net="2" * 64,
        ),
    )
    assert edit.components == {**dict.fromkeys(ascii_lowercase, 1), "stem.conv": 1}


def negated(changes: Mapping[str, int] | None) -> dict[str, int] | None:
    return (
        None if changes is None else {name: -change for name, change in changes.items()}
    )


@given(any_snapshots(), any_snapshots())
def test_swapping_the_sides_negates(base: Snapshot, head: Snapshot) -> None:
    assert model_edits(base, base) == ()
    forward = model_edits(base, head)
    back = model_edits(head, base)
    assert list(back) == [
        ModelEdit(
            model=edit.model,
            base=edit.head,
            head=edit.base,
            operations=negated(edit.operations),
            components=negated(edit.components),
        )
        for edit in forward
    ]
    assert all(
        (edit.operations is None) == (edit.components is None) for edit in forward
    )
