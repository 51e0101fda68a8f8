"""docs/troubleshooting.md quotes messages: each one is made anew here and compared with the page.

A heading of the page names the error, and the first block below it holds the message.
`UPDATE_GOLDENS=1` writes the messages of today into the page.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from action_stage import MODEL, Ran, Stage
from comment_stage import GROWN, Commands
from fake_github import FakeGitHub
from github_runner import git
from json_texts import to_json
from main_pushes import GROWN as LARGER
from main_pushes import jobs, merge, started
from places import ROOT
from real_compilers import offered, own_cache
from replacing import replace
from strategies import plain_snapshot

from bot.cli.main import main

PAGE = ROOT / "docs/troubleshooting.md"
QUOTED = re.compile(
    r"^### (?P<title>.+)\n\n```text\n(?P<message>.+)\n```\n", re.MULTILINE
)
LEAST = 20
RELEASE = "3.13.0"
UNREACHABLE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
IN_A_JOB = {"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "ghs_of_this_job"}
COMMIT = "0123456789ab"
FOLDER = "/home/user/project"

BASE = plain_snapshot(("a", "vmvx", "ok"))
OTHER_SUITE = plain_snapshot(("b", "vmvx", "ok"))
OTHER_COMPILER = replace(OTHER_SUITE, compiler=replace(BASE.compiler, digest="f" * 64))
SNAPSHOTS = {
    "base.json": to_json(BASE),
    "head.json": to_json(OTHER_SUITE),
    "part-1.json": to_json(BASE),
    "part-2.json": to_json(OTHER_COMPILER),
    "old.json": (
        to_json(BASE).replace("code-size-snapshot/1", "code-size-snapshot/0", 1)
    ),
}
MERGED = "merge part-1.json part-2.json --out head.json"
NO_SCHEMA = "models: ['models/*.mlir']\n"
NO_LAST_RULE = "thresholds: [{metrics: [artifact_bytes], warn: 1%}]"
ADDITION = """\
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
OTHER_WHEEL = "iree_base_compiler-3.13.0-cp313-cp313-macosx_13_0_universal2.whl"
CONFIGURATION = (
    "schema: code-size-config/1\nmodels: ['models/*.mlir']\ntargets: [vmvx]\n"
)


class Case(NamedTuple):
    """A command that ends with an error, and the files and variables that it needs."""

    command: str
    files: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}
    in_git: bool = False
    offers_release: bool = False


def configured(lines: str) -> Case:
    """Return the case of a configuration with these lines."""
    text = f"schema: code-size-config/1\n{lines}\n"
    return Case("plan --shards 1", {"code-size.yml": text, "models/a.mlir": ADDITION})


def pinned(requirements: str | None) -> Case:
    """Return the case of a configuration whose compiler is pinned in a requirements file."""
    files = {
        "code-size.yml": (
            f"{CONFIGURATION}compiler: {{requirements: requirements.txt}}\n"
        ),
        "models/a.mlir": ADDITION,
    }
    if requirements is not None:
        files["requirements.txt"] = requirements
    return Case("measure --compiler HEAD --out head.json", files, in_git=True)


