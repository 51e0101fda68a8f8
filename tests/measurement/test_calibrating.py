"""bot.study.calibrate: which cells are compiled again, what their spread is, and the lines that come of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from fake_compiler import ROCM, TEMPLATES, VMVX, X86, FakeCompiler, cells_of, install, install_native, write_model

from bot.cli.main import main
from bot.compiler.cell_cache import CellCache, cell_key
from bot.compiler.iree import Iree
from bot.config.configuration import load_config
from bot.config.units import parse_ratio
from bot.core.planned import Model, Target, plan
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Failure, SourceInfo
from bot.errors import InputError, UsageError
from bot.study.calibrate import FEW, Spread, band_percent, calibrate, chosen, repeated, spreads
from bot.study.prepare import Request, Work
from bot.study.run import Progress, Resources, SidePlan
from bot.system.processes import Cancel

CONFIG = "schema: code-size-config/1\nmodels: ['suite/*.mlir']\ntargets: [vmvx, llvm-cpu-x86_64]\n"


class Told:
    """A show, and a progress, that remember what they were told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.plans: list[tuple[int, int, float]] = []
        self.cells: list[str] = []
        self.cpu_ms: dict[str, int] = {}

    def say(self, line: str) -> None:
        self.lines.append(line)

    def report(self, _report: Report, _files: Sequence[Path]) -> None:
        raise AssertionError("nothing is reported")

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        yield self

    def plan(self, cells: int, cached: int, cost: float, *_words: str) -> None:
        self.plans.append((cells, cached, cost))

    def started(self, name: str) -> None:
        pass

    def ended(self, name: str) -> None:
        pass

    def measured(self, _side: str, cell: Cell, _cost: float) -> None:
        self.cells.append(cell.key.model)

    def spent(self, cpu_ms: Mapping[str, int], _jobs: int) -> None:
        self.cpu_ms = dict(cpu_ms)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


# Which cells.


def model(name: str, size_bytes: int) -> Model:
    return Model(name, f"{name}.mlir", f"{name}.mlir", "0" * 64, size_bytes)


def test_without_a_selection_the_cheapest_few_are_taken_of_different_targets_and_models() -> None:
    models = [model("tiny", 1), model("small", 2), model("large", 100), model("larger", 200), model("huge", 9000)]
    gone = Target("gone", "webgpu", unsupported="not registered")
    targets = [VMVX, X86, ROCM, Target("cuda", "cuda"), gone]
    found = [str(cell.key) for cell in chosen(plan(models, targets), everything=False)]
    assert found == ["large on cuda", "larger on rocm", "small on llvm-cpu-x86_64", "tiny on vmvx"]


def test_few_targets_are_used_again_and_what_was_selected_is_taken_whole() -> None:
    models = [model(name, index + 1) for index, name in enumerate("abcdef")]
    few = chosen(plan(models, [VMVX]), everything=False)
    assert [cell.key.model for cell in few] == ["a", "b", "c", "d"]
    assert len(few) == FEW
    assert chosen(plan(models, [VMVX]), everything=True) == plan(models, [VMVX])
    assert [cell.key.model for cell in chosen(plan(models[:1], [VMVX]), everything=False)] == ["a"]
    assert chosen((), everything=False) == ()


# The spread.


def runs(model_name: str, *values: int | None, failed: bool = False) -> dict[CellKey, list[Cell]]:
    key = CellKey(model_name, "vmvx")
    cells = [Cell(key, "ok", {"compile_cpu_ms": value}) for value in values]
    return {key: cells + ([Cell(key, "failed", failure=Failure("compile", "no"))] if failed else [])}


def test_a_spread_is_the_range_over_the_least_run() -> None:
    (found,) = spreads(runs("m", 210, 200, 204, 202, 209), "compile_cpu_ms")
    assert found == Spread(CellKey("m", "vmvx"), 200, 204, 210)
    assert found.share == Fraction(1, 20)


def test_a_cell_counts_only_where_every_run_knows_the_metric() -> None:
    known = {**runs("b", 10, 11), **runs("a", 10, 12)}
    unknown = {**runs("c", 10, None), **runs("d", 10, failed=True), **runs("e", 0, 5), **runs("f")}
    assert [spread.key.model for spread in spreads({**unknown, **known}, "compile_cpu_ms")] == ["a", "b"]
    assert spreads(known, "compile_peak_rss_kib") == ()


@pytest.mark.parametrize(
    ("values", "percent"),
    [([(100, 107)], 7), ([(1000, 1071)], 8), ([(100, 107), (100, 125)], 25), ([(500, 500)], 1), ([(10, 40)], 300)],
)
def test_the_band_is_the_largest_spread_rounded_up(values: list[tuple[int, int]], percent: int) -> None:
    assert band_percent([Spread(CellKey("m", "t"), low, low, high) for low, high in values]) == percent


# Real compiles, by a compiler that is quick.


def open_resources(tmp_path: Path, heard: Told) -> Resources:
    return Resources(CellCache(tmp_path / "cache"), 2, 60, Cancel(), heard)


