"""The history of a compiler's repository: from a clone, by git alone, or from GitHub in a few requests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from bot.compiler.caches.storage import add, touch
from bot.core.codec.json_text import canonical, converted
from bot.core.values.whole_report import Report
from bot.errors import InputError, NetworkError
from bot.inputs.config import Config
from bot.insight.roots.suspects import LLVM, Commit, Source, with_suspects
from bot.measurement.prepare import Request
from bot.publish.hub import connect, explain
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

    Args:
        repository: `owner/name` on GitHub, for the addresses of commits.

    Raises:
        InputError: it is no clone.
    """

    def __init__(self, directory: Path, repository: str, cancel: Cancel) -> None:
        self.name, self._repository = f"the clone {directory.name}", repository
        self._git, self._llvm = Git(directory, cancel), Git(directory / LLVM, cancel)
        if not directory.is_dir() or not self._git("rev-parse", "--git-dir").ok:
            raise InputError("is no clone of git", where=f"--source {directory}", hint="name a clone of the compiler")

    def paths(self, revision: str) -> Mapping[str, str]:
        """As Source has it."""
        self._require(revision)
        entries = (entry.partition("\t") for entry in self._text("ls-tree", "-r", "-z", revision).split("\0"))
        return {path: kind.split(" ")[2] for kind, _, path in entries if path}

    def commits(self, path: str, base: str, head: str) -> Sequence[Commit]:
        """As Source has it."""
        self._require(base)
        text = self._text("log", *_PLAIN, f"--format=%H%x00%cs%x00%B{_END}", f"{base}...{head}", "--", path)
        parts = (entry.strip().split("\0", 2) for entry in text.split(_END) if entry.strip())
        return [Commit(sha, date, message) for sha, date, message in parts]

    def diff(self, sha: str) -> str:
        """As Source has it."""
        return self._text("show", *_PLAIN, "--format=", "--unified=0", sha)[:_MOST_DIFF_CHARACTERS]

    def llvm_commits(self, base: str, head: str) -> int | None:
        """As Source has it: where the submodule is there, with both commits."""
        if not (self._llvm.directory / ".git").exists():
            return None
        counted = self._llvm("rev-list", "--count", f"{base}..{head}", environment=_ALONE)
        return int(counted.output) if counted.ok and counted.output.strip().isdigit() else None

    def url(self, sha: str) -> str:
        """As Source has it."""
        return f"https://github.com/{self._repository}/commit/{sha}" if self._repository else ""

    def _require(self, revision: str) -> None:
        if not self._git("cat-file", "-e", f"{revision}^{{commit}}", environment=_ALONE).ok:
            raise InputError(f"has no commit {revision[:10]}", where=self.name, hint="fetch it there")

    def _text(self, *arguments: str) -> str:
        return self._git.text(*arguments, environment=_ALONE)


class _Entry(msgspec.Struct):
    path: str
    sha: str


class _Tree(msgspec.Struct):
    tree: list[_Entry]
    truncated: bool


class _Signature(msgspec.Struct):
    date: str


class _Message(msgspec.Struct):
    message: str
    committer: _Signature


class _Listed(msgspec.Struct):
    sha: str
    commit: _Message


class _File(msgspec.Struct):
    patch: str = ""


class _Whole(msgspec.Struct):
    files: list[_File] = []


class _Comparison(msgspec.Struct):
    total_commits: int


