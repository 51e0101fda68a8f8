"""Digests of code and IR: equal digests mean equal texts."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode

from bot.core.record import DIGEST, DIGEST_BYTES


def written(sha256: bytes) -> str:
    """Return a digest: its first 96 bits, as 16 characters of base64url."""
    return urlsafe_b64encode(sha256[:DIGEST_BYTES]).decode("ascii")


def is_digest(text: str) -> bool:
    """Return whether a text is a digest in the form of `written`."""
    return re.fullmatch(DIGEST, text) is not None
