from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from fake_compiler import ROCM, TEMPLATES, VMVX, FakeCompiler, cells_of, install
from test_measuring import SOURCE, Heard

from bot.compiler.cache import CellCache
from bot.compiler.runner import Cancel
from bot.core.delta import diff
from bot.core.serial import from_json, to_json
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Snapshot, SourceInfo
from bot.measuring import SidePlan, Workshop, measure_sides
from bot.rechecking import FEW, recheck, suspects


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def snapshot(digests: dict[str, str | None]) -> Snapshot:
    cells = [
        Cell(CellKey(name, "vmvx"), "ok" if digest else "failed", {"artifact_bytes": 1}, artifact_digest=digest)
        for name, digest in sorted(digests.items())
    ]
    return Snapshot(CompilerInfo("1", "", "0"), SourceInfo(), tuple(cells))


def test_suspects_are_the_few_cells_measured_on_both_sides_that_differ() -> None:
    base = snapshot({"a": "1", "b": "2", "c": None, "d": "4"})
    head = snapshot({"a": "1", "b": "9", "c": "3", "e": "5"})
    assert suspects(base, head) == {CellKey("b", "vmvx")}
    assert suspects(base, base) == frozenset()


def test_many_changes_are_changes_and_nothing_is_asked_twice() -> None:
    names = [f"m{i:02}" for i in range(FEW + 1)]
    base, head = (snapshot(dict.fromkeys(names, digest)) for digest in ("1", "2"))
    assert suspects(base, head) == frozenset()
    few = [snapshot(dict.fromkeys(names[:FEW], digest)) for digest in ("1", "2")]
    assert len(suspects(*few)) == FEW
    rest = {f"z{i:02}": "same" for i in range(95)}
    large = [snapshot({**dict.fromkeys(names, digest), **rest}) for digest in ("1", "2")]
    assert len(suspects(*large)) == FEW + 1


def sides(tmp_path: Path, head: FakeCompiler) -> tuple[list[SidePlan], Workshop]:
    base = install(tmp_path / "base", version="1.0", templates=TEMPLATES)
    cells = cells_of(tmp_path, ["alpha"])
    plans = [SidePlan(label, fake.toolchain, cells, SOURCE) for label, fake in (("base", base), ("head", head))]
    return plans, Workshop(CellCache(tmp_path / "cache"), 2, 60, Cancel(), Heard())


def test_a_compiler_that_does_not_repeat_itself_is_reported_and_not_compared(tmp_path: Path) -> None:
    head = install(
        tmp_path / "head",
        [{"do": "random", "kind": "resume direct", "argv": "backends=rocm"}, {"do": "differ", "kind": "resume direct"}],
        version="2.0",
        templates=TEMPLATES,
    )
    plans, workshop = sides(tmp_path, head)
    measured = measure_sides(plans, workshop)
    keys = frozenset({CellKey("alpha", ROCM.name), CellKey("alpha", VMVX.name)})
    again = recheck(plans, measured, keys, workshop)
    said = {cell.key.target: cell.rechecked for cell in again["head"].cells}
    assert said["rocm"] is not None
    assert said["rocm"].startswith("not deterministic: the same command gave an artifact of ")
    assert (said["vmvx"], said["llvm-cpu-x86_64"]) == ("", None)
    assert {cell.rechecked for cell in again["base"].cells} == {"", None}
    states = {delta.key.target: (delta.state, delta.reason) for delta in diff(again["base"], again["head"])}
    assert states["rocm"] == ("unmeasured", said["rocm"])
    assert states["vmvx"][0] == "changed"
    assert from_json(to_json(again["head"])) == again["head"]


def test_what_was_found_out_is_kept_and_not_asked_again(tmp_path: Path) -> None:
    head = install(tmp_path / "head", version="2.0", templates=TEMPLATES)
    plans, workshop = sides(tmp_path, head)
    keys = frozenset({CellKey("alpha", VMVX.name)})
    recheck(plans, measure_sides(plans, workshop), keys, workshop)
    compiles = head.compiles
    cached = measure_sides(plans, workshop)
    assert {cell.key.target: cell.rechecked for cell in cached["head"].cells}["vmvx"] == ""
    again = recheck(plans, cached, keys, workshop)
    assert head.compiles == compiles
    assert again == {label: replace(side) for label, side in cached.items()}
