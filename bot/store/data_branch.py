"""Snapshots on an orphan branch of the repository itself: the store on GitHub, which many jobs write at once.

A writer never forces: where another was faster, it fetches again, puts its file on top and pushes anew. It works in a
bare repository of its own, fetched without files (`blob:none`) and without history, so that a branch of thousands of
snapshots costs its listing; the user's clone, its index, branches and settings stay untouched.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.errors import ConfigError, InputError, NetworkError
from bot.store.entries import FOLDER, UNPACKED_LIMIT_BYTES, entry_of, is_whole, pack, path_of, unpack
from bot.system.files import temporary_directory
from bot.system.git import Git
from bot.system.processes import Outcome

ATTEMPTS = 30
TIP, HISTORY = "refs/code-size/tip", "refs/code-size/history"
_ALL = "--depth=2147483647"  # git's own "infinite": works where `--unshallow` refuses, in a repository that has it all
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 8.0
AUTHOR = ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")
README = f"""# Code size baselines

This branch belongs to code-size-bot. `{FOLDER}/<report>/<first two digits>/<commit>.<digest>.json.xz` is what the
compiler made of the suite at that commit; the digest stands for compiler, suite, targets and flags.

It shares no history with the code, and may be deleted: the next push to the default branch begins it anew.
"""
# A push that lost a race, told by git itself and by the other side, which had the branch locked or moved meanwhile.
_REJECTED = re.compile(r"\[rejected\]|non-fast-forward|fetch first|stale info")
_RACED = re.compile(
    r"\[remote rejected\].*(cannot lock ref|failed to update|failed to lock|unable to lock|incorrect old value"
    r"|reference already exists|is at [0-9a-f]+ but expected)"
)


def lost_a_race(output: str) -> bool:
    """True where a push was rejected because another one came first."""
    return bool(_REJECTED.search(output) or _RACED.search(output))


class DataBranch:
    """The store on branch `branch` of the clone's origin.

    Args:
        git: in the user's clone, with credentials that may push.
        default_branch: of the repository, which is never written to; empty where it is not known.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        git: Git,
        branch: str = "code-size-data",
        default_branch: str = "",
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._git, self._branch, self._default = git, branch, default_branch
        self._now, self._sleep = now, sleep
        self._opened: Scratch | None = None
        self._tip: str | None = None

    @property
    def _scratch(self) -> Scratch:
        if self._opened is None:
            self._opened = Scratch(self._git)
        return self._opened

    def __enter__(self) -> DataBranch:
        """The store itself: nothing is fetched yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove the scratch repository, whatever happened."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def entries(self) -> Sequence[Entry]:
        """Everything on the branch now; empty where there is no such branch.

        Raises NetworkError, and ConfigError for a branch that holds something else.
        """
        self._tip = self._fetched()
        if self._tip is None:
            return ()
        return sorted(entry for entry in map(entry_of, self._names("-r", TIP, "--", FOLDER)) if entry is not None)

    def _fetched(self) -> str | None:
        """The branch's tip now, which is one of ours; None where there is no such branch."""
        if self._branch == self._default:
            raise self._foreign("is the default branch")
        tip = self._scratch.fetch(self._branch)
        if tip is None:
            # Git keeps branches as paths: none can stand below another, which a push would say as if it lost a race.
            parts = self._branch.split("/")
            above = [f"refs/heads/{'/'.join(parts[:count])}" for count in range(1, len(parts))]
            outcome = self._scratch.call("ls-remote", "--heads", "origin", *above, f"refs/heads/{self._branch}/*")
            if not outcome.ok:
                raise _refused(outcome.output, f"branch {self._branch} could not be looked for")
            if other := re.search(r"\trefs/heads/(\S+)", outcome.output):
                what = f"branch {self._branch} cannot be made, as there is a branch {other[1]}"
                raise ConfigError(
                    what, where="baseline: branch", hint="name one that is neither above nor below another"
                )
        elif set(self._names(tip)) - {"README.md"} != {FOLDER}:
            raise self._foreign("holds something else than baselines")
        return tip

    def _foreign(self, what: str) -> ConfigError:
        hint = "name a branch of its own, such as code-size-data, or delete this one if it is not needed"
        return ConfigError(f"branch {self._branch} {what}, and is left alone", where="baseline: branch", hint=hint)

    def _names(self, *arguments: str) -> list[str]:
        listing = self._scratch.data("ls-tree", "-z", "--name-only", *arguments).decode("utf-8", "replace")
        return [name for name in listing.split("\0") if name]

    def load(self, entry: Entry) -> Snapshot:
        """Fetch and read one snapshot; raises InputError, NetworkError."""
        path = path_of(entry)
        where = f"{self._branch}:{path}"
        if self._tip is None:
            self._tip = self._fetched()
        if self._tip is None or not self._has(self._tip, path):
            raise InputError("is not stored", where=where)
        return unpack(self._scratch.data("cat-file", "blob", f"{self._tip}:{path}", limit=UNPACKED_LIMIT_BYTES), where)

    def _has(self, tip: str, path: str) -> bool:
        return bool(self._names(tip, "--", path))

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """By the last commit that wrote each; raises NetworkError."""
        self._scratch.fetch(self._branch, history=True)
        options = ("--first-parent", "--no-renames", "--name-only", "--format=", HISTORY)
        written = filter(None, self._scratch.text("log", *options, "--", FOLDER).splitlines())  # the last one first
        places = {path: place for place, path in enumerate(reversed(dict.fromkeys(written)))}
        return sorted(entries, key=lambda entry: (places.get(path_of(entry), -1), entry))

    def save(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Push one snapshot, as often as other writers come first; raises NetworkError, ConfigError."""
        path, blob = path_of(entry), self._scratch.store(pack(snapshot))
        for attempt in range(ATTEMPTS):
            self._tip = self._fetched()
            if self._tip and self._has(self._tip, path) and is_whole(self, entry):
                return False
            parent = self._tip
            if parent is None:
                tree = self._scratch.tree(None, {"README.md": self._scratch.store(README.encode())})
                parent = self._scratch.commit(tree, None, "Begin the code size baselines\n", self._identity())
            message = f"Code size of {entry.sha}\n\nReport: {entry.report_id}\n"
            commit = self._scratch.commit(self._scratch.tree(parent, {path: blob}), parent, message, self._identity())
            outcome = self._scratch.call("push", "--porcelain", "origin", f"{commit}:refs/heads/{self._branch}")
            if outcome.ok:
                self._tip = commit
                return True
            if not lost_a_race(outcome.output):
                raise _refused(outcome.output, f"branch {self._branch} could not be pushed")
            longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 1.5**attempt)
            self._sleep(longest * random.uniform(0.2, 1))  # noqa: S311 - keeps two writers apart
        raise NetworkError(
            f"branch {self._branch} could not be pushed: others came first {ATTEMPTS} times", hint="run the job again"
        )

    def _identity(self) -> Mapping[str, str]:
        name, address = AUTHOR
        return {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", name), ("EMAIL", address), ("DATE", f"@{int(self._now())} +0000"))
        }


def _refused(output: str, what: str) -> NetworkError:
    if any(mark in output for mark in ("403", "Permission to", "Write access to repository not granted")):
        return NetworkError(f"{what}: the token may not write", hint="give the job permissions: contents: write")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "!"))]
    return NetworkError(f"{what}: {(said or lines or ['git says nothing'])[0]}")


def _section(key: str, value: str) -> str:
    """One setting as a git configuration file has it; `key` is `section.name` or `section.<anything>.name`."""
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    escaped = [text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for text in (subsection, value)]
    head = f'[{section} "{escaped[0]}"]' if subsection else f"[{section}]"
    return f'{head}\n\t{name} = "{escaped[1]}"\n'


class Scratch:
    """The bare repository, connected with the clone's origin; gone with `close`.

    The clone's own `http` and `credential` settings are taken along: checkout actions leave their credentials there.
    """

    def __init__(self, git: Git) -> None:
        self._git, self._room = git, ExitStack()
        self.directory = self._room.enter_context(temporary_directory("data-"))
        repository = self.directory / "repository"
        self._environment = {"GIT_DIR": str(repository)}
        url, file = git.text("remote", "get-url", "origin"), self.directory / "settings"
        wanted = r"^(http|credential)\.|^core\.sshcommand$"
        git("config", "--local", "--includes", "--null", "--get-regexp", wanted, stdout=file)
        rows = file.read_text(encoding="utf-8", errors="replace").split("\0")
        file.unlink()
        settings = [(key, value) for key, _, value in (row.partition("\n") for row in rows) if key]
        self.text("init", "--quiet", "--bare", str(repository))
        with (repository / "config").open("a", encoding="utf-8") as written:
            written.write("".join(_section(key, value) for key, value in (("remote.origin.url", url), *settings)))

    def call(self, *arguments: str) -> Outcome:
        """Run git in the bare repository."""
        return self._git(*arguments, environment=self._environment)

    def data(self, *arguments: str, limit: int = -1) -> bytes:
        """Standard output, up to `limit` bytes (-1: all); raises InputError where git fails."""
        return self._git.data(*arguments, environment=self._environment, limit=limit)

    def text(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Standard output as text, without the white space around it; raises InputError where git fails."""
        return self._git.text(*arguments, environment={**self._environment, **(environment or {})})

    def fetch(self, branch: str, history: bool = False) -> str | None:
        """SHA of the branch's tip, None where there is no such branch; raises NetworkError.

        `history`: fetch all commits (still no files), under a name of its own.
        """
        ref, depth = (HISTORY, _ALL) if history else (TIP, "--depth=1")
        refspec = f"+refs/heads/{branch}:{ref}"
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", depth)
        outcome = self.call("fetch", *options, "origin", refspec)
        if outcome.ok:
            return self.text("rev-parse", "--verify", ref)
        if "couldn't find remote ref" in outcome.output:
            return None
        raise _refused(outcome.output, f"branch {branch} could not be fetched")

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
        self._room.close()
