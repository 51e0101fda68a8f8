"""After the merge with the real compiler: a push that breaks main's rules, its check, its issue, and the repair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fake_github import FakeGitHub
from github_runner import REPOSITORY, Origin, Run, Runner, git, push_event
from real_compilers import own_cache

from bot.core.snapshot_json import from_json

pytestmark = [pytest.mark.compiler, pytest.mark.slow]

TINY = (REPOSITORY / "tests/fixtures/e2e/models/tiny.mlir").read_text()
TARGET = "x86_64-of-main"


def configuration(cpu: str) -> str:
    flags = [
        "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
        f"--iree-llvmcpu-target-cpu={cpu}",
    ]
    keys = {
        "schema": "code-size-config/1",
        "compiler": {"head": "3.13.0"},
        "models": ["models/*.mlir"],
        "targets": {TARGET: {"backend": "llvm-cpu", "flags": flags}},
        "states": {"changed": "fail"},
        "after_merge": "issue",
    }
    return yaml.safe_dump(keys, sort_keys=False)


def size_of(run: Run) -> int:
    (cell,) = from_json((run.report / "head.json").read_text()).cells
    return cell.value("artifact_bytes") or 0


def test_the_issue_has_the_compilers_numbers_and_ends_with_the_repair(
    tmp_path: Path,
) -> None:
    cache = own_cache(tmp_path / "cache", "3.13.0")
    with FakeGitHub("octo/repo") as hub:
        origin = Origin.create(tmp_path)
        runner = Runner(tmp_path, hub, origin, cache)
        writer = hub.token(permissions={"contents": "write", "pull_requests": "read"})
        reporter = hub.token(
            permissions={
                "contents": "read",
                "pull_requests": "read",
                "checks": "write",
                "issues": "write",
            }
        )

        def pushed(cpu: str) -> tuple[Run, Run]:
            """What the jobs that store and report made of a push."""
            sha = origin.push_main(
                f"For {cpu}",
                {"code-size.yml": configuration(cpu), "models/tiny.mlir": TINY},
            )
            hub.add_commit(
                sha, git(origin.bare, "log", "-1", "--format=%P", sha).split()
            )
            place = {"sha": sha, "ref": "refs/heads/main"}
            payload = push_event(sha)
            measured = runner.job(
                "push",
                payload,
                **place,
                run_id=7,
                command="measure",
                out="code-size-measured",
            )
            assert measured.code == 0, measured.log
            handed = {"measured": str(measured.report)}
            stored = runner.job(
                "push",
                payload,
                **place,
                run_id=7,
                token=writer,
                command="store",
                **handed,
            )
            assert stored.code == 0, stored.log
            reported = runner.job(
                "push",
                payload,
                **place,
                run_id=7,
                token=reporter,
                command="report",
                **handed,
            )
            assert reported.code == 0, reported.log
            return stored, reported

        first, _ = pushed("generic")
        assert hub.check_runs == hub.issues == []
        broken, reported = pushed("x86-64-v3")
        (issue,), (check,) = hub.issues, hub.check_runs
        assert (
            reported.outputs["verdict"] == "fail" and check["conclusion"] == "failure"
        )
        assert size_of(first) != size_of(broken)
        assert f"{size_of(first):,}&nbsp;→ {size_of(broken):,}&nbsp;B" in issue["body"]
        assert (
            "target" in issue["body"]
            and "GitHub knows no merged pull request" in issue["body"]
        )
        pushed("generic")
        assert [issue["state"] for issue in hub.issues] == ["closed"]
        assert [run["conclusion"] for run in hub.check_runs] == [
            "failure",
            "failure",
        ], "the repair changes a build, too"
        sha = git(origin.bare, "rev-parse", "main")
        weekly = runner.job(
            "schedule",
            push_event(sha),
            sha=sha,
            ref="refs/heads/main",
            run_id=8,
            token=reporter,
            command="weekly",
        )
        assert weekly.code == 0, weekly.log
        assert json.loads((weekly.report / "weekly.json").read_text())["compared"] == 1
        hub.assert_contract()
