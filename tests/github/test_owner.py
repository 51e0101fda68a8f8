"""A self-hosted runner whose user is not root: what the container writes as root belongs to the user afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from action_stage import MODEL, Stage

from bot.system.ownership import give_to_owner

pytestmark = pytest.mark.skipif(
    os.getuid() != 0, reason="needs root, as the container has it"
)
NOBODY = 65534


def owners(top: Path) -> set[int]:
    """The users of everything at and below a path."""
    return {path.lstat().st_uid for path in (top, *top.rglob("*"))}


@pytest.mark.parametrize("compiles", [True, False])
def test_report_cache_and_what_git_fetched_belong_to_the_owner_of_the_workspace(
    stage: Stage, compiles: bool
) -> None:
    if not compiles:
        stage.compiler("one", [{"do": "fail", "kind": "direct"}])
    stage.main()

    def to_nobody() -> None:
        workspace = stage.home / f"run-{stage.runs}" / "workspace"
        for path in (workspace, *workspace.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    stage.before_act = to_nobody
    pull = stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    ran = stage.pull(
        *pull, command="measure", out="reports/code-size", cache=".code-size-cache"
    )
    workspace = stage.home / f"run-{stage.runs}" / "workspace"
    assert ran.code == 0, ran.error
    assert (workspace / "reports/code-size/head.json").is_file() and (
        workspace / ".code-size-cache"
    ).is_dir()
    assert owners(workspace) == {NOBODY}


def test_nothing_outside_of_the_workspace_and_no_target_of_a_link_changes_hands(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "workspace"
    outside = tmp_path / "outside"
    for folder in (workspace / "out", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
    (workspace / "out" / "link").symlink_to(outside / "file")
    (workspace / "out" / "folder").symlink_to(outside)
    (workspace / "cache").symlink_to(outside)
    os.chown(workspace, NOBODY, NOBODY)
    give_to_owner(
        workspace,
        [
            workspace / "out",
            workspace / "cache",
            outside,
            workspace / "gone",
            workspace,
        ],
    )
    assert owners(outside) == {0} and owners(workspace) == {NOBODY}
