"""Snapshots on an orphan branch of the repository itself: the store on GitHub, which many jobs write at once.

A writer never forces: where another was faster, it fetches again, puts its file on top and pushes anew.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from bot.core.rules.baseline import Entry
from bot.core.values.snapshot import Snapshot
from bot.errors import ConfigError, InputError, NetworkError
from bot.store.entries import FOLDER, UNPACKED_LIMIT_BYTES, entry_of, is_whole, pack, path_of, unpack
from bot.store.scratch import HISTORY, TIP, Git, Scratch, refused

ATTEMPTS = 30
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
    """The store on branch `branch` of the clone's `remote`.

    Args:
        git: in the user's clone, with credentials that may push.
        author: name and address for the commits.
        default_branch: of the repository, which is never written to; empty where it is not known.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        git: Git,
        branch: str = "code-size-data",
        remote: str = "origin",
        author: tuple[str, str] = AUTHOR,
        default_branch: str = "",
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._git, self._branch, self._remote, self._default = git, branch, remote, default_branch
        self._author, self._now, self._sleep = author, now, sleep
        self._made: Scratch | None = None
        self._tip: str | None = None

    @property
    def _scratch(self) -> Scratch:
        if self._made is None:
            self._made = Scratch(self._git, self._remote)
        return self._made

    def __enter__(self) -> DataBranch:
        """The store itself: nothing is fetched yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it, whatever happened."""
        self.close()

    def close(self) -> None:
        """Remove the scratch repository."""
        if self._made is not None:
            self._made.close()
            self._made = None

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
            self._require_free()
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

    def newest(self, entries: Sequence[Entry]) -> Entry:
        """By the last commit that wrote it; raises NetworkError."""
        paths = {path_of(entry): entry for entry in sorted(entries)}
        return next((paths[path] for path in self._written(*paths) if path in paths), max(entries))

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """By the last commit that wrote each; raises NetworkError."""
        places = {path: place for place, path in enumerate(reversed(dict.fromkeys(self._written(FOLDER))))}
        return sorted(entries, key=lambda entry: (places.get(path_of(entry), -1), entry))

    def _written(self, *paths: str) -> list[str]:
        """What commits wrote below these paths, the last one first."""
        self._scratch.fetch(self._branch, history=True)
        told = ("--first-parent", "--no-renames", "--name-only", "--format=", HISTORY)
        return [line for line in self._scratch.text("log", *told, "--", *paths).splitlines() if line]

    def save(self, entry: Entry, snapshot: Snapshot) -> bool:
        """Push one snapshot, as often as other writers come first; raises NetworkError, ConfigError."""
        path, blob = path_of(entry), self._scratch.store(pack(snapshot))
        for attempt in range(ATTEMPTS):
            self._tip = self._fetched()
            if self._tip and self._has(self._tip, path) and is_whole(self, entry):
                return False
            if self._pushed(self._commit(entry, path, blob)):
                return True
            self._sleep(_pause_seconds(attempt))
        raise NetworkError(
            f"branch {self._branch} could not be pushed: others came first {ATTEMPTS} times", hint="run the job again"
        )

    def _require_free(self) -> None:
        """Git keeps branches as paths: none can stand below another, which a refused push says as if it lost a race."""
        parts = self._branch.split("/")
        above = [f"refs/heads/{'/'.join(parts[:count])}" for count in range(1, len(parts))]
        outcome = self._scratch.call("ls-remote", "--heads", "origin", *above, f"refs/heads/{self._branch}/*")
        if not outcome.ok:
            raise refused(outcome.output, f"branch {self._branch} could not be looked for")
        if other := re.search(r"\trefs/heads/(\S+)", outcome.output):
            what = f"branch {self._branch} cannot be made, as there is a branch {other[1]}"
            raise ConfigError(what, where="baseline: branch", hint="name one that is neither above nor below another")

    def _identity(self) -> Mapping[str, str]:
        name, address = self._author
        return {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", name), ("EMAIL", address), ("DATE", f"@{int(self._now())} +0000"))
        }

    def _commit(self, entry: Entry, path: str, blob: str) -> str:
        parent = self._tip or self._root()
        message = f"Code size of {entry.sha}\n\nReport: {entry.report_id}\n"
        return self._scratch.commit(self._scratch.tree(parent, {path: blob}), parent, message, self._identity())

    def _root(self) -> str:
        tree = self._scratch.tree(None, {"README.md": self._scratch.store(README.encode())})
        return self._scratch.commit(tree, None, "Begin the code size baselines\n", self._identity())

    def _pushed(self, commit: str) -> bool:
        """False where another writer came first."""
        outcome = self._scratch.call("push", "--porcelain", "origin", f"{commit}:refs/heads/{self._branch}")
        if outcome.ok:
            self._tip = commit
            return True
        if lost_a_race(outcome.output):
            return False
        raise refused(outcome.output, f"branch {self._branch} could not be pushed")


def _pause_seconds(attempt: int) -> float:
    longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 1.5**attempt)
    return longest * random.uniform(0.2, 1)  # noqa: S311 - keeps two writers apart
