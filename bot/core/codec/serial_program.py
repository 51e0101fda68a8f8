"""Programs and families as JSON values. Cells of one model share a program, so a snapshot holds each once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from bot.core.codec.checked import INT, Fields, Table, flat, table_of
from bot.core.values.program import FAMILY_KINDS, Argument, Family, Program, Site, Source
from bot.core.values.snapshot import Cell
from bot.errors import InputError

_TABLES: Mapping[Any, Table] = {cls: table_of(cls) for cls in (Source, Site, Argument, Family)}
_ROWS = {"sources": Source, "sites": Site, "arguments": Argument}
_PROGRAM_FIELDS = frozenset({"phases", "linalg_ops_before", "whole", *_ROWS})
_OLD_NAME_DIGITS = 16


def _row(value: Any) -> dict[str, Any]:
    """A flat value without the fields that have their default."""
    table = _TABLES[type(value)]
    said = {name: found for name, _, default in table if (found := getattr(value, name)) != default}
    return {name: list(found) if isinstance(found, tuple) else found for name, found in said.items()}


def program_to_plain(program: Program) -> dict[str, Any]:
    """A program as plain JSON values."""
    return {
        "phases": dict(program.phases),
        "linalg_ops_before": program.linalg_ops_before,
        **{name: [_row(row) for row in getattr(program, name)] for name in _ROWS},
        **({"whole": program.whole} if program.whole else {}),
    }


def families_to_plain(families: Iterable[Family]) -> list[dict[str, Any]]:
    """The contract's `families[]`."""
    return [{"kind": f.kind, "members": list(f.members), "varying": list(f.varying)} for f in families]


canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
).encode
"""Plain values, which are trees, as JSON text: equal values give equal bytes."""


def key_of(plain: Mapping[str, Any]) -> str:
    """The name of a program in a snapshot: the SHA-256 of its JSON, in hex."""
    return hashlib.sha256(canonical(plain).encode(errors="surrogatepass")).hexdigest()


class Programs:
    """The programs of a snapshot's cells by name, each written once; equal programs are one."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._keys: dict[int, str] = {}
        self.plain: dict[str, dict[str, Any]] = {}
        for cell in cells:
            if cell.program is not None and id(cell.program) not in self._keys:
                plain = program_to_plain(cell.program)
                self._keys[id(cell.program)] = key = key_of(plain)
                self.plain[key] = plain

    def key(self, program: Program | None) -> str | None:
        """The name of one of them."""
        return None if program is None else self._keys[id(program)]


def program_from_plain(value: Any, path: str) -> Program:
    """A program from plain JSON values; raises InputError naming `path` and the field."""
    found = Fields(value, path, _PROGRAM_FIELDS)
    rows = {
        name: tuple(flat(cls, _TABLES[cls], row, f"{path}.{name}") for row in found.items(name))
        for name, cls in _ROWS.items()
    }
    whole = found.get("whole", str, "")
    return Program(found.mapping("phases", (str,)), found.get("linalg_ops_before", INT, None), **rows, whole=whole)


def programs_from_plain(value: Any, path: str) -> dict[str, Program]:
    """All programs of a snapshot by name; one whose name is not its own digest is refused.

    Snapshots of earlier versions have its first 16 digits.
    """
    found = Fields(value, path, frozenset(value) if isinstance(value, dict) else frozenset())
    programs = {key: program_from_plain(plain, f"{path}.{key[:20]}") for key, plain in found.value.items()}
    for key, program in programs.items():
        if key not in ((own := key_of(program_to_plain(program))), own[:_OLD_NAME_DIGITS]):
            raise InputError("a program's name is not the digest of what it says", where=f"{path}.{key[:20]}")
    return programs


def family_from_plain(value: Any, path: str) -> Family:
    """One family; raises InputError naming `path` and the field."""
    family: Family = flat(Family, _TABLES[Family], value, path)
    if family.kind not in FAMILY_KINDS:
        raise InputError(f"unknown kind of family {family.kind[:40]!r}", where=path)
    return family
