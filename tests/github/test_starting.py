"""A repository without a configuration: one clear line, a starter that works when it is committed, and who is asked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from action_stage import Ran, Stage
from github_runner import MARKER
from golden_files import check_golden
from test_comment import assert_harmless
from test_opening import install_release

pytestmark = pytest.mark.slow

PIN = {"requirements.txt": "numpy\niree-base-compiler==3.12.0\n"}
MODEL = "// model {}\nfunc.func @main(%a: tensor<4xf32>)\n"
MODELS = {"models/a.mlir": MODEL.format("a"), "models/b.mlir": MODEL.format("b"), "tests/c.mlir": MODEL.format("c")}


def without(stage: Stage, files: dict[str, str] | None = None, **inputs: Any) -> Ran:
    """A pull request in a repository that has no configuration."""
    stage.origin.push_main("Models", files if files is not None else {**PIN, **MODELS})
    return stage.pull(*stage.open_pull({"notes.txt": "one\n"}), **inputs)


def starter(text: str) -> tuple[str, str]:
    """File and text of the starter in a comment or summary."""
    named, shown = re.search(r"^Commit this as `([^`]+)`", text, re.M), re.search(r"```yaml\n(.*?)```", text, re.S)
    assert named and shown
    return named[1], shown[1]


def test_it_is_said_in_one_line_with_a_starter_and_is_bad_configuration(stage: Stage) -> None:
    ran = without(stage)
    assert ran.code == 2 and ran.error == (
        "there is no .github/code-size.yml and no code-size.yml at this commit (commit one: the job summary has a "
        "starter that fits this repository; or, to measure the packaged suite, give the action config: default, and "
        "the inputs base and head)"
    )
    assert ran.outputs["verdict"] == "unknown" and stage.conclusions == ["failure"]
    (body,) = stage.comments()
    shown = body[body.index("⚪") :]
    assert body.startswith(MARKER) and ran.summary.strip() == body.strip()
    (check,) = stage.hub.check_runs
    assert check["output"]["title"] == "Code size: not known, there is no configuration"
    assert check["output"]["summary"].strip() == shown.strip()
    assert not (stage.home / "one" / "calls.jsonl").exists(), "nothing is compiled"
    assert_harmless(shown.partition("<sub>[workflow run]")[0])
    check_golden("starter.md", re.sub(r"runs/\d+", "runs/7", shown))


@pytest.mark.parametrize(("given", "file"), [("", "code-size.yml"), (".github/code-size.yml", ".github/code-size.yml")])
def test_a_starter_that_is_committed_works(stage: Stage, given: str, file: str) -> None:
    install_release(stage, "3.12.0")
    inputs: dict[str, Any] = {"config": given} if given else {}
    ran = without(stage, **inputs)
    name, text = starter(ran.summary)
    assert ran.code == 2 and name == file
    stage.origin.push_main("The starter", {name: text})
    ran = stage.pull(*stage.open_pull({"models/a.mlir": MODEL.format("a") + "// more\n"}, 2), targets="vmvx", **inputs)
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed", "b on vmvx": "same"}, ran.error
    assert ran.report.head.compiler.version == "3.12.0"


def test_a_starter_without_models_and_pin_works_and_says_what_it_takes(stage: Stage) -> None:
    ran = without(stage, {"README.md": "# Hello\n"})
    name, text = starter(ran.summary)
    assert "the packaged suite, as none was found here" in ran.summary and "no file here pins one" in ran.summary
    install_release(stage, re.findall(r"head: iree-base-compiler==(\S+)}", text)[0])
    stage.origin.push_main("The starter", {name: text})
    pull = stage.open_pull({"notes.txt": "two\n"}, 2)
    ran = stage.pull(*pull, models="mobilenet_v1_f32_224", targets="vmvx")
    assert ran.code == 0 and ran.states == {"mobilenet_v1_f32_224 on vmvx": "same"}, ran.error


def test_the_packaged_suite_can_be_asked_for(stage: Stage) -> None:
    stage.compiler("two", [{"do": "differ"}])
    only: dict[str, Any] = {"models": "mobilenet_v1_f32_224", "targets": "vmvx", "config": "default"}
    ran = without(stage, base=stage.spec("one"), head=stage.spec("two"), **only)
    assert ran.code == 0 and ran.states == {"mobilenet_v1_f32_224 on vmvx": "changed"}, ran.error
    ran = stage.pull(*stage.open_pull({"notes.txt": "two\n"}, 2), **only)
    assert ran.code == 2 and ran.error == (
        "the packaged configuration: no compiler is named (give the inputs base and head)"
    )
    assert "```yaml" not in ran.summary, "the packaged suite is what is wanted"


def test_a_head_that_is_named_is_what_is_measured(stage: Stage) -> None:
    ran = without(stage, head=stage.spec("one"), models="mobilenet_v1_f32_224", targets="vmvx")
    assert ran.code == 5 and "No baseline: the head compiler is an input of this run" in ran.said


@pytest.mark.parametrize("command", ["push", "plan", "measure"])
def test_runs_without_a_pull_request_have_it_in_the_job_summary(stage: Stage, command: str) -> None:
    sha = stage.origin.push_main("Models", {**PIN, **MODELS})
    inputs = {"plan": {"shards": "2"}, "measure": {"shard": "1/2"}}.get(command, {})
    ran = stage.push(sha, **inputs, **({} if command == "push" else {"command": command}))
    assert ran.code == 2 and ran.error.startswith("there is no .github/code-size.yml")
    assert starter(ran.summary)[0] == "code-size.yml"
    assert not stage.hub.check_runs and not stage.hub.comments(1)


@pytest.mark.parametrize(
    ("there", "given", "said"),
    [
        (
            "code-size.yml",
            ".github/size.yml",
            ".github/size.yml: does not exist at this commit (write config: code-size.yml, ",
        ),
        (".github/code-size.yaml", "", "(rename .github/code-size.yaml to end with .yml, or write config: .github/"),
        (
            "code-size.yaml",
            "code-size.yml",
            "code-size.yml: does not exist at this commit (write config: code-size.yaml, ",
        ),
    ],
)
def test_a_configuration_under_another_name_needs_no_second_one(
    stage: Stage, there: str, given: str, said: str
) -> None:
    ran = without(stage, {**MODELS, there: stage.config()}, **({"config": given} if given else {}))
    assert ran.code == 2 and said in ran.error and "```yaml" not in ran.summary


@pytest.mark.parametrize("given", ["../code-size.yml", "/etc/hostname", "a/../../b.yml"])
def test_a_path_that_leaves_the_repository_is_no_place_for_a_starter(stage: Stage, given: str) -> None:
    ran = without(stage, config=given)
    assert ran.code == 2
    if given != "/etc/hostname":
        assert starter(ran.summary)[0] == "code-size.yml"


def test_names_of_any_kind_are_harmless_and_never_too_long(stage: Stage) -> None:
    names = ["@octocat.mlir", "`x`<b>.mlir", "#1 ```.mlir", "[a](b).mlir", "ö 模型.mlir"]
    deep = "/".join(["d" * 200] * 8)
    files = {f"models/{name}": MODEL.format("a") for name in names}
    files |= {f"{deep}/{number:02}{'x' * 150}.mlir": MODEL.format(str(number)) for number in range(20)}
    files |= {f"tests/{name}": MODEL.format("a") for name in names}
    ran = without(stage, files)
    (body,) = stage.comments()
    assert_harmless(body.partition("-->\n⚪")[2].partition("<sub>[workflow run]")[0])
    assert len(body) < 30_000 and ran.code == 2
    assert "# No model was found here" in starter(body)[1] or "models:\n" in starter(body)[1]
