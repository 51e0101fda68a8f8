"""Read and make commits in a repository without a working tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.store.entries import FOLDER
from bot.system.git import Git

AUTHOR = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
)
README = f"""# Code size baselines

This branch belongs to code-size-bot.
`{FOLDER}/<report>/<first two digits>/<commit>.<digest>.json.xz` is what the compiler made
of the suite at that commit. The digest covers compiler, suite, targets, flags and files.
`….ir.xz` beside it is the compiler's IR of the largest dispatches, for proofs in pull
requests.

It shares no history with the code. You may delete it: the next push to the default
branch creates it again.
"""


def blobs_of(git: Git, commit: str) -> dict[str, str]:
    """Return path in a commit → the id of its file."""
    listing = git.text("ls-tree", "-r", commit, "--", FOLDER)
    blobs = {}
    for line in listing.splitlines():
        row, _, path = line.partition("\t")
        blobs[path] = row.split()[2]
    return blobs


def first_commit(git: Git, seconds: int) -> str:
    """Make the first commit of a branch, which has only a README; return its SHA."""
    files = {"README.md": README.encode()}
    message = "Begin the code size baselines"
    return commit_files(git, parent=None, files=files, message=message, seconds=seconds)


def commit_files(
    git: Git,
    parent: str | None,
    files: Mapping[str, bytes],
    message: str,
    seconds: int,
) -> str:
    """Make a commit that adds these files to its parent; return its SHA."""
    blob = git.directory / "blob"
    added = []
    for path, data in files.items():
        blob.write_bytes(data)
        options = ("-w", "--no-filters", str(blob))
        blob_id = git.text("hash-object", *options)
        added.append(f"100644,{blob_id},{path}")
    return commit_blobs(
        git, parent=parent, added=added, message=message, seconds=seconds
    )


def commit_blobs(
    git: Git,
    parent: str | None,
    added: Sequence[str],
    message: str,
    seconds: int,
) -> str:
    """Make a commit that adds these blobs to its parent.

    A blob is `mode,blob,path`, and `seconds` is the date of the commit. Returns its SHA.
    """
    name, address = AUTHOR
    index = {"GIT_INDEX_FILE": str(git.directory / "index-of-tree")}
    git.text("read-tree", parent or "--empty", environment=index)
    options = list[str]()
    for blob in added:
        options += ("--cacheinfo", blob)
    git.text("update-index", "--add", *options, environment=index)
    tree = git.text("write-tree", "--missing-ok", environment=index)
    date = f"@{seconds} +0000"
    identity = {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": address,
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": address,
        "GIT_COMMITTER_DATE": date,
    }
    above = ("-p", parent) if parent else ()
    return git.text("commit-tree", tree, *above, "-m", message, environment=identity)
