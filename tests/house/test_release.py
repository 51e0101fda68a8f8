"""A release of this repository, in real ones: what its tags point to, and what `.github/release.py` refuses."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import needs
import pytest
from github_runner import git
from packaging.version import Version
from places import ROOT

from bot import __version__

SCRIPT = ROOT / ".github" / "release.py"
TAG = "v1.2.3"
IMAGE = f"ghcr.io/acme/code-size-bot@sha256:{'ab' * 32}"
OTHER = IMAGE.replace("ab", "cd")
CHANGELOG = """\
# Changelog

## [Unreleased]

- later

## [1.2.3] - 2026-01-31

### Added

- All.

## [1.2.2] - 2026-01-30

- Some.
"""


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE = loaded()


@dataclass(frozen=True)
class House:
    """A repository that is released, where others see it, and as a runner of GitHub checks it out."""

    origin: Path
    work: Path

    def prepare(
        self,
        version: str = "1.2.3",
        changelog: str = CHANGELOG,
        *,
        annotated: bool = False,
    ) -> str:
        """A tagged commit on main; its SHA."""
        (self.work / "bot").mkdir(exist_ok=True)
        (self.work / "bot" / "__init__.py").write_text(
            f'"""The bot."""\n\n__version__ = "{version}"\n'
        )
        (self.work / "CHANGELOG.md").write_text(changelog)
        shutil.copy(ROOT / "action.yml", self.work)
        git(self.work, "add", ".")
        git(self.work, "commit", "--quiet", "--allow-empty", "-m", f"Version {version}")
        git(
            self.work,
            "tag",
            *(("-a", "-m", "words") if annotated else ()),
            f"v{version}",
        )
        git(self.work, "push", "--quiet", "origin", "main", f"v{version}")
        return git(self.work, "rev-parse", "HEAD")

    def runner(self, sha: str) -> Path:
        """A clone of one commit, as actions/checkout makes it."""
        top = self.work.parent / f"runner-{len(list(self.work.parent.iterdir()))}"
        git(self.work.parent, "init", "--quiet", str(top))
        git(top, "remote", "add", "origin", f"file://{self.origin}")
        git(top, "fetch", "--quiet", "--depth=1", "origin", sha)
        git(top, "checkout", "--quiet", "--detach", sha)
        return top

    def publish(self, sha: str, tag: str = TAG, image: str = IMAGE) -> str:
        commit: str = RELEASE.publish(self.runner(sha), tag, image)
        return commit

    def at(self, ref: str) -> str:
        return git(self.origin, "rev-parse", f"{ref}^{{commit}}")


@pytest.fixture
def house(tmp_path: Path) -> House:
    origin = tmp_path / "origin"
    work = tmp_path / "work"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    git(origin, "config", "uploadpack.allowReachableSHA1InWant", "true")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(work))
    git(work, "remote", "add", "origin", f"file://{origin}")
    return House(origin, work)


def refusal(house: House, sha: str, tag: str = TAG, image: str = IMAGE) -> str:
    before = git(house.origin, "show-ref")
    with pytest.raises(RELEASE.Refused) as caught:
        house.publish(sha, tag, image)
    assert git(house.origin, "show-ref") == before
    return str(caught.value)


# The action of a release.


def test_one_line_of_this_repository_s_action_changes_and_github_takes_it(
    tmp_path: Path,
) -> None:
    before = (ROOT / "action.yml").read_text(encoding="utf-8")
    after = RELEASE.released(before, IMAGE)
    changed = [
        pair
        for pair in zip(before.splitlines(), after.splitlines(), strict=True)
        if pair[0] != pair[1]
    ]
    assert changed == [("  image: Dockerfile", f"  image: docker://{IMAGE}")]
    (tmp_path / "action.yml").write_text(after, encoding="utf-8")
    schema = ("--builtin-schema", "vendor.github-actions")
    argv = [
        str(needs.program("check-jsonschema")),
        *schema,
        str(tmp_path / "action.yml"),
    ]
    run = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    "image",
    [
        "",
        "ghcr.io/a/b:1.2.3",
        "docker.io/a/b@sha256:" + "0" * 64,
        "ghcr.io/A/b@sha256:00",
    ],
)
def test_an_image_has_a_digest(image: str) -> None:
    with pytest.raises(RELEASE.Refused, match="is no image of ghcr"):
        RELEASE.released((ROOT / "action.yml").read_text(encoding="utf-8"), image)


# Tags.


@pytest.mark.parametrize("annotated", [False, True])
def test_both_tags_stand_on_a_commit_that_differs_in_the_action_alone(
    house: House, annotated: bool
) -> None:
    sha = house.prepare(annotated=annotated)
    commit = house.publish(sha)
    assert house.at(TAG) == house.at("v1") == commit
    assert house.at("main") == git(house.origin, "rev-parse", f"{commit}^") == sha
    assert git(house.origin, "diff", "--name-only", sha, commit) == "action.yml"
    assert f"image: docker://{IMAGE}" in git(house.origin, "show", f"{TAG}:action.yml")
    assert (
        git(house.origin, "show", "--no-patch", "--format=%an: %s", commit)
        == "github-actions[bot]: v1.2.3: the action uses its published image"
    )


def test_a_tag_that_has_an_image_or_stands_elsewhere_stays(house: House) -> None:
    sha = house.prepare()
    commit = house.publish(sha)
    assert house.publish(sha) == commit == house.at(TAG) == house.at("v1"), (
        "done again, nothing moves"
    )
    assert (
        refusal(house, sha, image=OTHER)
        == f"v1.2.3 stands at {commit}, not at {sha}: take the next version"
    )
    git(house.work, "commit", "--quiet", "--allow-empty", "-m", "more")
    git(house.work, "tag", "--force", TAG)
    git(house.work, "push", "--quiet", "--force", "origin", TAG)
    assert refusal(house, sha).startswith("v1.2.3 stands at ")


def test_the_major_tag_stays_with_the_latest_version(house: House) -> None:
    changelog = "".join(
        f"## [{version}] - 2026-01-31\n\n- x\n"
        for version in ("1.10.0", "1.9.1", "1.10.1", "2.0.0")
    )
    latest = house.publish(house.prepare("1.10.0", changelog), "v1.10.0")
    assert house.at("v1") == latest
    older = house.publish(house.prepare("1.9.1", changelog), "v1.9.1")
    assert (house.at("v1"), house.at("v1.9.1")) == (latest, older)
    newer = house.publish(house.prepare("1.10.1", changelog), "v1.10.1")
    assert (house.at("v1"), house.at("v1.10.0")) == (newer, latest)
    major = house.publish(house.prepare("2.0.0", changelog), "v2.0.0")
    assert (house.at("v1"), house.at("v2")) == (newer, major)


# Versions and notes.


@pytest.mark.parametrize(
    ("tag", "changelog", "line"),
    [
        ("v1.2", CHANGELOG, "'v1.2' is no tag of a release: write vX.Y.Z"),
        ("v1.2.2", CHANGELOG, "bot/__init__.py says 1.2.3, the tag 1.2.2"),
        (
            TAG,
            CHANGELOG.replace(" - 2026-01-31", ""),
            "CHANGELOG.md has no section '## [1.2.3] - YYYY-MM-DD'",
        ),
        (TAG, "# Changelog\n", "CHANGELOG.md has no section '## [1.2.3] - YYYY-MM-DD'"),
    ],
)
def test_what_is_not_ready_is_refused(
    house: House, tag: str, changelog: str, line: str
) -> None:
    assert refusal(house, house.prepare(changelog=changelog), tag) == line


def test_as_a_program_it_prints_version_notes_and_refusals(house: House) -> None:
    top = house.runner(house.prepare())

    def run(*arguments: str) -> tuple[int, str, str]:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [sys.executable, str(SCRIPT), *arguments]
        done = subprocess.run(
            argv, cwd=top, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    assert run("check", TAG) == (0, "1.2.3\n", "")
    assert run("notes", TAG) == (0, "### Added\n\n- All.\n\n", "")
    assert run("check", "v9.9.9") == (
        1,
        "",
        "release: bot/__init__.py says 1.2.3, the tag 9.9.9\n",
    )
    code, sha, _ = run("publish", TAG, "--image", IMAGE)
    assert (code, sha.strip()) == (0, house.at(TAG))


# This repository's changelog.


def test_the_changelog_is_by_version_the_latest_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    versions = [
        re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d{2}-\d{2}", heading)
        for heading in headings[1:]
    ]
    assert all(versions)
    numbers = [tuple(map(int, match.groups())) for match in versions if match]
    assert numbers == sorted(numbers, reverse=True)
    assert not numbers or Version(".".join(map(str, numbers[0]))) <= Version(
        __version__
    )
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
