"""How an experiment's result becomes `lab.json`, and how that is read again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bot.core.codec.json_text import decoded, require_schema
from bot.core.codec.snapshot_json import lines
from bot.core.lab.lab_values import LAB_SCHEMA, Lab
from bot.errors import InputError

MEASURE_AGAIN = "make it again with this version of code-size-bot: code-size-bot lab EXPERIMENT --out DIR"


def lab_lines(lab: Lab) -> Iterator[bytes]:
    """The text of `lab.json`: canonical, cells sorted, each on a line of its own."""
    return lines(replace(lab, cells=tuple(sorted(lab.cells, key=lambda cell: cell.key))))


def lab_of(text: bytes | str, where: str = "lab.json") -> Lab:
    """Read `lab.json`; raises InputError for text that is torn, foreign, of another schema, or out of order."""
    require_schema(text, LAB_SCHEMA, "lab result", where, MEASURE_AGAIN)
    lab = decoded(text, Lab, where, MEASURE_AGAIN, "lab result")
    keys = [cell.key for cell in lab.cells]
    if keys != sorted(set(keys)):
        raise InputError("cells are not sorted and unique", where=where, hint=MEASURE_AGAIN)
    names = [variant.name for variant in lab.variants]
    if len(set(names)) != len(names) or not {cell.variant for cell in lab.cells} <= set(names):
        raise InputError("a variant is there twice, or not at all", where=where, hint=MEASURE_AGAIN)
    return lab
