"""The names under which the bytes of an artifact are counted: of the host program, and of its executables."""

from __future__ import annotations

VM, CONSTANTS, TABLES = "vm", "constants", "tables"
"""Bytecode of the host program; read-only data that is no executable; the artifact's own tables and padding."""
EXECUTABLES = "executables/"
"""Before the name that a reader has for a part of an executable."""
OTHER, UNREAD = EXECUTABLES + "tables", EXECUTABLES + "unread"
"""What of an executable no part claims: names, tables, padding; and executables that could not be read."""
CODE = frozenset({EXECUTABLES + name for name in ("text", "bytecode", "functions")})
"""Where the code of entry points is."""
