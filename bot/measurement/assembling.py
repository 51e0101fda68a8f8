"""The PTX text of an artifact as machine code, for the readers: taken out of it and given to the assembler."""

from __future__ import annotations

from bot.compiler.tools.ptxas import BACKEND, Assembler
from bot.core.values.reading import Assembled
from bot.errors import MalformedBinary


def machine_code(
    artifact: bytes, backend: str, assembler: Assembler | None
) -> tuple[tuple[Assembled, ...] | None, str]:
    """The assembled modules, or None and why; what the assembler refuses is no failure of the cell."""
    if backend != BACKEND or assembler is None:
        return None, ""
    from bot.readers.formats.artifact import ptx_modules  # as in `bot.measurement.cell`

    try:
        assembled = assembler.assembled(ptx_modules(artifact))
    except MalformedBinary as error:
        return None, error.line
    return (None, assembled) if isinstance(assembled, str) else (assembled, "")
