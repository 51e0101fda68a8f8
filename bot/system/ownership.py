"""Give files that root writes into somebody else's folder to its owner.

The action's container runs as root. On a self-hosted runner the workspace belongs to
another user, whose next job could neither change nor remove what root left there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def give_to_owner(workspace: Path, paths: Iterable[Path]) -> None:
    """Give what root owns at these paths to the owner of the workspace.

    Links are not followed. Paths elsewhere are left alone. Nothing is done if this
    process is not root, or if root owns the workspace.
    """
    owner = workspace.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    top = workspace.resolve()
    for path in paths:
        whole = path.absolute().parent.resolve() / path.name
        if whole == top or not whole.is_relative_to(top):
            continue
        for parent in whole.parents:
            if parent == top or not parent.is_relative_to(top):
                break
            _give(
                parent.name,
                owner,
                os.open(parent.parent, os.O_RDONLY | os.O_DIRECTORY),
                closes=True,
            )
        _give_tree(whole, owner)


def _give_tree(path: Path, owner: os.stat_result) -> None:
    with contextlib.suppress(OSError):
        _give(
            path.name,
            owner,
            os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY),
            closes=True,
        )
    if path.is_symlink() or not path.is_dir():
        return
    for _, folders, files, handle in os.fwalk(path, follow_symlinks=False):
        for name in (*folders, *files):
            _give(name, owner, handle)


def _give(
    name: str, owner: os.stat_result, folder: int, *, closes: bool = False
) -> None:
    """Give one entry of an open folder to the owner; a missing entry is no error."""
    try:
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid == 0:
            os.chown(
                name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False
            )
    except OSError:
        return
    finally:
        if closes:
            os.close(folder)
