"""Pull requests whose sides pin other releases, and pins with pages of their own, on GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import Stage
from fake_github import FakeGitHub
from fake_wheels import entries, wheel_name, write_wheel
from links_page import LinksPage, no_other_source, serving

pytestmark = pytest.mark.slow

OLD, NEW = "3.11.0", "3.13.0"
PINNED = {"compiler": {"requirements": "requirements.txt"}}


def pin(version: str, *lines: str) -> dict[str, str | None]:
    return {"requirements.txt": "\n".join([*lines, f"iree-base-compiler=={version}", ""])}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Wheels of two releases: the newer one makes larger artifacts."""
    no_other_source(monkeypatch)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "dist"))
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        for version in (OLD, NEW):
            fake = stage.compiler(f"release-{version}", [] if version == OLD else [{"do": "grow"}], version=version)
            write_wheel(tmp_path / "dist" / wheel_name(version), entries(fake, version.encode(), version))
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
