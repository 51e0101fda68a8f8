"""bot.github.pages: the site of what is stored for the default branch, and of nothing else."""

from __future__ import annotations

import json
import re

import pytest
from action_stage import MODEL, Ran, Stage
from github_runner import event, git

from bot.github import pages

pytestmark = pytest.mark.slow

GROWN = MODEL.format("a") + "// longer\n" * 400


@pytest.fixture
def commits(stage: Stage) -> list[str]:
    """Three pushes, each measured and stored, the last of which made the model's code larger."""
    shas = [stage.main()]
    shas.append(stage.origin.push_main("More", {"models/b.mlir": MODEL.format("b")}))
    shas.append(stage.origin.push_main("Grown", {"models/a.mlir": GROWN}))
    for sha in shas:
        assert stage.push(sha).code == 0
    return shas


def test_the_site_is_the_newest_baseline_against_the_one_before_and_the_history_of_all(
    stage: Stage, commits: list[str]
) -> None:
    pushes = len(stage.hub.traffic)
    ran = stage.dispatch(command="pages")
    assert ran.code == 0, ran.error
    files = {path.name for path in ran.out.iterdir()}
    assert {
        "index.html",
        "report.html",
        "report.json",
        "history.json",
        "history.html",
    } <= files
    report = json.loads((ran.out / "report.json").read_text())
    assert (report["base"]["source"]["sha"], report["head"]["source"]["sha"]) == (
        commits[1],
        commits[2],
    )
    assert {
        cell["model"]: cell["state"]
        for cell in report["cells"]
        if cell["target"] == "vmvx"
    } == {
        "a": "changed",
        "b": "same",
    }
    history = json.loads((ran.out / "history.json").read_text())
    points = [(point["compiler"], point["model"]) for point in history["points"]]
    assert history["schema"] == "code-size-history/1"
    names = [sha[:10] for sha in commits]
    assert points == [(name, model) for name in names for model in ("a", "b")]
    assert [point["status"] for point in history["points"]][:3] == [
        "ok",
        "unmeasured",
        "ok",
    ]
    index = (ran.out / "index.html").read_text()
    links = re.findall(r'href="([^#"]*)"', index)
    assert set(links) == files - {"index.html"}
    assert commits[2][:10] in index and "3 baselines, 2 builds in the newest" in index
    assert not {exchange["method"] for exchange in stage.hub.traffic[pushes:]} - {"GET"}


def test_the_site_after_a_run_on_the_default_branch_of_many_baselines_and_of_damaged_ones(
    stage: Stage, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(ran: Ran) -> set[str]:
        assert ran.code == 0, ran.error
        return {
            point["compiler"]
            for point in json.loads((ran.out / "history.json").read_text())["points"]
        }

    first, second, third = (sha[:10] for sha in commits)
    by_hand = stage.dispatch(command="pages")
    payload = event("workflow_run.completed")
    payload["workflow_run"]["event"] = "push"
    followed = stage.run(
        "workflow_run", payload, commits[-1], ref="refs/heads/main", command="pages"
    )
    assert followed.code == 0, followed.error
    assert (
        followed.news.said[0] == "workflow_run: pages (command pages)"
        and "nothing" not in followed.said
    )
    sites = [
        {path.name: path.read_bytes() for path in ran.out.iterdir()}
        for ran in (by_hand, followed)
    ]
    assert sites[0] == sites[1]
    monkeypatch.setattr(pages, "MOST_BASELINES", 2)
    assert shown(stage.dispatch(command="pages")) == {second, third}
    stage.origin.push_main("Not measured", {"notes.txt": "none"})
    torn = {sha: next((stage.home / "store").rglob(f"{sha}*")) for sha in commits[1:]}
    torn[commits[1]].write_bytes(b"torn")
    ran = stage.dispatch(command="pages")
    assert (
        shown(ran) == {first, third}
        and "skipped a stored baseline that is damaged" in ran.said
    )
    torn[commits[2]].write_bytes(b"torn")
    ran = stage.dispatch(command="pages")
    assert (
        shown(ran) == {first}
        and "1 baseline, 1 build in the newest" in (ran.out / "index.html").read_text()
    )


def test_without_a_baseline_or_a_configuration_there_is_no_site_unless_the_packaged_one_is_meant(
    stage: Stage,
) -> None:
    stage.origin.push_main("Nothing", {"notes.txt": "none"})
    ran = stage.dispatch(command="pages")
    assert ran.code == 2 and "there is no .github/code-size.yml" in ran.error
    assert stage.dispatch(command="pages", config="default").code == 5
    stage.main()
    ran = stage.dispatch(command="pages")
    assert (
        ran.code == 5
        and "main: no baseline is stored (a push to the default branch stores one"
        in ran.error
    )
    assert not (ran.out / "index.html").exists()


def test_nothing_is_made_of_a_pull_request_or_of_another_branch(
    stage: Stage, commits: list[str]
) -> None:
    pull = stage.pull(
        *stage.open_pull({"models/a.mlir": MODEL.format("a")}), command="pages"
    )
    git(stage.origin.bare, "branch", "other", commits[0])
    payload = event("workflow_dispatch.main")
    of_branch = stage.run(
        "workflow_dispatch",
        payload,
        commits[0],
        ref="refs/heads/other",
        command="pages",
    )
    for ran, ref in ((pull, "refs/pull/1/merge"), (of_branch, "refs/heads/other")):
        assert (
            ran.code == 2
            and f"pages are made only for the default branch, not for {ref}"
            in ran.error
        )
        assert not ran.out.exists()
