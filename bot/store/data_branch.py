"""Store snapshots on an orphan branch of the repository itself.

This is the store on GitHub, to which many jobs write at once.

A writer never overwrites another: where one was faster, it fetches again, puts its file
on top and pushes anew. The first writer of a week rewrites the branch without what the
retention drops, unless another writes at the same time. It works in a bare repository
of its own, fetched without files (`blob:none`) and without history, so that a branch of
thousands of snapshots costs its listing; the user's clone, its index, branches and
settings stay untouched.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from bot.core.baseline import Entry
from bot.core.snapshot import Snapshot
from bot.errors import ConfigError, InputError, NetworkError
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
    unpack,
)
from bot.store.retention import (
    DAY_SECONDS,
    IR_DAYS,
    entries_with_ir,
    kept_entries,
    week_of,
)
from bot.system.files import temporary_directory, write_atomically
from bot.system.git import Git, first_line

ATTEMPTS = 30
# entries whose IR a copy has: a comparison takes that of the nearest one
_MOST_IR_COPIED = 5
TIP = "refs/code-size/tip"
HISTORY = "refs/code-size/history"
_ALL = (  # git's own "infinite": works where `--unshallow` refuses, in a repository that has it all
    "--depth=2147483647"
)
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 8.0
AUTHOR = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
)
README = f"""# Code size baselines

This branch belongs to code-size-bot.
`{FOLDER}/<report>/<first two digits>/<commit>.<digest>.json.xz` is what the compiler made
of the suite at that commit. The digest covers compiler, suite, targets, flags and files.
`….ir.xz` beside it is the compiler's IR of the largest dispatches, for proofs in pull
requests.

