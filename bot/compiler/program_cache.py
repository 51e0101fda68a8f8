"""Cache the IR of each build before the passes of its target (phase `sources`).

Experiments start from this IR, and so skip the first phases.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from bot.compiler.storage import add, read

_FASTEST = 1


@dataclass(frozen=True, slots=True)
class ProgramCache:
    """Compressed IR on disk under `root`, by the key of the cell.

    Without `keeps` nothing is added. A torn entry counts as absent.
    """

    root: Path
    keeps: bool = True

    def _path(self, key: str) -> Path:
        return self.root / "programs" / key[:2] / f"{key}.mlir.z"

    def load(self, key: str) -> bytes | None:
        """Return the IR of a cell; None if there is none."""
        if not key:
            return None
        try:
            return zlib.decompress(read(self._path(key)))
        except zlib.error:
            return None

    def keep(self, key: str, program: bytes) -> None:
        """Keep the IR of a cell; a cell without a key keeps none."""
        if key and self.keeps:
            add(self.root, self._path(key), zlib.compress(program, _FASTEST))
