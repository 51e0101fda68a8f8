"""`explain`: the story of one cell from a report file, by names or globs.

And what is refused, in one line.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import report_factory as make
from golden_files import check_golden
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_texts import report_to_json
from replacing import replace
from rich.cells import cell_len
from rich.console import Console

from bot.cli.main import main
from bot.core.program import IDENTICAL, Family
from bot.core.proof import KnobProof, Proof
from bot.core.report import Report
from bot.errors import BotError, InputError, UsageError
from bot.show.blocks import plain
from bot.show.escape import clip
from bot.show.explained import explain
from bot.show.why import family_lines

DISPATCH = "main_dispatch_1_matmul_128x768x768_f32"
PLAIN: dict[str, Any] = json.loads(report_to_json(make.explained_small()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, make.explained_small())


def written(folder: Path, report: Report) -> Path:
    place = folder / "report.json"
    place.write_text(report_to_json(report), encoding="utf-8")
    return place


def told(
    path: Path,
    model: str = "mobilenet",
    target: str = "*x86*",
    dispatch: str | None = None,
    width: int = 200,
) -> str:
    out = io.StringIO()
    explain(
        path,
        model=model,
        target=target,
        dispatch=dispatch,
        console=Console(file=out, width=width, color_system=None),
    )
    return out.getvalue()


def story(name: str) -> Report:
    report = make.explained_small()
    ((key, explanation),) = report.explanations.items()
    tiled = make.explanation(dispatches=22).dispatches
    dispatches, waterfall = {
        "tiled": (tiled, {"codegen": 52, "strategy": 33_500}),
        "alike": (
            tuple(
                replace(delta, base=delta.head) for delta in explanation.dispatches[:2]
            ),
            explanation.waterfall,
        ),
    }.get(name, (explanation.dispatches, explanation.waterfall))
    changed = replace(explanation, dispatches=dispatches, waterfall=waterfall)
    return (
        make.small()
        if name == "unsaid"
        else replace(report, explanations={key: changed})
    )


@pytest.mark.parametrize(
    ("name", "model", "target", "dispatch"),
    [
        *(
            (name, "mobilenet", "*x86*", None)
            for name in ("whole", "tiled", "alike", "unsaid")
        ),
        ("one", "mobilenet", "*x86*", "*_1_matmul*"),
        ("new", "mobilenet", "*x86*", "main_dispatch_40*"),
        ("same", "bert", "*x86*", None),
        ("broken", "bert", "vmvx", None),
    ],
)
def test_golden(
    tmp_path: Path, name: str, model: str, target: str, dispatch: str | None
) -> None:
    text = told(written(tmp_path, story(name)), model, target, dispatch)
    check_golden(f"{name}.explain.txt", re.sub(" +\n", "\n", text))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("mobilnet", "vmvx", None),
            "--model: the report has no model 'mobilnet' (did you mean 'mobilenet'?)",
        ),
        (
            ("*", "vmvx", None),
            "--model: '*' matches several: bert, mobilenet (name one of them)",
        ),
        (
            ("zzz*", "vmvx", None),
            "--model: the report has no model 'zzz*' (known: bert, mobilenet)",
        ),
        (
            ("bert", "llvm-cpu-x86-64", None),
            "--target: the report has no target 'llvm-cpu-x86-64' (did you mean",
        ),
        (
            ("bert", "vmvx", "main"),
            "--dispatch: the report has no dispatch 'main' (there is none)",
        ),
        (
            ("mobilenet", "*x86*", "main_dispatch_12"),
            "has no dispatch 'main_dispatch_12' (did you mean 'main_dispatch_",
        ),
        (
            ("mobilenet", "*x86*", "*matmul*"),
            "--dispatch: '*matmul*' matches several: main_dispatch_0_matmul",
        ),
    ],
)
def test_a_name_that_is_not_meant(
    path: Path, names: tuple[str, str, str | None], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        told(path, *names)
    assert message in caught.value.line


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "1e999", '{"schema": 1}', "[" * 100_000, '"\ud800"', "{}x"],
)
def test_a_file_that_is_no_report(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"report\.json: is not a report: "):
        told(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.json: cannot be read: No such file"):
        told(tmp_path / "gone.json")
    with pytest.raises(InputError, match="cannot be read"):
        told(tmp_path)


def places(value: Any, position: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [
        position,
        *(place for key, entry in entries for place in places(entry, (*position, key))),
    ]


PLACES = [place for place in places(PLAIN) if place]
ODD: list[Any] = [
    None,
    True,
    7,
    -1,
    1 << 60,
    2.5,
    "x",
    "\ud800",
    "\x1b[31m",
    [],
    [None],
    {},
    {"a": 1},
    [[]],
]


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    place=st.sampled_from(PLACES),
    value=st.sampled_from(ODD),
    dispatch=st.sampled_from([None, DISPATCH]),
)
def test_any_value_in_any_place_is_reported_or_refused(
    tmp_path: Path, place: Any, value: Any, dispatch: str | None
) -> None:
    broken = json.loads(json.dumps(PLAIN))
    inner = broken
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "report.json"
    path.write_text(json.dumps(broken), encoding="utf-8")
    try:
        text = told(path, dispatch=dispatch)
    except BotError as error:
        assert error.exit_code == 2 and error.line.isprintable()
    else:
        assert not [char for char in text if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize("word", make.HOSTILE)
def test_the_words_of_others_bring_no_sequences_and_no_markup(
    tmp_path: Path, word: str
) -> None:
    safe = word.encode("utf-8", "replace").decode()
    path = written(tmp_path, make.explained(make.small(), f"{safe}[bold]x[/]"))
    for dispatch in (None, "*_1_*"):
        text = told(path, dispatch=dispatch)
        assert "[bold]x[/]" in text
        assert not [char for char in text if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize("width", [60, 100, 200])
def test_only_commands_are_wider_than_the_terminal(path: Path, width: int) -> None:
    lines = told(path, width=width).splitlines()
    assert (
        max(
            cell_len(line)
            for line in lines
            if not line.startswith(("iree-compile", "# base"))
        )
        <= width
    )


def test_the_command_takes_what_a_report_shows(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short targets, globs, beginnings and clipped names.

    The beginning of one number is not that of another.
    """
    path.write_text(
        path.read_text().replace("main_dispatch_40_", "main_dispatch_10_"),
        encoding="utf-8",
    )
    for model in ("mobilenet", "mobile", "mob*"):
        for target in (
            "llvm-cpu-x86_64",
            "x86_64",
            "x86*",
            "llvm-cpu-x86",
            "x86",
            "llvm-…_64",
        ):
            assert (
                main(["explain", str(path), "--model", model, "--target", target]) == 0
            )
            out = capsys.readouterr().out
            assert (
                out.startswith("mobilenet on llvm-cpu-x86_64: ") and "\x1b" not in out
            )
    cell = ["explain", str(path), "--model", "mobilenet", "--target"]
    for name in (DISPATCH, "main_dispatch_1", "main_dispatch_1_*", clip(DISPATCH, 24)):
        assert main([*cell, "x86_64", "--dispatch", name]) == 0
        assert f"\n{DISPATCH} (" in capsys.readouterr().out
    assert main([*cell, "x86_64", "--dispatch", "main_disp"]) == 2
    assert (
        "--dispatch: 'main_disp' matches several: main_dispatch_0"
        in capsys.readouterr().err
    )
    assert main([*cell, "ppc"]) == 2
    assert (
        "--target: the report has no target 'ppc' (known: " in capsys.readouterr().err
    )


