"""Tokens: no child gets one, and a command that compiles on GitHub Actions refuses one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from action_stage import Stage
from fake_github import FakeGitHub
from github_runner import REPOSITORY, Runner, pull_event, push_event

from bot.system.cancel import Cancel
from bot.system.environment import scrubbed_environment
from bot.system.processes import run

SECRETS = {
    "GITHUB_TOKEN": "sesame",
    "GH_TOKEN": "sesame",
    "INPUT_GITHUB-TOKEN": "sesame",
    "ACTIONS_RUNTIME_TOKEN": "sesame",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "sesame",
    "ACTIONS_CACHE_URL": "https://sesame.example",
}
REFUSED = (
    "a command that compiles takes no token on GitHub Actions (remove it here, and give"
    " it to the job that"
)
COMPILING = {
    "measure": ("--compiler", "3.13.0", "--out", "head.json"),
    "compare": ("--base", "3.12.0", "--head", "3.13.0"),
    "lab": ("aggressive-fusion", "--compiler", "3.13.0"),
    "fold": ("--compiler", "3.13.0"),
    "history": ("--releases", "3.12.0..3.13.0"),
}


def at_a_shell(home: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """The exit code of a command, and what it said; in the environment of nobody in particular."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GITHUB_", "GH_", "ACTIONS_"))
    }
    environment = {**plain, "PYTHONPATH": str(REPOSITORY), **variables}
    argv = [sys.executable, "-m", "bot", *arguments]
    done = subprocess.run(
        argv, cwd=home, env=environment, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


def test_no_child_gets_a_token_of_github_not_even_one_that_is_handed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    assert "sesame" not in run(["env"], cancel=Cancel(), environment=SECRETS).output
    assert "sesame" not in str(scrubbed_environment(SECRETS))


def test_a_plan_compiles_nothing_and_may_see_a_token(tmp_path: Path) -> None:
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "ghs_sesame"}
    arguments = ("plan", "--shards", "2", "--config", "quick")
    code, printed = at_a_shell(tmp_path, *arguments, **variables)
    assert code == 0 and "sesame" not in printed, printed


@pytest.mark.parametrize("command", COMPILING)
@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "GH_TOKEN"])
def test_a_command_that_compiles_on_github_actions_refuses_a_token(
    tmp_path: Path, command: str, name: str
) -> None:
    variables = {"GITHUB_ACTIONS": "true", name: "ghs_sesame"}
    code, printed = at_a_shell(tmp_path, command, *COMPILING[command], **variables)
    assert code == 2 and f"code-size-bot: environment: {name}: {REFUSED}" in printed, (
        printed
    )
    assert (
        "sesame" not in printed
        and "Traceback" not in printed
        and list(tmp_path.iterdir()) == []
    )


def test_a_command_that_compiles_nothing_takes_a_token_there(tmp_path: Path) -> None:
    code, printed = at_a_shell(
        tmp_path, "targets", GITHUB_ACTIONS="true", GITHUB_TOKEN="ghs_sesame"
    )
    assert code == 0 and "vmvx" in printed, printed


@pytest.mark.parametrize("command", ["auto", "measure"])
@pytest.mark.parametrize("event", ["push", "pull_request"])
def test_the_action_refuses_a_token_before_it_compiles(
    stage: Stage, command: str, event: str
) -> None:
    main = stage.main()
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    payload = push_event(main) if event == "push" else pull_event(1, head, "octo/repo")
    sha, ref = (
        (main, "refs/heads/main") if event == "push" else (merge, "refs/pull/1/merge")
    )
    runner = Runner(stage.home, stage.hub, stage.origin, stage.home / "cache")
    ran = runner.job(
        event, payload, sha=sha, ref=ref, token=stage.token, run_id=7, command=command
    )
    assert ran.code == 2 and f"input github-token: {REFUSED}" in ran.log, ran.log
    assert "Traceback" not in ran.log and ran.outputs["verdict"] == "unknown"
    assert not (stage.home / "one" / "calls.jsonl").exists() and stage.hub.traffic == []


def test_a_compiler_sees_no_variable_of_the_runner_on_github_and_none_of_the_user_s_tokens(
    tmp_path: Path,
) -> None:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        fake = stage.compiler("one")
        environment_log = tmp_path / "seen.jsonl"
        shebang, _, program = fake.binary.read_text().partition("\n")
        look = f"import json, os\nwith open({str(environment_log)!r}, 'a') as file:\n"
        look += "    print(json.dumps({**os.environ}), file=file)"
        fake.binary.write_text(f"{shebang}\n{look}\n{program}")
        sha = stage.main()
        runner = Runner(tmp_path, hub, stage.origin, tmp_path / "cache")
        runner.environment = {
            name: value
            for name, value in SECRETS.items()
            if name.startswith("ACTIONS_")
        }
        place = {"sha": sha, "ref": "refs/heads/main"}
        ran = runner.job("push", push_event(sha), **place, run_id=7, command="measure")
        assert ran.code == 0, ran.log
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.mlir").write_text("// model a\nfunc.func @main()\n")
    (tmp_path / "c.yml").write_text(stage.config())
    arguments = (
        "--compiler",
        stage.spec("one"),
        "--config",
        "c.yml",
        "--out",
        "head.json",
        "--cache",
        "other",
    )
    code, printed = at_a_shell(tmp_path, "measure", *arguments, **SECRETS)
    assert code == 0, printed
    environments: list[Mapping[str, str]] = [
        json.loads(line) for line in environment_log.read_text().splitlines()
    ]
    assert len(environments) > 2
    for environment in environments:
        assert "sesame" not in str(environment)
        assert not [
            name
            for name in environment
            if name.startswith(("GITHUB_", "ACTIONS_", "INPUT_", "RUNNER_"))
        ]
