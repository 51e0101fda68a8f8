"""Write IR as text that names and releases do not change."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from .ir_kinds import PLAIN


def generic(op: Any) -> str:
    """Return the operation in generic form.

    Its name, operands, properties, regions and types are in one notation. A release
    that adds an optional operand to an operation prints one more count of 0 for it:
    this is left out.
    """
    return _TRAILING_ZEROS.sub(r"\1>", op.get_asm(print_generic_op_form=True, **PLAIN))


def hexadecimal(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def printable(text: str) -> str:
    """Return the text with `?` for each control character."""
    return "".join([letter if letter.isprintable() else "?" for letter in text])


def without_names(text: str, names: set[str]) -> str:
    """Replace these symbols in the text, as references and as strings, by `@`.

    Only whole symbols are replaced.
    """
    either = "|".join(re.escape(name) for name in sorted(names))
    symbols = re.compile(
        rf'(?P<string>(?<!@)"(?:{either})")|@(?:"(?:{either})"|(?:{either})(?![\w$.-]))'
    )
    return symbols.sub(lambda match: '"@"' if match["string"] else "@", text)


_TRAILING_ZEROS = re.compile(r"(SegmentSizes = array<i32: \d+(?:, \d+)*?)(?:, 0)+>")
