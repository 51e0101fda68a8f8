"""A bare repository of our own for the data branch: the user's clone, its index, branches and settings stay untouched.

Fetched without files (`blob:none`) and without history, so that a branch of thousands of snapshots costs its listing.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bot.errors import InputError, NetworkError

TIP, HISTORY = "refs/code-size/tip", "refs/code-size/history"
_ALL = "--depth=2147483647"  # git's own "infinite": works where `--unshallow` refuses, in a repository that has it all
_DENIED = ("403", "Permission to", "Write access to repository not granted")


class Result(Protocol):
    """How a git command ended."""

    @property
    def ok(self) -> bool:
        """True for exit code 0."""

    @property
    def output(self) -> str:
        """What it said; on standard error alone where standard output went to a file."""


class Git(Protocol):
    """Git in the user's clone."""

    def __call__(
        self,
        *arguments: str,
        stdin: Path | None = None,
        stdout: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Result:
        """Run one command, whatever its outcome."""

    def text(self, *arguments: str) -> str:
        """Its standard output; raises InputError where it fails."""


def refused(output: str, what: str) -> NetworkError:
    """The error of a remote that did not do `what`, in one line."""
    if any(mark in output for mark in _DENIED):
        return NetworkError(f"{what}: the token may not write", hint="give the job permissions: contents: write")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "!"))]
    return NetworkError(f"{what}: {(told or lines or ['git says nothing'])[0]}")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _section(key: str, value: str) -> str:
    """One setting as a git configuration file has it; `key` is `section.name` or `section.<anything>.name`."""
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    head = f"[{section} {_quoted(subsection)}]" if subsection else f"[{section}]"
    return f"{head}\n\t{name} = {_quoted(value)}\n"


class Scratch:
    """The bare repository, connected with the clone's remote; gone with `close`.

    The clone's own `http` and `credential` settings are taken along: checkout actions leave their credentials there.
    """

    def __init__(self, git: Git, remote: str) -> None:
        self._git = git
        self._room = tempfile.TemporaryDirectory(prefix="code-size-bot-data-")
        self.directory = Path(self._room.name)
        self._lock = os.open(self.directory, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # the next run removes those that are not locked
        repository = self.directory / "repository"
        self._environment = {"GIT_DIR": str(repository)}
        url, settings = git.text("remote", "get-url", remote), self._settings()
        self.text("init", "--quiet", "--bare", str(repository))
        with (repository / "config").open("a", encoding="utf-8") as file:
            file.write("".join(_section(key, value) for key, value in (("remote.origin.url", url), *settings)))

    def _settings(self) -> list[tuple[str, str]]:
        file = self.directory / "settings"
        wanted = r"^(http|credential)\.|^core\.sshcommand$"
        self._git("config", "--local", "--includes", "--null", "--get-regexp", wanted, stdout=file)
        rows = file.read_text(encoding="utf-8", errors="replace").split("\0")
        file.unlink()
        return [(key, value) for key, _, value in (row.partition("\n") for row in rows) if key]

    def call(
        self,
        *arguments: str,
        stdin: Path | None = None,
        stdout: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Result:
        """Run git in the bare repository."""
        environment = {**self._environment, **(environment or {})}
        return self._git(*arguments, stdin=stdin, stdout=stdout, environment=environment)

    def data(self, *arguments: str, environment: Mapping[str, str] | None = None, limit: int = -1) -> bytes:
        """Standard output, up to `limit` bytes (-1: all); raises InputError where git fails."""
        file = self.directory / "stdout"
        outcome = self.call(*arguments, stdout=file, environment=environment)
        if not outcome.ok:
            said = outcome.output.strip().splitlines()
            raise InputError(f"git {arguments[0]} failed: {said[-1] if said else 'no message'}", where="data branch")
        with file.open("rb") as source:
            return source.read(limit)

    def text(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Standard output as text, without the white space around it; raises InputError where git fails."""
        return self.data(*arguments, environment=environment).decode("utf-8", "replace").strip()

    def fetch(self, branch: str, history: bool = False) -> str | None:
        """SHA of the branch's tip, None where there is no such branch; raises NetworkError.

        Args:
            history: fetch all commits (still no files), under a name of its own.
        """
        ref, depth = (HISTORY, _ALL) if history else (TIP, "--depth=1")
        refspec = f"+refs/heads/{branch}:{ref}"
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", depth)
        outcome = self.call("fetch", *options, "origin", refspec)
        if outcome.ok:
            return self.text("rev-parse", "--verify", ref)
        if "couldn't find remote ref" in outcome.output:
            return None
        raise refused(outcome.output, f"branch {branch} could not be fetched")

    def store(self, data: bytes) -> str:
        """Make a blob; its SHA."""
        file = self.directory / "blob"
        file.write_bytes(data)
        return self.text("hash-object", "-w", "--no-filters", str(file))

    def tree(self, base: str | None, files: Mapping[str, str]) -> str:
        """The tree of commit `base` (None: an empty one) with these paths → blobs on top; its SHA."""
        environment = {"GIT_INDEX_FILE": str(self.directory / "index")}
        self.text("read-tree", base or "--empty", environment=environment)
        added = [word for path, blob in files.items() for word in ("--cacheinfo", f"100644,{blob},{path}")]
        self.text("update-index", "--add", *added, environment=environment)
        return self.text("write-tree", "--missing-ok", environment=environment)

    def commit(self, tree: str, parent: str | None, message: str, identity: Mapping[str, str]) -> str:
        """Make a commit; its SHA. `identity` holds git's variables for author, committer and dates."""
        file = self.directory / "message"
        file.write_text(message, encoding="utf-8")
        above = ("-p", parent) if parent else ()
        return self.text("commit-tree", tree, *above, "-F", str(file), environment=identity)

    def close(self) -> None:
        """Remove it from the disk."""
        os.close(self._lock)
        self._room.cleanup()
