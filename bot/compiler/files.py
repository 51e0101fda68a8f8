"""Writing files so that no reader ever sees half of one, and temporary directories that are gone afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import OutputError


def write_atomically(path: Path, data: bytes | Iterable[str]) -> None:
    """Write `path` whole or not at all, from bytes or from pieces of text; raises OutputError."""
    pieces = (data,) if isinstance(data, bytes) else (piece.encode() for piece in data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(pieces)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            mend="free some space, or choose another directory",
        ) from None


@contextmanager
def temporary_directory(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A directory below `parent` (the system's place for temporary files), gone afterwards; raises OutputError."""
    try:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        where = str(parent or tempfile.gettempdir())
        raise OutputError(f"no room for temporary files: {error.strerror}", where=where) from None
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
