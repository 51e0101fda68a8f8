"""Run a program that a repository names, confined to one folder.

The folder is at one fixed path, because compilers write paths into their output.
The program gets limits on memory, file size and folder size, and none of this
environment's variables.

If the kernel allows it, the program has namespaces of its own: no network, no other
processes, and its folder mounted at that path. Several programs can then run at once.
Otherwise the folder itself is at that path, for one program at a time. `isolation` says
what is missing then.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_SH, flock
from functools import cache
from pathlib import Path

from bot.errors import InputError, OutputError
from bot.system.cancel import Cancel
from bot.system.processes import Outcome, run
from bot.system.trees import empty_tree, files_below, remove_tree

PLACE = Path("/tmp/code-size-cell")  # noqa: S108 - one path for all, which is what it is for
MOST_FILE_BYTES = 1 << 30
MOST_FOLDER_BYTES = 2 << 30
# The limit of each process (RLIMIT_DATA); the machine may have less memory
MOST_MEMORY_BYTES = 16 << 30
_LOOK_SECONDS = 1.0
_UNSHARE = (
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--ipc",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
)
# Another user may own the fixed path: the program starts only if the path leads to the
# folder that was mounted.
_MOUNTED = 'mount --bind "$0" "$1" && cd "$1" && [ . -ef "$0" ] && shift && exec "$@"'
_LIMITS = f"""
import os, resource, sys
limits = (
    (resource.RLIMIT_FSIZE, {MOST_FILE_BYTES}),
    (resource.RLIMIT_DATA, {MOST_MEMORY_BYTES}),
    (resource.RLIMIT_CORE, 0),
)
for kind, most in limits:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit(f"{{sys.argv[1]}} cannot be started: {{error.strerror}}")
"""


class _Bounded(Cancel):
    """Ends a run that was cancelled, or whose folder has grown too large."""

    def __init__(self, cancel: Cancel, folder: Path) -> None:
        super().__init__()
        self._cancel = cancel
        self._folder = folder
        self._next = 0.0

    def check(self) -> None:
        self._cancel.check()
        if time.monotonic() >= self._next:
            require_small(self._folder)
            self._next = time.monotonic() + _LOOK_SECONDS


def require_small(folder: Path) -> None:
    """Refuse a folder whose files have more bytes than a compile may write.

    Raises InputError.
    """
    _require_small(folder, unlock=False)


def _require_small(folder: Path, *, unlock: bool) -> None:
    """Refuse a folder that is too large or nested too deeply.

    `unlock`: give this user access to what the program locked.
    """
    total = 0
    for entry in files_below(folder, unlock=unlock):
        try:
            total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:  # it was removed meanwhile
            continue
        if total > MOST_FOLDER_BYTES:
            raise InputError(f"it wrote more than {MOST_FOLDER_BYTES >> 30} GiB")


@cache
def has_namespaces() -> bool:
    """Return whether a program can have a folder of its own and no network."""
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            tempfile.TemporaryDirectory() as place,
        ):
            argv = [*_UNSHARE, "sh", "-c", _MOUNTED, folder, place, "true"]
            return run(argv, cancel=Cancel(), timeout_seconds=20).ok
    except OSError:
        return False


def isolation() -> str:
    """Return what commands of compilers are kept from on this machine, in words."""
    if has_namespaces():
        return "have no network and no variables of this environment"
    if shutil.which(_UNSHARE[0]):
        reason = "this machine allows no namespaces"
    else:
        reason = f"{_UNSHARE[0]} is not on PATH"
    return f"have no variables of this environment, but the network is OPEN: {reason}"


def confined(
    argv: Sequence[str],
    folder: Path,
    *,
    cancel: Cancel,
    environment: Mapping[str, str],
    timeout_seconds: float,
) -> Outcome:
    """Run one program in `folder`, which it sees at PLACE.

    Afterwards this user can read and remove everything in the folder, whatever the
    program locked.

    Raises:
        InputError: the program wrote too much, nested folders too deeply, or removed
            its folder.
        OSError: the program cannot be started.
    """
    limited = [sys.executable, "-IS", "-c", _LIMITS, *argv]
    if has_namespaces():
        bounded = _Bounded(cancel, folder)
        in_namespaces = [
            *_UNSHARE,
            "sh",
            "-c",
            _MOUNTED,
            str(folder),
            str(PLACE),
            *limited,
        ]
        with _place(is_moved_to=False):
            outcome = run(
                in_namespaces,
                cancel=bounded,
                environment=environment,
                timeout_seconds=timeout_seconds,
                layout=0,
            )
    else:
        with _place(is_moved_to=True):
            for path in sorted(folder.iterdir()):
                shutil.move(path, PLACE / path.name)
            bounded = _Bounded(cancel, PLACE)
            outcome = run(
                limited,
                cancel=bounded,
                cwd=PLACE,
                environment=environment,
                timeout_seconds=timeout_seconds,
                layout=0,
            )
            _take_back(folder)
    _require_small(folder, unlock=True)
    return outcome


def _take_back(folder: Path) -> None:
    """Move what the program left at PLACE into its own folder.

    Raises InputError if PLACE is gone.
    """
    if not PLACE.is_dir() or PLACE.is_symlink():
        raise InputError("the command removed the folder that it worked in")
    _require_small(PLACE, unlock=True)
    for path in sorted(PLACE.iterdir()):
        shutil.move(path, folder / path.name)


@contextmanager
def _place(*, is_moved_to: bool) -> Iterator[None]:
    """Provide the fixed path as a folder.

    Args:
        is_moved_to: the program works in this very folder, so only one program may run.
            The folder is empty at first and gone afterwards, because the next run may
            be another user's. Otherwise programs mount their folders over it, and it
            may be anybody's.
    """
    with _locked(LOCK_EX if is_moved_to else LOCK_SH):
        with suppress(FileExistsError):
            PLACE.mkdir(mode=0o700)
        if PLACE.is_symlink() or not PLACE.is_dir():
            raise OutputError("is not a folder", where=str(PLACE), hint="remove it")
        if not is_moved_to:
            yield
            return
        if PLACE.stat().st_uid != os.geteuid():
            raise OutputError(
                "belongs to another user",
                where=str(PLACE),
                hint="remove it, or run as its owner",
            )
        empty_tree(PLACE)
        try:
            yield
        finally:
            remove_tree(PLACE)


@contextmanager
def _locked(kind: int) -> Iterator[None]:
    """Hold the lock of the fixed path.

    The holder is alone in it (LOCK_EX), or mounts over it beside others (LOCK_SH).
    """
    path = PLACE.with_suffix(".lock")
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        os.fchmod(handle, 0o666)  # other users take the lock, too, whatever the umask
    except PermissionError:
        if kind == LOCK_EX:
            hint = "remove it, or run as its owner"
            raise OutputError(
                "belongs to another user", where=str(path), hint=hint
            ) from None
        yield
        return
    try:
        flock(handle, kind)
        yield
    finally:
        os.close(handle)
