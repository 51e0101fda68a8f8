"""`lab` from the command line, with a fake for a compiler: what is asked, written, said and refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, FakeCompiler, install, install_native, write_model
from json_rows import JsonRow, read_json

from bot.cli.main import main

CONFIG = (
    "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx, rocm]\nflags:"
    " [--common]\n"
)
EXPERIMENTS = """\
schema: code-size-experiments/1
experiments:
  flags:
    question: What do flags do?
    columns: [artifact_bytes, executables]
    variants:
      plain: {}
      more: {flags: [--more]}
      odd: {flags: [--odd]}
      amd: {targets: {'ro*': [--iree-rocm-target=gfx1100, --own]}}
      never: {targets: {metal-spirv: [--own]}}
  one-target:
    question: Which?
    columns: [artifact_bytes]
    targets: [vm*]
    variants: {plain: {}, more: {flags: [--more]}}
"""
Asked = Callable[..., "tuple[int, str, list[str]]"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("alpha", "beta"):
        write_model(tmp_path, name)
    (tmp_path / "c.yml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "e.yml").write_text(EXPERIMENTS, encoding="utf-8")
    return tmp_path


def compiler(
    home: Path,
    rules: Sequence[dict[str, str]] = (),
    unknown: Sequence[str] = ("--odd",),
) -> FakeCompiler:
    fake = install(home / "fake", rules, unknown=unknown, templates=TEMPLATES)
    install_native(home / "bin" / "iree-compile", fake)
    return fake


@pytest.fixture
def run_lab(home: Path, capsys: pytest.CaptureFixture[str]) -> Asked:
    """Exit code, standard output and standard error of one run."""

    def run(*arguments: str) -> tuple[int, str, list[str]]:
        argv = [
            "--config",
            "c.yml",
            "--experiments",
            "e.yml",
            "--cache",
            "cache",
            "--out",
            "out",
        ]
        try:
            code = main(
                [
                    "lab",
                    *arguments,
                    *argv,
                    "--compiler",
                    str(home / "bin" / "iree-compile"),
                ]
            )
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err.splitlines()

    return run


def result(home: Path) -> JsonRow:
    return read_json(home / "out/lab.json")


def test_every_variant_is_measured_on_the_targets_that_have_it(
    home: Path, run_lab: Asked
) -> None:
    fake = compiler(home)
    code, out, _ = run_lab("flags")
    assert (
        code == 0
        and out.splitlines()[-1] == "written to out: lab.json, lab.md, lab.html"
    )
    lab = result(home)
    statuses = {
        (cell.model, cell.target, cell.variant): cell.status for cell in lab.cells
    }
    for model in ("alpha", "beta"):
        for target in ("rocm", "vmvx"):
            assert (
                statuses[model, target, "plain"]
                == statuses[model, target, "more"]
                == "ok"
            )
            assert statuses[model, target, "odd"] == "unsupported"
        assert (
            statuses[model, "rocm", "amd"] == "ok"
            and (model, "vmvx", "amd") not in statuses
        )
    assert len(statuses) == 14
    assert lab.notes == ["never: this run measures none of its targets"]
    assert [variant.name for variant in lab.variants] == [
        "plain",
        "more",
        "odd",
        "amd",
        "never",
    ]
    assert lab.variants[2].reason == "IREE 3.13.0rc1 does not know the option --odd"
    assert not [call for call in fake.calls("direct") if "--odd" in call["argv"]]


RANGES = """\
schema: code-size-config/1
models: ['*.mlir']
targets:
  llvm-cpu-x86_64: {extends: llvm-cpu-x86_64, flags: [--usual], releases: {"<99": [--old]}}
"""
ON_A_TARGET = """\
schema: code-size-experiments/1
experiments:
  ranges:
    question: Which flags?
    columns: [artifact_bytes]
    variants: {plain: {}, more: {targets: {x86_64: [--more]}}}
