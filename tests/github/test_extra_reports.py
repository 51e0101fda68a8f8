"""bot.github.extra_reports: a fold audit, an experiment in place of a comparison, and the site of what is stored."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import fold_factory
import lab_factory
import pytest
from action_stage import MODEL, Ran, Stage
from github_runner import event, git
from json_rows import fold_of

from bot.config.configuration import Config
from bot.core.fold import FoldOptions
from bot.core.lab import lab_lines
from bot.errors import BotError, InputError, Interrupted
from bot.github import extra_reports
from bot.study.prepare import Request, Work

pytestmark = pytest.mark.slow


@dataclass
class Stub:
    """Work that is not done here: what it was asked, and what it gives; `broken` is raised in its place."""

    result: Any
    asked: list[tuple[Any, Request, Config]] = field(default_factory=list)
    broken: Exception | None = None

    def __call__(self, *given: Any) -> Any:
        (work,) = (one for one in given if isinstance(one, Work))
        (wanted,) = (one for one in given if one is not work)
        assert work.request.config is None or work.request.config.is_file(), "the commit's files are at hand"
        self.asked.append((wanted, work.request, work.config))
        if self.broken:
            raise self.broken
        return self.result


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> Stub:
    stub = Stub(fold_factory.small())
    monkeypatch.setattr("bot.github.extra_reports.audited", stub)
    return stub


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> Stub:
    stub = Stub(lab_factory.timed())
    monkeypatch.setattr("bot.github.extra_reports.experimented", stub)
    return stub


# --- the fold audit of a run by hand or on a schedule, never of a pull request ---------------------------------------

FILES = {"fold.json", "fold.md"}


def by_hand(stage: Stage, inputs: dict[str, str] | None = None, **keys: Any) -> Ran:
    """A run by hand, of a second commit against the first."""
    stage.main(**keys)
    stage.origin.push_main("Second", {"models/a.mlir": MODEL.format("a") + "// longer\n"})
    return stage.dispatch(**(inputs or {}))


def on_schedule(stage: Stage, sha: str) -> Ran:
    return stage.run("schedule", {"schedule": "0 3 * * 0"}, sha, ref="refs/heads/main")


def test_a_run_by_hand_ends_with_the_audit_of_its_head(stage: Stage, audits: Stub) -> None:
    ran = by_hand(stage, fold={"max_slowdown": "1.5%"})
    assert ran.code == 0, ran.error
    ((options, request, config),) = audits.asked
    assert options == FoldOptions(0.015, run=True)
    assert request.specs == {"head": stage.spec("one")} and [path.name for path in config.models] == ["a.mlir"]
    assert fold_of((ran.out / "fold.json").read_bytes()) == fold_factory.small()
    section = (ran.out / "fold.md").read_text(encoding="utf-8")
    assert ran.summary.endswith(section) and (ran.out / "summary.md").read_text(encoding="utf-8").endswith(section)
    assert ran.summary.index("Code size: ") < ran.summary.index("Fold audit: ")
    assert "Fold audit" not in (ran.out / "comment.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "fold", "options"),
    [
        ({}, "true", FoldOptions()),
        ({"fold": {"max_slowdown": "1.5%"}}, "true", FoldOptions(0.015)),
        ({}, "", None),
        ({"fold": {}}, "false", None),
        ({"fold": {}}, "", FoldOptions()),
    ],
)
def test_the_input_goes_before_the_configuration(
    stage: Stage, audits: Stub, keys: dict[str, Any], fold: str, options: FoldOptions | None
) -> None:
    ran = by_hand(stage, {"fold": fold}, **keys)
    assert ran.code == 0, ran.error
    assert [one[0] for one in audits.asked] == ([] if options is None else [options])
    assert ("Fold audit: " in ran.summary) is (options is not None)
    assert bool(FILES & {path.name for path in ran.out.iterdir()}) is (options is not None)


def test_the_packaged_suite_can_be_folded_by_hand(stage: Stage, audits: Stub) -> None:
    inputs = {"config": "default", "models": "mobilenet_v1_f32_224", "targets": "vmvx", "fold": "true"}
    ran = by_hand(stage, {**inputs, "base": stage.spec("one"), "head": stage.spec("one")})
    assert ran.code == 0 and [one[1].config for one in audits.asked] == [None], ran.error


def test_a_pull_request_and_a_push_never_have_one(stage: Stage, audits: Stub) -> None:
    main = stage.main(fold={})
    assert stage.push(main).code == 0
    ran = stage.pull(*stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"}))
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}
    assert audits.asked == [] and "Fold audit" not in ran.summary


def test_a_schedule_has_one_even_where_the_baseline_is_stored_already(stage: Stage, audits: Stub) -> None:
    main = stage.main(fold={})
    for runs in (1, 2):
        ran = on_schedule(stage, main)
        assert ran.code == 0, ran.error
        assert len(audits.asked) == runs and audits.asked[-1][0] == FoldOptions()
        assert "**Fold audit: 3 of 6 builds folded**" in ran.summary
    assert "nothing to measure" in ran.said and {path.name for path in ran.out.iterdir()} >= FILES


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (InputError("is *odd* <b>", where="a.mlir"), r"a.mlir: is \*odd\* \<b\>"),
        (ValueError("of the program"), "a fault of the program, not of what it was given: ValueError"),
    ],
)
def test_an_audit_that_breaks_takes_nothing_from_the_report(
    stage: Stage, audits: Stub, broken: Exception, words: str
) -> None:
    audits.broken = broken
    ran = by_hand(stage, fold={})
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}
    assert words in ran.summary.partition("**Fold audit: not made**: ")[2] and "no fold audit: " in ran.said
    assert "Code size: " in ran.summary and not FILES & {path.name for path in ran.out.iterdir()}


def test_a_head_that_is_a_snapshot_has_none_and_an_interruption_ends_the_run(stage: Stage, audits: Stub) -> None:
    first = by_hand(stage, fold={})
    assert len(audits.asked) == 1
    sides = {"base": str(first.out / "base.json"), "head": str(first.out / "head.json")}
    ran = stage.dispatch(**sides)
    assert ran.code == 0 and "Fold audit" not in ran.summary, ran.error
    ran = stage.dispatch(**sides, fold="true")
    assert ran.code == 0 and len(audits.asked) == 1
    assert "Fold audit: not made" in ran.summary and "input head: folding needs a compiler" in ran.summary
    audits.broken = Interrupted("ended by SIGTERM")
    ran = stage.dispatch()
    assert ran.code == Interrupted.exit_code != BotError.exit_code and "ended by SIGTERM" in ran.error


# --- an experiment, for runs by hand alone ---------------------------------------------------------------------------

OWN = """\
schema: code-size-experiments/1
experiments:
  mine:
    question: Mine?
    columns: [fills]
    variants: {a: {}, b: {flags: [--x]}}
