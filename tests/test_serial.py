"""bot.core.codec.serial: canonical on the way out, strict on the way in, and one InputError for everything foreign."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import LARGEST, plain_snapshot, snapshots

from bot.core.codec.serial import cell_from_plain, cell_to_plain, dumps, from_json, snapshot_to_plain, to_json
from bot.core.codec.serial_program import Programs, programs_from_plain
from bot.core.values.planned import Target, plan
from bot.core.values.program import Argument, Family, Program, Site, Source
from bot.core.values.snapshot import Cell, CellKey, CompilerInfo, Dispatch, Snapshot
from bot.errors import InputError
from bot.inputs.models import load_models

PROGRAM = Program(
    phases={"input": "1" * 16},
    linalg_ops_before=3,
    sources=(Source("e", "source", "strukt", 77),),
    sites=(Site("e_matmul", "layer.0"), Site("e_matmul", initializer=True)),
    arguments=(Argument("e_matmul", 0, "i32", (0, 64), 2, 64, 0),),
)
_PLAIN = plain_snapshot(("a", "vmvx", "ok"), ("b", "vmvx", "over-stack-limit"))
_TOLD = replace(_PLAIN.cells[0], program=PROGRAM, families=(Family("constants", ("e", "f"), ("i32: 1, 2",)),))
SMALL = replace(_PLAIN, cells=(_TOLD, *_PLAIN.cells[1:]), notes=("façade ✓",), flags=("--x",))
ROOMY = """{"cells": [], "compiler": {"version": "1", "revision": "", "digest": "d"}, "source": {}, "schema": "%s"}"""


def refusal(text: str) -> str:
    """The one line with which the text is refused."""
    with pytest.raises(InputError) as caught:
        from_json(text, "head.json")
    assert caught.value.line.startswith("head.json")
    assert len(caught.value.line) < 400
    return caught.value.line


# There and back.


@given(snapshots())
def test_load_of_save_is_the_same(snapshot: Snapshot) -> None:
    assert from_json(to_json(snapshot)) == snapshot


@given(snapshots())
def test_text_of_load_is_the_same_bytes(snapshot: Snapshot) -> None:
    text = to_json(snapshot)
    assert to_json(from_json(text)).encode() == text.encode()


@given(snapshots())
def test_a_cell_alone_goes_there_and_back(snapshot: Snapshot) -> None:
    for cell in snapshot.cells:
        programs = Programs((cell,))
        plain = json.loads(json.dumps([cell_to_plain(cell, programs), programs.plain]))
        assert cell_from_plain(plain[0], programs_from_plain(plain[1], "programs")) == cell


@given(snapshots(), st.randoms(use_true_random=False))
def test_the_order_in_which_things_were_found_leaves_no_trace(snapshot: Snapshot, chance: random.Random) -> None:
    def shuffled(mapping: Any) -> dict[str, Any]:
        return dict(chance.sample(sorted(mapping.items()), len(mapping)))

    cells = [replace(c, metrics=shuffled(c.metrics), reasons=shuffled(c.reasons)) for c in snapshot.cells]
    finished = {cell.key: cell for cell in chance.sample(cells, len(cells))}
    other = replace(
        snapshot,
        cells=tuple(finished[key] for key in sorted(finished)),
        models=shuffled(snapshot.models),
        targets=shuffled(snapshot.targets),
    )
    assert to_json(other) == to_json(snapshot)


@given(snapshots())
def test_the_text_is_json_with_a_line_for_every_cell(snapshot: Snapshot) -> None:
    text = to_json(snapshot)
    plain = snapshot_to_plain(snapshot)
    assert json.loads(text) == {**plain, "cells": list(plain["cells"])}
    assert text.endswith("}\n")
    assert sum('"dispatches":' in line and '"status":' in line for line in text.split("\n")) == len(snapshot.cells)


def test_cells_of_one_model_share_their_program() -> None:
    cells = [replace(SMALL.cells[0], key=CellKey("a", target)) for target in ("cuda", "vmvx")]
    text = to_json(replace(SMALL, cells=tuple(cells)))
    assert text.count('"structure":"strukt"') == 1
    first, second = from_json(text).cells
    assert first.program is second.program and first.program == SMALL.cells[0].program
    assert first.families[0] is second.families[0]


@pytest.mark.parametrize(
    ("written", "forged", "complaint"),
    [
        ('"source":"source"', '"source":"forged"', "a program's name is not the digest of what it says"),
        ('"program":"', '"program":"no', "no program is called 'no"),
        ('"kind":"constants"', '"kind":"splendid"', "unknown kind of family 'splendid'"),
    ],
)
def test_a_program_is_what_its_name_says(written: str, forged: str, complaint: str) -> None:
    text = to_json(SMALL)
    assert text.count(written) == 1
    assert complaint in refusal(text.replace(written, forged))


def test_names_are_written_as_they_are() -> None:
    assert '"notes":["façade ✓"]' in to_json(SMALL)


def test_a_changed_cell_is_one_changed_line() -> None:
    cells = list(SMALL.cells)
    cells[0] = replace(cells[0], metrics={"artifact_bytes": 1001})
    before, after = (to_json(one).splitlines() for one in (SMALL, replace(SMALL, cells=tuple(cells))))
    assert sum(left != right for left, right in zip(before, after, strict=True)) == 1


def test_unknown_values_are_null_in_metrics_and_left_out_of_dispatches() -> None:
    key = CellKey("a", "vmvx")
    plain = cell_to_plain(Cell(key, "ok", {"vm_bytes": None}, (Dispatch("e", "p", "conv", stack_bytes=0),)))
    assert plain["metrics"] == {"vm_bytes": None}
    assert plain["dispatches"] == [{"executable": "e", "name": "p", "kind": "conv", "stack_bytes": 0}]


def test_the_fields_are_those_of_the_contract() -> None:
    plain = json.loads(to_json(SMALL))
    assert plain["schema"] == "code-size-snapshot/1"
    assert {"version", "revision", "digest"} <= plain["compiler"].keys()
    assert plain["source"].keys() == {"sha", "ref", "dirty"}
    contract = {"model", "target", "status", "metrics", "dispatches", "failure", "command"}
    further = {"artifact_digest", "reasons", "compiles", "others", "donor", "program", "families", "phases_ms"}
    further |= {"parts"}
    assert all(cell.keys() - contract == further for cell in plain["cells"])
    assert plain["cells"][0]["families"] == [{"kind": "constants", "members": ["e", "f"], "varying": ["i32: 1, 2"]}]
    assert plain["cells"][0]["failure"] is None
    assert {"stage", "message"} <= plain["cells"][1]["failure"].keys()


def test_the_text_names_no_directory_of_this_machine_and_no_time(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "a.mlir").write_text("module {}")
    for top in (tmp_path, None):
        models = load_models([tmp_path / "suite" / "a.mlir"], top)
        cells = plan(models, (Target("vmvx", "vmvx"),))
        snapshot = replace(SMALL, cells=tuple(Cell(one.key, "ok", command=one.command()) for one in cells))
        text = to_json(snapshot)
        assert "suite/a.mlir" in text and str(tmp_path) not in text
        assert not re.search(r'[ "=]/|\d\d:\d\d|20\d\d-\d\d', text)
    names = {f.name for cls in (Snapshot, Cell, CompilerInfo) for f in fields(cls)}
    assert not [name for name in names if re.search("time|date|path|host|user", name)]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_json_is_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps({"x": value})


# Torn, foreign, hostile.


def test_a_text_cut_anywhere_is_refused() -> None:
    text = to_json(SMALL)
    for end in range(len(text) - 1):
        refusal(text[:end])
    assert from_json(text[:-1]) == SMALL  # all but the last line break


@settings(max_examples=300)
@given(st.integers(0, len(to_json(SMALL)) - 1), st.characters(exclude_categories=["Cs"]) | st.sampled_from('{}[]",:0e'))
def test_a_changed_character_is_refused_or_gives_a_snapshot(at: int, character: str) -> None:
    text = to_json(SMALL)
    try:
        found = from_json(text[:at] + character + text[at + 1 :])
    except InputError as error:
        assert "\n" not in error.line
    else:
        to_json(found).encode()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(anything)
def test_any_other_json_is_refused(value: Any) -> None:
    refusal(json.dumps(value))


PLACES: tuple[tuple[str | int, ...], ...] = (
    *((name,) for name in sorted(snapshot_to_plain(SMALL)) if name != "schema"),
    *(("compiler", name) for name in ("version", "revision", "digest", "spec")),
    *(("source", name) for name in ("sha", "ref", "dirty")),
    ("flags", 0),
    ("models", "a"),
    ("targets", "vmvx"),
    *(("cells", 1, name) for name in sorted(cell_to_plain(SMALL.cells[1]))),
    ("cells", 1, "metrics", "artifact_bytes"),
    *(("cells", 0, "families", 0, name) for name in ("kind", "members", "varying")),
    ("cells", 0, "program"),
    *(("cells", 1, "failure", name) for name in ("stage", "message", "exit_code", "signal", "figure_bytes")),
)


def replaced(place: tuple[str | int, ...], value: Any) -> str:
    """The small snapshot as text, with another value at one place."""
    plain = inner = json.loads(to_json(SMALL))
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return json.dumps(plain)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_a_value_of_another_type_is_refused_at_its_place(place: tuple[str | int, ...]) -> None:
    inner: Any = json.loads(to_json(SMALL))
    for step in place:
        inner = inner[step]
    kinds: list[Any] = [1.5, True, 7, "text", ["text"], {"x": "text"}, [[]], [None]]
    wrong = [value for value in kinds if type(value) is not type(inner) and not (inner is None and type(value) is str)]
    for value in wrong:
        if place[-1] in {"exit_code", "figure_bytes"} and value == 7:
            continue
        line = refusal(replaced(place, value))
        assert str(place[0]) in line


@settings(max_examples=200)
@given(st.sampled_from(PLACES), anything)
def test_any_value_anywhere_is_refused_or_can_be_written_again(place: tuple[str | int, ...], value: Any) -> None:
    try:
        found = from_json(replaced(place, value))
    except InputError as error:
        assert "\n" not in error.line
    else:
        assert from_json(to_json(found)) == found


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        (("schema",), "code-size-snapshot/2", "schema is 'code-size-snapshot/2', not 'code-size-snapshot/1'"),
        (("schema",), None, "schema is missing, not 'code-size-snapshot/1'"),
        (("schema",), [[[]]], "schema is of type list, not"),
        (("schema",), "x" * 5000, "'..., not"),
        (("surplus",), 1, "head.json: unknown field 'surplus'"),
        (("x" * 5000,), 1, "head.json: unknown field 'xxx"),
        (("compiler", "host"), "x", "head.json: compiler: unknown field 'host'"),
        (("compiler", "digest"), None, "head.json: compiler: field 'digest' has the wrong type NoneType"),
        (("cells", 0, "time"), 1, "head.json: cells[0]: unknown field 'time'"),
        (("cells", 0, "key"), {}, "head.json: cells[0]: unknown field 'key'"),
        (("cells", 1, "status"), "fine", "head.json: cells[1]: unknown status 'fine'"),
        (("cells", 0, "metrics", "flops"), 1, "head.json: cells[0]: unknown metric 'flops'"),
        (("cells", 0, "metrics", "vm_bytes"), True, "cells[0].metrics: field 'vm_bytes' has the wrong type bool"),
        (("cells", 0, "metrics", "vm_bytes"), 1.0, "cells[0].metrics: field 'vm_bytes' has the wrong type float"),
        (("cells", 0, "metrics", "vm_bytes"), LARGEST + 1, "cells[0].metrics: field 'vm_bytes' is out of range"),
        (("cells", 0, "metrics", "vm_bytes"), -1, "field 'vm_bytes' is out of range"),
        (("cells", 0, "metrics", "vm_bytes"), float("nan"), "field 'vm_bytes' has the wrong type float"),
        (("cells", 0, "dispatches"), [{"name": "p"}], "cells[0].dispatches: field 'executable' is missing"),
        (("cells", 1, "failure"), {"stage": "read"}, "cells[1].failure: field 'message' is missing"),
        (("notes",), ["a", 1], "head.json: field 'notes' holds something else than strings"),
        (("notes",), ["\ud800"], "surrogates not allowed"),
        (("cells", 0, "model"), "\udfff", "surrogates not allowed"),
        (("cells", 0, "model"), "z", "head.json: cells are not sorted and unique"),
        (("cells", 0, "model"), "b", "head.json: cells are not sorted and unique"),
        (("cells", 1), {}, "head.json: cells[1]: field 'status' is missing"),
        (("cells", 1), [], "head.json: cells[1]: expected an object, found list"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(place: tuple[str | int, ...], value: Any, line: str) -> None:
    assert line in refusal(replaced(place, value))


@pytest.mark.parametrize("field", ["compiler", "source", "schema"])
def test_a_required_field_is_missed(field: str) -> None:
    plain = json.loads(to_json(SMALL))
    del plain[field]
    assert field in refusal(json.dumps(plain))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "NaN",
        "\ufeff{}",
        "not json",
        to_json(SMALL) * 2,
        "[" * 100_000,
        '{"schema":' * 100_000,
        '{"schema":' + "[" * 900 + "]" * 900 + "}",
        ROOMY % "code-size-snapshot/1" + "x",
        '{"schema":"code-size-snapshot/1","cells":' + "9" * 5000 + "}",
        '{"schema":"code-size-report/1","cells":[]}',
    ],
    ids=range(12),
)
def test_foreign_text_is_refused_in_one_short_line(text: str) -> None:
    refusal(text)


def test_every_size_up_to_what_json_readers_hold_is_read_exactly() -> None:
    text = replaced(("cells", 0, "metrics", "vm_bytes"), LARGEST)
    assert from_json(text).cells[0].value("vm_bytes") == LARGEST


def test_optional_fields_may_be_missing() -> None:
    found = from_json(ROOMY % "code-size-snapshot/1")
    assert (found.cells, found.models, found.backends, found.notes) == ((), {}, (), ())


@pytest.mark.parametrize("write", [json.dumps, lambda plain: json.dumps(plain, indent=2, ensure_ascii=True)])
def test_the_same_values_in_another_layout_are_the_same_snapshot(write: Callable[[Any], str]) -> None:
    moved = replace(SMALL, notes=("\N{PILE OF POO} by surrogate pair",))
    plain = snapshot_to_plain(moved)
    assert from_json(write({**plain, "cells": list(plain["cells"])})) == moved
