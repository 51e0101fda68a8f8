"""Write files whole or not at all, in directories that end with their process.

Files are readable by other users whatever the umask: a later step of a job archives the
cache as another user. A temporary directory is locked by the process that made it. The
kernel releases the lock when the process ends, however it ends. So the next run knows
which directories are left of dead processes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from bot.errors import InputError, OutputError
from bot.system.trees import remove_tree

PART_PREFIX = (  # What is still being written begins with this, and is renamed when it is whole
    ".part-"
)
OWN_PREFIX = "code-size-bot-"
"""The beginning of the program's temporary directories in the system's place for them.

All of them are locked, by `lock` or in the same way.
"""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# What a program wrote that is not trusted is read up to here: it is held in memory
# whole
MOST_READ_BYTES = 1 << 30
_DIRECTORY_MODE = 0o755
_FILE_MODE = 0o644
_GRACE_SECONDS = 60  # Younger than this, a directory may not have been locked yet


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents, open to other users.

    Raises OSError.
    """
    if path.is_dir():
        missing = []
    else:
        missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for place in missing:
        with contextlib.suppress(PermissionError):  # another user's run was faster
            place.chmod(_DIRECTORY_MODE)


def open_to_others(tree: Path) -> None:
    """Let other users read all of a tree; programs stay programs."""
    for directory, _, names in os.walk(tree):
        os.chmod(directory, _DIRECTORY_MODE)
        for name in names:
            path = Path(directory, name)
            path.chmod(_DIRECTORY_MODE if path.stat().st_mode & 0o100 else _FILE_MODE)


def write_atomically(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write `path` whole or not at all, from bytes or from pieces of them.

    Raises OutputError.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        make_directory(path.parent)
        handle, name = tempfile.mkstemp(prefix=PART_PREFIX, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(handle, _FILE_MODE)
                _try_lock(handle)
                file.writelines(pieces)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            hint="free some space, or choose another directory",
        ) from error


def is_writable(root: Path) -> bool:
    """Return whether files can be kept below `root` and in the folders that it has.

    A folder that does not exist counts as writable if it can be made.
    """
    if not root.exists():
        if root != root.parent:
            return is_writable(root.parent)
        return False
    if root.is_dir():
        folders = [path for path in root.iterdir() if path.is_dir()]
    else:
        folders = []
    return all(os.access(path, os.W_OK) for path in (root, *folders))


def no_room(error: OSError, where: str) -> OutputError:
    """Return the error for temporary files that cannot be written."""
    if error.errno in FULL:
        message = "the disk has no space for temporary files"
        hint = "free some space there, or set TMPDIR to another directory"
    else:
        message = "temporary files cannot be written"
        hint = "make the directory writable, or set TMPDIR to another directory"
    return OutputError(f"{message}: {error.strerror or error}", where=where, hint=hint)


@contextmanager
def temporary_directory(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a locked directory that is removed afterwards; raises OutputError.

    Without `parent` it is in the system's place for temporary files, and its name
    begins with OWN_PREFIX. A full disk inside of the context then raises
    OutputError, too.
    """
    where = str(parent or tempfile.gettempdir())
    try:
        path = Path(
            tempfile.mkdtemp(
                prefix=prefix if parent else OWN_PREFIX + prefix, dir=parent
            )
        )
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise no_room(error, where) from None
    try:
        _try_lock(handle)
        yield path
    except OSError as error:
        if parent or error.errno not in FULL:
            raise
        raise no_room(error, where) from None
    finally:
        os.close(handle)
        with contextlib.suppress(OSError):  # the next run removes what is left
            remove_tree(path)


def _try_lock(handle: int) -> bool:
    """Lock an open file or directory.

    Returns False if another process has the lock, or if the file system has no
    locks.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sweep(directory: Path, prefix: str) -> None:
    """Remove what dead processes of this user left under names with this prefix."""
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if name.startswith(prefix):
                with contextlib.suppress(OSError):
                    path = directory / name
                    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    try:
                        stat = os.fstat(handle)
                        is_old = time.time() - stat.st_mtime > _GRACE_SECONDS
                        if stat.st_uid == os.geteuid() and is_old and _try_lock(handle):
                            if path.is_dir():
                                remove_tree(path)
                            else:
                                path.unlink()
                    finally:
                        os.close(handle)


def sweep_temporary() -> None:
    """Remove temporary directories of runs that were killed."""
    sweep(Path(tempfile.gettempdir()), OWN_PREFIX)


def require_bounded(path: Path, noun: str, most_bytes: int = MOST_READ_BYTES) -> int:
    """Return the size of a regular file.

    Raises InputError, beginning with `noun`, for another kind and a larger one.
    """
    stat = path.stat()
    if not S_ISREG(stat.st_mode):
        raise InputError(f"{noun} is not a regular file")
    if stat.st_size > most_bytes:
        raise InputError(
            f"{noun} has {stat.st_size:,} bytes, and the limit is {most_bytes:,}"
        )
    return stat.st_size


def read_bounded(path: Path, noun: str, most_bytes: int = MOST_READ_BYTES) -> bytes:
    """Return the content of a regular file, as long as it was at first.

    Raises OSError, and InputError as `require_bounded` does.
    """
    size_bytes = require_bounded(path, noun, most_bytes)
    with path.open("rb") as file:
        return file.read(size_bytes)


def hashed(path: Path) -> str:
    """Return the SHA-256 (hex) of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def whole_or_nothing(path: Path) -> bytes:
    """Return the content of a file, by which its kind can be told.

    Empty if the file cannot be read, or if the read would be long or endless.
    """
    try:
        if path.is_file() and path.stat().st_size <= 64 << 20:
            return path.read_bytes()
        return b""
    except OSError:
        return b""


def require_writable(directory: Path) -> None:
    """Raise OutputError if the directory is not writable.

    Called before the first compile, so that no work is lost.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        hint = "choose another place with --out"
        raise OutputError(
            f"cannot be written to: {error.strerror}", where=str(directory), hint=hint
        ) from None