"""


def test_flags_of_a_range_of_releases_and_short_names_of_targets_hold_here_too(
    home: Path, run_lab: Asked
) -> None:
    compiler(home)
    (home / "c.yml").write_text(RANGES, encoding="utf-8")
    (home / "e.yml").write_text(ON_A_TARGET, encoding="utf-8")
    code, _, err = run_lab("ranges", "--model", "alpha")
    assert code == 0, err
    commands = {cell.variant: cell.command for cell in result(home).cells}
    assert "--old" in commands["plain"] and "--usual" not in commands["plain"]
    assert "--old" in commands["more"] and "--more" in commands["more"]


def test_the_printed_command_has_the_flags_of_the_compile(
    home: Path, run_lab: Asked
) -> None:
    fake = compiler(home)
    assert run_lab("flags", "--flags=--mine", "--model", "alpha")[0] == 0
    commands = {" ".join(call["argv"]) for call in fake.calls("direct")}
    measured = [cell for cell in result(home).cells if cell.measured]
    assert len(measured) == 5, "plain and more on both targets, amd on rocm alone"
    for cell in measured:
        flags = re.sub(r"^iree-compile - | -o \S+ < \S+$", "", cell.command)
        assert any(flags in argv for argv in commands), cell.command
        assert flags.index("--common") < flags.index("--mine")
    amd = next(cell for cell in result(home).cells if cell.variant == "amd")
    assert (
        amd.command.count("--iree-rocm-target=") == 1 and "gfx1100 --own" in amd.command
    )
    extended = next(cell for cell in result(home).cells if cell.variant == "more")
    assert "--common --mine --more" in extended.command


def test_what_is_known_is_not_compiled_again_and_gives_the_same_files(
    home: Path, run_lab: Asked
) -> None:
    fake = compiler(home)
    assert run_lab("flags")[0] == 0
    before = fake.compiles
    files = {
        name: (home / "out" / name).read_bytes() for name in ("lab.json", "lab.md")
    }
    assert run_lab("flags")[0] == 0
    assert fake.compiles == before
    assert {name: (home / "out" / name).read_bytes() for name in files} == files


def test_a_variant_whose_cells_fail_shows_why_and_the_others_go_on(
    home: Path, run_lab: Asked
) -> None:
    compiler(home, [{"do": "fail", "kind": "direct", "argv": "--more"}])
    code, out, _ = run_lab("flags", "--target", "vmvx")
    assert code == 0
    failed = [cell for cell in result(home).cells if cell.status == "failed"]
    assert {cell.variant for cell in failed} == {"more"} and all(
        cell.failure and cell.command for cell in failed
    )
    assert "more: 2 builds failed: " in " ".join(out.split())


def test_where_the_first_variant_is_not_measured_the_next_one_is_what_the_others_are_held_against(
    home: Path, run_lab: Asked
) -> None:
    text = EXPERIMENTS.replace(
        "      plain: {}\n      more:",
        "      v0: {flags: [--odd]}\n      plain: {}\n      more:",
    )
    (home / "e.yml").write_text(text, encoding="utf-8")
    compiler(home, [{"do": "grow", "kind": "direct", "argv": "--more"}])
    code, out, _ = run_lab("flags", "--target", "vmvx")
    assert code == 0
    printed = " ".join(out.split())
    assert "On vmvx, 2 models, against plain: more code size +" in printed
    assert "against v0" not in printed and "no change with" not in printed
    assert "odd, v0: 4 builds unsupported" in printed


def test_models_and_targets_are_those_that_experiment_and_selectors_leave(
    home: Path, run_lab: Asked
) -> None:
    compiler(home)
    assert run_lab("one-target", "--model", "al*")[0] == 0
    assert {(cell.model, cell.target) for cell in result(home).cells} == {
        ("alpha", "vmvx")
    }
    code, _, err = run_lab("one-target", "--model", "gamma")
    assert code == 2 and "matches no model" in err[-1]
    (home / "c.yml").write_text(CONFIG.replace("[vmvx, rocm]", "[rocm]"))
    code, _, err = run_lab("one-target")
    assert (
        code == 2
        and "one-target has nothing to measure (the configuration has none of its targets"
        in err[-1]
    )


def test_where_nothing_compiles_the_files_are_written_and_the_code_is_5(
    home: Path, run_lab: Asked
) -> None:
    compiler(home, [{"do": "fail", "kind": "direct"}])
    code, _, err = run_lab("one-target", "--model", "alpha")
    assert code == 5 and err[-1].startswith(
        "code-size-bot: out/lab.json: none of 2 builds was measured ("
    )
    assert {cell.status for cell in result(home).cells} == {"failed"}


def test_a_non_deterministic_build_shows_the_range_of_its_results(
    home: Path, run_lab: Asked
) -> None:
    compiler(home, [{"do": "flaky", "kind": "direct", "argv": "--more"}])
    assert run_lab("one-target", "--model", "alpha")[0] == 0
    assert {cell.variant: bool(cell.varies) for cell in result(home).cells} == {
        "plain": False,
        "more": True,
    }
    [steady, varying] = sorted(
        result(home).cells, key=lambda cell: cell.variant == "more"
    )
    low, high = varying.seen["artifact_bytes"]
    assert (steady.seen, high - low, varying.metrics["artifact_bytes"]) == (
        None,
        64,
        low,
    )
    text = (home / "out/lab.md").read_text(encoding="utf-8")
    assert (
        f"{low:,}..{high:,} (" in text
        and "are reported as the range of all results: `alpha` on" in text
    )


OF_MODELS = """\
schema: code-size-experiments/1
experiments:
  pairs:
    question: Which?
    columns: [artifact_bytes]
    targets: [vmvx]
    models: {pair: gamma.mlir}
    variants: {gamma: {}, delta: {models: {pair: delta.mlir}}}
  deep:
    question: How deep?
    columns: [artifact_bytes, compile_cpu_ms]
    targets: [vmvx]
    models: {tall: layer.mlir, flat: gamma.mlir}
    timing: true
    variants: {"1": {layers: 1}, "3": {layers: 3}, bounded: {assume: {max: 64}}}
