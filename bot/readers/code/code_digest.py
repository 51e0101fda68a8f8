"""How device code becomes a digest: the same code gives the same one, whatever it is called.

What the readers leave out are names and the ordinals in them, which move when the program gains a dispatch elsewhere.
"""

from __future__ import annotations

import hashlib
import re

from bot.core.codec.digests import written

LENGTH_BYTES = 8
ORDINAL = re.compile(r"(?<=_dispatch_)\d+")
"""What the compiler counts up in the name of a dispatch, `main_dispatch_12_matmul_4x8_f32`."""


def code_digest(*pieces: bytes) -> str:
    """The whole digest, as text; where one piece ends and the next begins counts too."""
    return written(fingerprint(*pieces))


def fingerprint(*pieces: bytes) -> bytes:
    """The same as bytes, for what many digests have in common."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(len(piece).to_bytes(LENGTH_BYTES, "little"))
        whole.update(piece)
    return whole.digest()


def without_name(text: bytes, name: bytes) -> bytes:
    """Source text with `@` for the name, also where it starts the name of a parameter (PTX: `NAME_param_0`)."""
    own = re.escape(name)
    return re.sub(own + rb"(?<![\w$%.]" + own + rb")(?=_param_|[^\w$]|\Z)", b"@", text)


def without_ordinals(name: str) -> str:
    """The name as it is in every program that has this dispatch."""
    return ORDINAL.sub("", name)
