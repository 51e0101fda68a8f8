"""The whole story of pull requests: the action as a process, the real compiler, two models of the suite, a GitHub over HTTP.

One test tells it from the first push to the refused artifact, as each chapter stands on
the one before.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_github import FakeGitHub
from github_runner import (
    MARKER,
    REPOSITORY,
    Origin,
    Payload,
    Run,
    Runner,
    git,
    pull_event,
    push_event,
    report_zip,
    run_event,
)
from real_compilers import binary

from bot.config.configuration import configs_dir
from bot.core.snapshot import CellKey
from bot.core.snapshot_json import from_json

pytestmark = pytest.mark.compiler

WRITER = {
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "write",
}
READER = dict.fromkeys(WRITER, "read")
MODELS = ("bert_l4_f32_s128", "mobilenet_v1_int8_tosa")
BERT = CellKey("bert_l4_f32_s128", "llvm-cpu-x86_64")


def configuration(cpu: str) -> str:
    """The repository's own configuration: all default targets, x86-64 for `cpu`, a compiler that is pinned."""
    targets = yaml.safe_load((configs_dir() / "default.yml").read_text())["targets"]
    targets["llvm-cpu-x86_64"]["flags"][-1] = f"--iree-llvmcpu-target-cpu={cpu}"
    keys: dict[str, Any] = {
        "schema": "code-size-config/1",
        "compiler": {"requirements": "requirements.txt"},
        "models": ["models/*.mlir"],
        "targets": targets,
    }
    return yaml.safe_dump(keys, sort_keys=False)


def files_of_main() -> dict[str, str | None]:
    models = {
        f"models/{name}.mlir": (configs_dir() / "models" / f"{name}.mlir").read_text()
        for name in MODELS
    }
    return {
        **models,
        "code-size.yml": configuration("generic"),
        "requirements.txt": "iree-base-compiler==3.13.0\n",
    }


@dataclass
class Story:
    """The stage: a GitHub, a repository, a runner; and the events that can happen on it."""

    hub: FakeGitHub
    origin: Origin
    runner: Runner
    token: str
    read_only: str
    run_id: int = 100

    def push(self, sha: str) -> Run:
        before = git(self.origin.bare, "rev-list", "--max-count=1", "--skip=1", sha)
        self.hub.add_commit(sha, [before] if before else [])
        return self._run("push", push_event(sha), sha, "refs/heads/main", self.token)

    def pull(
        self, number: int, action: str, head: str, merge: str, *, fork: bool = False
    ) -> Run:
        payload = pull_event(
            number, head, "mallory/repo" if fork else "octo/repo", action
        )
        payload["pull_request"].update(merge_commit_sha=merge)
        payload["pull_request"]["head"].update(ref=f"topic-{number}")
        payload["pull_request"]["base"].update(sha=self.main)
        ref = f"refs/pull/{number}/merge"
        run = self._run(
            "pull_request",
            payload,
            merge,
            ref,
            self.read_only if fork else self.token,
            writes=not fork,
        )
        if fork and run.report.is_dir():
            self.upload(report_zip(run.report))
        return run

    def upload(self, data: bytes) -> None:
        """What the workflow's next step does with the report directory."""
        self.hub.add_artifact(self.run_id, "code-size-measured-default-test", data)

    def post(self, head: str) -> Run:
        payload = run_event(self.run_id, head)
        return self._run(
            "workflow_run", payload, self.main, "refs/heads/main", self.token
        )

    @property
    def main(self) -> str:
        return git(self.origin.bare, "rev-parse", "main")

    def ours(self, number: int) -> list[str]:
        """Bodies of the bot's report comments."""
        return [
            str(comment["body"])
            for comment in self.hub.comments(number)
            if str(comment["body"]).startswith(MARKER)
        ]

    def conclusion(self, head: str) -> str:
        """Of the newest check run."""
        return str(
            [check for check in self.hub.check_runs if check["head_sha"] == head][-1][
                "conclusion"
            ]
        )

    def _run(
        self,
        event: str,
        payload: Payload,
        sha: str,
        ref: str,
        token: str,
        *,
        writes: bool = True,
    ) -> Run:
        self.run_id += 1
        return self.runner.run(
            event,
            payload,
            sha=sha,
            ref=ref,
            token=token,
            run_id=self.run_id,
            writes=writes,
        )

    def open_pull(
        self, number: int, files: dict[str, str | None], *, fork: bool = False
    ) -> tuple[str, str]:
        """A new state of a pull request's branch, known to git and to GitHub."""
        head, merge = self.origin.push_pull(number, files)
        repo, branch = (
            ("mallory/repo", "topic") if fork else ("octo/repo", f"topic-{number}")
        )
        self.hub.add_commit(merge, [self.main, head])
        self.hub.add_pull(
            number,
            head,
            head_repo=repo,
            head_branch=branch,
            merge_sha=merge,
            base_sha=self.main,
        )
        return head, merge


@pytest.fixture
def story(tmp_path: Path, shared_cache: Path) -> Iterator[Story]:
    binary("3.13.0")  # is in that cache before the story begins
    with FakeGitHub("octo/repo") as hub:
        hub.add_user("alice", permission="write")
        hub.add_user("mallory", permission="read")
        writer, reader = (
            hub.token(permissions=permissions) for permissions in (WRITER, READER)
        )
        origin = Origin.create(tmp_path)
        yield Story(
            hub=hub,
            origin=origin,
            runner=Runner(tmp_path, hub, origin, shared_cache),
            token=writer,
            read_only=reader,
        )
        hub.assert_contract()


