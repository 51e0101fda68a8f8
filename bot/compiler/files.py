"""Writing files so that no reader ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
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
