"""The command `/code-size lab`: who measures, who answers, and which files the answer is made of."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL
from comment_stage import GROWN, Commands, commands_of, line_of
from json_rows import read_json

LAB = "/code-size lab aggressive-fusion"
Row = dict[str, Any]


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with commands_of(tmp_path) as opened_commands:
        yield opened_commands


def test_the_answer_has_the_tables_of_the_lab_and_nobody_judges_it(
    commands: Commands,
) -> None:
    files = {"models/a.mlir": GROWN, "models/b.mlir": MODEL.format("b")}
    head, merge = commands.pull(files)
    (body,) = commands.say(f"{LAB} --model a --target vm*")
    assert list(commands.ran) == ["gate", "measure", "report"]
    assert [ran.code for ran in commands.ran.values()] == [0, 0, 0]
    assert commands.traffic["measure"] == [], (
        "GitHub is not asked by a job that compiles"
    )
    assert body.startswith("<!-- code-size-bot:default.")
    assert "**Lab: aggressive-fusion**" in body and "| `off` | " in body
    assert f"alice asked for this report: {LAB} --model a --target vm" in body
    assert "`b`" not in body, "the command selects one model"
    assert "/actions/runs/" in body
    assert commands.conclusions(head) == [] and commands.reports == []
    report = commands.ran["report"]
    assert "**Lab: aggressive-fusion**" in report.summary
    assert report.outputs["comment-url"] and report.outputs["report-path"]
    measured = read_json(commands.ran["measure"].out / "lab.json")
    answered = read_json(report.out / "lab.json")
    assert answered | {"notes": []} == measured | {"notes": []}
    for name in ("variant-1.json", "variant-2.json"):
        assert commands.ran["measure"].snapshot(name).source.sha == merge


def test_a_mistyped_experiment_is_answered_once_with_the_nearest(
    commands: Commands,
) -> None:
    commands.pull({"models/a.mlir": GROWN})
    _, payload = commands.written("/code-size lab agressive-fusion @mallory")
    (answer,) = commands.start(payload)
    assert line_of(answer) == (
        "⚠️ The command was not carried out: `/code-size lab: NAME: no experiment is"
        " called 'agressive-fusion' (did you mean 'aggressive-fusion'?)`"
    )
    assert list(commands.ran) == ["gate"] and commands.gate.code == 2
    assert commands.start(payload) == []
    (answer,) = commands.say("/code-size help")
    assert "`/code-size lab NAME [--model GLOB] [--target GLOB]`" in answer
    assert "`depth`" in answer and "`aggressive-fusion`" in answer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("aggressive-fusion --model @octocat/x", "matches no model (known: a)"),
        ("aggressive-fusion --target cuda", "matches no target (known: vmvx"),
        ("opt-level", "opt-level has nothing to measure"),
    ],
)
def test_a_selection_that_matches_nothing_is_answered_before_anything_is_measured(
    commands: Commands, arguments: str, message: str
) -> None:
    commands.pull({"models/a.mlir": GROWN})
    (body,) = commands.say(f"/code-size lab {arguments}")
    assert message in body and "variant" not in commands.ran["measure"].said
    assert commands.ran["measure"].code == commands.ran["report"].code == 2
    assert "@octocat" not in re.sub("`[^`]*`", "", body), "nobody is called"


def test_an_experiment_whose_builds_all_fail_has_no_result(commands: Commands) -> None:
    commands.stage.compiler("one", [{"do": "fail", "model": "longer"}])
    commands.pull({"models/a.mlir": GROWN})
    (body,) = commands.say(LAB)
    assert commands.ran["measure"].code == commands.ran["report"].code == 5
    assert "none of 2 builds was measured" in body


def test_on_a_fork_the_templates_of_the_base_draw_the_answer(
    commands: Commands,
) -> None:
    evil = {
        "code-size.yml": commands.stage.config(templates="templates"),
        "templates/lab.md.j2": "Looks good.\n",
    }
    commands.pull({"models/a.mlir": GROWN, **evil}, fork=True)
    assert commands.say(LAB, by="mallory") == []
    assert list(commands.ran) == ["gate"]
    (body,) = commands.say(LAB)
    assert "this report cannot check its numbers" in body
    assert "| `off` | " in body and "Looks good" not in body


def test_the_templates_of_the_repository_draw_the_answer(commands: Commands) -> None:
    template = {"templates/lab.answers.md.j2": "Our own answers.\n"}
    commands.stage.origin.push_main("Templates", template)
    commands.stage.main(templates="templates")
    commands.pull({"models/a.mlir": GROWN})
    (body,) = commands.say(LAB)
    assert "Our own answers." in body and "| `off` | " in body


def test_a_refused_comment_leaves_the_answer_in_the_summary(commands: Commands) -> None:
    commands.pull({"models/a.mlir": GROWN})
    _, payload = commands.written(LAB)
    commands.hub.fail_next("POST", "issues/1/comments", 403)
    assert commands.start(payload) == []
    report = commands.ran["report"]
    assert report.code == 3 and "pull-requests: write" in report.error
    assert "**Lab: aggressive-fusion**" in report.summary


def edited(change: Callable[[Row], object], name: str) -> Callable[[Path], None]:
    """Return what changes one of the files between the jobs."""

    def edit(folder: Path) -> None:
        path = folder / name
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    return edit


def other_experiment(measured: Row) -> None:
    measured["lab"]["experiment"] = "dedup"


def other_variants(measured: Row) -> None:
    measured["lab"]["variants"].reverse()


def many_variants(measured: Row) -> None:
    measured["lab"]["variants"] *= 100


def negative_ratio(measured: Row) -> None:
    price = {"before_us": 1, "after_us": 1, "pairs": 1, "ratio": -1.0}
    row = {"variant": "on", "model": "a", "target": "vmvx"}
    measured["lab"]["runs"] = [row | {"price": price | {"low": -1.0, "high": 1.0}}]


def unknown_build(measured: Row) -> None:
    row = {"variant": "on", "model": "@octocat", "target": "vmvx", "equal": True}
    measured["lab"]["runs"] = [row]


def many_phases(measured: Row) -> None:
    row = {"variant": "on", "model": "a", "target": "vmvx"}
    phases = [[f"phase {number}", 1] for number in range(1_000)]
    measured["lab"]["times"] = [row | {"phases": phases}]


def no_experiment(measured: Row) -> None:
    del measured["lab"]
    measured["standing"] = "nothing to measure"


def other_commit(snapshot: Row) -> None:
    snapshot["source"]["sha"] = "f" * 40


def link(folder: Path) -> None:
    (folder / "variant-1.json").unlink()
    (folder / "variant-1.json").symlink_to("/etc/hostname")


def missing(folder: Path) -> None:
    (folder / "variant-2.json").unlink()


TAMPERED: dict[str, tuple[Callable[[Path], None], str]] = {
    "experiment": (
        edited(other_experiment, "measured.json"),
        "is not a result of the experiment aggressive-fusion",
    ),
    "variants": (
        edited(other_variants, "measured.json"),
        "is not a result of the experiment aggressive-fusion",
    ),
    "many variants": (edited(many_variants, "measured.json"), "length <= 24"),
    "ratio": (edited(negative_ratio, "measured.json"), "no measurement gives"),
    "build": (edited(unknown_build, "measured.json"), "that was not measured"),
    "phases": (edited(many_phases, "measured.json"), "more than 100 times"),
    "no experiment": (
        edited(no_experiment, "measured.json"),
        "is not that of an experiment",
    ),
    "commit": (edited(other_commit, "variant-1.json"), "is of commit ffffffffff"),
    "link": (link, "artifact variant-1.json: is not a plain file"),
    "missing": (missing, "artifact variant-2.json: is missing"),
}


@pytest.mark.slow
def test_files_that_no_measuring_job_wrote_are_refused_in_one_line(
    commands: Commands, tmp_path: Path
) -> None:
    _, merge = commands.pull({"models/a.mlir": GROWN})
    number, payload = commands.written(LAB)
    command = commands.job("gate", payload, commands.main).outputs["asked"]
    measured = commands.job("measure", payload, merge, asked=command)
    assert measured.code == 0
    for kind, (tamper, message) in TAMPERED.items():
        folder = tmp_path / kind
        shutil.copytree(measured.out, folder)
        tamper(folder)
        inputs = {"asked": command, "measured": str(folder), "outcome": "success"}
        report = commands.job("report", payload, merge, **inputs)
        assert report.code == 2 and message in report.error, kind
        (body,) = commands.stage.comments(f"<!-- code-size-bot:default.{number} -->")
        assert message in body and "@octocat" not in re.sub("`[^`]*`", "", body)
        assert "Lab:" not in body, "no number of these files is shown"


@pytest.mark.slow
def test_files_of_an_experiment_make_no_report_of_the_pull_request(
    commands: Commands,
) -> None:
    head, merge = commands.pull({"models/a.mlir": GROWN})
    commands.say(LAB)
    measured = commands.ran["measure"].out
    _, payload = commands.written("/code-size rerun")
    command = commands.job("gate", payload, commands.main).outputs["asked"]
    inputs = {"asked": command, "measured": str(measured), "outcome": "success"}
    report = commands.job("report", payload, merge, **inputs)
    assert report.code == 2 and "is not that of a comparison" in report.error
    assert commands.conclusions(head) == ["failure"]
