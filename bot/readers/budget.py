"""How much work one file may cost its reader, where its tables may name the same bytes any number of times."""

from __future__ import annotations

from bot.errors import MalformedBinary

WORK_PER_BYTE = 64
"""Real objects need less than one: each byte of code and of constants once, relocations beside them."""


class Budget:
    """Work that is left, in bytes read; in proportion to the file, so that reading it takes linear time."""

    def __init__(self, file_bytes: int, where: str) -> None:
        self._left, self._where = WORK_PER_BYTE * file_bytes, where

    def spend(self, work_bytes: int) -> None:
        """Raises `MalformedBinary` where that is more than is left."""
        self._left -= work_bytes
        if self._left < 0:
            raise MalformedBinary("its tables name the same bytes over and over", where=self._where)
