"""Pull requests whose sides pin other releases, and pins with pages of their own, on GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import Ran, Stage
from fake_github import FakeGitHub
from fake_wheels import entries, wheel_name, write_wheel
from github_runner import report_zip, run_event
from links_page import LinksPage, no_other_source, serving
from page_texts import render_html

pytestmark = pytest.mark.slow

OLD = "3.11.0"
NEW = "3.13.0"
PINNED = {"compiler": {"requirements": "requirements.txt"}}


def pin(version: str, *lines: str) -> dict[str, str | None]:
    return {
        "requirements.txt": "\n".join([*lines, f"iree-base-compiler=={version}", ""])
    }


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Wheels of two releases: the newer one makes larger artifacts."""
    no_other_source(monkeypatch)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "dist"))
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        for version in (OLD, NEW):
            fake = stage.compiler(
                f"release-{version}",
                [] if version == OLD else [{"do": "grow"}],
                version=version,
            )
            write_wheel(
                tmp_path / "dist" / wheel_name(version),
                entries(fake, version.encode(), version),
            )
        yield stage


@pytest.fixture
def page(stage: Stage) -> Iterator[LinksPage]:
    with serving(stage.home / "dist") as page:
        yield page


def test_each_side_s_file_says_where_its_wheels_are(
    stage: Stage, page: LinksPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.main(pin(OLD), **PINNED)
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert stage.pull(*stage.open_pull(pin(NEW))).code == 4
    lines = (
        "--pre",
        "--extra-index-url https://x.example",
        "-f ../outside",
        f"-f {page.url}",
    )
    ran = stage.pull(
        *stage.open_pull(pin(NEW, *lines), 2),
        number=2,
        base=stage.spec(f"release-{OLD}"),
    )
    assert ran.code == 0, ran.error
    assert ran.report.head.compiler.version == NEW
    assert (
        "requirements.txt:2: ignored the index: the bot uses the index of its own"
        " machine" in ran.said
    )
    assert (
        "requirements.txt:3: ignored the place of wheels: it is not a directory"
        in ran.said
    )
    homes = [
        path.name
        for path in (stage.home / "cache" / "toolchains").iterdir()
        if path.name.startswith(NEW)
    ]
    assert len(homes) == 1 and homes[0].count("-") > 3, (
        "apart from what the index gives"
    )


# A pin of a release that does not exist, and the pull request that repairs it.

GONE = "3.99.0"
SAID = (
    f"the base pins iree-base-compiler=={GONE}, and the package index has no such"
    " release"
)


def repaired(stage: Stage, base: str = GONE, head: str = NEW) -> Ran:
    """The run of a pull request that moves the pin."""
    stage.main(pin(base), **PINNED)
    return stage.pull(*stage.open_pull(pin(head)))


def test_the_pull_request_that_repairs_a_pin_is_held_to_limits_alone(
    stage: Stage,
) -> None:
    ran = repaired(stage)
    assert (ran.code, ran.error, ran.outputs["verdict"]) == (0, "", "warn"), ran.said
    assert stage.conclusions == ["neutral"] and ran.states == {"a on vmvx": "new"}
    (body,) = stage.comments()
    for text in (body.replace("\\", ""), ran.summary.replace("\\", "")):
        assert f"Nothing was compared: {SAID}. The limits apply to head only." in text
    assert (
        "identical" not in body
        and "nothing changed" not in body
        and "unknown" not in body.splitlines()[2]
    )
    assert "limits applied to head only" in stage.hub.check_runs[0]["output"]["title"]
    notes = json.loads((ran.out / "report.json").read_text())["notes"]
    assert notes == [f"nothing was compared, and the limits apply to head only: {SAID}"]
    html = render_html(ran.report)
    assert SAID in html


@pytest.mark.parametrize(("limit", "verdict"), [("1B", "fail"), ("1GiB", "warn")])
def test_a_repaired_pin_does_not_excuse_what_is_over_a_limit(
    stage: Stage, limit: str, verdict: str
) -> None:
    rules = [
        {"metrics": ["artifact_bytes"], "fail": {"limit": limit}},
        {"metrics": ["*"], "fail": "0%"},
    ]
    stage.main(pin(GONE), thresholds=rules, states={"new": "fail"}, **PINNED)
    ran = stage.pull(*stage.open_pull(pin(NEW)))
    assert ran.outputs["verdict"] == verdict, ran.error
    assert stage.conclusions == [{"fail": "failure", "warn": "neutral"}[verdict]]


def test_a_page_that_does_not_answer_leaves_the_verdict_unknown(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release may be on that page."""
    monkeypatch.setenv(
        "PIP_FIND_LINKS", f"{stage.home / 'dist'} http://127.0.0.1:9/wheels.html"
    )
    monkeypatch.setenv("PIP_RETRIES", "1")
    ran = repaired(stage)
    assert (
        ran.code == 5
        and ran.outputs["verdict"] == "unknown"
        and stage.conclusions == ["failure"]
    )
    assert "No baseline: " in stage.comments()[0]


def test_a_directory_that_is_not_there_leaves_the_verdict_unknown(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PIP_FIND_LINKS", f"{stage.home / 'dist'} {stage.home / 'unmounted'}"
    )
    assert repaired(stage).outputs["verdict"] == "unknown"


def test_a_release_for_other_machines_exists(stage: Stage) -> None:
    (
        stage.home
        / "dist"
        / f"iree_base_compiler-{GONE}-cp39-cp39-manylinux_2_27_sparc64.whl"
    ).touch()
    ran = repaired(stage)
    assert ran.outputs["verdict"] == "unknown" and stage.conclusions == ["failure"]


def test_a_pull_request_that_pins_no_release_itself_is_refused(stage: Stage) -> None:
    ran = repaired(stage, base=NEW, head=GONE)
    assert (
        ran.code == 4
        and f"iree-base-compiler=={GONE}" in ran.error
        and stage.conclusions == ["failure"]
    )
    ran = stage.pull(*stage.open_pull(pin("3.98.0"), 2), number=2)
    assert ran.code == 4


def test_a_fork_that_repairs_a_pin_is_believed_only_where_the_index_says_the_same(
    stage: Stage,
) -> None:
    main = stage.main(pin(GONE), **PINNED)
    head, merge = stage.open_pull(pin(NEW))
    stage.hub.add_pull(
        1, head, merge_sha=merge, base_sha=main, head_repo="mallory/repo"
    )
    measured = stage.pull(head, merge, fork=True)
    assert measured.code == 0 and stage.comments() == [], measured.error
    stage.hub.set_branch("main", main)
    stage.hub.add_artifact(
        500, "code-size-measured-default-test", report_zip(measured.out)
    )
    ran = stage.run("workflow_run", run_event(500, head), main, ref="refs/heads/main")
    assert (ran.code, ran.outputs["verdict"]) == (0, "warn"), ran.error
    assert stage.conclusions == ["neutral"]
    assert SAID in stage.comments()[0].replace("\\", "")
    (stage.home / "dist" / wheel_name(NEW)).rename(
        stage.home / "dist" / wheel_name(GONE)
    )
    ran = stage.run("workflow_run", run_event(500, head), main, ref="refs/heads/main")
    assert (ran.code, ran.outputs["verdict"]) == (5, "unknown")
    assert stage.conclusions[-1] == "neutral", (
        "a verdict of the same merge commit stays"
    )


def test_a_directory_of_wheels_outside_of_the_repository_is_refused(
    stage: Stage,
) -> None:
    stage.main(compiler={"head": NEW, "find_links": str(stage.home / "dist")})
    ran = stage.pull(*stage.open_pull({"notes.txt": "one\n"}))
    assert ran.code == 2 and ran.error.endswith(
        "dist: leaves the repository (use files of the commit)"
    )


def test_a_plan_tells_its_runners_which_release_nightly_is(stage: Stage) -> None:
    stage.main(compiler={"head": "latest"})
    pull = stage.open_pull({"notes.txt": "one\n"})
    plan = json.loads(stage.pull(*pull, command="plan", shards="2").outputs["matrix"])
    assert [row["releases"] for row in plan["include"]] == [{"latest": NEW}]
    (stage.home / "dist" / wheel_name(NEW)).rename(
        stage.home / "dist" / wheel_name("3.14.0")
    )
    ran = stage.pull(*pull, command="measure", shard="1/2", plan=json.dumps(plan))
    assert ran.code == 4 and f"=={NEW}" in ran.error, (
        "what was planned, and nothing newer"
    )
