"""The history of a compiler's repository: from a clone, by git alone, or from GitHub in a few requests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from bot.compiler.caches.storage import add, touch
from bot.core.codec.json_text import canonical
from bot.errors import InputError, NetworkError
from bot.insight.roots.suspects import LLVM, Commit, Source
from bot.system.files import whole_or_nothing
from bot.system.git import Git
from bot.system.processes import Cancel

MOST_REQUESTS = 20
"""Of one report."""
_MOST_DIFF_CHARACTERS = 1 << 20
_PAGE = 100
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature")
_END = "\x1e"
_ALONE = {"GIT_NO_LAZY_FETCH": "1"}
"""A clone without all objects would fetch them."""
_T = TypeVar("_T")


def clone_source(directory: Path, repository: str, cancel: Cancel) -> Source:
    """A clone, which is only read; the network is not asked."""
    git, llvm = Git(directory, cancel), Git(directory / LLVM, cancel)

    def text(revision: str, *arguments: str) -> str:
        if not git("cat-file", "-e", f"{revision}^{{commit}}", environment=_ALONE).ok:
            raise InputError(f"has no commit {revision[:10]}", where=f"the clone {directory.name}")
        return git.text(*arguments, environment=_ALONE)

    def paths(revision: str) -> Mapping[str, str]:
        entries = (entry.partition("\t") for entry in text(revision, "ls-tree", "-r", "-z", revision).split("\0"))
        return {path: kind.split(" ")[2] for kind, _, path in entries if path}

    def commits(path: str, base: str, head: str) -> Sequence[Commit]:
        log = text(base, "log", *_PLAIN, f"--format=%H%x00%cs%x00%s%x00%B{_END}", f"{base}...{head}", "--", path)
        return [Commit(*entry.strip().split("\0", 3)) for entry in log.split(_END) if entry.strip()]

    def llvm_commits(base: str, head: str) -> int | None:
        counted = llvm("rev-list", "--count", f"{base}..{head}", environment=_ALONE)
        return int(counted.output) if counted.ok and (llvm.directory / ".git").exists() else None

    show = ("show", *_PLAIN, "--format=", "--unified=0")
    address = f"https://github.com/{repository}" if repository else ""
    return Source(address, paths, commits, lambda sha: text(sha, *show, sha)[:_MOST_DIFF_CHARACTERS], llvm_commits)


def github_source(api_url: str, server_url: str, token: str, repository: str, cache: Path) -> Source:
    """The repository on GitHub, in at most MOST_REQUESTS, where nobody waits long; the cache keeps what revisions have.

    Args:
        token: may be empty, as far as GitHub answers strangers.
    """
    from bot.system.hub import connect, explain  # costs a tenth of a second to import

    hub = connect(api_url, token, repository, timeout_seconds=10, retries=1, max_wait_seconds=5)
    requests = list[str]()

    def ask(kind: type[_T], wanted: Callable[[Any], _T], place: str, **query: str | int) -> _T:
        """What is wanted of the answer: from the cache, where it is asked for by full revisions, else from GitHub."""
        address = f"{place}?{urlencode(query)}"
        key = hashlib.sha256(f"{api_url} {repository} {address}".encode()).hexdigest()
        file = cache / "history" / f"{key}.json"
        with suppress(msgspec.DecodeError):
            known = msgspec.json.decode(whole_or_nothing(file), type=kind)
            touch(file)
            return known
        if len(requests) >= MOST_REQUESTS:
            raise InputError(f"{MOST_REQUESTS} requests were made, which is the limit", where=repository)
        requests.append(address)
        with explain(f"read the history of {repository}", "contents: read"):
            known = wanted(hub.call("GET", address))
        add(cache, file, canonical(known))
        return known

    def tree(answer: Any) -> dict[str, str]:
        if answer["truncated"]:
            raise InputError(f"has too many files at {answer['sha'][:10]}", where=repository)
        return {str(entry["path"]): str(entry["sha"]) for entry in answer["tree"]}

    def listed(answer: Any) -> list[Commit]:
        rows = [
            (str(one["sha"]), str(one["commit"]["committer"]["date"]), str(one["commit"]["message"])) for one in answer
        ]
        return [Commit(sha, date, message.partition("\n")[0], message) for sha, date, message in rows]

    def commits(path: str, base: str, head: str) -> Sequence[Commit]:
        """GitHub lists what a revision has, so that what both have is taken away."""
        sides = [ask(list[Commit], listed, "commits", sha=one, path=path, per_page=_PAGE) for one in (head, base)]
        # Of a full page the older ones are not known: nothing as old as its last is said to be on one side alone.
        since = max((min(one.date for one in side) for side in sides if len(side) == _PAGE), default="")
        apart = set(sides[0]) ^ set(sides[1])
        if since and len(apart) == len(sides[0]) + len(sides[1]):
            raise InputError(f"more than {_PAGE} commits touched {path}", where=repository)
        return sorted((one for one in apart if one.date > since), key=lambda one: (one.date, one.sha), reverse=True)

    def patches(answer: Any) -> str:
        return "\n".join(str(file.get("patch", "")) for file in answer["files"])[:_MOST_DIFF_CHARACTERS]

    def llvm_commits(base: str, head: str) -> int | None:
        """LLVM's own repository knows the commits of its forks; the first page would have diffs."""
        path = f"/repos/llvm/llvm-project/compare/{base}...{head}"
        with suppress(NetworkError):
            return ask(int, lambda answer: int(answer["total_commits"]), path, per_page=1, page=2)
        return None

    return Source(
        f"{server_url}/{repository}",
        lambda revision: ask(dict[str, str], tree, f"git/trees/{revision}", recursive=1),
        commits,
        lambda sha: ask(str, patches, f"commits/{sha}", per_page=_PAGE),
        llvm_commits,
    )