LOCAL: Mapping[str, Case] = {
    "No compiler is named": Case("compare"),
    "A SPEC is not a compiler": Case("compare iree-build base.json", SNAPSHOTS),
    "A release does not exist": Case(
        "compare 3.99.0 base.json", SNAPSHOTS, offers_release=True
    ),
    "A release cannot be downloaded": Case("compare 3.12.0 base.json", SNAPSHOTS),
    "The compiler cannot be started": Case(
        "compare ./iree-compile base.json", {**SNAPSHOTS, "iree-compile": "a text\n"}
    ),
    "The compiler is a script": Case(
        "compare venv/bin base.json",
        {**SNAPSHOTS, "venv/bin/iree-compile": "#!/bin/sh\n"},
    ),
    "A wheel is for another platform": Case(
        f"compare {OTHER_WHEEL} base.json",
        {**SNAPSHOTS, OTHER_WHEEL: ""},
    ),
    "No model has this name": Case(
        "report base.json base.json --model bert*", SNAPSHOTS
    ),
    "A snapshot has another format": Case("report base.json old.json", SNAPSHOTS),
    "`report` got releases": Case("report 3.11.0 3.13.0"),
    "No experiment has this name": Case("lab dept"),
    "Nothing could be compared": Case("report base.json head.json", SNAPSHOTS),
    "Shards do not belong together": Case(MERGED, SNAPSHOTS),
    "The output directory cannot be written": Case(
        "report base.json base.json --out notes.txt", {**SNAPSHOTS, "notes.txt": ""}
    ),
    "The folder is not a git repository": Case("init"),
    "`init` finds a configuration": Case(
        "init",
        {".github/code-size.yml": CONFIGURATION},
        in_git=True,
    ),
    "The configuration file does not exist": Case("plan --shards 1 --config size.yml"),
    "A key is unknown": configured("model: ['models/*.mlir']"),
    "The schema is missing": Case("plan --shards 1", {"code-size.yml": NO_SCHEMA}),
    "A glob matches no model": configured("models: ['model/*.mlir']"),
    "A target is unknown": configured("targets: [x86_64]"),
    "A flag is not a flag": configured("flags: [iree-opt-level=O2]"),
    "The thresholds have no last rule": configured(NO_LAST_RULE),
    "A threshold is not a number": configured(
        "thresholds: [{metrics: ['*'], warn: 4KB}]"
    ),
    "The pin is missing": pinned("numpy==2.0.0\n"),
    "The pin is a range": pinned("iree-base-compiler>=3.11\n"),
    "The requirements file is missing": pinned(None),
    "A token is given to a command that compiles": Case(
        f"measure --compiler {RELEASE} --out head.json", variables=IN_A_JOB
    ),
}
EXPERIMENTS = """\
schema: code-size-experiments/1
experiments:
  layers:
    question: What does a layer cost?
    columns: [artifact_bytes]
    models: {a: models/a.mlir}
    variants: {"1": {layers: 1}, "2": {layers: 2}}
"""
COMPILED: Mapping[str, Case] = {
    "The repeated lines have no end": Case(
        f"lab layers --compiler {RELEASE} --experiments experiments.yml",
        {
            "code-size.yml": CONFIGURATION,
            "experiments.yml": EXPERIMENTS,
            "models/a.mlir": f"// repeat\n{ADDITION}",
        },
    ),
    "The compiler does not know an option": Case(
        f"measure --compiler {RELEASE} --out head.json --flags=--iree-no-such-option",
        {"code-size.yml": CONFIGURATION, "models/a.mlir": ADDITION},
    ),
    "No model compiled": Case(
        f"measure --compiler {RELEASE} --out head.json",
        {
            "code-size.yml": CONFIGURATION,
            "models/a.mlir": ADDITION.replace("addf", "addi"),
        },
    ),
}
"""The cases that a real compiler decides."""


def lacking_configuration(stage: Stage) -> Ran:
    stage.origin.push_main("Models", {"models/a.mlir": MODEL.format("a")})
    return stage.pull(*stage.open_pull({"notes.txt": "one\n"}))


def ready(stage: Stage) -> tuple[str, str]:
    """Return head and merge commit of a pull request in a repository that has a configuration."""
    stage.main()
    return stage.open_pull({"models/a.mlir": MODEL.format("b")})


def refused_token(stage: Stage) -> Ran:
    pull = ready(stage)
    stage.token = "ghs_of_somebody_else"
    return stage.pull(*pull)


def lacking_permission(stage: Stage) -> Ran:
    pull = ready(stage)
    permissions = {"contents": "read", "checks": "write", "pull_requests": "read"}
    stage.token = stage.hub.token(permissions=permissions)
    return stage.pull(*pull)


def outdated_merge(stage: Stage) -> Ran:
    _, merge = ready(stage)
    return stage.pull("f" * 40, merge)


def locked(stage: Stage) -> Ran:
    pull = ready(stage)
    stage.hub.set_pull(1, locked=True)
    return stage.pull(*pull)


def other_author(stage: Stage) -> Ran:
    return stage.pull(*ready(stage), author="my-app[bot]")


def lost_measurement(stage: Stage) -> Ran:
    head, merge = ready(stage)
    return stage.pull(
        head, merge, command="report", measured="nowhere", outcome="cancelled"
    )


def commanded(stage: Stage, line: str) -> Ran:
    """Run the job that checks the command of a comment."""
    commands = Commands(stage)
    stage.main()
    commands.pull({"models/a.mlir": GROWN})
    commands.say(f"/code-size {line}")
    return commands.gate


def unknown_command(stage: Stage) -> Ran:
    return commanded(stage, "comapre base head")


def file_as_side(stage: Stage) -> Ran:
    return commanded(stage, "compare base dist/compiler.whl")


def flag_with_file(stage: Stage) -> Ran:
    return commanded(stage, "compare base head --flags=--iree-link-bitcode=x.bc")


def nothing_to_accept(stage: Stage) -> Ran:
    return commanded(stage, "accept needed for FP8")


def conflict(stage: Stage) -> Ran:
    commands = Commands(stage)
    stage.main()
    commands.pull({"models/a.mlir": GROWN})
    stage.hub.set_pull(1, merge_sha=None)
    commands.say("/code-size rerun")
    return commands.gate


def changed_report(stage: Stage) -> Ran:
    commands = Commands(stage)
    stage.main(states={"changed": "fail"})
    commands.pull({"models/a.mlir": GROWN})
    (report,) = commands.say("/code-size rerun")
    _, payload = commands.written("/code-size accept needed for FP8")
    (comment,) = (
        comment for comment in stage.hub.comments(1) if comment["body"] == report
    )
    stage.hub.edit_comment(comment["id"], f"{report}\nedited")
    commands.start(payload)
    return commands.gate


