"""Each job of the workflows ready to copy may do what it does and no more, by what it really asks GitHub for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import action_stage
import posting_stage
import pytest
from action_stage import MODEL
from comment_stage import commands_of
from fake_github import FakeGitHub
from git_server import Access, serving
from github_runner import event, git, push_event
from places import ROOT
from test_workflows import jobs

pytestmark = pytest.mark.slow

# What GitHub's pages on permissions say of the calls that the bot makes; {} is for any
# one part of the path. Where a pull request is asked for as an issue, either of two
# will do, and the job has the one of pull requests.
CALLS: tuple[tuple[str, str, str], ...] = (
    ("GET", "/user", ""),
    ("GET", "/collaborators/{}/permission", ""),
    ("GET", "/pulls", "pull-requests: read"),
    ("GET", "/pulls/{}", "pull-requests: read"),
    ("GET", "/issues/{}/comments", "pull-requests: read"),
    ("POST", "/issues/{}/comments", "pull-requests: write"),
    ("GET", "/issues/comments/{}", "pull-requests: read"),
    ("PATCH", "/issues/comments/{}", "pull-requests: write"),
    ("DELETE", "/issues/comments/{}", "pull-requests: write"),
    ("GET", "/issues/{}/labels", "pull-requests: read"),
    ("GET", "/issues/{}/events", "pull-requests: read"),
    ("POST", "/check-runs", "checks: write"),
    ("PATCH", "/check-runs/{}", "checks: write"),
    ("GET", "/commits/{}/check-runs", "checks: read"),
    ("GET", "/commits/{}/pulls", "pull-requests: read"),
    ("GET", "/issues", "issues: read"),
    ("POST", "/issues", "issues: write"),
    ("PATCH", "/issues/{}", "issues: write"),
    ("GET", "/commits/{}", "contents: read"),
    ("GET", "/commits/heads/{}", "contents: read"),
    ("GET", "/compare/{}", "contents: read"),
    ("GET", "/actions/artifacts/{}/zip", "actions: read"),
    ("GET", "/actions/runs/{}/artifacts", "actions: read"),
)
DEAREST = ("read", "write")
GROWN = MODEL.format("a") + "// longer\n" * 400
BRANCH: dict[str, Any] = {"baseline": {"store": "auto", "branch": "sizes"}}


def needed(exchange: Mapping[str, Any]) -> str:
    """The permission that one request needs; empty where any token will do."""
    below = str(exchange["path"]).removeprefix("/repos/octo/repo")
    for method, pattern, permission in CALLS:
        if method == exchange["method"] and re.fullmatch(
            pattern.replace("{}", "[^/]+"), below
        ):
            return permission
    raise AssertionError(
        f"{exchange['method']} {below} is not among the calls whose permission is known"
    )


def joined(permissions: Iterable[str]) -> dict[str, str]:
    """Scope → the most that is needed."""
    scopes: dict[str, str] = {}
    for scope, access in (
        permission.split(": ") for permission in permissions if permission
    ):
        scopes[scope] = max(access, scopes.get(scope, "read"), key=DEAREST.index)
    return scopes


def _baselines(stage: action_stage.Stage) -> str:
    """Where the branch of stored baselines stands."""
    return git(stage.origin.bare, "for-each-ref", "refs/heads/sizes")


class Seen:
    """What the runs of one job asked for: every job checks out the repository, and git reads it."""

    def __init__(self) -> None:
        self.needs = {"contents: read"}

    @contextmanager
    def measuring(
        self, *later: str, **keys: Any
    ) -> Iterator[tuple[action_stage.Stage, str]]:
        """A stage with commits on main that were measured and stored; what comes then is seen.

        `later`: the texts of the model in the commits after the first one.
        """
        with TemporaryDirectory() as home, FakeGitHub("octo/repo") as hub:
            stage = action_stage.Stage.create(Path(home), hub)
            stage.compiler("one")
            main = stage.main({"models/b.mlir": MODEL.format("b")}, **keys)
            assert stage.push(main).code == 0
            for text in later:
                assert (
                    stage.push(
                        stage.origin.push_main("Later", {"models/a.mlir": text})
                    ).code
                    == 0
                )
            start = len(hub.traffic)
            tip = _baselines(stage)
            yield stage, main
            self.needs |= set(map(needed, hub.traffic[start:]))
            if _baselines(stage) != tip:
                self.needs.add("contents: write")

    @contextmanager
    def posting(self) -> Iterator[posting_stage.Stage]:
        """A stage for the trusted runs."""
        with (
            TemporaryDirectory() as home,
            posting_stage.Stage.opened(Path(home)) as stage,
        ):
            stage.save(posting_stage.side(posting_stage.BASE))
            stage.grown()
            yield stage
            self.needs |= set(map(needed, stage.hub.traffic))

    @contextmanager
    def elsewhere(self) -> Iterator[tuple[action_stage.Stage, str]]:
        """A stage whose baselines are in another repository, which takes the token `store`."""
        with TemporaryDirectory() as home, FakeGitHub("octo/repo") as hub:
            sizes = Path(home, "octo", "sizes.git")
            sizes.mkdir(parents=True)
            git(sizes, "init", "-q", "--bare")
            with serving(
                Path(home), {"octo/sizes.git": Access({"store": True})}
            ) as server:
                stage = action_stage.Stage.create(Path(home), hub)
                stage.environ["GITHUB_SERVER_URL"] = server.url
                stage.compiler("one")
                yield (
                    stage,
                    stage.main(
                        baseline={"repository": "octo/sizes"},
                        states={"changed": "fail"},
                    ),
                )
                assert server.tokens_of["octo/sizes.git"] == {"store"}
            self.needs |= set(map(needed, hub.traffic))
            assert not _baselines(stage)


def review(recorder: Seen) -> None:
    """A pull request that fails, gets another commit, and the label of somebody."""
    with recorder.measuring(**BRANCH, states={"changed": "fail"}) as (stage, _):
        head, merge = stage.open_pull({"models/a.mlir": GROWN})
        assert stage.pull(head, merge).report.verdict.status == "fail"
        stage.hub.add_label(1, "code-size-approved", by="alice")
        assert stage.pull(head, merge).report.verdict.status == "warn"


def measured(recorder: Seen) -> None:
    """The job that compiles asks GitHub nothing: the checkout steps before it need the token to read."""
    with recorder.measuring(**BRANCH) as (stage, _):
        start = len(stage.hub.traffic)
        assert (
            stage.pull(
                *stage.open_pull({"models/a.mlir": GROWN}), command="measure"
            ).code
            == 0
        )
        assert stage.hub.traffic[start:] == []


def stored(recorder: Seen) -> None:
    with recorder.measuring(**BRANCH, states={"changed": "fail"}) as (stage, _):
        assert (
            stage.push(stage.origin.push_main("Merge", {"models/a.mlir": GROWN})).code
            == 0
        )


def merged(
    stage: action_stage.Stage, sha: str, parent: str, **inputs: str
) -> action_stage.Ran:
    """The report of a pushed commit, which is the merge of an accepted pull request."""
    stage.hub.add_pull(1, "1" * 40, base_sha=parent)
    stage.hub.merge_pull(1, sha, [parent])
    stage.hub.add_label(1, "code-size-approved", by="alice")
    sent = push_event(sha)
    ref = "refs/heads/main"
    measured = stage.run("push", sent, sha, ref=ref, command="measure", **inputs)
    report_inputs = {"command": "report", "measured": str(measured.out), **inputs}
    return stage.run("push", sent, sha, ref=ref, **report_inputs)


def after_merge(recorder: Seen) -> None:
    with recorder.measuring(**BRANCH, states={"changed": "fail"}) as (stage, main):
        ran = merged(
            stage, stage.origin.push_main("Merge", {"models/a.mlir": GROWN}), main
        )
        assert (ran.code, ran.outputs["verdict"]) == (0, "fail"), ran.error


def after_merge_with_an_issue(recorder: Seen) -> None:
    with recorder.measuring(
        **BRANCH, states={"changed": "fail"}, after_merge="issue"
    ) as (
        stage,
        main,
    ):
        assert (
            merged(
                stage, stage.origin.push_main("Merge", {"models/a.mlir": GROWN}), main
            ).code
            == 0
        )
        assert len(stage.hub.issues) == 1


def by_hand(recorder: Seen) -> None:
    with recorder.measuring(**BRANCH) as (stage, main):
        stage.hub.add_pull(1, main)
        stage.origin.push_main("More", {"models/a.mlir": GROWN})
        assert stage.dispatch(base=main, pull_request="1").outputs["comment-url"]


def prepared_by_hand(recorder: Seen) -> None:
    with recorder.measuring(**BRANCH) as (stage, main):
        stage.open_pull({"models/a.mlir": GROWN})
        sent = event("workflow_dispatch.main")
        ref = "refs/heads/main"
        ran = stage.run(
            "workflow_dispatch",
            sent,
            main,
            ref=ref,
            command="prepare",
            pull_request="1",
        )
        assert ran.code == 0, ran.error


def prepared_elsewhere(recorder: Seen) -> None:
    with recorder.elsewhere() as (stage, main):
        inputs = {"command": "prepare", "store_token": "store", "github_token": ""}
        assert (
            stage.run(
                "push", push_event(main), main, ref="refs/heads/main", **inputs
            ).code
            == 0
        )


def stored_elsewhere(recorder: Seen) -> None:
    with recorder.elsewhere() as (stage, main):
        for sha in (main, stage.origin.push_main("Merge", {"models/a.mlir": GROWN})):
            sent = push_event(sha)
            ref = "refs/heads/main"
            measured = stage.run(
                "push", sent, sha, ref=ref, command="measure", baselines="none"
            )
            inputs = {
                "command": "store",
                "store_token": "store",
                "measured": str(measured.out),
            }
            assert stage.run("push", sent, sha, ref=ref, **inputs).code == 0


def planned(recorder: Seen) -> None:
    with recorder.measuring(**BRANCH) as (stage, _):
        assert (
            stage.pull(
                *stage.open_pull({"models/a.mlir": GROWN}), command="plan", shards="2"
            ).code
            == 0
        )


def part(recorder: Seen) -> None:
    with recorder.measuring(**BRANCH) as (stage, _):
        assert (
            stage.pull(
                *stage.open_pull({"models/a.mlir": GROWN}),
                command="measure",
                shard="1/2",
            ).code
            == 0
        )


def posted(recorder: Seen) -> None:
    with recorder.posting() as stage:
        assert stage.post().code == 0 and stage.conclusions == ["failure"]
        stage.hub.add_label(posting_stage.NUMBER, "code-size-approved", by="alice")
        assert stage.post().code == 0


def summarized(recorder: Seen) -> None:
    with recorder.measuring(GROWN, **BRANCH) as (stage, _):
        ran = stage.dispatch(command="weekly")
        assert ran.code == 0 and "builds of 2 grew over" in ran.summary, ran.error


@cache
def command_needs() -> Mapping[str, set[str]]:
    """What each job of commands of every kind needs."""
    with TemporaryDirectory() as home, commands_of(Path(home)) as commands:
        head, _ = commands.pull({"models/a.mlir": GROWN})
        commands.hub.set_branch("main", commands.main)
        for line in ("help", "compare ref:main head", "rerun", "accept as discussed"):
            commands.say(f"/code-size {line}")
        assert commands.conclusions(head) == ["failure", "neutral"]
        return {
            job: set(map(needed, traffic)) for job, traffic in commands.traffic.items()
        }


def of_command(job: str) -> Callable[[Seen], None]:
    def story(recorder: Seen) -> None:
        recorder.needs |= command_needs()[job]

    return story


def published(recorder: Seen) -> None:
    with recorder.measuring(**BRANCH) as (stage, main):
        assert stage.dispatch(main, command="pages").code == 0


JOBS: dict[tuple[str, str], Callable[[Seen], None]] = {
    ("minimal.yml", "measure"): measured,
    ("minimal.yml", "report"): review,
    ("code-size-kernels.yml", "measure"): measured,
    ("code-size-kernels.yml", "report"): review,
    **{
        ("code-size-commands.yml", job): of_command(job)
        for job in ("gate", "measure", "report")
    },
    ("code-size.yml", "measure"): measured,
    ("code-size.yml", "report"): review,
    ("code-size.yml", "store"): stored,
    ("code-size.yml", "after-merge"): after_merge,
    ("code-size.yml", "prepare-manual"): prepared_by_hand,
    ("code-size.yml", "measure-manual"): measured,
    ("code-size.yml", "report-manual"): by_hand,
    ("code-size-other-store.yml", "prepare"): prepared_elsewhere,
    ("code-size-other-store.yml", "measure"): measured,
    ("code-size-other-store.yml", "report"): review,
    ("code-size-other-store.yml", "store"): stored_elsewhere,
    ("code-size-other-store.yml", "after-merge"): after_merge,
    ("code-size-pages.yml", "build"): published,
    ("code-size-weekly.yml", "weekly"): summarized,
    ("code-size-post.yml", "post"): posted,
    ("code-size-sharded.yml", "plan"): planned,
    ("code-size-sharded.yml", "measure"): part,
    ("code-size-sharded.yml", "join"): measured,
    ("code-size-sharded.yml", "report"): review,
    ("code-size-sharded.yml", "store"): stored,
    ("code-size-sharded.yml", "after-merge"): after_merge,
    ("iree-pkgci.yml", "measure"): measured,
    ("iree-pkgci.yml", "report"): review,
    ("iree-pkgci.yml", "store"): stored,
    ("iree-pkgci.yml", "after-merge"): after_merge,
}


def test_every_job_of_every_workflow_is_here() -> None:
    ours = {
        (file, name)
        for file, name, job in jobs()
        if any("OWNER/REPO@" in step["uses"] for step in job["steps"])
    }
    assert set(JOBS) == ours


@pytest.mark.parametrize(
    ("file", "name"), list(JOBS), ids=lambda file_and_name: str(file_and_name)
)
def test_a_job_has_the_permissions_that_it_uses_and_no_others(
    file: str, name: str
) -> None:
    (granted,) = [
        job["permissions"]
        for job_file, job_name, job in jobs()
        if (job_file, job_name) == (file, name)
    ]
    record = Seen()
    JOBS[file, name](record)
    assert granted == joined(record.needs)


def test_the_permission_that_the_workflows_leave_commented_is_the_one_of_the_issue() -> (
    None
):
    record = Seen()
    after_merge_with_an_issue(record)
    for file, name in (key for key in JOBS if key[1] == "after-merge"):
        (granted,) = [
            job["permissions"]
            for job_file, job_name, job in jobs()
            if (job_file, job_name) == (file, name)
        ]
        assert joined(record.needs) == {**granted, "issues": "write"}
        assert "      # issues: write\n" in (
            ROOT / "configs" / "workflows" / file
        ).read_text(encoding="utf-8")
