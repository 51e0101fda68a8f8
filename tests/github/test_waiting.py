"""bot.github.baselines: the base commit's own run is waited for, as long as the configuration says and no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from action_stage import Ran, Stage
from fake_github import FakeGitHub

from bot.errors import Interrupted
from bot.system.processes import Cancel

RUN = 900


class Clock(Cancel):
    """Time passes at once; `after` a number of pauses something happens."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self.after: dict[int, Callable[[], object]] = {}

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.after.pop(len(self.pauses), lambda: None)()
        self.check()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[False])
def stage(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Stage]:
    """In a private repository where a test asks for it: of a public one everybody may read the runs."""
    with FakeGitHub("octo/repo", private=request.param) as hub:
        stage = Stage.create(tmp_path, hub)
        stage.compiler("one")
        stage.environ["GITHUB_WORKFLOW_REF"] = "octo/repo/.github/workflows/pkgci.yml@refs/pull/1/merge"
        stage.cancel = lambda: clock
        yield stage
        hub.assert_contract()


def main(stage: Stage, minutes: int) -> str:
    kept = {"store": "directory", "directory": str(stage.home / "store"), "wait_minutes": minutes}
    return stage.main(compiler=None, baseline=kept)


def going_on(stage: Stage, sha: str, status: str = "in_progress", file: str = "pkgci.yml", event: str = "push") -> None:
    path = f".github/workflows/{file}"
    stage.hub.add_run(RUN, sha, event, head_branch="main", status=status, conclusion=None, path=path)


def ends(stage: Stage, sha: str) -> Callable[[], None]:
    return lambda: stage.hub.add_run(RUN, sha, "push", head_branch="main", path=".github/workflows/pkgci.yml")


def stores(stage: Stage, sha: str) -> Callable[[], None]:
    """The base's own run, at last."""

    def store() -> None:
        cancel, stage.cancel = stage.cancel, Cancel
        assert stage.push(sha, head=stage.spec("one")).code == 0
        stage.cancel = cancel

    return store


def reviewed(stage: Stage) -> Ran:
    return stage.pull(*stage.open_pull({"notes.txt": "one\n"}), head=stage.spec("one"))


def asked(stage: Stage) -> int:
    return sum(one["path"].endswith("/actions/runs") for one in stage.hub.traffic)


@pytest.mark.parametrize("status", ["queued", "in_progress", "waiting"])
def test_the_baseline_of_the_run_that_is_going_on_is_used_as_soon_as_it_is_stored(
    stage: Stage, clock: Clock, status: str
) -> None:
    base = main(stage, 30)
    going_on(stage, base, status)
    clock.after[3] = stores(stage, base)
    ran = reviewed(stage)
    assert ran.code == 0 and (ran.report.baseline.sha, ran.report.baseline.distance) == (base, 0), ran.error
    assert clock.pauses == [15, 30, 60] and ran.states == {"a on vmvx": "same"}
    words = f"waiting for the baseline of {base[:10]}: run {RUN} is {status.replace('_', ' ')}; 45 of at most 1800 s"
    assert words in ran.said and ran.report.notes == () and asked(stage) == 3


def test_a_run_that_ends_without_a_baseline_ends_the_wait(stage: Stage, clock: Clock) -> None:
    base = main(stage, 30)
    going_on(stage, base)
    clock.after[2] = ends(stage, base)
    ran = reviewed(stage)
    assert ran.code == 5 and ran.outputs["verdict"] == "unknown" and clock.pauses == [15, 30]
    assert "no run of it is going on" in ran.said and "No baseline" in ran.report.broke


def test_what_the_run_stores_as_its_last_act_is_seen(stage: Stage, clock: Clock) -> None:
    base = main(stage, 30)
    going_on(stage, base)
    put, end = stores(stage, base), ends(stage, base)
    stage.hub.before("GET", r"/actions/runs", lambda: (end(), put()))
    ran = reviewed(stage)
    assert ran.code == 0 and ran.report.baseline.distance == 0 and clock.pauses == [], ran.error


def test_the_wait_is_no_longer_than_configured_and_then_an_ancestor_has_to_do(stage: Stage, clock: Clock) -> None:
    first = main(stage, 10)
    stores(stage, first)()
    base = stage.origin.push_main("Source", {"compiler/a.cpp": "1\n"})
    going_on(stage, base)
    ran = reviewed(stage)
    assert sum(clock.pauses) == 600 and clock.pauses == [15, 30, 60, 120, 240, 135]
    assert "is in progress after 600 s, which is enough" in ran.said
    assert ran.code == 0 and ran.report.base.source.sha == first and ran.report.baseline.distance == 1, ran.error


@pytest.mark.parametrize("other", [{"file": "lint.yml"}, {"event": "pull_request"}, {"status": "completed"}, {}, None])
def test_no_other_run_and_no_other_commit_s_is_waited_for_and_without_the_key_none_is_asked_for(
    stage: Stage, clock: Clock, other: dict[str, str] | None
) -> None:
    sha = main(stage, 0 if other is None else 30)
    going_on(stage, sha, **(other or {}))
    if other == {}:
        stage.origin.push_main("Words", {"README.md": "1\n"})
    assert reviewed(stage).outputs["verdict"] == "unknown" and clock.pauses == []
    assert asked(stage) == (0 if other is None else 1)


def test_a_base_that_can_be_measured_here_is_not_waited_for(stage: Stage, clock: Clock) -> None:
    kept = {"store": "directory", "directory": str(stage.home / "store"), "wait_minutes": 30}
    going_on(stage, stage.main(baseline=kept))
    ran = stage.pull(*stage.open_pull({"notes.txt": "one\n"}))
    assert ran.code == 0 and "measured in this run" in ran.report.baseline.rule
    assert clock.pauses == [] and asked(stage) == 0


@pytest.mark.parametrize("stage", [True], indirect=True)
def test_a_missing_permission_is_named_in_one_line_and_nothing_is_waited_for(stage: Stage, clock: Clock) -> None:
    going_on(stage, main(stage, 30))
    allowed = {"contents": "read", "issues": "write", "pull_requests": "write", "checks": "write"}
    stage.token = stage.hub.token(permissions=allowed)
    ran = reviewed(stage)
    (line,) = [one for one in ran.news.said if "not waited for" in one]
    assert "permissions: actions: read" in line and "\n" not in line and clock.pauses == []
    assert ran.report.notes[0] == line and ran.outputs["verdict"] == "unknown"


def test_without_a_token_or_a_workflow_there_is_no_wait(stage: Stage, clock: Clock) -> None:
    going_on(stage, main(stage, 30))
    pull, one = stage.open_pull({"notes.txt": "one\n"}), stage.spec("one")
    assert "not waited for: there is no token" in stage.pull(*pull, head=one, github_token="").said
    stage.environ["GITHUB_WORKFLOW_REF"] = ""
    assert "GITHUB_WORKFLOW_REF: the workflow is not known" in stage.pull(*pull, head=one).said
    assert clock.pauses == []


def test_whoever_cancels_the_run_does_not_wait_either(stage: Stage, clock: Clock) -> None:
    going_on(stage, main(stage, 30))
    clock.after[1] = clock.set
    ran = reviewed(stage)
    assert ran.code == Interrupted.exit_code and clock.pauses == [15] and ran.news.reports == []
    cancel = Cancel()
    cancel.wait(0)
    cancel.set()
    with pytest.raises(Interrupted):
        cancel.wait(3600)
