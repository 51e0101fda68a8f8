"""What every reader's test does: read the real binaries beside their goldens, and survive damaged ones.

`UPDATE_GOLDENS=1 python -m pytest tests` rewrites the goldens.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from typing import Any

import msgspec
from places import FIXTURES

from bot.core.reading import ArtifactReading, Reading
from bot.errors import MalformedBinary

BINARIES = FIXTURES / "binaries"

AnyReading = Reading | ArtifactReading
Read = Callable[[bytes], AnyReading]


def fixture(name: str) -> bytes:
    """The bytes of a real binary."""
    return (BINARIES / name).read_bytes()


def check_golden(name: str, value: Any) -> None:
    """Compare with the golden beside the fixture of this name, or write it where the environment asks for it."""
    path = BINARIES / f"{name}.json"
    plain = _plain(value)
    if os.environ.get("UPDATE_GOLDENS") == "1":
        path.write_text(
            json.dumps(plain, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
    assert json.loads(path.read_text(encoding="utf-8")) == plain


def outcome(read: Read, data: bytes) -> AnyReading | None:
    """The reading, checked for its sums; None where the reader refused.

    Any other exception is the test's failure.
    """
    try:
        reading = read(data)
    except MalformedBinary as error:
        assert error.line.isprintable()
        return None
    if isinstance(reading, Reading):
        assert reading.size_bytes == len(data)
        assert sum(reading.parts.values()) + reading.unattributed_bytes == len(data)
    else:
        assert reading.artifact_bytes == len(data)
    return reading


def check_truncations(read: Read, data: bytes) -> int:
    """Cut the data at every offset; returns how many of the cuts the reader refused."""
    return sum(outcome(read, data[:length]) is None for length in range(len(data)))


def check_flips(read: Read, data: bytes, rounds: int = 1500) -> int:
    """Damage one to eight random bytes, the same ones in every run.

    Returns how many times the reader refused.
    """
    dice = random.Random(len(data))
    refused = 0
    for _ in range(rounds):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 2, 8))):
            damaged[dice.randrange(len(damaged))] = dice.choice(
                (0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256))
            )
        refused += outcome(read, bytes(damaged)) is None
    return refused


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=dict))
