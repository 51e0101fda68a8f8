"""Snapshots on an orphan branch of the repository itself: the store on GitHub, which many jobs write at once.

A writer never forces: where another was faster, it fetches again, puts its file on top and pushes anew. It works in a
bare repository of its own, fetched without files (`blob:none`) and without history, so that a branch of thousands of
snapshots costs its listing; the user's clone, its index, branches and settings stay untouched.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.errors import ConfigError, InputError, NetworkError
from bot.store.entries import FOLDER, UNPACKED_LIMIT_BYTES, entry_of, is_whole, pack, path_of, unpack
from bot.system.files import temporary_directory
from bot.system.git import Git, first_line

ATTEMPTS = 30
TIP, HISTORY = "refs/code-size/tip", "refs/code-size/history"
_ALL = "--depth=2147483647"  # git's own "infinite": works where `--unshallow` refuses, in a repository that has it all
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 8.0
AUTHOR = ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")
README = f"""# Code size baselines

This branch belongs to code-size-bot. `{FOLDER}/<report>/<first two digits>/<commit>.<digest>.json.xz` is what the
compiler made of the suite at that commit; the digest stands for compiler, suite, targets, flags and files.

It shares no history with the code, and may be deleted: the next push to the default branch begins it anew.
"""
# A push that lost a race, told by git itself and by the other side, which had the branch locked or moved meanwhile.
LOST_A_RACE = re.compile(
    r"\[rejected\]|non-fast-forward|fetch first|stale info"
    r"|\[remote rejected\].*(cannot lock ref|failed to update|failed to lock|unable to lock|incorrect old value"
    r"|reference already exists|is at [0-9a-f]+ but expected)"
)


class DataBranch:
    """The store on branch `branch` of the clone's origin.

    Args:
        git: in the user's clone, with credentials that may push.
        default_branch: of the repository, which is never written to; empty where it is not known.
    """

    def __init__(
        self,
        git: Git,
        branch: str = "code-size-data",
        default_branch: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._git, self._branch, self._default = git, branch, default_branch
        self._sleep = sleep
        self._room = ExitStack()
        self._tip: str | None = None

    def __enter__(self) -> DataBranch:
        """The store itself: nothing is fetched yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bare repository, whatever happened."""
        self._room.close()

    @cached_property
    def repository(self) -> Git:
        """The bare repository, connected with the clone's origin.

        The clone's own `http` and `credential` settings go along: checkout actions leave their credentials there.
        """
        directory = self._room.enter_context(temporary_directory("data-"))
        url, file, path = self._git.text("remote", "get-url", "origin"), directory / "settings", directory / "bare"
        pattern = r"^(http|credential)\.|^core\.sshcommand$"
        self._git("config", "--local", "--includes", "--null", "--get-regexp", pattern, stdout=file)
        rows = file.read_text(encoding="utf-8", errors="replace").split("\0")
        file.unlink()
        settings = [(key, value) for key, _, value in (row.partition("\n") for row in rows) if key]
        self._git.text("init", "--quiet", "--bare", str(path))
        with (path / "config").open("a", encoding="utf-8") as written:
            written.write("".join(_section(key, value) for key, value in (("remote.origin.url", url), *settings)))
        return self._git.at(path)

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
        tip = self._fetch(TIP, "--depth=1")
        if tip is None:
            # Git keeps branches as paths: none can stand below another, which a push would say as if it lost a race.
            parts = self._branch.split("/")
            above = [f"refs/heads/{'/'.join(parts[:count])}" for count in range(1, len(parts))]
            outcome = self.repository("ls-remote", "--heads", "origin", *above, f"refs/heads/{self._branch}/*")
            if not outcome.ok:
                raise _refused(outcome.output, f"branch {self._branch} could not be looked for")
            if other := re.search(r"\trefs/heads/(\S+)", outcome.output):
                what = f"branch {self._branch} cannot be made, as there is a branch {other[1]}"
                hint = "name one that is neither above nor below another"
                raise ConfigError(what, where="baseline: branch", hint=hint)
        elif set(self._names(tip)) - {"README.md"} != {FOLDER}:
            raise self._foreign("holds something else than baselines")
        return tip

    def _fetch(self, ref: str, depth: str) -> str | None:
        """SHA of the branch's tip, from now on under `ref`; None where there is no such branch."""
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", depth)
        outcome = self.repository("fetch", *options, "origin", f"+refs/heads/{self._branch}:{ref}")
        if outcome.ok:
            return self.repository.text("rev-parse", "--verify", ref)
        if "couldn't find remote ref" in outcome.output:
            return None
        raise _refused(outcome.output, f"branch {self._branch} could not be fetched")

    def _foreign(self, what: str) -> ConfigError:
        hint = "name a branch of its own, such as code-size-data, or delete this one if it is not needed"
        return ConfigError(f"branch {self._branch} {what}, and is left alone", where="baseline: branch", hint=hint)

    def _names(self, *arguments: str) -> list[str]:
        listing = self.repository.data("ls-tree", "-z", "--name-only", *arguments).decode("utf-8", "replace")
        return [name for name in listing.split("\0") if name]

    def load(self, entry: Entry) -> Snapshot:
        """Fetch and read one snapshot; raises InputError, NetworkError."""
        path = path_of(entry)
        where = f"{self._branch}:{path}"
        if self._tip is None:
            self._tip = self._fetched()
        if self._tip is None or not self._names(self._tip, "--", path):
            raise InputError("is not stored", where=where)
        data = self.repository.data("cat-file", "blob", f"{self._tip}:{path}", limit=UNPACKED_LIMIT_BYTES)
        return unpack(data, where)

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """By the last commit that wrote each; raises NetworkError."""
        self._fetch(HISTORY, _ALL)  # all commits, still no files
        options = ("--first-parent", "--no-renames", "--name-only", "--format=", HISTORY)
        written = filter(None, self.repository.text("log", *options, "--", FOLDER).splitlines())  # the last one first
        places = {path: place for place, path in enumerate(reversed(dict.fromkeys(written)))}
        return sorted(entries, key=lambda entry: (places.get(path_of(entry), -1), entry))

    def save(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Push one snapshot, as often as other writers come first; raises NetworkError, ConfigError."""
        path, data = path_of(entry), pack(snapshot)
        for attempt in range(ATTEMPTS):
            self._tip = self._fetched()
            if self._tip and self._names(self._tip, "--", path) and is_whole(self, entry):
                return False
            parent = self._tip or self._commit(None, "README.md", README.encode(), "Begin the code size baselines")
            message = f"Code size of {entry.sha}\n\nReport: {entry.report_id}"
            commit = self._commit(parent, path, data, message)
            outcome = self.repository("push", "--porcelain", "origin", f"{commit}:refs/heads/{self._branch}")
            if outcome.ok:
                self._tip = commit
                return True
            if not LOST_A_RACE.search(outcome.output):
                raise _refused(outcome.output, f"branch {self._branch} could not be pushed")
            longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 1.5**attempt)
            self._sleep(longest * random.uniform(0.2, 1))  # noqa: S311 - keeps two writers apart
        what = f"branch {self._branch} could not be pushed: others came first {ATTEMPTS} times"
        raise NetworkError(what, hint="run the job again")

    def _commit(self, parent: str | None, path: str, data: bytes, message: str) -> str:
        """Make a commit that has one more file than its parent; its SHA."""
        git, (name, address) = self.repository, AUTHOR
        blob, index = git.directory / "blob", {"GIT_INDEX_FILE": str(git.directory / "index-of-tree")}
        blob.write_bytes(data)
        added = f"100644,{git.text('hash-object', '-w', '--no-filters', str(blob))},{path}"
        git.text("read-tree", parent or "--empty", environment=index)
        git.text("update-index", "--add", "--cacheinfo", added, environment=index)
        tree = git.text("write-tree", "--missing-ok", environment=index)
        fields = {"NAME": name, "EMAIL": address}
        identity = {f"GIT_{role}_{field}": fields[field] for role in ("AUTHOR", "COMMITTER") for field in fields}
        above = ("-p", parent) if parent else ()
        return git.text("commit-tree", tree, *above, "-m", message, environment=identity)


def _refused(output: str, what: str) -> NetworkError:
    if any(mark in output for mark in ("403", "Permission to", "Write access to repository not granted")):
        return NetworkError(f"{what}: the token may not write", hint="give the job permissions: contents: write")
    return NetworkError(f"{what}: {first_line(output, 'remote:', '!')}")


def _section(key: str, value: str) -> str:
    """One setting as a git configuration file has it; `key` is `section.name` or `section.<anything>.name`."""
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    escaped = [text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for text in (subsection, value)]
    head = f'[{section} "{escaped[0]}"]' if subsection else f"[{section}]"
    return f'{head}\n\t{name} = "{escaped[1]}"\n'
