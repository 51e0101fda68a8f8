"""`goldens`: a patch that changes the figures and nothing else, with a cause for each; applied, there is no other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from torch_models import CPU, HIP, compstat, configuration, module, write

from bot.cli.main import main
from bot.config.configuration import load_config
from bot.config.torch_models import edited, patch
from bot.core.planned import Model, PlannedCell
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Outcome, Snapshot, SourceInfo, lines, rows_of

Goldens = Callable[..., tuple[int, str, str]]
Made = Callable[..., Path]


def git(home: Path, *words: str, text: str = "") -> None:
    subprocess.run(["git", "-C", home, *words], input=text.encode(), capture_output=True, check=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a suite of two modules, whose goldens are not what is measured."""
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.autocrlf", "false")
    write(tmp_path / "suite/a/m.mlir", "module {}\n")
    module(tmp_path / "suite", "a/modules/cpu", "a/m.mlir", CPU)
    module(tmp_path / "suite", "a/modules/hip", "a/m.mlir", HIP)
    compstat(tmp_path / "suite", "a/cpu.json", "a/modules/cpu", golden_dispatch_count=7, golden_binary_size=1000)
    compstat(tmp_path / "suite", "a/hip.json", "a/modules/hip", golden_binary_size=2000)
    configuration(tmp_path)
    return tmp_path


@pytest.fixture
def made(home: Path) -> Made:
    """Writes a snapshot of the suite: module → its two figures, or why it failed."""

    def write_snapshot(name: str = "head.json", flags: tuple[str, ...] = (), **figures: tuple[int, int] | str) -> Path:
        cells = []
        for one in load_config(home / "code-size.yml").suites:
            given = figures.get(one.name.removeprefix("a-"))
            planned = PlannedCell(Model(one.name, "", "m.mlir", "", 0), one.target, flags)
            if isinstance(given, str):
                cells.append(Cell(planned.key, "failed", failure=Failure("compile", given), command=planned.command()))
            elif given:
                metrics = {"dispatch_sites": given[0], "artifact_bytes": given[1]}
                digest = f"{given}"
                cells.append(Cell(planned.key, "ok", metrics, command=planned.command(), artifact_digest=digest))
        only = {cell.key.model: cell.key.target for cell in cells}
        info = CompilerInfo("3.13.0", "", "d" * 64)
        snapshot = Snapshot(info, SourceInfo(), tuple(cells), only=only, models=dict.fromkeys(only, "ab"))
        (home / name).write_bytes(b"".join(lines(rows_of(snapshot))))
        return home / name

    return write_snapshot