def stack(path: Path) -> int | None:
    cells = from_json(path.read_text()).cells
    return next(cell for cell in cells if cell.key == BERT).value("stack_alloca_bytes")


def test_from_the_first_push_to_a_refused_artifact(story: Story) -> None:
    hub = story.hub

    # Main is measured and stored on a branch of its own.
    run = story.push(story.origin.push_main("The suite", files_of_main()))
    assert run.code == 0, run.log
    stored = git(
        story.origin.bare, "ls-tree", "-r", "--name-only", "code-size-data"
    ).splitlines()
    kinds = [name.rsplit(".", 2)[1] for name in stored if story.main in name]
    assert sorted(kinds) == ["ir", "json"], "a push stores a snapshot and its IR"
    head_json = run.report / "head.json"
    assert stack(head_json) == 36_864  # the compiler's own figure for x86-64 generic

    # A commit that changes no code needs no measurement.
    run = story.push(story.origin.push_main("Words", {"README.md": "# Models\n"}))
    assert (
        run.code == 0
        and "nothing to measure" in run.log
        and "1 commit older" in run.log
    ), run.log

    # A pull request that raises a dispatch's stack fails its check, and says so in one
    # comment.
    head, merge = story.open_pull(1, {"code-size.yml": configuration("x86-64-v3")})
    run = story.pull(1, "opened", head, merge)
    assert run.code == 0, run.log
    (body,) = story.ours(1)
    assert "36,864" in body and "73,728" in body and "code-size-approved" in body
    assert (
        story.main[:10] in body
        and merge[:10] in body
        and "first parent of the merge commit" in body
    )
    assert "measured 1 commit before it" in body
    assert run.outputs["verdict"] == "fail" and int(run.outputs["findings"]) > 0
    assert run.outputs["comment-url"].endswith(
        f"#issuecomment-{hub.comments(1)[0]['id']}"
    )
    assert story.conclusion(head) == "failure"
    annotated = {
        note["path"] for check in hub.check_runs for note in check["annotations"]
    }
    assert annotated & {f"models/{BERT.model}.mlir", "code-size.yml"}
    assert "36,864" in run.summary

    # A label by someone without write access changes nothing; by someone with it, it
    # accepts what was measured.
    hub.add_label(1, "code-size-approved", by="mallory")
    run = story.pull(1, "labeled", head, merge)
    assert run.code == 0, run.log
    assert run.outputs["verdict"] == "fail", run.log
    (body,) = story.ours(1)
    assert "Accepted by" not in body
    assert story.conclusion(head) == "failure"
    hub.remove_label(1, "code-size-approved")
    hub.add_label(1, "code-size-approved", by="alice")
    run = story.pull(1, "labeled", head, merge)
    (body,) = story.ours(1)
    assert run.outputs["verdict"] == "warn", run.log
    assert "Accepted by" in body and "alice" in body
    assert story.conclusion(head) == "neutral"

    # A second push updates the same comment; what grew no further stays accepted.
    comment_id = hub.comments(1)[0]["id"]
    head, merge = story.open_pull(1, {"notes.txt": "no code\n"})
    run = story.pull(1, "synchronize", head, merge)
    assert run.outputs["verdict"] == "warn" and hub.comments(1)[0]["id"] == comment_id
    assert len(story.ours(1)) == 1

    # One that goes back resolves the alarm, in the same comment.
    head, merge = story.open_pull(1, {"code-size.yml": configuration("generic")})
    run = story.pull(1, "synchronize", head, merge)
    (body,) = story.ours(1)
    assert run.outputs["verdict"] in ("pass", "warn") and "Resolved: " in body, body[
        :2000
    ]
    assert story.conclusion(head) != "failure"

    # A pull request that adds a model is told about it; nothing else changes.
    tiny = REPOSITORY / "tests/fixtures/e2e/models/tiny.mlir"
    head, merge = story.open_pull(2, {f"models/{tiny.name}": tiny.read_text()})
    run = story.pull(2, "opened", head, merge)
    (body,) = story.ours(2)
    assert int(run.outputs["new"]) == 8 and tiny.stem in body
    assert run.outputs["changed"] == "0"

    # A fork's run only measures. A second run, which has a token, posts the comment and
    # applies a maintainer's label.
    head, merge = story.open_pull(
        3, {"code-size.yml": configuration("x86-64-v3")}, fork=True
    )
    run = story.pull(3, "opened", head, merge, fork=True)
    assert run.code == 0 and story.ours(3) == [] and run.outputs["verdict"] == "fail", (
        run.log
    )
    run = story.post(head)
    assert run.code == 0, run.log
    (body,) = story.ours(3)
    assert "73,728" in body and "own workflow run" in body and "stored snapshot" in body
    hub.add_label(3, "code-size-approved", by="alice")
    story.pull(3, "labeled", head, merge, fork=True)
    run = story.post(head)
    assert run.code == 0, run.log
    (body,) = story.ours(3)
    assert "Accepted by `alice`" in body and story.conclusion(head) == "neutral"

    # An artifact with anything but snapshots in it is refused, and said to be.
    head, merge = story.open_pull(3, {"notes.txt": "evil\n"}, fork=True)
    story.run_id += 1  # the run that uploads this artifact is not played
    story.upload(hostile())
    run = story.post(head)
    assert run.code == 2, run.log
    (body,) = story.ours(3)
    assert "Code size: unknown" in body
    # as code: nobody is called
    assert (
        re.findall(r"`[^`\n]*@everyone[^`\n]*`", body) and body.count("@everyone") == 1
    )
    assert story.conclusion(head) == "failure"


def hostile() -> bytes:
    """A zip that wants out of its directory."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../@everyone.json", "{}")
    return buffer.getvalue()