def test_colours_only_on_a_terminal(path: Path) -> None:
    out = io.StringIO()
    explain(
        path,
        model="mobilenet",
        target="*x86*",
        dispatch=None,
        console=Console(file=out, force_terminal=True, color_system="standard"),
    )
    assert "\x1b[1;31mfail: code size" in out.getvalue()


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (
            Family("constants", ("a", "b"), IDENTICAL),
            "2 executables have identical functions (a, b)",
        ),
        (
            Family("constants", ("a", "b", "c"), ("i32: 3, 5",)),
            "constants keep 3 executables apart (a, b, …): i32: 3, 5",
        ),
        (Family("constants", ("a", "b")), "constants keep 2 executables apart (a, b)"),
        (
            Family(
                "static-shapes",
                ("a", "b"),
                ("argument 0: 8, 16", "shift (arith.shrsi, i64): 36, 37"),
            ),
            (
                "static shapes keep 2 executables apart (a, b): argument 0: 8, 16;"
                " shift (arith.shrsi, i64): 36, 37"
            ),
        ),
        (
            Family("different-fusion", ("a", "b"), ("@a: + 2 arith.addf",)),
            "different fusion keeps 2 executables apart (a, b): @a: + 2 arith.addf",
        ),
    ],
)
def test_identical_is_said_of_those_that_nothing_keeps_apart_only(
    family: Family, message: str
) -> None:
    """A stored baseline has no lines of any other family."""
    assert [plain(line) for line in family_lines([family])] == [message]


def test_where_there_is_room_all_executables_of_a_family_are_named() -> None:
    family = Family("offsets", ("a", "b", "c"), ("offset 0: 1, 2",))
    expected = "offsets keep 3 executables apart (a, b, c): offset 0: 1, 2"
    assert [plain(line) for line in family_lines([family], roomy=True)] == [expected]


def test_experiments_are_shown_with_the_dispatch_and_the_root_cause(
    tmp_path: Path,
) -> None:
    report = make.explained_small()
    ((key, explanation),) = report.explanations.items()
    delta = next(delta for delta in explanation.dispatches if delta.name == DISPATCH)
    parts = {"source": 0, "configuration": 990, "mlir": None, "back_end": 10}
    proof = KnobProof(
        "proved", moved_bytes=1_000, bytes_after=9, restored_bytes=990, knobs=("tile",)
    )
    tried = replace(delta, attribution=parts, proof=proof)
    remaining = tuple(
        dispatch for dispatch in explanation.dispatches if dispatch is not delta
    )
    roots = tuple(
        replace(root, proof=Proof("proved", 990, 1_000, 1)) if root.dispatches else root
        for root in report.root_causes
    )
    explained = {key: replace(explanation, dispatches=(tried, *remaining))}
    path = written(tmp_path, replace(report, explanations=explained, root_causes=roots))
    lines = [
        " ".join(line.split()) for line in told(path, dispatch=DISPATCH).splitlines()
    ]
    start = lines.index("phase change")
    assert lines[start + 2 : start + 6] == [
        "source ±0",
        "configuration +990 B",
        "MLIR code generation n/a",
        "back end, not divided +10 B",
    ]
    assert (
        "configuration tile: proved: with base's value 99 % of the growth disappears"
        in lines
    )
    assert "proved: with base's value" in told(path)
