"""Cache cells, so that the same bytes, flags and compiler are measured only once.

There is one file per cell, named after its key's digest. Its first line is the SHA-256
of the rest. The rest is canonical JSON that repeats the key. A torn, foreign or older
entry counts as absent. Files are written beside and renamed, so that two runs can share
a cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.importing import importer_version
from bot.compiler.measuring_code import measured_by
from bot.compiler.ptxas import assembler_of, installed
from bot.compiler.storage import add, read, touch
from bot.compiler.this_processor import processor
from bot.core.digest import is_digest
from bot.core.json_text import canonical, decoded
from bot.core.metrics import OwnMetrics
from bot.core.planned import PlannedCell
from bot.core.program import Program
from bot.core.record import Record
from bot.core.snapshot import Cell
from bot.core.snapshot_json import complete, key_of
from bot.core.this_machine import lasts
from bot.errors import BotError


def digest_of(*parts: str | Sequence[str]) -> str:
    """Return the SHA-256 (hex) of parts, none of which can run into the next."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


class _Kept(Record, frozen=True):
    key: str
    cell: Cell
    programs: Mapping[str, Program]


def cell_key(compiler_digest: str, cell: PlannedCell) -> str:
    """Return the key of a cell: everything that its measurement depends on.

    Names that are only labels are not in it. The key is empty if the cell reads
    files that are not all known. Such a cell is neither kept nor reused.
    """
    if cell.unlisted:
        return ""
    return digest_of(
        measured_by(),
        compiler_digest,
        cell.model.digest,
        cell.printed,
        cell.inputs,
        importer_version(cell.model),
        processor(cell.printed),
        assembler_of(cell.target.backend, installed()),
    )


@dataclass(frozen=True, slots=True)
class CellCache:
    """Cells on disk under `root`; without `keeps` nothing is added to them."""

    root: Path
    keeps: bool = True

    def _path(self, key: str) -> Path:
        return self.root / "cells" / key[:2] / f"{key}.json"

    def load(self, key: str, own_metrics: OwnMetrics = ()) -> Cell | None:
        """Return the cell stored under `key`; None if there is no valid one.

        `own_metrics`: the metrics that its compiler declares.
        """
        if not key:
            return None
        head, _, body = read(self._path(key)).partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != head:
            return None
        try:
            stored = decoded(body, _Kept, "cell")
            own_ids = {metric.id for metric in own_metrics}
            complete(stored.cell, stored.programs, where="cell", declared=own_ids)
        except (ValueError, BotError):
            return None
        return stored.cell if stored.key == key else None

    def store(self, key: str, cell: Cell) -> None:
        """Keep a cell, unless a part of it is true of this machine only."""
        if not (key and self.keeps and lasts(cell)):
            return
        programs = {}
        if cell.program:
            name = key_of(cell.program)
            programs = {name: cell.program}
            cell = replace(cell, program=name)
        body = canonical(_Kept(key, cell, programs))
        add(
            self.root,
            self._path(key),
            hashlib.sha256(body).hexdigest().encode() + b"\n" + body,
        )


@dataclass(frozen=True, slots=True)
class TextStore:
    """IR texts on disk under `root`, by their digest.

    They are for differences that people read, never for numbers.
    """

    root: Path
    keeps: bool = True

    def _path(self, digest: str) -> Path:
        name = digest.encode().hex()  # digests differ in case, file names may not
        return self.root / "ir" / name[:2] / f"{name}.mlir"

    def load(self, digest: str) -> str | None:
        """Return the text; None if it is not here."""
        with suppress(ValueError):
            return (
                read(self._path(digest)).decode() if is_digest(digest) else ""
            ) or None
        return None

    def keep(self, digest: str, text: str) -> None:
        """Keep a text, unless it is there; raises ValueError for a malformed digest."""
        if not is_digest(digest):
            raise ValueError(f"{digest!r} is not a digest")
        path = self._path(digest)
        if path.is_file():
            touch(path)
        elif self.keeps:
            add(self.root, path, text.encode())
