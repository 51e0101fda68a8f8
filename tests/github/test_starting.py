"""A repository without a configuration: one clear line, and who is asked."""

from __future__ import annotations

from typing import Any

import pytest
from action_stage import MODEL, Ran, Stage

pytestmark = pytest.mark.slow

SUITE: dict[str, Any] = {"models": "mobilenet_v1_f32_224", "targets": "vmvx"}
HINT = (
    "(commit one, which `code-size-bot init` writes; "
    "or set the inputs config: default, base and head to measure the packaged suite)"
)


def without(stage: Stage, **inputs: Any) -> Ran:
    """A pull request in a repository that has no configuration."""
    stage.origin.push_main("Models", {"models/a.mlir": MODEL.format("a")})
    return stage.pull(*stage.open_pull({"notes.txt": "one\n"}), **inputs)


@pytest.mark.parametrize(
    ("config_path", "line"),
    [
        ("", "there is no .github/code-size.yml and no code-size.yml at this commit"),
        (".github/size.yml", ".github/size.yml: does not exist at this commit"),
        ("../code-size.yml", "../code-size.yml: does not exist at this commit"),
    ],
)
def test_it_is_said_in_one_line_before_anything_is_compiled(
    stage: Stage, config_path: str, line: str
) -> None:
    ran = without(stage, **({"config": config_path} if config_path else {}))
    assert ran.code == 2 and ran.error == f"{line} {HINT}"
    assert ran.outputs["verdict"] == "unknown" and stage.conclusions == ["failure"]
    assert line in ran.summary and line in stage.comments()[0]
    assert not (stage.home / "one" / "calls.jsonl").exists(), "nothing is compiled"


@pytest.mark.parametrize("command", ["push", "plan", "measure"])
def test_runs_without_a_pull_request_have_it_in_the_job_summary(
    stage: Stage, command: str
) -> None:
    sha = stage.origin.push_main("Models", {"models/a.mlir": MODEL.format("a")})
    inputs = {"plan": {"shards": "2"}, "measure": {"shard": "1/2"}}.get(command, {})
    ran = stage.push(
        sha, **inputs, **({} if command == "push" else {"command": command})
    )
    assert ran.code == 2 and ran.error.startswith("there is no .github/code-size.yml")
    assert "there is no .github/code-size.yml" in ran.summary
    assert not stage.hub.check_runs and not stage.hub.comments(1)


def test_the_packaged_suite_can_be_asked_for(stage: Stage) -> None:
    stage.compiler("two", [{"do": "differ"}])
    ran = without(
        stage, base=stage.spec("one"), head=stage.spec("two"), config="default", **SUITE
    )
    assert ran.code == 0 and ran.states == {
        "mobilenet_v1_f32_224 on vmvx": "changed"
    }, ran.error
    ran = stage.pull(
        *stage.open_pull({"notes.txt": "two\n"}, 2), config="default", **SUITE
    )
    assert (
        ran.code == 2
        and ran.error
        == "the packaged configuration: no compiler is named (give the inputs base and"
        " head)"
    )


def test_a_head_that_is_named_is_what_is_measured(stage: Stage) -> None:
    ran = without(stage, head=stage.spec("one"), **SUITE)
    assert (
        ran.code == 5
        and "No baseline: the head compiler is an input of this run" in ran.said
    )
