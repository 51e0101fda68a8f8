"""bot.study.calibrate: which cells are compiled again, what their spread is, and the lines that come of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from fake_compiler import ROCM, TEMPLATES, VMVX, X86, FakeCompiler, cells_of, install, install_native, write_model
from test_measuring import Heard

from bot.cli.main import main
from bot.compiler.cell_cache import CellCache, cell_key
from bot.compiler.iree import Iree
from bot.config.units import parse_ratio
from bot.core.planned import Model, Target, plan
from bot.core.snapshot import Cell, CellKey, Failure, SourceInfo
from bot.errors import InputError
from bot.study.calibrate import chosen, repeated, spread_lines
from bot.study.run import Resources, SidePlan
from bot.system.processes import Cancel

CONFIG = "schema: code-size-config/1\nmodels: ['suite/*.mlir']\ntargets: [vmvx, llvm-cpu-x86_64]\n"


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def model(name: str, size_bytes: int) -> Model:
    return Model(name, f"{name}.mlir", f"{name}.mlir", "0" * 64, size_bytes)


def test_without_a_selection_the_cheapest_few_are_taken_of_different_targets_and_models() -> None:
    models = [model("tiny", 1), model("small", 2), model("large", 100), model("larger", 200), model("huge", 9000)]
    gone = Target("gone", "webgpu", unsupported="not registered")
    targets = [VMVX, X86, ROCM, Target("cuda", "cuda"), gone]
    found = [str(cell.key) for cell in chosen(plan(models, targets), everything=False)]
    assert found == ["large on cuda", "larger on rocm", "small on llvm-cpu-x86_64", "tiny on vmvx"]
    models = [model(name, index + 1) for index, name in enumerate("abcdef")]
    few = chosen(plan(models, [VMVX]), everything=False)
    assert [cell.key.model for cell in few] == ["a", "b", "c", "d"], "few targets are used again"
    assert chosen(plan(models, [VMVX]), everything=True) == plan(models, [VMVX])
    assert [cell.key.model for cell in chosen(plan(models[:1], [VMVX]), everything=False)] == ["a"]
    assert chosen((), everything=False) == ()


def runs(model_name: str, *values: int | None, failed: bool = False) -> dict[CellKey, list[Cell]]:
    key = CellKey(model_name, "vmvx")
    cells = [Cell(key, "ok", {"compile_cpu_ms": value}) for value in values]
    return {key: cells + ([Cell(key, "failed", failure=Failure("compile", "no"))] if failed else [])}


@pytest.mark.parametrize(
    ("values", "percent"),
    [([(100, 107)], 7), ([(1000, 1071)], 8), ([(100, 107), (100, 125)], 25), ([(500, 500)], 1), ([(10, 40)], 300)],
)
def test_the_band_is_the_largest_spread_rounded_up(values: list[tuple[int, int]], percent: int) -> None:
    known = {key: cells for at, pair in enumerate(values) for key, cells in runs(f"m{at}", *pair).items()}
    assert list(spread_lines(known, lambda _: None))[-1] == f"noise: {{compile_cpu_ms: {percent}%}}"


def test_a_cell_counts_only_where_every_run_knows_the_metric() -> None:
    known = {**runs("b", 210, 200, 204, 202, 209), **runs("a", 10, 12)}
    unknown = {**runs("c", 10, None), **runs("d", 10, failed=True), **runs("e", 0, 5), **runs("f")}
    said = list[str]()
    lines = list(spread_lines({**unknown, **known}, said.append))
    assert [line.split() for line in lines[1:3]] == [
        ["a", "vmvx", "10", "10", "12", "20.0", "%"],
        ["b", "vmvx", "200", "204", "210", "5.0", "%"],
    ]
    assert said[0] == "d on vmvx could not be compiled: no"
    assert said[1].startswith("compile_peak_rss_kib is left out: ")
    with pytest.raises(InputError, match="no cell could be compiled in every run"):
        list(spread_lines(unknown, said.append))


def test_every_run_is_a_plain_compile_and_nothing_comes_from_the_cache_or_stays_in_it(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", templates=TEMPLATES)
    cells = cells_of(tmp_path, ["alpha", "beta"], [VMVX])
    side, heard = SidePlan("head", Iree(fake.toolchain), cells, SourceInfo()), Heard()
    resources = Resources(CellCache(tmp_path / "cache"), 2, 60, Cancel(), heard)
    key = cell_key(fake.toolchain.info.digest, cells[0])
    resources.cache.store(key, Cell(cells[0].key, "ok", {"compile_cpu_ms": 1}))
    found = repeated(side, cells, 3, resources)
    assert {str(each): len(cells) for each, cells in found.items()} == {"alpha on vmvx": 3, "beta on vmvx": 3}
    assert len(fake.calls("direct")) == 6
    assert all(
        cell.status == "ok" and (cell.value("compile_cpu_ms") or 0) > 1 for each in found.values() for cell in each
    )
    assert (resources.cache.load(key) or found[cells[0].key][0]).metrics == {"compile_cpu_ms": 1}
    assert resources.cache.load(cell_key(fake.toolchain.info.digest, cells[1])) is None
    ((count, cached, cost),) = heard.plans
    assert (count, cached) == (6, 0) and cost == pytest.approx(3 * sum(cell.cost for cell in cells))
    order = [key.model for _, key, _ in heard.cells]
    assert [set(order[at : at + 2]) for at in (0, 2, 4)] == [{"alpha", "beta"}] * 3, "each once before any again"
    assert heard.cpu_ms["alpha"] >= sum(cell.value("compile_cpu_ms") or 0 for cell in found[cells[0].key])


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "suite").mkdir()
    for name, text in (("alpha", "module {}"), ("beta", "module { beta }")):
        write_model(tmp_path / "suite", name, text)
    (tmp_path / "c.yml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def native(folder: Path, *rules: dict[str, str]) -> str:
    fake: FakeCompiler = install(folder / "fake", rules, templates=TEMPLATES)
    return str(install_native(folder / "iree-compile", fake))


def test_the_lines_are_a_table_and_what_the_configuration_reads(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--compiler", native(suite), "--config", "c.yml", "--cache", "cache")
    assert main(("calibrate", *arguments, "--runs", "2")) == 0
    told = capsys.readouterr()
    header, *rows, blank, noise = told.out.splitlines()
    assert header.split() == ["model", "target", "min", "ms", "median", "ms", "max", "ms", "spread"]
    assert [row.split()[:2] for row in rows] == [[m, t] for m in ("alpha", "beta") for t in ("llvm-cpu-x86_64", "vmvx")]
    assert len({len(line) for line in (header, *rows)}) == 1 and blank == ""
    shares = [float(row.split()[-2]) for row in rows]
    block: dict[str, str] = yaml.safe_load(noise)["noise"]
    assert set(block) <= {"compile_cpu_ms", "compile_peak_rss_kib"}
    cpu = parse_ratio(block["compile_cpu_ms"]).value * 100
    assert cpu.denominator == 1
    assert max(1, max(shares) - 0.06) <= cpu <= max(1, max(shares) + 1.06)
    assert "4 builds, each compiled 2 times" in told.err
    assert ("compile_peak_rss_kib is left out: " in told.err) == ("compile_peak_rss_kib" not in block)
    assert main(("calibrate", *arguments, "--runs", "1")) == 2
    assert "--runs: 1 run shows no difference" in capsys.readouterr().err


def test_a_cell_that_cannot_be_compiled_is_said_and_left_out(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = native(suite, {"do": "fail", "model": "beta"})
    arguments = ("calibrate", "--compiler", spec, "--config", "c.yml", "--cache", "cache", "--target", "vmvx")
    assert main((*arguments, "--runs", "2")) == 0
    told = capsys.readouterr()
    assert [line.split()[:2] for line in told.out.splitlines()[1:-2]] == [["alpha", "vmvx"]]
    assert "beta on vmvx could not be compiled: " in told.err
    assert main((*arguments, "--runs", "2", "--model", "beta")) == 2
    assert "no cell could be compiled in every run" in capsys.readouterr().err