def single_baseline(stage: Stage) -> Ran:
    assert stage.push(stage.main()).code == 0
    return stage.dispatch(command="weekly")


def without_issues(stage: Stage) -> Ran:
    started(stage)
    stage.hub.turn_issues_off()
    return jobs(stage, merge(stage, LARGER))


ON_GITHUB: Mapping[str, Callable[[Stage], Ran]] = {
    "The repository has no configuration": lacking_configuration,
    "GitHub refuses the token": refused_token,
    "The token lacks a permission": lacking_permission,
    "The conversation is locked": locked,
    "The token has another author": other_author,
    "The merge commit is outdated": outdated_merge,
    "The measuring job left no result": lost_measurement,
    "The command in a comment is unknown": unknown_command,
    "A side is not allowed in a comment": file_as_side,
    "A flag is not allowed in a comment": flag_with_file,
    "GitHub has no merge commit": conflict,
    "There is nothing to accept": nothing_to_accept,
    "The report changed after the command": changed_report,
    "Only one baseline is stored": single_baseline,
}
LOGGED: Mapping[str, Callable[[Stage], Ran]] = {
    "Issues are turned off": without_issues,
}
"""The runs that go on, and whose log has the message."""


def quoted() -> dict[str, str]:
    """Return the messages of the page by their headings."""
    text = PAGE.read_text(encoding="utf-8")
    return {quote["title"]: quote["message"] for quote in QUOTED.finditer(text)}


def require_quoted(title: str, message: str) -> None:
    """Compare one message with the page, or write it there.

    Commits differ from run to run: `COMMIT` stands for them, as `FOLDER` does for the directory.
    """
    message = re.sub(r"\b[0-9a-f]{10,40}\b", COMMIT, message).replace(
        str(Path.cwd()), FOLDER
    )
    if os.environ.get("UPDATE_GOLDENS"):
        text = PAGE.read_text(encoding="utf-8")
        start = f"### {title}\n\n```text\n"
        pattern = re.compile(rf"({re.escape(start)}).+?(\n```\n)")
        text = pattern.sub(lambda match: f"{match[1]}{message}{match[2]}", text)
        PAGE.write_text(text, encoding="utf-8")
    assert quoted()[title] == message


def commit_all(folder: Path) -> None:
    """Make a repository of the folder, with all of its files in one commit."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=The first commit")


def printed_by(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command of a case in `folder` and return the one error line that it prints."""
    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if case.in_git:
        commit_all(folder)
    try:
        code = main(shlex.split(case.command))
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr().err.splitlines()
    lines = [line for line in printed if line.startswith("code-size-bot")]
    assert code > 1 and len(lines) == 1, lines
    return lines[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "CODE_SIZE_CACHE_LIMIT", *IN_A_JOB):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    return folder


def test_every_quoted_message_is_made_and_every_made_message_is_quoted() -> None:
    titles = [*LOCAL, *COMPILED, *ON_GITHUB, *LOGGED]
    assert len(titles) == len(set(titles)) >= LEAST
    assert sorted(quoted()) == sorted(titles)
    headings = re.findall(r"^### (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(titles)


@pytest.mark.parametrize("title", LOCAL)
def test_a_command_prints_what_the_page_quotes(
    title: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = LOCAL[title]
    index = (
        offered(tmp_path / "offered", RELEASE) if case.offers_release else UNREACHABLE
    )
    for name, value in {**index, **case.variables}.items():
        monkeypatch.setenv(name, value)
    require_quoted(title, printed_by(case, folder, capsys))


@pytest.fixture(scope="module")
def real_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_cache(tmp_path_factory.mktemp("cache"), RELEASE)


@pytest.mark.slow
@pytest.mark.parametrize("title", COMPILED)
def test_a_real_compiler_makes_what_the_page_quotes(
    title: str,
    real_cache: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CODE_SIZE_CACHE", str(real_cache))
    require_quoted(title, printed_by(COMPILED[title], folder, capsys))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        stage.compiler("one")
        yield stage
        hub.assert_contract()


@pytest.mark.slow
@pytest.mark.parametrize("title", ON_GITHUB)
def test_a_run_on_github_ends_with_what_the_page_quotes(
    title: str, stage: Stage
) -> None:
    ran = ON_GITHUB[title](stage)
    assert ran.code > 1
    require_quoted(title, ran.error)


@pytest.mark.slow
@pytest.mark.parametrize("title", LOGGED)
def test_the_log_of_a_run_has_what_the_page_quotes(title: str, stage: Stage) -> None:
    ran = LOGGED[title](stage)
    assert ran.code == 0 and ran.error == ""
    lines = [line for line in ran.news.said if line.startswith("cannot ")]
    assert len(lines) == 1, ran.said
    require_quoted(title, lines[0])
