"""A program that a repository names, in a folder at one fixed path, and with nothing else that can be taken from it.

Paths go into what compilers write, so that the folder is at the same place in every run. Where the kernel lets us, the
program has namespaces of its own: no network, no other processes, and its folder mounted at that path, so that several
run at once. Elsewhere the folder itself is there, one program at a time; what then is missing, `isolation` says.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path

from bot.errors import InputError, OutputError
from bot.system.processes import Cancel, Outcome, run

PLACE = Path("/tmp/code-size-cell")  # noqa: S108 - one path for all, which is what it is for
MOST_FILE_BYTES, MOST_FOLDER_BYTES = 1 << 30, 2 << 30
MOST_MEMORY_BYTES = 16 << 30  # Of each process, what it may write to: of the machine's memory there may be less
_LOOK_SECONDS = 1.0
_UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--ipc", "--mount", "--pid", "--fork", "--kill-child")
_MOUNTED = 'mount --bind "$0" "$1" && cd "$1" && shift && exec "$@"'
_LIMITS = f"""
import os, resource, sys
for what, most in ((resource.RLIMIT_FSIZE, {MOST_FILE_BYTES}), (resource.RLIMIT_DATA, {MOST_MEMORY_BYTES}),
                   (resource.RLIMIT_CORE, 0)):
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most,) * 2 if hard == resource.RLIM_INFINITY else (min(most, hard),) * 2)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit(f"{{sys.argv[1]}} cannot be started: {{error.strerror}}")
"""


class TooMuch(InputError):
    """A program wrote more than is looked at."""


class _Bounded(Cancel):
    """Asked while a program runs: raises where the run is to end, and where its folder has grown too large."""

    def __init__(self, cancel: Cancel, folder: Path) -> None:
        super().__init__()
        self._cancel, self._folder, self._next = cancel, folder, 0.0

    def check(self) -> None:
        self._cancel.check()
        if time.monotonic() >= self._next:
            require_small(self._folder)
            self._next = time.monotonic() + _LOOK_SECONDS


def require_small(folder: Path) -> None:
    """Raise TooMuch where the files of a folder have more bytes than a compile may write."""
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(directory, name)).st_blocks * 512
            except OSError:  # it was removed meanwhile
                continue
            if total > MOST_FOLDER_BYTES:
                raise TooMuch(f"it wrote more than {MOST_FOLDER_BYTES >> 30} GiB")


@cache
def has_namespaces() -> bool:
    """True where a program can have a network and a folder of its own, which is none."""
    try:
        with tempfile.TemporaryDirectory() as folder, _place():
            argv = [*_UNSHARE, "sh", "-c", _MOUNTED, folder, str(PLACE), "true"]
            return run(argv, cancel=Cancel(), timeout_seconds=20).ok
    except OSError:
        return False


def isolation() -> str:
    """What commands of compilers are kept from on this machine, in words that are true of it."""
    if has_namespaces():
        return "have no network, and no variable of this environment"
    why = "this machine allows no namespaces" if shutil.which(_UNSHARE[0]) else f"{_UNSHARE[0]} is not on PATH"
    return f"have no variable of this environment; the network is NOT closed: {why}"


def confined(
    argv: Sequence[str], folder: Path, *, cancel: Cancel, environment: Mapping[str, str], timeout_seconds: float
) -> Outcome:
    """Run one program in `folder`, which it sees at PLACE; raises TooMuch, and OSError where it cannot be started."""
    limited = [sys.executable, "-IS", "-c", _LIMITS, *argv]
    if has_namespaces():
        bounded = _Bounded(cancel, folder)
        whole = [*_UNSHARE, "sh", "-c", _MOUNTED, str(folder), str(PLACE), *limited]
        outcome = run(whole, cancel=bounded, environment=environment, timeout_seconds=timeout_seconds, layout=0)
    else:
        with _place() as handle:
            flock(handle, LOCK_EX)
            _moved(PLACE, None)
            _moved(folder, PLACE)  # the path itself stays: others may have their folders mounted on it
            alone = _Bounded(cancel, PLACE)
            try:
                outcome = run(
                    limited, cancel=alone, cwd=PLACE, environment=environment, timeout_seconds=timeout_seconds, layout=0
                )
            finally:
                _moved(PLACE, folder)
    require_small(folder)
    return outcome


def _moved(source: Path, to: Path | None) -> None:
    """Move what is in a folder to another one; remove it where there is none."""
    for path in sorted(source.iterdir()):
        if to is not None:
            shutil.move(path, to / path.name)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def _place() -> Iterator[int]:
    """The fixed path, there and ours; with an open file that stands for it."""
    PLACE.mkdir(mode=0o700, exist_ok=True)
    stat = PLACE.lstat()
    if PLACE.is_symlink() or stat.st_uid != os.geteuid():
        raise OutputError("belongs to somebody else", where=str(PLACE), hint="remove it, or run as its owner")
    handle = os.open(PLACE.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
