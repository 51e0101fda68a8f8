"""A JSON file that a command wrote, as objects whose fields are attributes.

What the file leaves out is None.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from bot.core.snapshot import MEASURED
from bot.fold.audit import FoldAudit


class JsonRow(dict[str, Any]):
    """One object."""

    def __getattr__(self, name: str) -> Any:
        """A field."""
        return self.get(name)

    @property
    def measured(self) -> bool:
        """True for a cell with an artifact."""
        return self.status in MEASURED


def read_json(path: Path) -> JsonRow:
    """The whole file."""
    record: JsonRow = json.loads(path.read_bytes(), object_hook=JsonRow)
    return record


def fold_of(text: bytes | str) -> FoldAudit:
    """The value of a `fold.json`."""
    return msgspec.json.decode(text, type=FoldAudit)
