"""`compare --flags`, `--head-config`: one command tries a flag or an edited model; and JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_compiler import TEMPLATES, install, install_native, write_model

from bot.cli.main import main

FLAG = "--iree-opt-level=O2"
CONFIG = (
    "schema: code-size-config/1\nmodels: ['suite/*.mlir']\ntargets: [vmvx,"
    " llvm-cpu-x86_64]\n"
)


@dataclass(frozen=True)
class Outcome:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(self.out)
        return plain

    @property
    def states(self) -> dict[str, str]:
        return {
            f"{cell['model']} on {cell['target']}": cell["state"]
            for cell in self.report["cells"]
        }

    def flags(self, side: str) -> list[str]:
        """Those that are the user's."""
        return [
            flag
            for flag in self.report[side]["flags"]
            if "opt-level" in flag or "user" in flag
        ]


@dataclass(frozen=True)
class Lab:
    """A directory with a suite, a configuration and a compiler."""

    home: Path
    capture: pytest.CaptureFixture[str]
    spec: str = "./iree-compile"

    def write(self, name: str, text: str) -> None:
        (self.home / name).parent.mkdir(parents=True, exist_ok=True)
        (self.home / name).write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> Outcome:
        code = main((*arguments, "--cache", "cache"))
        return Outcome(code, *self.capture.readouterr())

    def compare(self, *arguments: str) -> Outcome:
        return self.run("compare", "--format", "json", *arguments)


@pytest.fixture
def lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Lab:
    (tmp_path / "suite").mkdir()
    write_model(tmp_path / "suite", "alpha")
    write_model(tmp_path / "suite", "beta")
    install_native(
        tmp_path / "iree-compile", install(tmp_path / "fake", templates=TEMPLATES)
    )
    monkeypatch.chdir(tmp_path)
    lab = Lab(tmp_path, capsys)
    lab.write("code-size.yml", CONFIG)
    return lab


@pytest.mark.parametrize("options", ["--compiler", "--base --head", "--base", "--head"])
def test_flags_are_tried_on_the_head_side_alone(lab: Lab, options: str) -> None:
    sides = [word for option in options.split() for word in (option, lab.spec)]
    flags = (f"--flags={FLAG}",) if "--head" in sides else ("--flags", FLAG)
    outcome = lab.compare(*sides, *flags, "--target", "vmvx")
    assert outcome.states == {
        "alpha on vmvx": "changed",
        "beta on vmvx": "changed",
    }, outcome.err
    assert (outcome.flags("base"), outcome.flags("head")) == ([], [FLAG])
    option = (
        "--compiler"
        if "--compiler" in sides
        else "--head"
        if "--base" not in sides
        else "--base"
    )
    assert outcome.report["baseline"]["rule"] == f"{option} iree-compile"


@pytest.mark.parametrize("pin", ["head", "base"])
def test_where_nobody_names_a_compiler_both_sides_have_that_of_the_configuration(
    lab: Lab, pin: str
) -> None:
    lab.write(
        "code-size.yml",
        f"{CONFIG}compiler: {{{pin}: ./iree-compile}}\nflags: [--user]\n",
    )
    outcome = lab.compare(f"--flags={FLAG}", "--model", "alpha", "--target", "x86_64")
    assert outcome.states == {"alpha on llvm-cpu-x86_64": "changed"}, outcome.err
    assert (outcome.flags("base"), outcome.flags("head")) == (
        ["--user"],
        ["--user", FLAG],
    )
    assert outcome.report["baseline"]["rule"] == f"compiler.{pin} of the configuration"
    assert lab.compare(f"--{'base' if pin == 'head' else 'head'}", lab.spec).code == 0


def test_several_flags_are_words_of_a_shell_and_add_up_in_measure_too(lab: Lab) -> None:
    flags = ("--flags=--user-a='x y' --user-b", "--flags", "--user-c")
    expected = ["--user-a=x y", "--user-b", "--user-c"]
    outcome = lab.compare("--compiler", lab.spec, *flags, "--target", "vmvx")
    assert outcome.flags("head") == expected, outcome.err
    assert (
        lab.run("measure", "--compiler", lab.spec, *flags, "--out", "head.json").code
        == 0
    )
    assert json.loads((lab.home / "head.json").read_text())["flags"][-3:] == expected


def test_a_flag_that_is_none_is_refused_as_the_configuration_refuses_it(
    lab: Lab,
) -> None:
    with pytest.raises(SystemExit, match="2"):
        lab.compare("--compiler", lab.spec, "--flags=O2")
    assert lab.capture.readouterr().err.endswith(
        "--flags: 'O2' is not a flag: a flag begins with - and has its value after =\n"
    )
    for flag, message in (
        ("-O2", "flags: '-O2' does not fit: an IREE flag begins with --"),
        ("--iree-hal-target-backends=llvm-cpu", "(name a target with that backend)"),
        ("--compile-to=flow", "flags: --compile-to is not a flag for a build"),
    ):
        outcome = lab.compare("--compiler", lab.spec, f"--flags={flag}")
        assert outcome.code == 2 and message in outcome.err, outcome.err
    install(lab.home / "fake", unknown=["--no-such"], templates=TEMPLATES)
    outcome = lab.compare("--compiler", lab.spec, "--flags=--no-such=1")
    assert (
        outcome.code == 2
        and "flags: the head compiler (" in outcome.err
        and "option --no-such" in outcome.err
    )


