"""Match the stack frames that `-fstack-usage` writes to the functions of one object.

Clang writes the name of the symbol. GCC writes the function as C++ declares it (`T
get(T) [with T = int]`), so that instances of one template can look alike. GCC writes
one line for each function in the order in which it emits their code, and the assembler
keeps that order in each section.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bot.readers.compiler_reports import stack_usage_rows
from bot.readers.demangling import LAMBDA, parameters, qualified_name
from bot.readers.elf import Symbol

COLD = ".cold"
"""The suffix that GCC appends to the name of the unlikely part of a function.

That part runs in the frame of the function.
"""
_COLUMN = re.compile(r"^(.*?:\d+):\d+:", re.MULTILINE)
_GCC_LAMBDA = re.compile(r"<lambda(?:\((?:[^()]|\([^()]*\))*\))?[^<>()]*>")
_LAMBDA_CALL = re.compile(r"\{lambda(?:#\d+)?\}(?:::operator\(\))?")
_INITIALIZER_ROW = re.compile(r"\A(?:\(static initializers for .*|[^(]*\))\Z")
_INITIALIZER = "_GLOBAL__sub_I"
_WORD = re.compile(r"\w+|[^\w\s]")
_IMPLIED = frozenset({"int", "std", ":", "__cxx11", "struct", "class", "enum", "union"})
_LENGTHS = frozenset({"long", "short", "unsigned", "signed"})


class Row(NamedTuple):
    """One line of a file of stack usage."""

    name: str
    frame_bytes: int


def rows_of(data: bytes) -> tuple[Row, ...]:
    """Read one file of `-fstack-usage`, in its order; raises MalformedBinary.

    GCC writes a column after the line number, and `dynamic,bounded` for a frame with a
    known bound.
    """
    text = _COLUMN.sub(r"\1:", data.decode("utf-8", "replace")).replace(
        "dynamic,bounded", "dynamic"
    )
    return tuple(Row(name, size) for name, size in stack_usage_rows(text))


def frames_of(
    functions: Sequence[Symbol],
    rows: Sequence[Row],
    texts: Mapping[str, str],
    is_own: bool,
) -> dict[str, int]:
    """Return function → bytes of its frame.

    A function whose line cannot be told from others is missing.

    Args:
        functions: the function symbols of the object.
        rows: the lines for the object, or for all files that are linked to it.
        texts: as `bot.readers.demangling.demangled` gives them.
        is_own: whether the rows are those of one compile that made just this object,
            so that their order counts.
    """
    frames = dict[str, int]()
    names = {function.name for function in functions}
    for row in rows:
        if row.name in names:
            frames[row.name] = max(row.frame_bytes, frames.get(row.name, 0))
    frames |= _frames_by_source_name(
        [function for function in functions if function.name not in frames],
        rows=[row for row in rows if row.name not in names],
        texts=texts,
        is_own=is_own,
    )
    for name in names:
        whole = name.partition(COLD)[0]
        if COLD in name and name not in frames and whole in frames:
            frames[name] = frames[whole]
    return frames


def _frames_by_source_name(
    functions: Iterable[Symbol],
    rows: Iterable[Row],
    texts: Mapping[str, str],
    is_own: bool,
) -> dict[str, int]:
    """Return the frames of functions that rows call by their names in the source."""
    symbols_by_key = dict[str, list[Symbol]]()
    for function in functions:
        if COLD not in function.name:
            key = _key_of_symbol(function.name, texts)
            symbols_by_key.setdefault(key, []).append(function)
    rows_by_key = dict[str, list[Row]]()
    for row in rows:
        rows_by_key.setdefault(_key_of_row(row.name), []).append(row)
    frames = dict[str, int]()
    unnamed_symbols = list[Symbol]()
    for key, symbols in symbols_by_key.items():
        if key in rows_by_key:
            frames |= _assigned(
                symbols, rows=rows_by_key[key], texts=texts, is_own=is_own
            )
        else:
            unnamed_symbols += symbols
    if is_own:
        unnamed_rows = list[Row]()
        for key, rows_of_key in rows_by_key.items():
            if key not in symbols_by_key:
                unnamed_rows += rows_of_key
        frames |= _assigned(
            unnamed_symbols, rows=unnamed_rows, texts=texts, is_own=is_own
        )
    return frames


def fits(
    functions: Iterable[Symbol], rows: Iterable[Row], texts: Mapping[str, str]
) -> bool:
    """Return True if each function has a line with its name or its source's name."""
    row_names = {row.name for row in rows}
    keys = {_key_of_row(name) for name in row_names}
    for name in (function.name for function in functions):
        has_row = name in row_names or _key_of_symbol(name, texts) in keys
        if COLD not in name and not has_row:
            return False
    return True


