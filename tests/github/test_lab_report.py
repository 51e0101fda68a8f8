"""bot.github.extra_reports: an experiment in place of a comparison, for runs by hand alone; what breaks is told."""

from __future__ import annotations

from dataclasses import dataclass, field

import lab_factory as make
import pytest
from action_stage import Stage

from bot.config.configuration import Config
from bot.core.lab import Experiment, Lab, lab_lines
from bot.errors import InputError
from bot.study.prepare import Request, Work

OWN = """\
schema: code-size-experiments/1
experiments:
  mine:
    question: Mine?
    columns: [fills]
    variants: {a: {}, b: {flags: [--x]}}
"""
FILES = {"lab.json", "lab.md", "lab.html"}


@dataclass
class Labs:
    """What was asked of the work that is not done here; `broken` is raised in its place."""

    asked: list[tuple[Experiment, Request, Config]] = field(default_factory=list)
    broken: Exception | None = None
    made: Lab = field(default_factory=make.timed)

    def __call__(self, experiment: Experiment, work: Work) -> Lab:
        request = work.request
        self.asked.append((experiment, request, work.config))
        assert request.config is not None and request.config.is_file(), "the commit's files are at hand"
        if self.broken:
            raise self.broken
        return self.made


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> Labs:
    found = Labs()
    monkeypatch.setattr("bot.github.extra_reports.experimented", found)
    return found


def test_a_run_by_hand_asks_its_head_and_compares_nothing(stage: Stage, labs: Labs) -> None:
    stage.main()
    ran = stage.dispatch(lab="opt-level", targets="vmvx")
    assert ran.code == 0 and ran.news.said[0] == "workflow_dispatch: lab (input lab: opt-level)", ran.error
    ((experiment, request, config),) = labs.asked
    assert experiment.name == "opt-level" and request.specs == {"head": stage.spec("one")}
    assert [path.name for path in config.models] == ["a.mlir"] and request.targets == ("vmvx",)
    assert {path.name for path in ran.out.iterdir()} == FILES
    assert (ran.out / "lab.json").read_bytes() == b"".join(lab_lines(labs.made))
    assert ran.summary.endswith((ran.out / "lab.md").read_text(encoding="utf-8")) and "Code size: " not in ran.summary


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("opt-levle", "input lab: no experiment is called 'opt-levle' (did you mean 'opt-level'"),
        ("gone.yml:mine", "gone.yml: cannot be read"),
        ("../own.yml:mine", "../own.yml is outside of the repository"),
        ("/etc/passwd:mine", "/etc/passwd is outside of the repository"),
    ],
)
def test_experiments_of_the_repository_are_named_with_their_file(
    stage: Stage, labs: Labs, name: str, words: str
) -> None:
    stage.main({"lab/own.yml": OWN})
    ran = stage.dispatch(lab=name)
    assert ran.code == 2 and words in ran.error and labs.asked == []
    assert "Code size" in ran.summary
    assert stage.dispatch(lab="lab/own.yml:mine").code == 0 and labs.asked[0][0].question == "Mine?"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"base": "3.11.0"}, "base"),
        ({"pull_request": "1"}, "pull-request"),
        ({"parts": "*.json"}, "parts"),
        ({"steps": "all"}, "steps"),
        ({"fold": "false"}, "fold"),
        ({"command": "pages"}, "command"),
    ],
)
def test_what_an_experiment_does_not_use_is_refused_by_name(
    stage: Stage, labs: Labs, given: dict[str, str], name: str
) -> None:
    stage.main()
    ran = stage.dispatch(lab="opt-level", **given)
    words = "is for comparisons, and the input lab asks for an experiment of the head side"
    assert ran.code == 2 and ran.error == f"input {name}: {words} (leave one of the two empty)"
    assert labs.asked == [] and words in ran.summary and ran.outputs["verdict"] == "unknown"


def test_what_breaks_is_told_in_the_summary_and_without_an_artifact_there_is_no_verdict(
    stage: Stage, labs: Labs
) -> None:
    labs.made = make.lab(make.failed("m", "vmvx", "a"))
    stage.main()
    ran = stage.dispatch(lab="opt-level")
    assert ran.code == 5 and "none of 1 builds was measured" in ran.error
    assert {path.name for path in ran.out.iterdir()} >= FILES
    labs.broken = InputError("is odd", where="a.mlir")
    ran = stage.dispatch(lab="depth")
    assert ran.code == 2 and "a.mlir: is odd" in ran.error and "is odd" in ran.summary
