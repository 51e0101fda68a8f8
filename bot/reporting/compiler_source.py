"""The history of a compiler's repository: from a clone, by git alone, or from GitHub in a few requests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from bot.compiler.caches.storage import add, touch
from bot.config.configuration import Config
from bot.core.codec.json_text import canonical
from bot.core.values.whole_report import Report
from bot.errors import InputError, NetworkError
from bot.insight.roots.suspects import LLVM, Commit, Source, with_suspects
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


class CloneSource:
    """A clone of the compiler's repository, which is only read; the network is not asked.

    Raises:
        InputError: it is no clone.
    """

    def __init__(self, directory: Path, repository: str, cancel: Cancel) -> None:
        self.address = f"https://github.com/{repository}" if repository else ""
        self._git, self._llvm = Git(directory, cancel), Git(directory / LLVM, cancel)
        if not self._git("rev-parse", "--git-dir").ok:
            raise InputError("is no clone of git", where=f"--source {directory}", hint="name a clone of the compiler")

    def paths(self, revision: str) -> Mapping[str, str]:
        """As Source has it."""
        entries = (entry.partition("\t") for entry in self._text(revision, "ls-tree", "-r", "-z", revision).split("\0"))
        return {path: kind.split(" ")[2] for kind, _, path in entries if path}

    def commits(self, path: str, base: str, head: str) -> Sequence[Commit]:
        """As Source has it."""
        text = self._text(base, "log", *_PLAIN, f"--format=%H%x00%cs%x00%B{_END}", f"{base}...{head}", "--", path)
        return [Commit(*entry.strip().split("\0", 2)) for entry in text.split(_END) if entry.strip()]

    def diff(self, sha: str) -> str:
        """As Source has it."""
        return self._text(sha, "show", *_PLAIN, "--format=", "--unified=0", sha)[:_MOST_DIFF_CHARACTERS]

    def llvm_commits(self, base: str, head: str) -> int | None:
        """As Source has it: where the submodule is there, with both commits."""
        if not (self._llvm.directory / ".git").exists():
            return None
        counted = self._llvm("rev-list", "--count", f"{base}..{head}", environment=_ALONE)
        return int(counted.output) if counted.ok else None

    def _text(self, revision: str, *arguments: str) -> str:
        if not self._git("cat-file", "-e", f"{revision}^{{commit}}", environment=_ALONE).ok:
            raise InputError(f"has no commit {revision[:10]}", where=f"the clone {self._git.directory.name}")
        return self._git.text(*arguments, environment=_ALONE)


class GitHubSource:
    """The repository on GitHub, in at most MOST_REQUESTS requests; what revisions have is kept in the cache.

    Args:
        get: the JSON at a path of the API; raises BotError.
    """

    def __init__(self, get: Callable[[str], Any], server_url: str, repository: str, cache: Path) -> None:
        self.address, self._repository = f"{server_url}/{repository}", repository
        self._get, self._cache, self._requests = get, cache, 0

    def paths(self, revision: str) -> Mapping[str, str]:
        """As Source has it."""

        def tree() -> dict[str, str]:
            answer = self._ask(f"git/trees/{revision}", recursive=1)
            if answer["truncated"]:
                raise InputError(f"has too many files at {revision[:10]}", where=self._repository)
            return {entry["path"]: entry["sha"] for entry in answer["tree"]}

        return self._known(dict[str, str], tree, "paths", revision)

    def commits(self, path: str, base: str, head: str) -> Sequence[Commit]:
        """As Source has it: GitHub lists what a revision has, so that what both have is taken away."""

        def between() -> list[Commit]:
            sides = [self._ask("commits", sha=one, path=path, per_page=_PAGE) for one in (head, base)]
            listed = [{one["sha"]: one["commit"] for one in side} for side in sides]
            dates = [[one["committer"]["date"] for one in side.values()] for side in listed]
            # Of a full page the older ones are not known: nothing as old as its last is said to be on one side alone.
            since = max((min(some) for some in dates if len(some) == _PAGE), default="")
            if since and not listed[0].keys() & listed[1].keys():
                raise InputError(f"more than {_PAGE} commits touched {path}", where=self._repository)
            apart = [(listed[0] | listed[1])[sha] | {"sha": sha} for sha in listed[0].keys() ^ listed[1].keys()]
            apart.sort(key=lambda one: (one["committer"]["date"], one["sha"]), reverse=True)
            dated = ((one, one["committer"]["date"]) for one in apart)
            return [Commit(one["sha"], date[:10], one["message"]) for one, date in dated if date > since]

        return self._known(list[Commit], between, "commits", path, base, head)

    def diff(self, sha: str) -> str:
        """As Source has it."""

        def patches() -> str:
            files = self._ask(f"commits/{sha}", per_page=_PAGE)["files"]
            return "\n".join(file.get("patch", "") for file in files)[:_MOST_DIFF_CHARACTERS]

        return self._known(str, patches, "diff", sha)

    def llvm_commits(self, base: str, head: str) -> int | None:
        """As Source has it: LLVM's own repository knows the commits of its forks; its first page would have diffs."""
        path = f"/repos/llvm/llvm-project/compare/{base}...{head}"
        try:
            return self._known(int, lambda: self._ask(path, per_page=1, page=2)["total_commits"], path)
        except NetworkError:
            return None

    def _known(self, kind: type[_T], ask: Callable[[], _T], *question: str) -> _T:
        """What the cache has, else what is asked now."""
        key = hashlib.sha256("\0".join((self.address, *question)).encode()).hexdigest()
        file = self._cache / "history" / f"{key}.json"
        try:
            known = msgspec.json.decode(whole_or_nothing(file), type=kind)
            touch(file)
        except msgspec.DecodeError:
            try:
                known = ask()
                add(self._cache, file, canonical(msgspec.convert(msgspec.to_builtins(known), kind)))
            except (KeyError, TypeError, AttributeError, msgspec.ValidationError):
                raise InputError("has not what its API describes", where="GitHub's answer") from None
        return known

    def _ask(self, place: str, **query: str | int) -> Any:
        if self._requests >= MOST_REQUESTS:
            raise InputError(f"{MOST_REQUESTS} requests were made, which is the limit", where=self._repository)
        self._requests += 1
        return self._get(f"{place if place[0] == '/' else f'/repos/{self._repository}/{place}'}?{urlencode(query)}")


