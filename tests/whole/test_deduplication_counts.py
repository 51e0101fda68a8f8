"""Deduplication before and after: its counts are those of the real compiler's statistics and IR dumps."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from direct_compile import DirectCompile
from json_rows import JsonRow, read_json
from page_tables import rows_below
from places import FIXTURES
from real_compilers import binary, bot, own_cache

pytestmark = pytest.mark.compiler

COMPILER = "3.13.0"
CONFIG = (
    "schema: code-size-config/1\nmodels: [models/*.mlir]\ntargets: [llvm-cpu-x86_64]\n"
)
X86_64 = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    "--iree-llvmcpu-target-cpu=x86-64-v3",
)
OPTION = "--iree-dispatch-creation-enable-aggressive-fusion"
SIDES = {"base": f"{OPTION}=false", "head": OPTION}
MODELS = (
    "e2e/models/tiny",
    "e2e/models/embedding_norm",
    "families/constants",
    "families/static_shapes",
    "families/identical",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five models, measured without and with aggressive fusion, and the report of both sides."""
    home = tmp_path_factory.mktemp("deduplication")
    (home / "models").mkdir()
    for model in MODELS:
        shutil.copy(FIXTURES / f"{model}.mlir", home / "models")
    (home / "c.yml").write_text(CONFIG, encoding="utf-8")
    own_cache(home / "cache", COMPILER)
    for side, flag in SIDES.items():
        places = (
            "--config",
            home / "c.yml",
            "--cache",
            home / "cache",
            "--out",
            home / f"{side}.json",
        )
        bot("measure", "--compiler", COMPILER, f"--flags={flag}", *places, codes=(0,))
    bot(
        "report",
        "--base",
        home / "base.json",
        "--head",
        home / "head.json",
        "--out",
        home / "out",
    )
    return home


def directly(home: Path, side: str, model: Path) -> DirectCompile:
    folder = home / f"{side}-{model.stem}"
    folder.mkdir(exist_ok=True)
    objects = f"--iree-hal-dump-executable-intermediates-to={folder}/objects"
    flags = (*X86_64, SIDES[side], "--iree-llvmcpu-debug-symbols=false", objects)
    return DirectCompile(folder, binary(COMPILER), flags, model).run()


def code_bytes(compiled: DirectCompile) -> dict[str, int]:
    """Function → its size in the symbol tables of the compiler's object files."""
    sizes = {}
    for path in sorted((compiled.folder / "objects").glob("*.o")):
        printed = subprocess.run(
            ["nm", "-S", path], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split() for line in printed.splitlines()]
        sizes.update(
            {
                row[3]: int(row[1], 16)
                for row in rows
                if len(row) == 4 and row[2] in "tT"
            }
        )
    return sizes


def near_bytes(cell: JsonRow, sizes: dict[str, int]) -> int:
    """The code of all members of families but the largest, by the compiler's object files."""
    executables: dict[str, int] = {}
    for dispatch in cell.dispatches:
        executables[dispatch.executable] = (
            executables.get(dispatch.executable, 0) + sizes[dispatch.name]
        )
    families = [
        [executables[name] for name in family.members] for family in cell.families or ()
    ]
    return sum(sum(members) - max(members) for members in families)


def test_the_table_has_the_compilers_own_counts(home: Path) -> None:
    sides = {side: read_json(home / f"out/{side}.json") for side in SIDES}
    rows = rows_below(home / "out/summary.md", "Deduplication: 5 builds")
    assert {row["model"] for row in rows} == {Path(model).name for model in MODELS}
    any_saving = 0
    for row in rows:
        pairs: dict[str, list[int]] = {
            "dispatch regions": [],
            "executables": [],
            "code": [],
        }
        for side, record in sides.items():
            (cell,) = [cell for cell in record.cells if cell.model == row["model"]]
            compiled = directly(home, side, home / f"models/{row['model']}.mlir")
            pairs["dispatch regions"].append(compiled.regions())
            pairs["executables"].append(
                compiled.statistic("executable", "executable-count")
            )
            pairs["code"].append(near_bytes(cell, code_bytes(compiled)))
        folded = [
            regions - executables
            for regions, executables in zip(*list(pairs.values())[:2], strict=True)
        ]
        expected = {
            "dispatch regions": together(
                [f"{count:,}" for count in pairs["dispatch regions"]]
            ),
            "executables": together([f"{count:,}" for count in pairs["executables"]]),
            "regions folded": together([f"{count:,}" for count in folded]),
            "their code, at most": together(
                [f"{count:,} B" for count in pairs["code"]]
            ),
        }
        assert {name: row[name] for name in expected} == expected, row["model"]
        any_saving += sum(pairs["code"])
    assert any_saving


def together(texts: list[str]) -> str:
    return " → ".join(dict.fromkeys(texts))


def test_the_sides_swapped_give_the_counts_swapped(home: Path) -> None:
    out = home / "swapped"
    bot(
        "report",
        "--base",
        home / "head.json",
        "--head",
        home / "base.json",
        "--out",
        out,
    )
    forward = rows_below(home / "out/summary.md", "Deduplication: 5 builds")
    backward = rows_below(out / "summary.md", "Deduplication: 5 builds")
    assert [row["model"] for row in forward] == [row["model"] for row in backward]
    for forward_row, back in zip(forward, backward, strict=True):
        for name in list(forward_row)[2:]:
            assert forward_row[name].split(" → ") == back[name].split(" → ")[::-1]
    line, opposite_line = (
        folded_lines(path / "comment.md") for path in (home / "out", out)
    )
    assert "fewer" in line or "more" in line
    for word, opposite in (
        ("fewer regions", "more regions"),
        ("more regions", "fewer regions"),
    ):
        assert (word in line) == (opposite in opposite_line)


def folded_lines(path: Path) -> str:
    (line,) = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("**Deduplication:**")
    ]
    return line


def test_nothing_changed_has_no_line(home: Path) -> None:
    out = home / "same"
    bot(
        "report",
        "--base",
        home / "head.json",
        "--head",
        home / "head.json",
        "--out",
        out,
    )
    assert "**Deduplication:**" not in (out / "comment.md").read_text(encoding="utf-8")
    assert all(
        "→" not in "".join(row.values())
        for row in rows_below(out / "summary.md", "Deduplication: 5 builds")
    )
