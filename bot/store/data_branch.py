"""Store snapshots on an orphan branch of the repository itself.

This is the store on GitHub, to which many jobs write at once.

A writer never overwrites another. If another one pushed first, the bot fetches again, adds
its file and pushes again. The first writer of a week rewrites the branch without the
entries that the retention drops, unless another one writes at the same time.

The bot works in a temporary bare repository. It fetches commits without files
(`blob:none`), and history only to sort entries or to rewrite the branch. A branch of
thousands of snapshots therefore costs no more than its listing. The user's clone is not
touched.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.errors import ConfigError, InputError, NetworkError
from bot.store.branch_commits import blobs_of, commit_files, first_commit
from bot.store.entries import (
    FOLDER,
    MOST_IR_BYTES,
    ORDER,
    UNPACKED_LIMIT_BYTES,
    entry_of,
    ir_path_of,
    is_whole,
    pack,
    path_of,
    ranked,
    unpack,
)
from bot.store.git_refusals import LOST_A_RACE, refusal
from bot.store.own_repository import own_repository
from bot.store.retention import IR_DAYS, entries_with_ir, kept_entries, week_of
from bot.store.rewritten_branch import rewritten_branch, written_times
from bot.system.files import temporary_directory, write_atomically
from bot.system.git import Git, first_line

ATTEMPTS = 30
# entries whose IR a copy has: a comparison takes that of the nearest one
_MOST_IR_COPIED = 5
TIP = "refs/code-size/tip"
HISTORY = "refs/code-size/history"
# Git reads this depth as infinite. `--unshallow` fails in a repository with all commits.
_ALL = "--depth=2147483647"
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 8.0


class DataBranch:
    """The store on branch `branch` of the clone's origin, or of another repository.

    Args:
        git: in the user's clone, with credentials that may push.
        address: of the other repository; empty for the clone's origin.
        default_branch: of the repository, which is never written to; empty where it is not known.
        keep_days: days for which every snapshot is kept, before one a week is. 0 keeps all.
        sleep: waits so many seconds before the next push.
        say: gets a line where older snapshots are dropped, or could not be.
        now: the time, in seconds since the epoch.
    """

    def __init__(
        self,
        git: Git,
        branch: str = "code-size-data",
        default_branch: str = "",
        address: str = "",
        sleep: Callable[[float], None] = time.sleep,
        keep_days: int = 0,
        say: Callable[[str], None] = lambda _line: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._keep_days = keep_days
        self._say = say
        self._now = now
        self._git = git
        self._branch = branch
        self._default = default_branch
        self._address = address
        self._sleep = sleep
        self._room = ExitStack()
        self._tip: str | None = None

    def __enter__(self) -> DataBranch:
        """Return the store itself: nothing is fetched yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bare repository, whatever happened."""
        self._room.close()

    @cached_property
    def repository(self) -> Git:
        """Return the bare repository, connected with the repository that has the branch."""
        directory = self._room.enter_context(temporary_directory("data-"))
        return own_repository(self._git, directory, self._address)

    def entries(self) -> Sequence[Entry]:
        """Return all entries on the branch now; none if there is no such branch.

        Raises NetworkError, and ConfigError for a branch that holds something
        else.
        """
        self._tip = self._fetched()
        if self._tip is None:
            return ()
        return sorted(filter(None, map(entry_of, self._names("-r", TIP, "--", FOLDER))))

    def _fetched(self) -> str | None:
        """Return the branch's present tip, which is a commit of ours.

        None if there is no such branch.
        """
        if self._branch == self._default:
            raise self._foreign("is the default branch")
        tip = self._fetch(TIP, "--depth=1")
        if tip is None:
            # Git cannot have the branches `a` and `a/b`. Its error for that push looks
            # like that for a lost race, so this is checked first.
            parts = self._branch.split("/")
            above = []
            for count in range(1, len(parts)):
                above.append(f"refs/heads/{'/'.join(parts[:count])}")
            outcome = self.repository(
                "ls-remote", "--heads", "origin", *above, f"refs/heads/{self._branch}/*"
            )
            if not outcome.ok:
                raise self._refused(
                    outcome.output,
                    f"branch {self._branch} could not be searched for",
                    "read",
                )
            if branch_match := re.search(r"\trefs/heads/(\S+)", outcome.output):
                message = (
                    f"branch {self._branch} cannot be created, because there is a"
                    f" branch {branch_match[1]}"
                )
                hint = (
                    "choose another name: git cannot have the branches a and a/b at the"
                    " same time"
                )
                raise ConfigError(message, where="baseline: branch", hint=hint)
        elif set(self._names(tip)) - {"README.md"} != {FOLDER}:
            raise self._foreign("has other files than baselines")
        return tip

    def _fetch(self, ref: str, depth: str) -> str | None:
        """Fetch the branch's tip to `ref`, and return its SHA.

        None if there is no such branch.
        """
        options = (
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--filter=blob:none",
            depth,
        )
        outcome = self.repository(
            "fetch", *options, "origin", f"+refs/heads/{self._branch}:{ref}"
        )
        if outcome.ok:
            return self.repository.text("rev-parse", "--verify", ref)
        if "couldn't find remote ref" in outcome.output:
            return None
        raise self._refused(
            outcome.output, f"branch {self._branch} could not be fetched", "read"
        )

    def _refused(self, output: str, action: str, access: str) -> NetworkError:
        return refusal(
            self._git,
            output=output,
            action=action,
            access=access,
            address=self._address,
        )

    def _foreign(self, content: str) -> ConfigError:
        hint = (
            "name a branch of its own, such as code-size-data, or delete this one if it"
            " is not needed"
        )
        return ConfigError(
            f"branch {self._branch} {content}, so the bot does not change it",
            where="baseline: branch",
            hint=hint,
        )

    def _names(self, *arguments: str) -> list[str]:
        return self.repository.names("ls-tree", "-z", "--name-only", *arguments)

    def load(self, entry: Entry) -> Snapshot:
        """Fetch and read one snapshot; raises InputError, NetworkError."""
        path = path_of(entry)
        data = self._fetched_file(path, UNPACKED_LIMIT_BYTES)
        return unpack(data, f"{self._branch}:{path}")

    def load_ir(self, entry: Entry) -> bytes:
        """Fetch the IR beside one snapshot; raises InputError, NetworkError."""
        return self._fetched_file(ir_path_of(entry), MOST_IR_BYTES + 1)

    def _fetched_file(self, path: str, limit: int) -> bytes:
        """Return a file on the branch, up to so many bytes.

        Raises InputError if there is none.
        """
        where = f"{self._branch}:{path}"
        if self._tip is None:
            self._tip = self._fetched()
        if self._tip is None or not self._names(self._tip, "--", path):
            raise InputError("is not stored", where=where)
        return self._content(f"{self._tip}:{path}", limit)

    def _content(self, name: str, limit: int) -> bytes:
        """Return a file that the branch has, up to so many bytes.

        The clone has no files, so git fetches it. Raises NetworkError.
        """
        try:
            return self.repository.data("cat-file", "blob", name, limit=limit)
        except InputError as error:
            raise self._refused(
                error.line,
                f"a file of branch {self._branch} could not be fetched",
                "read",
            ) from None

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries by the last commit that wrote each; raises NetworkError."""
        self._fetch(HISTORY, _ALL)  # all commits, still no files
        options = (
            "--first-parent",
            "--no-renames",
            "--name-only",
            "--format=",
            HISTORY,
        )
        log = self.repository.text("log", *options, "--", FOLDER)
        newest_first = dict.fromkeys(filter(None, log.splitlines()))
        return ranked(entries, reversed(newest_first))

    def copy(self, entries: Sequence[Entry], folder: Path) -> None:
        """Write some of `entries()` below a folder, as `bot.store.checkout` reads them.

        The first ones have their IR beside them. One request fetches all files.
        If the server does not allow that, they are fetched one by one. Raises
        NetworkError.
        """
        ordered = self.in_order(entries) if entries else ()
        blobs = self._blobs()
        paths = [path_of(entry) for entry in ordered]
        lines = [f"{path}\n" for path in paths]
        for entry in entries[:_MOST_IR_COPIED]:
            if ir_path_of(entry) in blobs:
                paths.append(ir_path_of(entry))
        wanted_blobs = [blobs[path] for path in paths]
        if wanted_blobs:
            self.repository(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "origin",
                *wanted_blobs,
            )
        for path in paths:
            data = self._content(blobs[path], UNPACKED_LIMIT_BYTES)
            write_atomically(folder / path, data)
        write_atomically(folder / ORDER, "".join(lines).encode("ascii"))

    def _blobs(self) -> dict[str, str]:
        """Return path on the branch → the id of its file.

        Empty if there is no such branch.
        """
        if self._tip is None:
            return {}
        return blobs_of(self.repository, self._tip)

    def save(self, entry: Entry, snapshot: Snapshot, ir: bytes = b"") -> bool:
        """Push one snapshot with its IR.

        If another writer pushes first, it is tried again, at most `ATTEMPTS` times.
        Returns False if the snapshot is already stored and can be read. Raises
        NetworkError, ConfigError.
        """
        path = path_of(entry)
        files = {path: pack(snapshot)}
        if ir:
            files[ir_path_of(entry)] = ir
        for attempt in range(ATTEMPTS):
            self._tip = self._fetched()
            if (
                self._tip
                and self._names(self._tip, "--", path)
                and is_whole(self, entry)
            ):
                return False
            parent_seconds = self._seconds_of(self._tip) if self._tip else None
            now = int(self._now())
            parent = self._tip or first_commit(self.repository, now)
            message = f"Code size of {entry.sha}\n\nReport: {entry.report_id}"
            commit = commit_files(
                self.repository,
                parent=parent,
                files=files,
                message=message,
                seconds=now,
            )
            outcome = self.repository(
                "push", "--porcelain", "origin", f"{commit}:refs/heads/{self._branch}"
            )
            if outcome.ok:
                self._tip = commit
                if parent_seconds is not None and week_of(parent_seconds) != week_of(
                    self._now()
                ):
                    self._thin_if_possible()
                return True
            if not LOST_A_RACE.search(outcome.output):
                raise self._refused(
                    outcome.output,
                    f"branch {self._branch} could not be pushed",
                    "write",
                )
            longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 1.5**attempt)
            self._sleep(longest * random.uniform(0.2, 1))  # noqa: S311 - keeps two writers apart
        problem = (
            f"branch {self._branch} could not be pushed: other jobs pushed first,"
            f" {ATTEMPTS} times"
        )
        raise NetworkError(problem, hint="run the job again")

    def _seconds_of(self, commit: str) -> int:
        return int(self.repository.text("show", "--no-patch", "--format=%ct", commit))

    def _thin_if_possible(self) -> None:
        try:
            self._thin()
        except (ConfigError, InputError, NetworkError) as error:
            # The snapshot is stored all the same.
            self._say(
                f"older snapshots stay on branch {self._branch} until next week:"
                f" {error.line}"
            )

    def _thin(self) -> None:
        """Rewrite the branch without what the retention drops.

        Raises NetworkError if another writer's push, or a rule, prevents it.
        """
        if not self._keep_days:
            return
        tip = self._fetch(HISTORY, _ALL)
        if tip is None:
            return
        present = {*self._names("-r", HISTORY, "--", FOLDER)}
        written = written_times(self.repository, HISTORY, present)
        remaining = kept_entries(written, self._keep_days, self._now())
        dropped = len(written) - len(remaining)
        blobs = blobs_of(self.repository, HISTORY)
        with_ir = entries_with_ir(written, self._now())
        old_ir = set[str]()
        for entry in remaining:
            path = ir_path_of(entry)
            if entry not in with_ir and path in blobs:
                old_ir.add(path)
        if not dropped and not old_ir:
            return
        for path in old_ir:
            del blobs[path]
        new = rewritten_branch(
            self.repository,
            written=written,
            remaining=remaining,
            blobs=blobs,
            now=int(self._now()),
        )
        lease = f"--force-with-lease=refs/heads/{self._branch}:{tip}"
        outcome = self.repository(
            "push", "--porcelain", lease, "origin", f"{new}:refs/heads/{self._branch}"
        )
        if not outcome.ok:
            raise NetworkError(first_line(outcome.output, "remote:", "!"))
        self._tip = new
        if dropped:
            self._say(
                f"dropped {dropped} stored snapshots older than"
                f" {self._keep_days} days, and kept one a week"
            )
        if old_ir:
            self._say(
                f"dropped the IR of {len(old_ir)} stored snapshots older than"
                f" {IR_DAYS} days"
            )
