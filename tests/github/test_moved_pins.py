"""A pull request that moves the pin, with the releases between; and pins with pages of their own on GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import MODEL, Stage
from fake_github import FakeGitHub
from fake_wheels import entries, wheel_name, write_wheel
from links_page import LinksPage, no_other_source, serving

pytestmark = pytest.mark.slow

OLD, BETWEEN, NEW = "3.11.0", "3.12.0", "3.13.0"
PINNED = {"compiler": {"requirements": "requirements.txt"}}


def pin(version: str, *lines: str) -> dict[str, str | None]:
    return {"requirements.txt": "\n".join([*lines, f"iree-base-compiler=={version}", ""])}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Wheels of three releases: the newest two make larger artifacts."""
    no_other_source(monkeypatch)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "dist"))
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        for version in (OLD, BETWEEN, NEW):
            fake = stage.compiler(f"release-{version}", [] if version == OLD else [{"do": "grow"}], version=version)
            write_wheel(tmp_path / "dist" / wheel_name(version), entries(fake, version.encode(), version))
        yield stage


@pytest.fixture
def page(stage: Stage) -> Iterator[LinksPage]:
    with serving(stage.home / "dist") as page:
        yield page


def test_the_comment_leads_with_causes_and_the_releases_between(stage: Stage) -> None:
    stage.main(pin(OLD), **PINNED)
    ran = stage.pull(*stage.open_pull(pin(NEW)), steps="all")
    assert ran.code == 0, ran.error
    assert [step.name for step in ran.report.steps] == [f"{OLD} → {BETWEEN}", f"{BETWEEN} → {NEW}"]
    assert [step.larger for step in ran.report.steps] == [1, 0]
    (body,) = stage.comments()
    assert body.index("**Releases between**") < body.index("| target | change |")
    assert "1 release between 3.11.0 and 3.13.0, 1 measured" in ran.said


def test_without_the_input_and_with_other_changes_it_is_any_comment(stage: Stage) -> None:
    stage.main(pin(OLD), **PINNED)
    assert stage.pull(*stage.open_pull(pin(NEW))).report.steps == ()
    edited = stage.pull(*stage.open_pull({**pin(NEW), "models/b.mlir": MODEL.format("b")}), steps="all")
    assert (edited.code, edited.report.pin, edited.report.steps) == (0, False, ())


def test_a_list_of_releases_that_cannot_be_had_is_a_note(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.main(pin(OLD), **PINNED)
    pull = stage.open_pull(pin(NEW))
    assert stage.pull(*pull).code == 0
    monkeypatch.setenv("PIP_FIND_LINKS", str(stage.home / "nowhere"))
    ran = stage.pull(*pull, steps="2")
    assert ran.code == 0 and ran.report.steps == ()
    assert any("releases between the two were not measured: " in note for note in ran.report.notes)


def test_each_side_s_file_says_where_its_wheels_are(
    stage: Stage, page: LinksPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.main(pin(OLD), **PINNED)
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert stage.pull(*stage.open_pull(pin(NEW))).code == 4
    lines = ("--pre", "--extra-index-url https://x.example", "-f ../outside", f"-f {page.url}")
    ran = stage.pull(*stage.open_pull(pin(NEW, *lines), 2), number=2, base=stage.spec(f"release-{OLD}"))
    assert ran.code == 0, ran.error
    assert ran.report.head.compiler.version == NEW
    assert "requirements.txt:2: the index is not used: it is that of the machine which runs the bot" in ran.said
    assert "requirements.txt:3: the place of wheels is not used: it is no directory" in ran.said
    homes = [path.name for path in (stage.home / "cache" / "toolchains").iterdir() if path.name.startswith(NEW)]
    assert len(homes) == 1 and homes[0].count("-") > 3, "apart from what the index gives"


def test_a_directory_of_wheels_outside_of_the_repository_is_refused(stage: Stage) -> None:
    stage.main(compiler={"head": NEW, "find_links": str(stage.home / "dist")})
    ran = stage.pull(*stage.open_pull({"notes.txt": "one\n"}))
    assert ran.code == 2 and ran.error.endswith("dist: leaves the repository (use files of the commit)")


def test_a_plan_tells_its_runners_which_release_nightly_is(stage: Stage) -> None:
    stage.main(compiler={"head": "latest"})
    pull = stage.open_pull({"notes.txt": "one\n"})
    plan = json.loads(stage.pull(*pull, command="plan", shards="2").outputs["matrix"])
    assert [row["releases"] for row in plan["include"]] == [{"latest": NEW}]
    (stage.home / "dist" / wheel_name(NEW)).rename(stage.home / "dist" / wheel_name("3.14.0"))
    ran = stage.pull(*pull, command="measure", shard="1/2", plan=json.dumps(plan))
    assert ran.code == 4 and f"=={NEW}" in ran.error, "what was planned, and nothing newer"
