"""Read the snapshots that a command line names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_lines
from bot.errors import InputError


def stored_sides(specs: Mapping[str, str]) -> dict[str, Snapshot]:
    """Read the snapshots among the SPECs.

    `specs`: name → its SPEC. Raises InputError.
    """
    snapshots = {}
    for name, spec in specs.items():
        if is_snapshot(spec):
            snapshots[name] = load_snapshot(Path(spec))
    return snapshots


def is_snapshot(spec: str) -> bool:
    """Return whether a SPEC names a snapshot."""
    return spec.endswith(".json")


def load_snapshot(path: Path) -> Snapshot:
    """Read one snapshot file; raises InputError."""
    try:
        with path.open("rb") as file:
            return from_lines(file, str(path))
    except UnicodeDecodeError:
        raise InputError(
            "is not UTF-8 text, so it is not a snapshot", where=str(path)
        ) from None
    except OSError as error:
        hint = "measure one with: code-size-bot measure --compiler SPEC --out FILE"
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), hint=hint
        ) from None
