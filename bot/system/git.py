"""Run git in a directory: find, fetch and check out commits.

Nothing of a repository's content is run. The directory may belong to another user (a
container's workspace), and its commits to a stranger: hooks, filters, submodules and
the configuration of user and machine are all left out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.core.snapshot import SourceInfo
from bot.errors import InputError, NetworkError
from bot.system.cancel import Cancel
from bot.system.credentials import Credentials
from bot.system.files import temporary_directory
from bot.system.processes import Outcome, run

TIMEOUT_SECONDS = 900
_SETTINGS = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORTENED = re.compile(r"(?:.*-g)?[0-9a-f]{4,39}", re.IGNORECASE | re.ASCII)
"""What git may take for the beginning of a commit's id.

It stands alone, or at the end of what `git describe` prints.
"""
_SHOWN_CHARS = 80
_NO_SUCH_REF = 2  # exit code of `git ls-remote --exit-code`
_SUFFIX = re.compile(r"[~^@:]")
_UNREACHABLE = re.compile(
    r"unable to access|Could not read from remote|Could not"
    r" resolve|Connection|timed out"
)
_OWNER_AND_NAME = re.compile(
    r"(?P<server>\S+[/:])[^/:\s]+/[^/:\s]+?(?P<ending>(?:\.git)?)/?"
)
# commits a deepening fetch asks for: doubled until it is enough
_FIRST_STEP = 50
_LARGEST_STEP = 3200


def first_line(output: str, *marks: str) -> str:
    """Return the message of a failed git, as one line.

    It is the line that begins with `fatal:` or `error:`, else the first one.
    """
    first = ""
    for line in map(str.strip, output.splitlines()):
        if line.startswith(("fatal:", "error:", *marks)):
            return line
        first = first or line
    return first or "no message"


def _shortened_commit(ref: str) -> InputError:
    name = _SUFFIX.split(ref)[0][:_SHOWN_CHARS]
    hint = (
        f"give the full SHA, which `git rev-parse {name}` prints in your clone, or name"
        " a branch or tag"
    )
    problem = (
        f"{ref[:_SHOWN_CHARS]!r} is a shortened commit, and other commits can begin"
        " with it"
    )
    return InputError(problem, hint=hint)


class Git:
    """Git in one directory.

    Args:
        auth: what to authenticate with, from `bot.system.credentials.credentials`.
    """

    def __init__(
        self, directory: Path, cancel: Cancel, auth: Credentials | None = None
    ) -> None:
        self.directory = directory
        self._cancel = cancel
        self._auth = auth

    @property
    def has_credentials(self) -> bool:
        """Return whether git sends a token that this program was given."""
        return self._auth is not None

    def at(self, directory: Path) -> Git:
        """Return git for another directory, with the same credentials."""
        return Git(directory, self._cancel, self._auth)

    def __call__(
        self,
        *arguments: str,
        stdout: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Run one git command, whatever its outcome.

        Raises InputError if there is no git.
        """
        options = list[str]()
        for setting in _SETTINGS:
            options += ("-c", setting)
        secret = self._auth.environment if self._auth else {}
        try:
            return run(
                ["git", "-C", str(self.directory), *options, *arguments],
                cancel=self._cancel,
                stdout=stdout,
                environment={**_ENVIRONMENT, **secret, **(environment or {})},
                timeout_seconds=TIMEOUT_SECONDS,
            )
        except OSError as error:
            raise InputError(
                f"git cannot be run: {error.strerror}", hint="install git"
            ) from None

    def data(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        limit: int = -1,
    ) -> bytes:
        """Return standard output, up to `limit` bytes (-1: all).

        Raises InputError if git fails.
        """
        with temporary_directory("git-") as directory:
            file = directory / "out"
            outcome = self(*arguments, stdout=file, environment=environment)
            if not outcome.ok:
                raise InputError(
                    f"git {arguments[0]} failed: {first_line(outcome.output)}",
                    where=str(self.directory),
                )
            with file.open("rb") as source:
                return source.read(limit)

    def text(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> str:
        """Return standard output as text, without the white space around it.

        Raises InputError if git fails.
        """
        return (
            self.data(*arguments, environment=environment)
            .decode("utf-8", "replace")
            .strip()
        )

    def names(self, *arguments: str) -> list[str]:
        """Return the names that a command with `-z` lists, as they are.

        Raises InputError if git fails.
        """
        listing = self.data(*arguments).decode("utf-8", "replace")
        return [name for name in listing.split("\0") if name]

    def resolve(self, ref: str) -> str | None:
        """Return the full SHA of the commit that `ref` names here, else at origin.

        A commit of origin is fetched. None if there is no such ref.

        Raises InputError for a text that cannot be a ref, and for a shortened
        commit. Raises NetworkError if origin does not answer.
        """
        if not ref or ref.startswith("-") or not ref.isprintable() or " " in ref:
            raise InputError(
                f"{ref[:_SHOWN_CHARS]!r} is not a git ref",
                hint="name a commit, a branch or a tag",
            )
        is_shortened = self._is_shortened(ref)
        if not is_shortened:
            local = self._local(ref)
            if local:
                return local
        sha: str | None = ref
        if not _SHA.fullmatch(ref):
            sha = self._advertised(ref)
        if sha is None:
            if is_shortened:
                raise _shortened_commit(ref)
            return None
        local = self._local(sha)
        if not local and self._fetch(sha):
            return self._local(sha)
        return local

    def knows(self, ref: str) -> bool:
        """Return whether `ref` names a commit that is here; nothing is fetched."""
        is_text = bool(ref) and ref.isprintable() and not ref.startswith("-")
        return is_text and self._local(ref) is not None

    def _is_shortened(self, ref: str) -> bool:
        """Return True if git may read `ref` as a shortened commit id.

        Anybody can make a commit whose id begins so.
        """
        name = _SUFFIX.split(ref)[0]
        if not _SHORTENED.fullmatch(name):
            return False
        outcome = self(
            "rev-parse",
            "--verify",
            "--quiet",
            "--symbolic-full-name",
            "--end-of-options",
            name,
        )
        return not (outcome.ok and outcome.output.strip().startswith("refs/"))

    def _local(self, ref: str) -> str | None:
        outcome = self(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
        )
        sha = outcome.output.strip()
        if outcome.ok and _SHA.fullmatch(sha):
            return sha
        return None

    def _advertised(self, ref: str) -> str | None:
        """Return the commit of origin's branch or tag of that name.

        None if there is none. A tag object is resolved to its commit.
        """
        refs = [
            f"refs/tags/{ref}^{{}}",
            f"refs/tags/{ref}",
            f"refs/heads/{ref}",
            f"{ref}^{{}}",
            ref,
        ]
        if not self.has_remote():
            return None
        with temporary_directory("git-") as directory:
            outcome = self("ls-remote", "origin", *refs, stdout=directory / "out")
            self._reached(outcome)
            rows = (
                (directory / "out")
                .read_text(encoding="utf-8", errors="replace")
                .splitlines()
            )
        shas = {}
        for row in rows:
            sha, _, name = row.partition("\t")
            shas[name] = sha
        return next((shas[name] for name in refs if name in shas), None)

    def has_pull_request(self, number: int) -> bool | None:
        """Return whether origin lists the refs of a pull request.

        None if it lists none of any pull request, or cannot be asked.
        """
        outcome = self("ls-remote", "--exit-code", "origin", f"refs/pull/{number}/*")
        if outcome.ok:
            return True
        is_asked = outcome.exit_code == _NO_SUCH_REF
        lists_others = (
            is_asked
            and self("ls-remote", "--exit-code", "origin", "refs/pull/*/head").ok
        )
        if lists_others:
            return False
        return None

    def _reached(self, outcome: Outcome) -> None:
        if not outcome.ok and _UNREACHABLE.search(outcome.output):
            raise NetworkError(
                f"git cannot reach origin: {first_line(outcome.output)}",
                where=str(self.directory),
            )

    def has_remote(self) -> bool:
        """Return whether there is an `origin` to fetch from."""
        return self("config", "--get", "remote.origin.url").ok

    def address_beside_origin(self, repository: str) -> str:
        """Return the address of `owner/name` on the server of `origin`.

        It has the form of origin's own address.

        Raises InputError if origin has no address of that form.
        """
        address = self("config", "--get", "remote.origin.url").output.strip()
        match = _OWNER_AND_NAME.fullmatch(address)
        if match is None:
            hint = "add a remote `origin` with the address of your repository"
            raise InputError(
                f"the address of {repository} is not known",
                where=str(self.directory),
                hint=hint,
            )
        return f"{match['server']}{repository}{match['ending']}"

    def _fetch(self, sha: str) -> bool:
        """Fetch one missing commit.

        In a shallow clone it is fetched without its history. In a full clone
        that would make the clone shallow.
        """
        if not self.has_remote():
            return False
        depth = list[str]()
        if self.text("rev-parse", "--is-shallow-repository") == "true":
            depth.append("--depth=1")
        outcome = self(*_FETCH, *depth, "origin", sha)
        self._reached(outcome)
        return outcome.ok

    def ensure(self, sha: str) -> None:
        """Fetch the commit unless it is here.

        Raises InputError if it is neither here nor at origin.
        """
        if self.resolve(sha) is None:
            raise InputError(
                f"commit {sha} is neither in this clone nor at origin",
                where=str(self.directory),
            )

    def default_branch(self) -> str:
        """Return the main branch, as far as this clone knows.

        It is the branch that origin's HEAD names, else `main` or `master` if
        there is one, else the current branch. Empty if there is none of these.
        """
        command = ("symbolic-ref", "--quiet", "--short")
        head = self(*command, "refs/remotes/origin/HEAD")
        if head.ok:
            return head.output.strip().removeprefix("origin/")
        options = ("--verify", "--quiet")
        for name in ("main", "master"):
            for place in ("heads", "remotes/origin"):
                if self("show-ref", *options, f"refs/{place}/{name}").ok:
                    return name
        current = self(*command, "HEAD")
        if current.ok:
            return current.output.strip()
        return ""

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents that a commit names, which need not be here.

        A shallow clone may end before them.
        """
        header = self.text("cat-file", "commit", sha).partition("\n\n")[0].splitlines()
        parents = []
        for line in header:
            if line.startswith("parent "):
                parents.append(line.removeprefix("parent "))
        return tuple(parents)

    def ancestors(self, sha: str, limit: int) -> tuple[str, ...]:
        """Return the first parents of a commit, nearest first, at most `limit`.

        There are fewer only at the root, or if origin gives no more.
        """
        self.ensure(sha)
        step = _FIRST_STEP
        while True:
            shas = self.text(
                "rev-list", "--first-parent", f"--max-count={limit + 1}", sha, "--"
            ).split()
            if len(shas) > limit or not self.parents(shas[-1]):
                return tuple(shas[1:])
            outcome = self(*_FETCH, f"--deepen={step}", "origin", shas[-1])
            # History may still end there: the remote has no more of it than we.
            following = ("rev-list", "--first-parent", "--max-count=2", shas[-1], "--")
            if not outcome.ok or len(self.text(*following).split()) < 2:
                return tuple(shas[1:])
            step = min(2 * step, _LARGEST_STEP)

    def commit_times(self, sha: str, count: int) -> dict[str, int]:
        """Return commit → when it was committed, for `count` first parents.

        Times are in seconds since the epoch. The commit itself comes first.
        """
        command = ("log", "--first-parent", f"--max-count={count}", "--format=%H %ct")
        rows = self.text(*command, "--no-show-signature", sha, "--").splitlines()
        times = {}
        for row in rows:
            commit, seconds = row.split()
            times[commit] = int(seconds)
        return times

    def tags(self) -> dict[str, tuple[str, ...]]:
        """Return commit → the names of its tags.

        They are the tags of this clone. If it has none, as a checkout of GitHub
        Actions, they are those of origin. If origin cannot be asked, there are
        none.
        """
        fields = "%(objectname) %(*objectname) %(refname:strip=2)"
        rows = self.text(
            "for-each-ref", f"--format={fields}", "--sort=creatordate", "refs/tags"
        ).splitlines()
        local = dict[str, tuple[str, ...]]()
        for row in rows:
            shas, _, name = row.rpartition(" ")
            sha = shas.split()[-1]
            local[sha] = (*local.get(sha, ()), name)
        if local or not self.has_remote():
            return local
        try:
            rows = self.text("ls-remote", "--tags", "origin").splitlines()
        except InputError:
            return {}
        tags = dict[str, tuple[str, ...]]()
        for row in rows:
            sha, _, ref = row.partition("\t")
            if ref:
                name = ref.removeprefix("refs/tags/").removesuffix("^{}")
                tags[sha] = (*tags.get(sha, ()), name)
        return tags

    def touched(self, older: str, newer: str) -> list[str]:
        """Return the paths of the files that differ between two commits.

        A submodule is listed as its own path.
        """
        self.ensure(older)
        self.ensure(newer)
        return self.names(
            "diff-tree", "-r", "--name-only", "--no-renames", "-z", older, newer, "--"
        )

    @contextmanager
    def worktree(self, sha: str) -> Iterator[Path]:
        """Check out a commit into a directory that is removed afterwards.

        git then forgets the worktree, too. Large files stay pointers.
        """
        self.ensure(sha)
        common = Path(
            self.text("rev-parse", "--path-format=absolute", "--git-common-dir")
        )
        with temporary_directory("tree-") as parent:
            # git keeps its record of a worktree under the last part of its path
            path = parent / parent.name
            try:
                self.text("worktree", "add", "--quiet", "--detach", str(path), sha)
                yield path
            finally:
                # `git worktree prune` would also forget the user's worktrees on a disk
                # that is not mounted here, and a cancelled run starts no more children.
                shutil.rmtree(common / "worktrees" / path.name, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a configuration lives: the top of its work tree and its state.

    The top is None outside a repository.
    """

    top: Path | None
    source: SourceInfo


def repository_of(directory: Path, cancel: Cancel) -> Repository:
    """Return the repository that holds `directory`.

    A missing git or repository gives an empty one.
    """
    git = Git(directory, cancel)

    def said(*arguments: str) -> str:
        try:
            return git.text(*arguments)
        except InputError:
            return ""

    if not (top := said("rev-parse", "--show-toplevel")):
        return Repository(None, SourceInfo())
    sha = said("rev-parse", "--verify", "HEAD")
    ref = said("symbolic-ref", "--short", "-q", "HEAD")
    dirty = bool(said("status", "--porcelain", "--untracked-files=no"))
    return Repository(Path(top), SourceInfo(sha or None, ref or None, dirty))