@pytest.fixture
def goldens(capfdbinary: pytest.CaptureFixture[bytes]) -> Goldens:
    """Exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["goldens", "--head", "head.json", "--config", "code-size.yml", "--cache", "cache", *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def test_the_patch_applies_and_a_second_one_is_empty(home: Path, made: Made, goldens: Goldens) -> None:
    made(cpu=(6, 1234), hip=(9, 1999))
    before = {name: (home / f"suite/a/{name}.json").read_text() for name in ("cpu", "hip")}
    code, text, _ = goldens()
    out = goldens("--out", "goldens.patch")
    assert out[:2] == (0, "") and "wrote goldens.patch" in out[2] and (home / "goldens.patch").read_text() == text
    one = goldens("--model", "a-hip")[1]
    assert "hip.json" in one and "cpu.json" not in one
    head, _, diff = text.partition("\n\ndiff --git ")
    assert code == 0 and head.split("\n") == [
        "Goldens as measured with IREE 3.13.0",
        "",
        "a/cpu.json: golden_dispatch_count 7 -> 6",
        "a/cpu.json: golden_binary_size 1000 -> 1234",
        "a/hip.json: golden_binary_size 2000 -> 1999",
    ]
    assert diff.startswith("a/suite/a/cpu.json b/suite/a/cpu.json\n--- a/suite/a/cpu.json\n+++ b/suite/a/cpu.json\n@@ ")
    git(home, "apply", text=text)
    after = before["cpu"].replace('count": 7', 'count": 6').replace('size": 1000', 'size": 1234')
    assert (home / "suite/a/cpu.json").read_text() == after
    assert (home / "suite/a/hip.json").read_text() == before["hip"].replace("2000", "1999")
    assert goldens()[:2] == (0, "All goldens are as measured with IREE 3.13.0\n")


def test_with_a_base_each_change_has_its_cause(made: Made, goldens: Goldens) -> None:
    made(cpu=(6, 1234), hip=(9, 1999))
    made("base.json", cpu=(7, 1234), hip="error: refused")
    _, text, _ = goldens("--base", "base.json")
    assert "a/cpu.json: golden_dispatch_count 7 -> 6; 7 on base: " in text
    assert "golden_binary_size 1000 -> 1234; 1234 on base too, so this golden was out of date\n" in text
    assert "a/hip.json: golden_binary_size 2000 -> 1999; not measured on base\n" in text


def test_what_was_not_measured_stays_and_is_told(home: Path, made: Made, goldens: Goldens) -> None:
    made(cpu=(7, 1001), hip="error: refused\nmore")
    code, text, _ = goldens()
    assert (
        code == 0 and "\nNot measured, and left as they are:\na/hip.json: golden_binary_size: error: refused\n" in text
    )
    git(home, "apply", text=text)
    assert '"golden_binary_size": 2000' in (home / "suite/a/hip.json").read_text()


def test_figures_of_other_flags_are_not_taken(made: Made, goldens: Goldens) -> None:
    made(flags=("--iree-opt-level=O2",), cpu=(6, 1), hip=(6, 1))
    code, text, err = goldens()
    assert code == 5 and not text and "no golden was measured (a/cpu.json: golden_dispatch_count: measured with" in err


def test_figures_under_an_option_s_older_name_are_taken(made: Made, goldens: Goldens) -> None:
    path = made(hip=(6, 1))
    path.write_text(path.read_text().replace("--iree-rocm-target", "--iree-hip-target"))
    assert "a/hip.json: golden_binary_size 2000 -> 1\n" in goldens()[1]


def test_a_compiler_that_does_not_repeat_itself_gets_the_largest_figure(home: Path, goldens: Goldens) -> None:
    (hip,) = (one for one in load_config(home / "code-size.yml").suites if one.name == "a-hip")
    key, command = CellKey("a-hip", "rocm-gfx942"), PlannedCell(Model("", "", "", "", 0), hip.target).command()
    others = (Outcome("ok", {"artifact_bytes": 1502}, "b"), Outcome("failed"))
    cell = Cell(key, "ok", {"artifact_bytes": 1500}, command=command, artifact_digest="a", compiles=3, others=others)
    snapshot = Snapshot(CompilerInfo("3", "", ""), SourceInfo(), (cell,), only={"a-hip": "rocm-gfx942"})
    (home / "head.json").write_bytes(b"".join(lines(rows_of(snapshot))))
    assert "golden_binary_size 2000 -> 1502\n" in goldens()[1]


@pytest.mark.parametrize("what", ["no suite", "no goldens", "no snapshot", "no head"])
def test_bad_input_is_one_line_and_code_2(home: Path, made: Made, goldens: Goldens, what: str) -> None:
    made(cpu=(6, 1234))
    if what == "no suite":
        (home / "code-size.yml").write_text("schema: code-size-config/1\nmodels: [suite/a/m.mlir]\n")
    elif what == "no goldens":
        for name in ("cpu", "hip"):
            (home / f"suite/a/{name}.json").unlink()
    else:
        (home / "head.json").write_text("{}") if what == "no snapshot" else (home / "head.json").unlink()
    code, text, err = goldens()
    assert code == 2 and not text and err.count("code-size-bot: ") == 1


# The files.

ODD = {
    "windows": '{\r\n  "type" : "compstat",\r\n\t"golden_binary_size"  :\t1000 ,\r\n  "module": "a/modules/cpu" }\r\n',
    "no newline": '{"type": "compstat", "module": "a/modules/cpu",\n "golden_binary_size": 1000}',
    "one line": '{"golden_binary_size":1000,"type":"compstat","module":"a/modules/cpu"}\n',
    "mark": '\ufeff{"golden_binary_size":1000,"type":"compstat","module":"a/modules/cpu"}\n',
    "float": '{"golden_binary_size": 1.0e3, "type": "compstat", "module": "a/modules/cpu"}\n',
    "decoys": (
        '{"note": "\\"golden_binary_size\\": 1000", "old": {"golden_binary_size": 1000},\n'
        '"golden_binary_size": 1, "golden_binary_size": 1000, "type": "compstat",\n"module": "a/modules/cpu"}\n'
    ),
    "lines": '{"a": "\u2028\x85", "type": "compstat", "module": "a/modules/cpu",\n"golden_binary_size": 1000}\n\n\n',
}


@pytest.mark.parametrize("name", ODD)
def test_not_a_byte_changes_beside_the_figure(home: Path, made: Made, goldens: Goldens, name: str) -> None:
    (home / "suite/a/cpu.json").unlink()
    path = write(home / 'suite/a/odd file \u00e9".json', ODD[name])
    made(cpu=(6, 1234), hip=(9, 2000))
    git(home, "apply", "--whitespace=nowarn", text=goldens()[1])
    new = path.read_bytes().decode()
    found = "1.0e3" if name == "float" else "1000"
    at = len(new) - len(ODD[name].rpartition(found)[2]) - len("1234")
    if name == "decoys":
        assert new == ODD[name].replace('1, "golden_binary_size": 1000', '1, "golden_binary_size": 1234')
    else:
        assert (new[:at], new[at : at + 4], new[at + 4 :]) == (*ODD[name].rpartition(found)[:1], "1234", new[at + 4 :])
        assert new[at + 4 :] == ODD[name].rpartition(found)[2]
    assert json.loads(new.removeprefix("\ufeff"))["golden_binary_size"] == 1234
    assert goldens()[1].startswith("All goldens are as measured")


def test_an_edit_to_the_same_figure_is_none() -> None:
    text = '{"golden_binary_size": 1000}'
    assert edited(text, {"golden_binary_size": 1000}, "x") == text
    assert patch("x.json", text, text) == ""