"""
LAB_FILES = {"lab.json", "lab.md", "lab.html"}


def test_a_run_by_hand_asks_its_head_and_compares_nothing(stage: Stage, labs: Stub) -> None:
    stage.main()
    ran = stage.dispatch(lab="opt-level", targets="vmvx")
    assert ran.code == 0 and ran.news.said[0] == "workflow_dispatch: lab (input lab: opt-level)", ran.error
    ((experiment, request, config),) = labs.asked
    assert experiment.name == "opt-level" and request.specs == {"head": stage.spec("one")}
    assert [path.name for path in config.models] == ["a.mlir"] and request.targets == ("vmvx",)
    assert {path.name for path in ran.out.iterdir()} == LAB_FILES
    assert (ran.out / "lab.json").read_bytes() == b"".join(lab_lines(labs.result))
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
    stage: Stage, labs: Stub, name: str, words: str
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
        ({"fold": "false"}, "fold"),
        ({"command": "pages"}, "command"),
    ],
)
def test_what_an_experiment_does_not_use_is_refused_by_name(
    stage: Stage, labs: Stub, given: dict[str, str], name: str
) -> None:
    stage.main()
    ran = stage.dispatch(lab="opt-level", **given)
    words = "is for comparisons, and the input lab asks for an experiment of the head side"
    assert ran.code == 2 and ran.error == f"input {name}: {words} (leave one of the two empty)"
    assert labs.asked == [] and words in ran.summary and ran.outputs["verdict"] == "unknown"


def test_what_breaks_is_told_in_the_summary_and_without_an_artifact_there_is_no_verdict(
    stage: Stage, labs: Stub
) -> None:
    labs.result = lab_factory.lab(lab_factory.failed("m", "vmvx", "a"))
    stage.main()
    ran = stage.dispatch(lab="opt-level")
    assert ran.code == 5 and "none of 1 builds was measured" in ran.error
    assert {path.name for path in ran.out.iterdir()} >= LAB_FILES
    labs.broken = InputError("is odd", where="a.mlir")
    ran = stage.dispatch(lab="depth")
    assert ran.code == 2 and "a.mlir: is odd" in ran.error and "is odd" in ran.summary


# --- the site of what is stored for the default branch, and of nothing else -------------------------------------------

GROWN = MODEL.format("a") + "// longer\n" * 400


@pytest.fixture
def commits(stage: Stage) -> list[str]:
    """Three pushes, each measured and stored, the last of which made the model's code larger."""
    found = [stage.main()]
    found.append(stage.origin.push_main("More", {"models/b.mlir": MODEL.format("b")}))
    found.append(stage.origin.push_main("Grown", {"models/a.mlir": GROWN}))
    for sha in found:
        assert stage.push(sha).code == 0
    return found


