"""Slow growth on GitHub: the weekly summary and the site, from stored baselines, with dates and tags of git."""

from __future__ import annotations

import json
from typing import Any

import pytest
from action_stage import MODEL, Ran, Stage
from github_runner import event, git

pytestmark = pytest.mark.slow

A = MODEL.format("a")
GROWS = [
    {"model": f"grown {count}\n", "do": " ".join(["grow"] * count)}
    for count in range(1, 5)
]
DAY_SECONDS = 86_400
START = 1_700_000_000


def dated(
    stage: Stage,
    day: int,
    files: dict[str, str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """A commit of main on that day, measured and stored."""
    with monkeypatch.context() as patched:
        for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
            patched.setenv(name, f"{START + day * DAY_SECONDS} +0000")
        sha = stage.origin.push_main(f"Day {day}", files)
    assert stage.push(sha).code == 0
    return sha


@pytest.fixture
def branch(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Model `a` grows in four small steps over 120 days, and `b` stays as it is."""
    stage.compiler("one", GROWS)
    first = {
        "code-size.yml": stage.config(),
        "models/a.mlir": A,
        "models/b.mlir": MODEL.format("b"),
    }
    shas = [dated(stage, 0, dict(first), monkeypatch)]
    for count, day in enumerate((20, 40, 115, 120), 1):
        shas.append(
            dated(stage, day, {"models/a.mlir": f"{A}// grown {count}\n"}, monkeypatch)
        )
    return shas


def weekly(stage: Stage) -> tuple[dict[str, Any], Ran]:
    ran = stage.dispatch(command="weekly")
    assert ran.code == 0, ran.error
    return json.loads((ran.out / "weekly.json").read_text()), ran


def test_the_summary_has_the_largest_drifts_with_causes_and_steps(
    stage: Stage, branch: list[str]
) -> None:
    summary, ran = weekly(stage)
    assert (summary["base"], summary["head"], summary["days"]) == (
        branch[1],
        branch[4],
        100,
    ), "the newest one that old"
    assert (summary["compared"], summary["grown"], summary["notes"]) == (2, 1, [])
    (drift,) = summary["drifts"]
    assert (drift["model"], drift["cause"], drift["what"]) == (
        "a",
        "input",
        "a itself changed",
    )
    sizes = drift["artifact_bytes"]
    assert sizes["head"] - sizes["base"] == 3 * 64 and drift["week_bytes"] == 2 * 64
    assert sorted(step["commit"] for step in drift["steps"]) == sorted(branch[2:])
    assert {step["change_bytes"] for step in drift["steps"]} == {64}
    assert (
        "1 build of 2 grew over 100 days" in ran.summary
        and "**Model** `a` **was edited**" in ran.summary
    )
    assert {path.name for path in ran.out.iterdir()} == {
        "weekly.json",
        "weekly.md",
        "weekly.html",
    }
    assert not {exchange["method"] for exchange in stage.hub.traffic} - {"GET"}
    payload = {**event("workflow_dispatch.main"), "schedule": "17 5 * * 1"}
    scheduled = stage.run(
        "schedule", payload, branch[-1], ref="refs/heads/main", command="weekly"
    )
    assert scheduled.code == 0 and scheduled.summary == ran.summary, scheduled.error


def test_growth_is_counted_since_the_release_the_acceptance_and_90_days(
    stage: Stage, branch: list[str]
) -> None:
    summary, ran = weekly(stage)
    release, acceptance, window = summary["growths"]
    assert (
        release["base"] is None
        and release["reason"] == "no tag of a release is among the newest 5 commits"
    )
    assert acceptance["reason"] == "no acceptance is recorded in the newest 5 baselines"
    assert release["metrics"] == acceptance["metrics"] == {}
    artifact = window["metrics"]["artifact_bytes"]
    assert (
        window["base"] == branch[1]
        and artifact["head"] - artifact["base"] == 3 * 64
        and artifact["builds"] == 2
    )
    assert (
        "n/a" in ran.summary
        and "no tag of a release is among the newest 5 commits" in ran.summary
    )
    for name, sha in (
        ("v1.0", branch[0]),
        ("v1.1-rc1", branch[3]),
        ("v1.1", branch[2]),
        ("nightly", branch[4]),
    ):
        git(stage.origin.bare, "tag", name, sha)
    git(
        stage.origin.bare,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "tag",
        "-a",
        "-m",
        "annotated",
        "v1.2",
        branch[3],
    )
    release, _, window = weekly(stage)[0]["growths"]
    assert (release["base"], release["what"]) == (branch[3], "v1.2")
    assert window["what"] == "100 days before the newest baseline"
    site = stage.dispatch(command="pages")
    assert site.code == 0, site.error
    index, history = (
        (site.out / name).read_text() for name in ("index.html", "history.html")
    )
    assert (
        "Slow growth" in index
        and "since the last release" in index
        and "baseline of" in index
    )
    assert "Slow growth" in history and "+192" in index
    assert (
        json.loads((site.out / "history.json").read_text())["growths"][0]["base"]
        == branch[3]
    )


def test_an_acceptance_on_a_merged_pull_request_is_recorded_with_the_baseline(
    stage: Stage,
) -> None:
    stage.compiler("one", GROWS)
    rules = [
        {"name": "code size", "metrics": ["artifact_bytes"], "fail": "0%"},
        {"metrics": ["*"]},
    ]
    assert stage.push(stage.main(thresholds=rules)).code == 0
    larger: dict[str, str | None] = {"models/a.mlir": f"{A}// grown 1\n"}
    head, merge_sha = stage.open_pull(larger)
    assert stage.pull(head, merge_sha).report.verdict.status == "fail"
    stage.hub.add_label(1, "code-size-approved", by="alice")
    sha = stage.origin.push_main("Merge 1", larger)
    stage.hub.merge_pull(1, sha, [git(stage.origin.bare, "rev-parse", f"{sha}^")])
    assert stage.push(sha).report.verdict.status == "warn"
    accepted = next(
        stage.store.load(entry) for entry in stage.store.entries() if entry.sha == sha
    ).accepted
    assert accepted and accepted.who == "alice"
    assert (
        stage.push(
            stage.origin.push_main("More", {"models/a.mlir": f"{A}// grown 2\n"})
        ).code
        == 0
    )
    growth = weekly(stage)[0]["growths"][1]
    assert (growth["base"], growth["what"]) == (sha, "accepted by alice")
    artifact = growth["metrics"]["artifact_bytes"]
    assert artifact["head"] - artifact["base"] == 64, "what was accepted is no growth"


def test_with_a_short_past_the_oldest_baseline_stands_for_the_window_and_that_is_said(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.compiler("one", GROWS)
    dated(stage, 0, {"code-size.yml": stage.config(), "models/a.mlir": A}, monkeypatch)
    first_run = stage.dispatch(command="weekly")
    assert first_run.code == 5 and "only one baseline is stored" in first_run.error
    dated(stage, 3, {"models/a.mlir": f"{A}// grown 1\n"}, monkeypatch)
    summary, ran = weekly(stage)
    assert summary["days"] == 3 and summary["growths"][2]["base"] is None
    assert (
        "the baselines of the newest 2 commits cover only 3 of 90 days"
        in summary["notes"][0]
        and "only 3 of 90 days" in ran.summary
    )
    assert summary["drifts"][0]["week_bytes"] is None and "n/a" in ran.summary


def test_the_summary_is_made_of_the_default_branch_alone(stage: Stage) -> None:
    main = stage.main()
    payload = event("workflow_dispatch.main")
    ran = stage.run(
        "workflow_dispatch", payload, main, ref="refs/heads/other", command="weekly"
    )
    expected = (
        "the weekly summary is made only for the default branch, not for"
        " refs/heads/other"
    )
    assert ran.code == 2 and expected in ran.error and not ran.out.exists()