def test_a_side_that_was_measured_before_has_no_flags_to_try(lab: Lab) -> None:
    assert lab.run("measure", "--compiler", lab.spec, "--out", "old.json").code == 0
    outcome = lab.compare("--base", "old.json", "--head", lab.spec, f"--flags={FLAG}")
    assert set(outcome.states.values()) == {"changed"}, outcome.err
    outcome = lab.compare("--base", lab.spec, "--head", "old.json", f"--flags={FLAG}")
    line = (
        "old.json: is a finished snapshot, so flags and configuration cannot be changed"
        " on it"
    )
    assert outcome.code == 2 and line in outcome.err
    outcome = lab.compare("--base", "old.json", f"--flags={FLAG}")
    assert (
        outcome.code == 2
        and "no compiler for the head side (give --compiler SPEC, such as"
        in outcome.err
    )


def test_an_edited_model_is_compared_with_the_original(lab: Lab) -> None:
    write_model(lab.home / "suite", "alpha", "func.func @main()")
    (lab.home / "edited").mkdir()
    write_model(lab.home / "edited", "alpha", "func.func @main() // another")
    lab.write("edited.yml", CONFIG.replace("suite/", "edited/").replace("vmvx, ", ""))
    outcome = lab.compare("--compiler", lab.spec, "--head-config", "edited.yml")
    assert outcome.states == {
        "alpha on llvm-cpu-x86_64": "changed",
        "alpha on vmvx": "removed",
        "beta on llvm-cpu-x86_64": "removed",
        "beta on vmvx": "removed",
    }, outcome.err
    assert "configuration: code-size.yml\n" in outcome.err


def test_two_configurations_are_two_repository_states_and_the_base_judges(
    lab: Lab,
) -> None:
    rules = (
        "thresholds: [{name: mine, metrics: [artifact_bytes], fail: 0B}, {metrics:"
        " ['*']}]\ntargets: [vmvx]\n"
    )
    plain = CONFIG.replace("targets: [vmvx, llvm-cpu-x86_64]\n", "")
    grows = install(lab.home / "other", [{"do": "grow"}], templates=TEMPLATES)
    install_native(lab.home / "build" / "iree-compile", grows)
    lab.write("a.yml", f"{plain}{rules}compiler: {{head: ./iree-compile}}\n")
    lab.write(
        "b.yml", f"{plain}targets: [vmvx]\ncompiler: {{head: ./build/iree-compile}}\n"
    )
    outcome = lab.compare("--config", "a.yml", "--head-config", "b.yml")
    assert (outcome.code, set(outcome.states.values())) == (1, {"changed"}), outcome.err
    assert {finding["rule"] for finding in outcome.report["verdict"]["findings"]} == {
        "mine"
    }
    assert "configuration:" not in outcome.err
    outcome = lab.compare("--config", "b.yml", "--head-config", "b.yml")
    assert set(outcome.states.values()) == {"same"} and outcome.code == 0, outcome.err
    outcome = lab.compare("--compiler", lab.spec, "--head-config", "none.yml")
    assert (
        outcome.code == 2
        and "none.yml: cannot be read: No such file or directory (without --config"
        in outcome.err
    )


def test_json_is_what_the_report_has_and_alone_on_standard_output(lab: Lab) -> None:
    outcome = lab.compare("--compiler", lab.spec, f"--flags={FLAG}")
    assert outcome.out == (lab.home / "out/report.json").read_text(encoding="utf-8")
    assert (
        "written to out: " in outcome.err
        and " on 2 sides), 0 from the cache" in outcome.err
    )
    sides = (
        "--base",
        "out/base.json",
        "--head",
        "out/head.json",
        "--config",
        "default",
    )
    again = lab.run("report", "-q", "--format", "json", *sides)
    assert (
        again.out == (lab.home / "out/report.json").read_text(encoding="utf-8")
        and again.err == ""
    )
    drawn = lab.run("report", *sides)
    assert not drawn.out.startswith("{") and drawn.err == ""


def test_on_a_runner_json_holds_no_command_and_says_the_same(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.compare(
        "--compiler", lab.spec, "--flags=--user='##[error]x'", "--target", "vmvx"
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    outcome = lab.run(
        "report",
        "--format",
        "json",
        "--base",
        "out/base.json",
        "--head",
        "out/head.json",
    )
    assert "##[" not in outcome.out and outcome.report == json.loads(
        (lab.home / "out/report.json").read_text()
    )
    assert "--user=##[error]x" in outcome.flags("head")