def _assigned(
    symbols: Sequence[Symbol],
    rows: Sequence[Row],
    texts: Mapping[str, str],
    is_own: bool,
) -> dict[str, int]:
    """Return the frames of functions that share a name in their source.

    Empty if lines and functions cannot be paired.
    """
    places = sorted({(symbol.section, symbol.value) for symbol in symbols})
    if not rows or len(rows) < len(places):
        return {}
    if len({row.frame_bytes for row in rows}) == 1:
        return dict.fromkeys((symbol.name for symbol in symbols), rows[0].frame_bytes)
    if len(rows) > len(places):
        return {}
    by_parameters = _by_parameters(symbols, rows, texts)
    if by_parameters:
        return by_parameters
    sections = Counter(section for section, _ in places)
    if not is_own or (len(sections) > 1 and max(sections.values()) > 1):
        return {}
    in_order = dict(zip(places, rows, strict=True))
    frames = dict[str, int]()
    for symbol in symbols:
        frames[symbol.name] = in_order[symbol.section, symbol.value].frame_bytes
    return frames


def _by_parameters(
    symbols: Sequence[Symbol], rows: Sequence[Row], texts: Mapping[str, str]
) -> dict[str, int]:
    """Return the frames of overloads.

    Empty unless each line has parameters that just one function has, and the
    reverse.
    """
    lines = {_canonical(row.name): row.frame_bytes for row in rows}
    key_of_symbol = dict[str, tuple[tuple[str, ...], ...]]()
    places = dict[tuple[int, int], tuple[tuple[str, ...], ...]]()
    for symbol in symbols:
        key = _canonical(texts.get(symbol.name, symbol.name))
        key_of_symbol[symbol.name] = key
        places[symbol.section, symbol.value] = key
    if (
        len(lines) != len(rows)
        or len(set(places.values())) != len(places)
        or lines.keys() != set(key_of_symbol.values())
    ):
        return {}
    return {name: lines[key] for name, key in key_of_symbol.items()}


def _canonical(declaration: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each parameter in an order of their own.

    `const int*` and `int const*` are one type.
    """
    head = declaration.partition(" [with ")[0]
    text = parameters(head) or ""
    is_constant = head.rstrip().endswith("const")
    kinds = [_type_words(part) for part in text.split(",")]
    return (*kinds, ("const",) if is_constant else ())


def _type_words(text: str) -> tuple[str, ...]:
    identifiers = _WORD.findall(text)
    # GCC writes `long unsigned int` for `unsigned long`
    is_integer = not _LENGTHS.isdisjoint(identifiers)
    implied = _IMPLIED if is_integer else _IMPLIED - {"int"}
    return tuple(sorted(word for word in identifiers if word not in implied))


def _key_of_symbol(name: str, texts: Mapping[str, str]) -> str:
    if name.startswith(_INITIALIZER):
        return _INITIALIZER
    text = texts.get(name)
    if text:
        return _key(qualified_name(text))
    return name.partition(".")[0]


def _key_of_row(name: str) -> str:
    if _INITIALIZER_ROW.match(name) and name != ")":
        return _INITIALIZER
    if "(" not in name:
        return name.partition(".")[0]
    return _key(qualified_name(_GCC_LAMBDA.sub(f"{LAMBDA}}}", name)))


def _key(qualified: str) -> str:
    return _LAMBDA_CALL.sub(f"{LAMBDA}}}", qualified)
