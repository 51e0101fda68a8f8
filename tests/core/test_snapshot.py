"""bot.core.snapshot_json: canonical on the way out, strict on the way in.

And what is no digest names nothing.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from everyday import measured
from hypothesis import given
from hypothesis import strategies as st
from json_texts import to_json
from matched_cells import Row, made
from replacing import replace
from strategies import LARGEST, plain_snapshot, snapshots

from bot.compiler.cell_cache import TextStore
from bot.core.json_text import canonical, decoded
from bot.core.planned import Target, plan
from bot.core.program import Family, Program, Site, Source
from bot.core.snapshot import STATUSES, Cell, CellKey, CompilerInfo, Dispatch, Snapshot
from bot.core.snapshot_json import complete, from_json, from_lines, key_of
from bot.errors import InputError
from bot.study.model_files import load_models

PROGRAM = Program(
    phases={"input": "1" * 16},
    sources=(Source("e", "s" * 16, "t" * 16),),
    sites=(Site("e_matmul", "layer.0"), Site("e_matmul", initializer=True)),
    operations="arith.addf 1 linalg.matmul 2",
    places={"": 1, "layer.0": 2},
)
_PLAIN = plain_snapshot(("a", "vmvx", "ok"), ("b", "vmvx", "over-stack-limit"))
_TOLD = replace(
    _PLAIN.cells[0],
    program=PROGRAM,
    families=(Family("constants", ("e", "f"), ("i32: 1, 2",)),),
)
SMALL = replace(
    _PLAIN, cells=(_TOLD, *_PLAIN.cells[1:]), notes=("façade ✓",), flags=("--x",)
)
ROOMY = """{"cells": [], "compiler": {"version": "1", "revision": "", "digest": "d"}, "source": {}, "schema": "%s"}"""


def refusal(text: str) -> str:
    """The one line with which the text is refused."""
    with pytest.raises(InputError) as caught:
        from_json(text, "head.json")
    assert caught.value.line.startswith("head.json")
    assert len(caught.value.line) < 400
    return caught.value.line


def test_a_cell_with_an_artifact_is_measured_and_cells_are_sorted_and_unique() -> None:
    for status in STATUSES:
        assert Cell("bert", "vmvx", status).measured is (
            status in {"ok", "over-stack-limit"}
        )
    keys = [CellKey("b", "a"), CellKey("a", "z"), CellKey("a", "b")]
    assert [str(key) for key in sorted(keys)] == ["a on b", "a on z", "b on a"]
    for cells in (_PLAIN.cells[::-1], _PLAIN.cells[:1] * 2):
        with pytest.raises(ValueError, match="sorted and unique"):
            replace(_PLAIN, cells=cells)


# There and back.


@given(snapshots())
def test_load_of_save_is_the_same_with_a_line_for_every_cell(
    snapshot: Snapshot,
) -> None:
    text = to_json(snapshot)
    assert from_json(text) == from_json(json.dumps(json.loads(text))) == snapshot
    assert from_lines(iter([text.encode()]), "whole") == snapshot
    assert to_json(from_json(text)).encode() == text.encode()
    keys = [(cell.key.model, cell.key.target) for cell in snapshot.cells]
    assert [
        (cell["model"], cell["target"]) for cell in json.loads(text)["cells"]
    ] == keys and text.endswith("}\n")
    assert sum(
        '"dispatches":' in line and '"status":' in line for line in text.split("\n")
    ) == len(snapshot.cells)
    for cell in snapshot.cells:
        programs = {key_of(cell.program): cell.program} if cell.program else {}
        written = replace(cell, program=next(iter(programs), None))
        read = decoded(canonical(written), Cell, "cell")
        complete(read, programs, "cell")
        assert read == cell


@given(snapshots(), st.randoms(use_true_random=False))
def test_the_order_in_which_things_were_found_leaves_no_trace(
    snapshot: Snapshot, chance: random.Random
) -> None:
    def shuffled(mapping: Any) -> dict[str, Any]:
        return dict(chance.sample(sorted(mapping.items()), len(mapping)))

    cells = [
        replace(c, metrics=shuffled(c.metrics), reasons=shuffled(c.reasons))
        for c in snapshot.cells
    ]
    finished = {cell.key: cell for cell in chance.sample(cells, len(cells))}
    reordered = replace(
        snapshot,
        cells=tuple(finished[key] for key in sorted(finished)),
        models=shuffled(snapshot.models),
        targets=shuffled(snapshot.targets),
    )
    assert to_json(reordered) == to_json(snapshot)


def test_cells_of_one_model_share_their_program() -> None:
    cells = [
        replace(SMALL.cells[0], model="a", target=target) for target in ("cuda", "vmvx")
    ]
    text = to_json(replace(SMALL, cells=tuple(cells)))
    assert text.count(f'"structure":"{"t" * 16}"') == 1
    first, second = from_json(text).cells
    assert first.program is second.program and first.program == SMALL.cells[0].program
    assert first.families[0] is second.families[0]


@pytest.mark.parametrize(
    ("written", "forged", "complaint"),
    [
        (
            f'"source":"{"s" * 16}"',
            f'"source":"{"f" * 16}"',
            "the name of a program is not the digest of its content",
        ),
        ('"program":"', '"program":"no', "no program is called 'no"),
        (
            '"kind":"constants"',
            '"kind":"splendid"',
            "cells[0].families[0].kind: expected `str` matching regex",
        ),
    ],
)
def test_a_program_is_what_its_name_says(
    written: str, forged: str, complaint: str
) -> None:
    text = to_json(SMALL)
    assert text.count(written) == 1
    assert complaint in refusal(text.replace(written, forged))


def test_unknown_values_are_null_in_metrics_and_left_out_of_dispatches() -> None:
    key = CellKey("a", "vmvx")
    cell = Cell(
        key.model,
        key.target,
        "ok",
        {"vm_bytes": None},
        (Dispatch("e", "p", "conv", stack_bytes=0),),
    )
    plain = json.loads(canonical(cell))
    assert plain["metrics"] == {"vm_bytes": None}
    assert plain["dispatches"] == [
        {"executable": "e", "name": "p", "kind": "conv", "stack_bytes": 0}
    ]


def test_the_fields_are_those_of_the_contract() -> None:
    plain = json.loads(to_json(SMALL))
    assert plain["schema"] == "code-size-snapshot/1"
    assert {"version", "revision", "digest"} <= plain["compiler"].keys()
    assert plain["source"].keys() == {"sha", "ref", "dirty"}
    contract = {
        "model",
        "target",
        "status",
        "metrics",
        "dispatches",
        "failure",
        "command",
    }
    further = {
        "artifact_digest",
        "reasons",
        "compiles",
        "others",
        "program",
        "families",
    }
    further |= {"parts", "assembler"}
    assert all(cell.keys() - contract == further for cell in plain["cells"])
    assert plain["cells"][0]["families"] == [
        {"kind": "constants", "members": ["e", "f"], "varying": ["i32: 1, 2"]}
    ]
    assert plain["cells"][0]["failure"] is None
    assert {"stage", "message"} <= plain["cells"][1]["failure"].keys()


def test_the_text_names_no_directory_of_this_machine_and_no_time(
    tmp_path: Path,
) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "a.mlir").write_text("module {}")
    for top in (tmp_path, None):
        models = load_models([tmp_path / "suite" / "a.mlir"], top)
        cells = plan(models, (Target("vmvx", "vmvx"),))
        snapshot = replace(
            SMALL,
            cells=tuple(
                Cell(cell.model.name, cell.target.name, "ok", command=cell.command())
                for cell in cells
            ),
        )
        text = to_json(snapshot)
        assert "suite/a.mlir" in text and str(tmp_path) not in text
        assert not re.search(r'[ "=]/|\d\d:\d\d|20\d\d-\d\d', text)
    names = {
        name for cls in (Snapshot, Cell, CompilerInfo) for name in cls.__struct_fields__
    }
    assert not [name for name in names if re.search("time|date|path|host|user", name)]


# Torn, foreign, hostile.


def test_a_text_cut_anywhere_is_refused() -> None:
    text = to_json(SMALL)
    for end in range(len(text) - 1):
        refusal(text[:end])
    assert from_json(text[:-1]) == SMALL  # all but the last line break


def replaced(place: tuple[str | int, ...], value: Any) -> str:
    """The small snapshot as text, with another value at one place."""
    plain = inner = json.loads(to_json(SMALL))
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return json.dumps(plain)


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        (
            ("schema",),
            "code-size-snapshot/2",
            "schema is 'code-size-snapshot/2', not 'code-size-snapshot/1'",
        ),
        (("schema",), "", "schema is missing, not 'code-size-snapshot/1'"),
        (
            ("cells", 0, "metrics", "flops"),
            1,
            "head.json: cells[0]: unknown metric 'flops'",
        ),
        (("surplus",), 1, "head.json: object contains unknown field `surplus`"),
        (
            ("cells", 0, "metrics", "vm_bytes"),
            LARGEST + 1,
            "cells[0].metrics[...]: expected `int` <= 9007199254740992",
        ),
        (
            ("cells", 0, "metrics", "vm_bytes"),
            -1,
            "cells[0].metrics[...]: expected `int` >= 0",
        ),
        (
            ("cells", 0, "dispatches"),
            [{"name": "p"}],
            "cells[0].dispatches[0]: object missing required field `executable`",
        ),
        (("notes",), ["\ud800"], "is not JSON"),
        (("cells", 0, "model"), "z", "head.json: cells are not sorted and unique"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    place: tuple[str | int, ...], value: Any, line: str
) -> None:
    assert line in refusal(replaced(place, value))


def test_foreign_text_is_refused_in_one_short_line() -> None:
    deep = '{"schema":' + "[" * 900 + "]" * 900 + "}"
    for text in (
        *(
            "",
            "null",
            "NaN",
            "\ufeff{}",
            "not json",
            to_json(SMALL) * 2,
            "[" * 100_000,
            '{"schema":' * 100_000,
            deep,
        ),
        ROOMY % "code-size-snapshot/1" + "x",
        '{"schema":"code-size-snapshot/1","cells":' + "9" * 5000 + "}",
        '{"schema":"code-size-report/1","cells":[]}',
    ):
        refusal(text)


def test_other_layouts_and_missing_fields_are_read() -> None:
    assert (
        from_json(replaced(("cells", 0, "metrics", "fills"), LARGEST))
        .cells[0]
        .value("fills")
        == LARGEST
    )
    empty = from_json(ROOMY % "code-size-snapshot/1")
    assert (empty.cells, empty.models, empty.notes) == ((), {}, ())
    moved = replace(
        SMALL,
        notes=("\N{PILE OF POO} by surrogate pair", "a\u2028b\x85c\u2029"),
        flags=("\r\n\x0b\x0c",),
    )
    plain = json.loads(to_json(moved))
    for text in (
        to_json(moved),
        json.dumps(plain),
        json.dumps(plain, indent=2, ensure_ascii=True),
    ):
        assert from_json(text) == moved


@pytest.mark.parametrize(
    "digest", ["s", "s" * 43, "../../etc/passwd", "", "s" * 15 + "."]
)
def test_what_is_no_digest_is_refused_and_names_no_text(
    tmp_path: Path, digest: str
) -> None:
    """Digests of other versions are longer or shorter, and equal none of this one's."""
    cell = made(Row("s"))
    text = to_json(replace(measured(), cells=(cell,), models={cell.key.model: "m"}))
    assert cell.dispatches[0].code is not None
    with pytest.raises(InputError, match="code"):
        from_json(
            text.replace(f'"code":"{cell.dispatches[0].code}"', f'"code":"{digest}"')
        )
    store = TextStore(tmp_path)
    with pytest.raises(ValueError, match="is not a digest"):
        store.keep(digest, "text")
    stray = (
        tmp_path / "ir" / digest.encode().hex()[:2] / f"{digest.encode().hex()}.mlir"
    )
    stray.parent.mkdir(parents=True)
    stray.write_text("of whom?")
    assert store.load(digest) is None, "even one that lies there is not found"