class GitHubSource:
    """The repository on GitHub, in at most MOST_REQUESTS requests; what revisions have is kept in the cache.

    Args:
        get: the JSON at a path of the API; raises BotError.
    """

    def __init__(self, get: Callable[[str], Any], server_url: str, repository: str, cache: Path) -> None:
        self.name, self._get, self._server, self._cache = repository, get, server_url, cache
        self.requests = 0

    def paths(self, revision: str) -> Mapping[str, str]:
        """As Source has it."""

        def tree() -> dict[str, str]:
            answer = self._ask(_Tree, f"git/trees/{revision}", recursive=1)
            if answer.truncated:
                raise InputError(f"has too many files at {revision[:10]}", where=self.name)
            return {entry.path: entry.sha for entry in answer.tree}

        return self._known(dict[str, str], tree, "paths", revision)

    def commits(self, path: str, base: str, head: str) -> Sequence[Commit]:
        """As Source has it: GitHub lists what a revision has, so that what both have is taken away."""

        def between() -> list[Commit]:
            sides = [self._ask(list[_Listed], "commits", sha=one, path=path, per_page=_PAGE) for one in (head, base)]
            whole = [{one.sha: one for one in side} for side in sides]
            # Of a full page the older ones are not known: nothing as old as its last is said to be on one side alone.
            since = max(
                (min(one.commit.committer.date for one in side) for side in sides if len(side) == _PAGE), default=""
            )
            if since and not whole[0].keys() & whole[1].keys():
                raise InputError(f"more than {_PAGE} commits touched {path}", where=self.name)
            apart = [one for side, other in (whole, whole[::-1]) for sha, one in side.items() if sha not in other]
            apart = sorted(apart, key=lambda one: one.commit.committer.date, reverse=True)
            dated = [one for one in apart if one.commit.committer.date > since]
            return [Commit(one.sha, one.commit.committer.date[:10], one.commit.message) for one in dated]

        return self._known(list[Commit], between, "commits", path, base, head)

    def diff(self, sha: str) -> str:
        """As Source has it."""

        def patches() -> str:
            return "\n".join(file.patch for file in self._ask(_Whole, f"commits/{sha}", per_page=_PAGE).files)[
                :_MOST_DIFF_CHARACTERS
            ]

        return self._known(str, patches, "diff", sha)

    def llvm_commits(self, base: str, head: str) -> int | None:
        """As Source has it: LLVM's own repository knows the commits of its forks; its first page would have diffs."""
        path = f"/repos/llvm/llvm-project/compare/{base}...{head}"
        try:
            return self._known(int, lambda: self._ask(_Comparison, path, per_page=1, page=2).total_commits, path)
        except NetworkError:
            return None

    def url(self, sha: str) -> str:
        """As Source has it."""
        return f"{self._server}/{self.name}/commit/{sha}"

    def _known(self, kind: type[_T], ask: Callable[[], _T], *question: str) -> _T:
        """What the cache has, else what is asked now."""
        key = hashlib.sha256("\0".join((self._server, self.name, *question)).encode()).hexdigest()
        file = self._cache / "history" / f"{key}.json"
        try:
            known = msgspec.json.decode(whole_or_nothing(file), type=kind)
            touch(file)
        except msgspec.DecodeError:
            known = ask()
            add(self._cache, file, canonical(known))
        return known

    def _ask(self, kind: type[_T], place: str, **query: str | int) -> _T:
        if self.requests >= MOST_REQUESTS:
            raise InputError(f"{MOST_REQUESTS} requests were made, which is the limit", where=self.name)
        self.requests += 1
        path = place if place.startswith("/") else f"/repos/{self.name}/{place}"
        return converted(self._get(f"{path}?{urlencode(query)}"), kind, f"GitHub's answer about {self.name}")


def github_source(api_url: str, server_url: str, token: str, repository: str, cache: Path) -> GitHubSource:
    """The repository on GitHub; nothing is requested yet. Nobody waits long for it.

    Args:
        token: may be empty, as far as GitHub answers strangers.
    """
    hub = connect(api_url, token, repository, timeout_seconds=10, retries=1, max_wait_seconds=5)

    def get(path: str) -> Any:
        with explain(f"read the history of {repository}", "contents: read"):
            return hub.call("GET", path)

    return GitHubSource(get, server_url, repository, cache)


def source_of(request: Request, config: Config, cancel: Cancel) -> Source | None:
    """Where the request says that commits of the compiler are looked up; None where it does not say so.

    On GitHub it is asked with the token of the environment, which may have none, as on a runner.

    Raises:
        InputError: the directory that it names is no clone.
    """
    repository = config.compiler.repository
    if request.source is not None:
        return CloneSource(request.source, repository, cancel)
    if not request.suspects or not repository:
        return None
    api_url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    server_url = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or ""
    return github_source(api_url, server_url, token, repository, request.cache)


def looked_up(made: Report, request: Request, config: Config, cancel: Cancel) -> Report:
    """The report with the commits that may have made its root causes, where the request wants them."""
    source = source_of(request, config, cancel)
    return with_suspects(made, source) if source else made