It shares no history with the code. You may delete it: the next push to the default
branch creates it again.
"""
# A push that lost a race, told by git itself and by the other side, which had the
# branch locked or moved meanwhile.
LOST_A_RACE = re.compile(
    r"\[rejected\]|non-fast-forward|fetch first|stale info"
    r"|\[remote rejected\].*(cannot lock ref|failed to update|failed to lock|unable to"
    r" lock|incorrect old value"
    r"|reference already exists|is at [0-9a-f]+ but expected)"
)

# Git's own words for status 403, and GitHub's words for it. Names and addresses may
# hold any digits, so that the number alone says nothing.
_NO_PERMISSION = re.compile(
    r"^fatal: unable to access '.*': The requested URL returned error: 403\s*$"
    r"|^error: RPC failed; HTTP 403 "
    r"|^remote: (?:Permission to \S+ denied to |Write access to repository not"
    r" granted)",
    re.MULTILINE,
)
_NO_LOGIN = re.compile(
    r"^fatal: (?:unable to access '.*': The requested URL returned error: 401\s*$"
    r"|Authentication failed for |could not read (?:Username|Password) for )"
    r"|^error: RPC failed; HTTP 401 ",
    re.MULTILINE,
)


class LoginRefused(NetworkError):
    """The server does not accept the login.

    The token is wrong, or a private repository was asked without one.
    """


class DataBranch:
    """The store on branch `branch` of the clone's origin, or of another repository.

    Args:
        git: in the user's clone, with credentials that may push.
        address: of the other repository; empty for the clone's origin.
        default_branch: of the repository, which is never written to; empty where it is not known.
        keep_days: how long every snapshot is kept, before one a week is; 0: all are kept for good.
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
        """Return the bare repository, connected with the repository that has the branch.

        The clone's own `http` and `credential` settings go along: checkout actions
        leave their credentials there. A header with a token of the clone's origin does
        not go to another repository.
        """
        directory = self._room.enter_context(temporary_directory("data-"))
        url = self._address or self._git.text("remote", "get-url", "origin")
        file = directory / "settings"
        path = directory / "bare"
        pattern = r"^(http|credential)\.|^core\.sshcommand$"
        self._git(
            "config",
            "--local",
            "--includes",
            "--null",
            "--get-regexp",
            pattern,
            stdout=file,
        )
        rows = file.read_text(encoding="utf-8", errors="replace").split("\0")
        file.unlink()
        sections = [_section("remote.origin.url", url)]
        for row in rows:
            key, _, value = row.partition("\n")
            is_header = key.endswith(".extraheader")
            if key and not (self._address and is_header):
                sections.append(_section(key, value))
        self._git.text("init", "--quiet", "--bare", str(path))
        with (path / "config").open("a", encoding="utf-8") as written:
            written.writelines(sections)
        return self._git.at(path)

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
            # Git keeps branches as paths: none can stand below another, which a push
            # would say as if it lost a race.
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
        """Return the error for a git command that was refused.

        `access` is what it needed, `read` or `write`.
        """
        is_other = bool(self._address)
        if _NO_PERMISSION.search(output):
            hint = f"give the job permissions: contents: {access}"
            if is_other:
                hint = f"give `store-token` a token that may {access} {self._address}"
            return NetworkError(f"{action}: the token may not {access}", hint=hint)
        if (
            _NO_LOGIN.search(output)
            and access == "read"
            and not self._git.has_credentials
        ):
            hint = "give this job the files of the branch: input `baselines`"
            if is_other:
                hint = (
                    "give `store-token` to the job that prepares, and its files to the"
                    " others: input `baselines`"
                )
            return LoginRefused(
                f"{action}: it takes a token, and this job has none", hint=hint
            )
        if _NO_LOGIN.search(output):
            name = "store-token" if is_other else "github-token"
            return LoginRefused(
                f"{action}: the token was refused", hint=f"check the input `{name}`"
            )
        return NetworkError(f"{action}: {first_line(output, 'remote:', '!')}")

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
        listing = self.repository.data(
            "ls-tree", "-z", "--name-only", *arguments
        ).decode("utf-8", "replace")
        return [name for name in listing.split("\0") if name]

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
        return self.repository.data(
            "cat-file", "blob", f"{self._tip}:{path}", limit=limit
        )

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
        # the last one first
        written = filter(
            None, self.repository.text("log", *options, "--", FOLDER).splitlines()
        )
        oldest_first = reversed(dict.fromkeys(written))
        places = {path: place for place, path in enumerate(oldest_first)}
        return sorted(
            entries, key=lambda entry: (places.get(path_of(entry), -1), entry)
        )

    def copy(self, entries: Sequence[Entry], folder: Path) -> None:
        """Write some of `entries()` below a folder, as `bot.store.checkout` reads them.

        The first ones have their IR beside them. One request fetches all files.
        If the server does not allow that, they are fetched one by one. Raises
        NetworkError.
        """
        ordered = self.in_order(entries) if entries else ()
        blobs = self._blobs()
        paths = [path_of(entry) for entry in ordered]
        nearest_ir = [ir_path_of(entry) for entry in entries[:_MOST_IR_COPIED]]
        paths += [path for path in nearest_ir if path in blobs]
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
            data = self.repository.data(
                "cat-file", "blob", blobs[path], limit=UNPACKED_LIMIT_BYTES
            )
            write_atomically(folder / path, data)
        lines = [f"{path_of(entry)}\n" for entry in ordered]
        write_atomically(folder / ORDER, "".join(lines).encode("ascii"))

    def _blobs(self) -> dict[str, str]:
        """Return path on the branch → the id of its file.

        Empty if there is no such branch.
        """
        if self._tip is None:
            return {}
        return self._blobs_of(self._tip)

    def _blobs_of(self, commit: str) -> dict[str, str]:
        """Return path in a commit → the id of its file."""
        listing = self.repository.text("ls-tree", "-r", commit, "--", FOLDER)
        blobs = {}
        for line in listing.splitlines():
            row, _, path = line.partition("\t")
            blobs[path] = row.split()[2]
        return blobs

    def save(self, entry: Entry, snapshot: Snapshot, ir: bytes = b"") -> bool:
        """Push one snapshot with its IR.

        It is tried again as often as other writers come first. Raises
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
            parent = self._tip or self._first_commit()
            message = f"Code size of {entry.sha}\n\nReport: {entry.report_id}"
            commit = self._commit(parent, files, message)
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
        except (
            ConfigError,
            InputError,
            NetworkError,
        ) as error:  # the snapshot is stored all the same
            self._say(
                f"older snapshots stay on branch {self._branch} until next week:"
                f" {error.line}"
            )

    def _thin(self) -> None:
        """Rewrite the branch without what the retention drops.

        Another writer's push, or a rule, may prevent it.
        """
        if not self._keep_days:
            return
        tip = self._fetch(HISTORY, _ALL)
        if tip is None:
            return
        written = self._written()
        remaining = kept_entries(written, self._keep_days, self._now())
        dropped = len(written) - len(remaining)
        blobs = self._blobs_of(HISTORY)
        with_ir = entries_with_ir(written, self._now())
        old_ir = {ir_path_of(entry) for entry in remaining if entry not in with_ir}
        old_ir &= blobs.keys()
        if not dropped and not old_ir:
            return
        for path in old_ir:
            del blobs[path]
        new = self._rewritten(written, remaining, blobs)
        lease = f"--force-with-lease=refs/heads/{self._branch}:{tip}"
        outcome = self.repository(
            "push", "--porcelain", lease, "origin", f"{new}:refs/heads/{self._branch}"
        )
        if outcome.ok:
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
        else:
            reason = first_line(outcome.output, "remote:", "!")
            self._say(
                f"older snapshots stay on branch {self._branch} until next week:"
                f" {reason}"
            )

    def _written(self) -> dict[Entry, int]:
        """Return entry on the branch → when it was last written, in seconds since the epoch."""
        present = set(self._names("-r", HISTORY, "--", FOLDER))
        options = ("--first-parent", "--no-renames", "--name-only", "--format=%x00%ct")
        written = dict[Entry, int]()
        for commit in self.repository.text(
            "log", *options, HISTORY, "--", FOLDER
        ).split("\0"):
            lines = [line for line in commit.splitlines() if line]
            seconds = lines[0] if lines else ""
            for path in lines[1:]:
                entry = entry_of(path)
                if entry is not None and path in present:
                    written.setdefault(entry, int(seconds))
        return written

    def _rewritten(
        self,
        written: Mapping[Entry, int],
        remaining: Sequence[Entry],
        blobs: Mapping[str, str],
    ) -> str:
        """Make a new branch of the kept entries, with a commit a day.

        Returns the SHA of its tip. Two entries of one commit of the code are in
        two commits, to keep their order.
        """
        days: list[list[Entry]] = []
        for entry in remaining:
            day = written[entry] // DAY_SECONDS
            is_new = not days or written[days[-1][0]] // DAY_SECONDS != day
            if is_new or any(earlier.sha == entry.sha for earlier in days[-1]):
                days.append([])
            days[-1].append(entry)
        tip = self._first_commit()
        for entries in days:
            paths = [path_of(entry) for entry in entries]
            ir_paths = [ir_path_of(entry) for entry in entries]
            paths += [path for path in ir_paths if path in blobs]
            added = [f"100644,{blobs[path]},{path}" for path in paths]
            message = (
                "Code size of"
                f" {', '.join(dict.fromkeys(entry.sha[:10] for entry in entries))}"
            )
            tip = self._commit_of(
                tip, added=added, message=message, seconds=written[entries[-1]]
            )
        return tip

    def _first_commit(self) -> str:
        files = {"README.md": README.encode()}
        return self._commit(None, files, "Begin the code size baselines")

    def _commit(
        self, parent: str | None, files: Mapping[str, bytes], message: str
    ) -> str:
        """Make a commit that adds these files to its parent; return its SHA."""
        blob = self.repository.directory / "blob"
        added = []
        for path, data in files.items():
            blob.write_bytes(data)
            options = ("-w", "--no-filters", str(blob))
            added.append(
                f"100644,{self.repository.text('hash-object', *options)},{path}"
            )
        return self._commit_of(
            parent, added=added, message=message, seconds=int(self._now())
        )

    def _commit_of(
        self, parent: str | None, added: Sequence[str], message: str, seconds: int
    ) -> str:
        """Make a commit of that time that adds these blobs to its parent.

        A blob is `mode,blob,path`. Returns the SHA of the commit.
        """
        git = self.repository
        name, address = AUTHOR
        index = {"GIT_INDEX_FILE": str(git.directory / "index-of-tree")}
        git.text("read-tree", parent or "--empty", environment=index)
        options = [word for blob in added for word in ("--cacheinfo", blob)]
        git.text("update-index", "--add", *options, environment=index)
        tree = git.text("write-tree", "--missing-ok", environment=index)
        date = f"@{seconds} +0000"
        identity = {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": address,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_NAME": name,
            "GIT_COMMITTER_EMAIL": address,
            "GIT_COMMITTER_DATE": date,
        }
        above = ("-p", parent) if parent else ()
        return git.text(
            "commit-tree", tree, *above, "-m", message, environment=identity
        )


def _section(key: str, value: str) -> str:
    """Return one setting as a git configuration file has it.

    `key` is `section.name` or `section.<anything>.name`.
    """
    section, _, setting = key.partition(".")
    subsection, _, name = setting.rpartition(".")
    if subsection:
        head = f'[{section} "{_escaped(subsection)}"]'
    else:
        head = f"[{section}]"
    return f'{head}\n\t{name} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
