"""This repository's own workflows: those that it gives to others, the tests, and releases that need no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from places import ROOT

from bot.cli.init import WORKFLOWS, workflow
from bot.config.configuration import configs_dir, load_config

FOLDER = ROOT / ".github" / "workflows"
TEXTS = {
    path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir())
}
PIN = re.compile(
    r"uses: (?P<action>[\w-]+/[\w-]+)[\w/-]*@(?P<pin>[0-9a-f]{40} # v\d+\.\d+\.\d+)$"
)
WRITES = {
    ("code-size-post.yml", "post"): {"pull-requests", "checks"},
    ("code-size.yml", "after-merge"): {"checks"},
    ("code-size.yml", "report"): {"pull-requests", "checks"},
    ("code-size.yml", "report-manual"): {"pull-requests"},
    ("code-size.yml", "store"): {"contents"},
    ("release.yml", "image"): {"packages", "id-token", "attestations"},
    ("release.yml", "pypi"): {"id-token"},
    ("release.yml", "tags"): {"contents"},
}
"""Every job that may write, and what."""


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file, text in TEXTS.items():
        for name, job in yaml.safe_load(text)["jobs"].items():
            yield file, name, job


def release() -> dict[str, Any]:
    workflow_jobs: dict[str, Any] = yaml.safe_load(TEXTS["release.yml"])["jobs"]
    return workflow_jobs


@pytest.mark.parametrize("file", WORKFLOWS)
def test_the_bot_reviews_its_own_pull_requests_as_init_writes_it(file: str) -> None:
    assert TEXTS[file] == workflow(file, "main", "./"), (
        "code-size-bot init --force --action ./"
    )


def test_its_own_configuration_is_the_quick_suite() -> None:
    config = load_config(ROOT / ".github" / "code-size.yml")
    quick = load_config(configs_dir() / "quick.yml")
    assert [path.resolve() for path in config.models] == [
        path.resolve() for path in quick.models
    ]
    assert config.compiler.head == quick.compiler.head
    assert config.comment == "always"


def test_no_job_may_write_what_it_does_not_need() -> None:
    writable = {
        (file, name): {
            scope for scope, may in job["permissions"].items() if may != "read"
        }
        for file, name, job in jobs()
    }
    assert {key: scopes for key, scopes in writable.items() if scopes} == WRITES


def test_every_action_is_pinned_to_a_commit_and_to_the_same_in_all_files() -> None:
    templates = [
        path.read_text(encoding="utf-8")
        for path in (configs_dir() / "workflows").iterdir()
    ]
    lines = [
        line
        for text in (*TEXTS.values(), *templates)
        for line in text.splitlines()
        if re.search(r"\buses:", line)
    ]
    remote = [
        line
        for line in lines
        if "uses: ./" not in line and "uses: OWNER/REPO@v1" not in line
    ]
    pins = [match.groups() for line in remote if (match := PIN.search(line))]
    assert len(pins) == len(remote)
    assert len(set(pins)) == len({action for action, _ in pins})


def test_every_python_of_the_project_is_tested_by_the_commands_of_the_documents() -> (
    None
):
    job = yaml.safe_load(TEXTS["ci.yml"])["jobs"]["test"]
    classifiers = re.findall(
        r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert job["strategy"]["matrix"]["python"] == classifiers
    assert [step["run"] for step in job["steps"] if "run" in step][-2:] == [
        "make check",
        "make test test-all",
    ]
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_only_the_tag_of_a_version_releases_what_passed_all_tests_and_came_out_of_no_cache() -> (
    None
):
    release_jobs = release()
    assert release_jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in yaml.safe_load(TEXTS["ci.yml"])[True]
    assert {
        name for name, job in release_jobs.items() if "ci" not in job.get("needs", [])
    } == {
        "ci",
        "wheel",
        "tags",
    }
    assert set(release_jobs["tags"]["needs"]) == {"image", "pypi"}
    assert yaml.safe_load(TEXTS["release.yml"])[True] == {
        "push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}
    }
    assert not re.search(
        r"actions/cache|cache: |cache-(?:image|binary): true|cache-from",
        TEXTS["release.yml"],
    )
    assert "cache" not in TEXTS["ci.yml"].partition("jobs:")[2]


def test_the_image_that_is_attested_is_the_one_that_the_action_uses() -> None:
    release_jobs = release()
    steps = {
        step["uses"].partition("@")[0]: step
        for step in release_jobs["image"]["steps"]
        if "uses" in step
    }
    attested = steps["actions/attest"]["with"]
    image = f"{attested['subject-name']}@{attested['subject-digest']}"
    assert image == release_jobs["image"]["outputs"]["image"]
    assert attested["push-to-registry"] is True
    build = steps["docker/build-push-action"]
    assert (
        build["id"] == "build"
        and build["with"]["push"] is True
        and build["with"]["provenance"] == "mode=max"
    )
    (last,) = [step for step in release_jobs["tags"]["steps"] if "run" in step]
    assert last["env"]["IMAGE"] == "${{ needs.image.outputs.image }}"
    assert 'release.py publish "$GITHUB_REF_NAME" --image "$IMAGE"' in last["run"]


def test_the_wheel_is_published_by_trust_in_this_workflow() -> None:
    job = release()["pypi"]
    assert job["environment"] == "pypi" and job["permissions"] == {"id-token": "write"}
    (step,) = [step for step in job["steps"] if "pypi-publish" in step["uses"]]
    assert not {"user", "password"} & set(step["with"])
