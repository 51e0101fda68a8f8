"""The cell cache: what was measured once for these very bytes, flags and compiler is not measured again.

One file per cell, named after its key's digest. Its first line is the SHA-256 of the rest; the rest is canonical JSON
that repeats the key. A torn, foreign or older entry is simply absent. Files are written beside and renamed, so that
two runs can share a cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.compiler.files import write_atomically
from bot.core.plan import PlannedCell
from bot.core.serial import cell_from_plain, cell_to_plain, dumps
from bot.core.serial_program import Programs, programs_from_plain
from bot.core.snapshot import Cell
from bot.errors import BotError

MEASUREMENT_SCHEMA = "code-size-cell/4"
"""Raise it whenever a reader starts to say something else about the same bytes."""

_NEVER_CACHED_STAGES = frozenset({"timeout", "cache", "start"})


def digest_of(*parts: str | Sequence[str]) -> str:
    """SHA-256 (hex) of parts, none of which can run into the next."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def cell_key(compiler_digest: str, cell: PlannedCell) -> str:
    """The key of a cell: everything that its measurement depends on, and no names that are only labels."""
    return digest_of(
        MEASUREMENT_SCHEMA,
        compiler_digest,
        cell.model.digest,
        cell.argv,
    )


@dataclass(frozen=True, slots=True)
class CellCache:
    """Cells on disk under `root`."""

    root: Path

    def _path(self, key: str) -> Path:
        return self.root / "cells" / key[:2] / f"{key}.json"

    def load(self, key: str) -> Cell | None:
        """The cell stored under `key`; None where there is none that can be trusted."""
        try:
            head, _, body = self._path(key).read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != head:
                return None
            plain = json.loads(body)
            if plain["key"] != key:
                return None
            return cell_from_plain(plain["cell"], programs_from_plain(plain.get("programs", {}), "programs"))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, BotError):
            return None

    def store(self, key: str, cell: Cell) -> None:
        """Keep a cell, unless its failure may be the machine's: a timeout or a signal."""
        failure = cell.failure
        if failure is not None and (failure.stage in _NEVER_CACHED_STAGES or failure.signal):
            return
        programs = Programs((cell,))
        plain = {"key": key, "cell": cell_to_plain(cell, programs), "programs": programs.plain}
        body = dumps(plain).encode()
        write_atomically(self._path(key), hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


@dataclass(frozen=True, slots=True)
class TextStore:
    """IR texts on disk under `root`, by their digest; for differences that people read, never for numbers."""

    root: Path

    def _path(self, digest: str) -> Path:
        name = digest.encode().hex()  # digests differ in case, file names may not
        return self.root / "ir" / name[:2] / f"{name}.mlir"

    def load(self, digest: str) -> str | None:
        """The text; None where it is not at hand."""
        try:
            return self._path(digest).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def keep(self, digest: str, text: str) -> None:
        """Keep a text, unless it is there."""
        path = self._path(digest)
        if not path.is_file():
            write_atomically(path, [text])
