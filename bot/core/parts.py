"""The names under which the bytes of an artifact are counted, of the host program and of its executables, and words."""

from __future__ import annotations

from bot.core.backends import backend_of
from bot.core.metrics import Metric

VM, CONSTANTS, TABLES = "vm", "constants", "tables"
"""Bytecode of the host program; read-only data that is no executable; the artifact's own tables and padding."""
EXECUTABLES = "executables/"
"""Before the name that a reader has for a part of an executable."""
OTHER, UNREAD = EXECUTABLES + "tables", EXECUTABLES + "unread"
"""What of an executable no part claims: names, tables, padding; and executables that could not be read."""
CODE = frozenset({EXECUTABLES + name for name in ("text", "bytecode", "functions")})
"""Where the code of entry points is."""

_WORDS = {
    VM: "VM bytecode",
    CONSTANTS: "constants of the host program",
    TABLES: "tables and padding of the artifact",
    OTHER: "names, tables and padding of the executables",
    UNREAD: "executables that could not be read",
    "symbols": "symbol tables",
    "dynamic": "dynamic symbols",
    "rodata": "read-only data",
    "data": "data",
    "notes": "notes",
    "headers": "headers",
    "header": "headers of the containers",
    "annotations": "SPIR-V decorations",
    "types": "SPIR-V types and constants",
    "interface": "SPIR-V interfaces",
    "debug": "SPIR-V names",
    "module": "what the kernels of a module share",
    "sources": "embedded sources",
}


def code_words(words: str, backend: str) -> str:
    """What the code of executables is called: `words`, but where it is text, by that text's name."""
    return backend_of(backend).text_form or words


def metric_words(metric: Metric, backend: str) -> str:
    """What a metric of a cell is called: its label, but where it is the size of text."""
    return code_words(metric.label, backend) if metric.id == "executable_bytes" else metric.label


def part_words(name: str) -> str:
    """What a part is called in a sentence."""
    short = name.removeprefix(EXECUTABLES)
    return _WORDS.get(name) or _WORDS.get(short) or short