def test_the_site_is_the_newest_baseline_against_the_one_before_and_the_history_of_all(
    stage: Stage, commits: list[str]
) -> None:
    pushes = len(stage.hub.traffic)
    ran = stage.dispatch(command="pages")
    assert ran.code == 0, ran.error
    files = {path.name for path in ran.out.iterdir()}
    assert {"index.html", "report.html", "report.json", "history.json", "history.html"} <= files
    report = json.loads((ran.out / "report.json").read_text())
    assert (report["base"]["source"]["sha"], report["head"]["source"]["sha"]) == (commits[1], commits[2])
    assert {cell["model"]: cell["state"] for cell in report["cells"] if cell["target"] == "vmvx"} == {
        "a": "changed",
        "b": "same",
    }
    history = json.loads((ran.out / "history.json").read_text())
    points = [(point["compiler"], point["model"]) for point in history["points"]]
    assert history["schema"] == "code-size-history/1"
    names = [sha[:10] for sha in commits]
    assert points == [(name, model) for name in names for model in ("a", "b")]
    assert [point["status"] for point in history["points"]][:3] == ["ok", "unmeasured", "ok"]
    index = (ran.out / "index.html").read_text()
    links = re.findall(r'href="([^#"]*)"', index)
    assert set(links) == files - {"index.html"}
    assert commits[2][:10] in index and "3 baselines, 2 builds in the newest" in index
    assert not {one["method"] for one in stage.hub.traffic[pushes:]} - {"GET"}


def test_the_site_after_a_run_on_the_default_branch_of_many_baselines_and_of_damaged_ones(
    stage: Stage, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(ran: Ran) -> set[str]:
        assert ran.code == 0, ran.error
        return {point["compiler"] for point in json.loads((ran.out / "history.json").read_text())["points"]}

    first, second, third = (sha[:10] for sha in commits)
    by_hand = stage.dispatch(command="pages")
    payload = event("workflow_run.completed")
    payload["workflow_run"]["event"] = "push"
    followed = stage.run("workflow_run", payload, commits[-1], ref="refs/heads/main", command="pages")
    assert followed.code == 0, followed.error
    assert followed.news.said[0] == "workflow_run: pages (command pages)" and "nothing" not in followed.said
    sites = [{path.name: path.read_bytes() for path in ran.out.iterdir()} for ran in (by_hand, followed)]
    assert sites[0] == sites[1]
    monkeypatch.setattr(extra_reports, "MOST_BASELINES", 2)
    assert shown(stage.dispatch(command="pages")) == {second, third}
    stage.origin.push_main("Not measured", {"notes.txt": "none"})
    torn = {sha: next((stage.home / "store").rglob(f"{sha}*")) for sha in commits[1:]}
    torn[commits[1]].write_bytes(b"torn")
    ran = stage.dispatch(command="pages")
    assert shown(ran) == {first, third} and "skipped a stored baseline that is damaged" in ran.said
    torn[commits[2]].write_bytes(b"torn")
    ran = stage.dispatch(command="pages")
    assert shown(ran) == {first} and "1 baseline, 1 build in the newest" in (ran.out / "index.html").read_text()


def test_without_a_baseline_or_a_configuration_there_is_no_site_unless_the_packaged_one_is_meant(stage: Stage) -> None:
    stage.origin.push_main("Nothing", {"notes.txt": "none"})
    ran = stage.dispatch(command="pages")
    assert ran.code == 2 and "there is no .github/code-size.yml" in ran.error
    assert stage.dispatch(command="pages", config="default").code == 5
    stage.main()
    ran = stage.dispatch(command="pages")
    assert ran.code == 5 and "main: no baseline is stored (a push to the default branch stores one" in ran.error
    assert not (ran.out / "index.html").exists()


def test_nothing_is_made_of_a_pull_request_or_of_another_branch(stage: Stage, commits: list[str]) -> None:
    pull = stage.pull(*stage.open_pull({"models/a.mlir": MODEL.format("a")}), command="pages")
    git(stage.origin.bare, "branch", "other", commits[0])
    payload = event("workflow_dispatch.main")
    other = stage.run("workflow_dispatch", payload, commits[0], ref="refs/heads/other", command="pages")
    for ran, ref in ((pull, "refs/pull/1/merge"), (other, "refs/heads/other")):
        assert ran.code == 2 and f"pages are made of the default branch alone, not of {ref}" in ran.error
        assert not ran.out.exists()