"""


@pytest.fixture
def models(home: Path) -> Path:
    """Experiments with models of their own, beside the configuration's."""
    for name in ("gamma", "delta"):
        write_model(home, name)
    (home / "layer.mlir").write_text(
        "// repeat\n// layer {layer} of {layers}\n// end\nfunc\n", encoding="utf-8"
    )
    (home / "e.yml").write_text(OF_MODELS, encoding="utf-8")
    return home


def test_a_variant_has_a_file_of_its_own_for_a_model(
    models: Path, run_lab: Asked
) -> None:
    compiler(models, [{"do": "grow", "kind": "direct", "model": "delta"}])
    code, out, _ = run_lab("pairs")
    assert code == 0
    gamma, delta = sorted(
        result(models).cells, key=lambda cell: cell.variant == "delta"
    )
    assert (gamma.model, delta.model) == ("pair", "pair")
    assert gamma.command.endswith(
        "-o pair.vmfb < gamma.mlir"
    ) or gamma.command.endswith("/gamma.mlir")
    assert delta.command.rpartition("/")[2] == "delta.mlir"
    assert [
        Path(variant.models["pair"]).name for variant in result(models).variants[1:]
    ] == ["delta.mlir"]
    assert delta.metrics["artifact_bytes"] > gamma.metrics["artifact_bytes"]
    assert "against gamma: delta code size +" in " ".join(out.split())
    text = (models / "out/lab.md").read_text(encoding="utf-8")
    assert "- `gamma`: as the experiment has it\n- `delta`: `pair` is `" in text
    assert run_lab("pairs", "--model", "alpha")[0] == 2, (
        "the configuration's models are not the experiment's"
    )


@pytest.mark.parametrize("name", ["gamma", "delta"])
def test_a_file_that_is_missing_is_refused_before_any_compile(
    models: Path, run_lab: Asked, name: str
) -> None:
    fake = compiler(models)
    (models / f"{name}.mlir").unlink()
    code, _, err = run_lab("pairs")
    assert (code, fake.calls("direct")) == (2, [])
    assert err[-1].endswith(
        f"{name}.mlir: is not a file (check `models` of the experiment: pair)"
    )


def test_layers_are_written_beside_the_answer_and_what_cannot_be_rewritten_says_why(
    models: Path, run_lab: Asked
) -> None:
    fake = compiler(models)
    code, out, _ = run_lab("deep")
    assert code == 0
    lab = result(models)
    cells = {(cell.model, cell.variant): cell for cell in lab.cells}
    written = models / "out/models/3/tall.mlir"
    assert written.read_text(encoding="utf-8").splitlines()[2] == "// layer 3 of 3"
    assert cells["tall", "3"].command.endswith("-o tall.vmfb < models/3/tall.mlir")
    assert cells["tall", "3"].status == "ok" and len(fake.calls("direct")) >= 2
    assert (cells["flat", "1"].status, cells["flat", "1"].command) == ("failed", None)
    assert (
        cells["flat", "1"].failure
        == "the model has no lines between '// repeat' and '// end'"
    )
    assert {cells[model, "bounded"].failure for model in ("flat", "tall")} == {
        "no MLIR Python bindings beside this compiler"
    }
    assert [variant.layers for variant in lab.variants] == [1, 3, None]
    assert lab.variants[2].assume == {"min": 0, "max": 64, "divisor": 1}
    assert [row.metric for row in lab.growth if row.model == "tall"] == [
        "artifact_bytes",
        "compile_cpu_ms",
    ]
    assert (
        cells["tall", "1"].times_note == "this compiler prints no times of its passes"
    )
    printed = " ".join(out.split())
    assert "1, 3: 2 builds failed: the model has no lines between" in printed
    assert "Compile times n/a: this compiler prints no times of its passes" in printed


@pytest.mark.parametrize("arguments", [("--list",), (), ("flags", "--list")])
def test_experiments_are_listed_with_their_questions(
    run_lab: Asked, arguments: tuple[str, ...]
) -> None:
    code, out, _ = run_lab(*arguments)
    assert code == 0
    assert out.splitlines() == ["flags       What do flags do?", "one-target  Which?"]


@pytest.mark.usefixtures("home")
def test_without_a_compiler_it_says_how_to_name_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        main(
            [
                "lab",
                "flags",
                "--config",
                "c.yml",
                "--experiments",
                "e.yml",
                "--out",
                "out",
            ]
        )
        == 2
    )
    assert "no compiler is named (give --compiler SPEC" in capsys.readouterr().err
