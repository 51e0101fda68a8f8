"""How digests are written, how far a stored baseline cuts them, and what a cut one can still tell.

A whole digest is a SHA-256: of code and of IR as 43 characters of base64url, of phases and of programs as 64 hex
digits. The cell cache, every file of a run and the names of kept texts have whole ones: equal digests, equal texts.

A short one is the beginning of a whole one, all that a stored baseline has room for. So two are compared by what both
have: where that differs, the texts differ. That it is equal proves nothing: of 9,500 texts two share 30 bits, as likely
as not. It counts only beside something that was measured apart from it (the same size and numbers, the same
structure), the words then say that it was short, and no kept text is ever looked up by it.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode

from msgspec.structs import replace

from bot.core.codec.snapshot_json import key_of
from bot.core.values.program import Program, Source
from bot.core.values.snapshot import Cell, Dispatch

WHOLE_CHARACTERS = 43
CODE_CHARACTERS, SOURCE_CHARACTERS, STRUCTURE_CHARACTERS, BOUND_CHARACTERS = 4, 5, 4, 4
PHASE_CHARACTERS = 16
SUM_MODULUS, SHORT_SUM_MODULUS = 1 << 53, 1 << 32
"""A source's `operations` is counted modulo what JSON holds exactly, and cut to its low half."""

_WHOLE = re.compile(r"[A-Za-z0-9_-]{43}|[0-9a-f]{64}")


def written(sha256: bytes) -> str:
    """A whole digest as 43 characters of base64url."""
    return urlsafe_b64encode(sha256).decode("ascii").rstrip("=")


def is_whole(text: str) -> bool:
    """True for the text of a whole digest."""
    return _WHOLE.fullmatch(text) is not None


def differ(left: str, right: str) -> bool:
    """True where the digests prove that their texts differ; a beginning too short for a digest agrees with none."""
    if len(left) == len(right):
        return left != right
    common = min(len(left), len(right))
    return left != right if common < CODE_CHARACTERS else left[:common] != right[:common]


def short_code(cell: Cell) -> bool:
    """True where a digest of the cell's code was cut."""
    return any(row.code is not None and len(row.code) < WHOLE_CHARACTERS for row in cell.dispatches)


def short_program(program: Program) -> bool:
    """True where a digest of the program was cut."""
    rows = ((row.source, row.structure, row.bound or row.source, *row.bound_parts) for row in program.sources)
    digests = [*(text for row in rows for text in row), *program.phases.values()]
    return any(len(text) < WHOLE_CHARACTERS for text in digests)


def name_of(program: Program) -> str:
    """The whole digest (hex) of all that is said of a program but its arguments, which a baseline leaves out."""
    return key_of(replace(program, arguments=(), whole=""))


def cut_program(program: Program) -> Program:
    """With short digests, and the name of the program that had whole ones, where it had."""
    return replace(
        program,
        phases={phase: digest[:PHASE_CHARACTERS] for phase, digest in program.phases.items()},
        sources=tuple(
            Source(
                source.executable,
                source.source[:SOURCE_CHARACTERS],
                source.structure[:STRUCTURE_CHARACTERS],
                source.operations % SHORT_SUM_MODULUS,
                source.bound[:BOUND_CHARACTERS],
                tuple(part[:BOUND_CHARACTERS] for part in source.bound_parts),
            )
            for source in program.sources
        ),
        whole=program.whole if short_program(program) else name_of(program),
    )


def cut_dispatch(row: Dispatch) -> Dispatch:
    """With a short digest of its code."""
    return row if row.code is None else replace(row, code=row.code[:CODE_CHARACTERS])
