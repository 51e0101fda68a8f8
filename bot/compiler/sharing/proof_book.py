"""What earlier runs proved of sharing, kept in the cache: for each compiler and flag set, or that sharing is wrong.

One small file for each, under `proofs/`; cells that were measured from a shared front half stand below `shared/`, in a
folder for the flag set, so that all of them can be dropped at once.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.compiler.caches.cell_cache import MEASUREMENT_SCHEMA, CellCache, digest_of
from bot.compiler.caches.storage import add, touch
from bot.core.codec.nesting import parse_json
from bot.core.values.planned import Target


@dataclass(frozen=True)
class ProofBook:
    """The proofs of one compiler below the cache's `root`; a file that cannot be read proves nothing.

    Attributes:
        keeps: False where nothing is added to the cache; what this run finds out is known to it all the same.
    """

    root: Path
    compiler_digest: str
    keeps: bool = True
    _found: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def cells(self, flags: Sequence[str]) -> CellCache:
        """Where the cells of this flag set stand that were measured from a shared front half."""
        return CellCache(self.root, self.keeps, f"shared/{self._name(flags)}")

    def wrong(self, flags: Sequence[str]) -> str:
        """Why front halves must not be shared under these flags; empty where nothing speaks against it."""
        return str(self._read(flags).get("wrong", ""))

    def proved(self, flags: Sequence[str], targets: Iterable[Target]) -> frozenset[str]:
        """The names of those targets that were proved."""
        known = self._read(flags).get("targets", [])
        return frozenset(target.name for target in targets if digest_of(target.argv) in known)

    def remember(self, flags: Sequence[str], target: Target) -> None:
        """A target is proved; raises OutputError."""
        with self._lock:
            plain = self._read(flags)
            known = {*plain.get("targets", []), digest_of(target.argv)}
            self._write(flags, {**plain, "targets": sorted(known)})

    def drop(self, flags: Sequence[str], why: str) -> None:
        """Sharing is wrong under these flags: its cells go, and none is made again; raises OutputError."""
        with self._lock:
            self._write(flags, {"wrong": why})
            if self.keeps:
                shutil.rmtree(self.root / self.cells(flags).folder, ignore_errors=True)

    def _name(self, flags: Sequence[str]) -> str:
        return digest_of(MEASUREMENT_SCHEMA, self.compiler_digest, flags)

    def _path(self, flags: Sequence[str]) -> Path:
        return self.root / "proofs" / f"{self._name(flags)}.json"

    def _read(self, flags: Sequence[str]) -> dict[str, Any]:
        """What is known; that sharing is wrong outlives whatever another run writes."""
        mine, path = self._found.get(self._name(flags), {}), self._path(flags)
        try:
            kept = parse_json(path.read_bytes())
        except (OSError, ValueError):
            return mine
        if not isinstance(kept, dict) or not isinstance(kept.get("targets", []), list):
            return mine
        touch(path)
        return {**mine, **kept, **({"wrong": mine["wrong"]} if "wrong" in mine else {})}

    def _write(self, flags: Sequence[str], plain: dict[str, Any]) -> None:
        self._found[self._name(flags)] = plain
        if self.keeps:
            add(self.root, self._path(flags), json.dumps(plain, sort_keys=True).encode())
