"""How exactly two programs can be compared, and results that are kept for the objects they were worked out of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from bot.core.json_text import canonical, decoded
from bot.core.program import Program
from bot.core.snapshot import cut_program, is_whole, name_of, short_program
from bot.errors import InputError

# Results kept for the objects they were worked out of.
#
# Cells of one model share their program, so that what is read out of it alone is the same on all targets.


_Result = TypeVar("_Result")
KEPT = 64
"""Results; cells come model by model, so that older ones are not asked for again."""


def per_object(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Keep the last results by the identity of the arguments: to compare programs takes longer than to read them.

    Callers must not change what they get, nor the arguments afterwards.
    """
    results: dict[tuple[int, ...], tuple[tuple[Any, ...], _Result]] = {}

    def remembered(*args: Any) -> _Result:
        key = tuple(map(id, args))
        if key not in results:
            if len(results) >= KEPT:
                del results[next(iter(results))]
            results[key] = args, function(*args)  # with its arguments: as long as they live, nothing else has their ids
        return results[key][1]

    return remembered


# How exactly two programs can be compared: by whole digests, or by the first characters that both have.
#
# A program from a stored baseline has short ones, and the whole name that it had before they were cut. So it has whole
# ones again where the other side's program has that name, or where the program was kept under it with the IR texts.


Texts = Callable[[str], "str | None"]
"""Whole digest of a source → its IR as people read it, of a program → its JSON; None where it is not at hand."""

is_short = per_object(short_program)
_cut = per_object(cut_program)


def no_texts(_: str) -> str | None:
    """Nothing is at hand."""
    return None


def kept_program(program: Program) -> tuple[str, str]:
    """Whole name and JSON of a program with whole digests, to be kept beside the texts of its IR."""
    return name_of(program), canonical(replace(program, arguments=())).decode()


@per_object
def uncut(program: Program, texts: Texts) -> Program:
    """The program with whole digests, where they are at hand: what is kept must be what the program's name says."""
    text = texts(program.whole) if is_short(program) and is_whole(program.whole) else None
    try:
        kept = None if text is None else decoded(text, Program, "kept program")
    except (ValueError, InputError):
        return program
    return program if kept is None or not _is_cut_of(program, kept) else kept


def _is_cut_of(short: Program, whole: Program) -> bool:
    """Equal to the letter, and by its name (`Program.whole`)."""
    return replace(short, arguments=()) == replace(_cut(whole), arguments=())


@per_object
def alike(left: Program, right: Program) -> tuple[Program, Program]:
    """Both with digests of one length, so that equal ones are equal as far as either side says.

    A short digest of a source has that of its structure behind it: neither is believed alone.
    """
    if not is_short(left) and not is_short(right):
        return left, right
    if is_short(left) and _is_cut_of(left, right):
        return right, right
    if is_short(right) and _is_cut_of(right, left):
        return left, left
    return _beside_structures(_cut(left)), _beside_structures(_cut(right))


@per_object
def _beside_structures(program: Program) -> Program:
    return replace(program, sources=tuple(replace(row, source=row.source + row.structure) for row in program.sources))
