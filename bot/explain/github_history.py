"""Ask GitHub for the history of a compiler's repository, in a few requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from bot.compiler.storage import add, touch
from bot.core.json_text import canonical
from bot.core.record import Small
from bot.errors import InputError
from bot.explain.compiler_history import MOST_DIFF_CHARACTERS, Commit, CompilerHistory
from bot.system.files import whole_or_nothing

_MOST_REQUESTS = 20
_PAGE = 100
_T = TypeVar("_T")


class _TreeEntry(Small, frozen=True):
    path: str
    sha: str


class _Tree(Small, frozen=True):
    """The files of a revision."""

    sha: str
    truncated: bool
    tree: list[_TreeEntry]


class _Committer(Small, frozen=True):
    date: str


class _CommitText(Small, frozen=True):
    committer: _Committer
    message: str


class _Listed(Small, frozen=True):
    """A commit in a list."""

    sha: str
    commit: _CommitText


class _ChangedFile(Small, frozen=True):
    # empty for a binary file and for a large change
    patch: str = ""


class _Changes(Small, frozen=True):
    """The changes of a commit."""

    files: list[_ChangedFile]


def github_source(
    api_url: str, server_url: str, token: str, repository: str, cache: Path
) -> CompilerHistory:
    """Return the repository on GitHub, for a few requests with short waits.

    `token` may be empty.
    """
    # each costs a tenth of a second to import
    from bot.system.hub import connect
    from bot.system.refusals import explain

    hub = connect(
        api_url, token, repository, timeout_seconds=10, retries=1, max_wait_seconds=5
    )
    requests = list[str]()

    def ask(kind: type[_T], place: str, **query: str | int) -> _T:
        """Return an answer of GitHub.

        The cache keeps it: answers about full revisions do not change.
        """
        address = f"{place}?{urlencode(query)}"
        key = hashlib.sha256(f"{api_url} {repository} {address}".encode()).hexdigest()
        file = cache / "history" / f"{key}.json"
        with suppress(msgspec.DecodeError):
            stored = msgspec.json.decode(whole_or_nothing(file), type=kind)
            touch(file)
            return stored
        if len(requests) >= _MOST_REQUESTS:
            raise InputError(
                f"the limit of {_MOST_REQUESTS} requests was reached", where=repository
            )
        requests.append(address)
        with explain(f"read the history of {repository}", "contents: read"):
            stored = hub.get(kind, place, **query)
        add(cache, file, canonical(stored))
        return stored

    def tree(answer: _Tree) -> dict[str, str]:
        if answer.truncated:
            problem = f"has too many files at {answer.sha[:10]}"
            raise InputError(problem, where=repository)
        return {entry.path: entry.sha for entry in answer.tree}

    def listed(answer: list[_Listed]) -> list[Commit]:
        commits = []
        for entry in answer:
            text = entry.commit
            commits.append(Commit(entry.sha, text.committer.date, text.message))
        return commits

    def patches(answer: _Changes) -> str:
        text = "\n".join(file.patch for file in answer.files)
        return text[:MOST_DIFF_CHARACTERS]

    def commits(path: str, base: str, head: str) -> Sequence[Commit]:
        one_sided = set[Commit]()
        total = 0
        since = ""
        for sha in (head, base):
            side = listed(
                ask(list[_Listed], "commits", sha=sha, path=path, per_page=_PAGE)
            )
            total += len(side)
            # What both have is taken away.
            one_sided ^= set(side)
            # Commits older than a full page are not known: no commit as old as its
            # last one is named.
            if len(side) == _PAGE:
                since = max(since, min(commit.date for commit in side))
        if since and len(one_sided) == total:
            raise InputError(
                f"more than {_PAGE} commits touched {path}", where=repository
            )
        newer = [commit for commit in one_sided if commit.date > since]
        newer.sort(key=lambda commit: (commit.date, commit.sha), reverse=True)
        return newer

    return CompilerHistory(
        address=f"{server_url}/{repository}",
        paths=lambda revision: tree(ask(_Tree, f"git/trees/{revision}", recursive=1)),
        commits=commits,
        diff=lambda sha: patches(ask(_Changes, f"commits/{sha}", per_page=_PAGE)),
    )