def test_every_run_is_a_plain_compile_and_nothing_comes_from_the_cache_or_stays_in_it(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", templates=TEMPLATES)
    cells = cells_of(tmp_path, ["alpha"], [VMVX, X86])
    side, heard = SidePlan("head", Iree(fake.toolchain), cells, SourceInfo()), Told()
    resources = open_resources(tmp_path, heard)
    key = cell_key(fake.toolchain.info.digest, cells[0])
    resources.cache.store(key, Cell(cells[0].key, "ok", {"compile_cpu_ms": 1}))
    found = repeated(side, cells, 3, resources)
    assert {str(each): len(cells) for each, cells in found.items()} == {
        "alpha on llvm-cpu-x86_64": 3,
        "alpha on vmvx": 3,
    }
    assert len(fake.calls("direct")) == 6
    assert {cell.status for each in found.values() for cell in each} == {"ok"}
    assert all((cell.value("compile_cpu_ms") or 0) > 1 for each in found.values() for cell in each)
    assert (resources.cache.load(key) or found[cells[0].key][0]).metrics == {"compile_cpu_ms": 1}
    assert resources.cache.load(cell_key(fake.toolchain.info.digest, cells[1])) is None
    ((count, cached, cost),) = heard.plans
    assert (count, cached, len(heard.cells)) == (6, 0, 6)
    assert cost == pytest.approx(3 * sum(cell.cost for cell in cells))
    assert heard.cpu_ms["alpha"] >= sum(cell.value("compile_cpu_ms") or 0 for each in found.values() for cell in each)


def test_each_cell_is_compiled_once_before_any_is_compiled_again(tmp_path: Path) -> None:
    fake = install(tmp_path / "fake", templates=TEMPLATES)
    cells = cells_of(tmp_path, ["alpha", "beta"], [VMVX])
    heard = Told()
    repeated(SidePlan("head", Iree(fake.toolchain), cells, SourceInfo()), cells, 2, open_resources(tmp_path, heard))
    assert [set(heard.cells[:2]), set(heard.cells[2:])] == [{"alpha", "beta"}] * 2


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


def work(folder: Path, told: Told, spec: str, models: tuple[str, ...] = (), targets: tuple[str, ...] = ()) -> Work:
    request = Request({"head": spec}, folder / "c.yml", models, targets, jobs=2, cache=folder / "cache")
    return Work(request, load_config(request.config), told, Cancel())


def test_the_lines_are_a_table_and_what_the_configuration_reads(suite: Path) -> None:
    told = Told()
    lines = calibrate(work(suite, told, native(suite)), 2)
    header, *rows, blank, noise = lines
    assert header.split() == ["model", "target", "min", "ms", "median", "ms", "max", "ms", "spread"]
    assert [row.split()[:2] for row in rows] == [[m, t] for m in ("alpha", "beta") for t in ("llvm-cpu-x86_64", "vmvx")]
    assert len({len(line) for line in (header, *rows)}) == 1 and blank == ""
    shares = [float(row.split()[-2]) for row in rows]
    block: dict[str, str] = yaml.safe_load(noise)["noise"]
    assert set(block) <= {"compile_cpu_ms", "compile_peak_rss_kib"}
    cpu = parse_ratio(block["compile_cpu_ms"]).value * 100
    assert cpu.denominator == 1
    assert max(1, max(shares) - 0.06) <= cpu <= max(1, max(shares) + 1.06)
    assert "4 cells, each compiled 2 times" in told.lines
    left_out = [line for line in told.lines if line.startswith("compile_peak_rss_kib is left out: ")]
    assert len(left_out) == ("compile_peak_rss_kib" not in block)


def test_a_cell_that_cannot_be_compiled_is_said_and_left_out(suite: Path) -> None:
    told, spec = Told(), native(suite, {"do": "fail", "model": "beta"})
    lines = calibrate(work(suite, told, spec, targets=("vmvx",)), 2)
    assert [line.split()[:2] for line in lines[1:-2]] == [["alpha", "vmvx"]]
    assert [line for line in told.lines if line.startswith("beta on vmvx could not be compiled: ")]


def test_where_nothing_can_be_compiled_there_is_no_band(suite: Path) -> None:
    with pytest.raises(InputError, match="no cell could be compiled in every run"):
        calibrate(work(suite, Told(), native(suite, {"do": "fail", "model": "beta"}), models=("beta",)), 2)


def test_one_run_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--runs: 1 run shows no difference"):
        calibrate(Work(Request({"head": str(tmp_path / "none")}, cache=tmp_path), load_config(), Told(), Cancel()), 1)


def test_the_command_prints_the_lines_alone_on_standard_output(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--compiler", native(suite), "--config", "c.yml", "--cache", "cache", "--model", "alpha")
    assert main(("calibrate", *arguments, "--target", "vmvx", "--runs", "2")) == 0
    found = capsys.readouterr()
    header, row, blank, noise = found.out.splitlines()
    assert (row.split()[:2], blank, noise.startswith("noise: {compile_cpu_ms: ")) == (["alpha", "vmvx"], "", True)
    assert header.startswith("model") and "1 cell, each compiled 2 times" in found.err
    assert main(("calibrate", *arguments, "--runs", "1")) == 2
    with pytest.raises(SystemExit, match="0"):
        main(("calibrate", "--help"))
    assert "example:\n  code-size-bot calibrate --compiler 3.13.0" in capsys.readouterr().out