def github_source(api_url: str, server_url: str, token: str, repository: str, cache: Path) -> GitHubSource:
    """The repository on GitHub, where nobody waits long; the token may be empty, as far as GitHub answers strangers."""
    from bot.system.hub import connect, explain  # costs a tenth of a second to import

    hub = connect(api_url, token, repository, timeout_seconds=10, retries=1, max_wait_seconds=5)

    def get(path: str) -> Any:
        with explain(f"read the history of {repository}", "contents: read"):
            return hub.call("GET", path)

    return GitHubSource(get, server_url, repository, cache)


class Asks(Protocol):
    """What of a request says whether, and where, commits of the compiler are looked up."""

    @property
    def suspects(self) -> bool:
        """Whether on GitHub."""

    @property
    def source(self) -> Path | None:
        """A clone to look in instead."""

    @property
    def cache(self) -> Path:
        """Where answers are kept."""


def source_of(request: Asks, config: Config, cancel: Cancel) -> Source | None:
    """Where the request says that commits of the compiler are looked up; None where it does not say so.

    On GitHub it is asked with the token of the environment, if there is one.

    Raises:
        InputError: the directory that it names is no clone.
    """
    repository, environ = config.compiler.repository, os.environ
    if request.source is not None:
        return CloneSource(request.source, repository, cancel)
    if not request.suspects or not repository:
        return None
    api_url, server_url = environ.get("GITHUB_API_URL"), environ.get("GITHUB_SERVER_URL")
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    hosts = api_url or "https://api.github.com", server_url or "https://github.com"
    return github_source(*hosts, token, repository, request.cache)


def looked_up(made: Report, request: Asks, config: Config, cancel: Cancel) -> Report:
    """The report with the commits that may have made its root causes, where the request wants them."""
    source = source_of(request, config, cancel)
    return with_suspects(made, source) if source else made
