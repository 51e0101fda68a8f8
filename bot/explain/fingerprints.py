"""Digest a program's executables: a snapshot keeps these digests of a model's IR."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.digest import written
from bot.core.json_text import counts_text
from bot.core.program import Program, Source
from bot.core.reading import ExecutableFacts, ProgramFacts, SourceText

_NAMES = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(%[A-Za-z0-9_$.-]+(?:#[0-9]+)?)')
_NO_OPERANDS = " : () -> "
_DYNAMIC = "-9223372036854775808"  # ShapedType::kDynamic
_SHAPE = re.compile(r"\b(tensor|vector|memref)<((?:(?:[0-9]+|\?)x)+)")
_ARRAY = re.compile(
    r"\b(static_(?:offsets|sizes|strides|output_shape)) = array<i64: ([-0-9, ]*)>"
)
_CONSTANTS = frozenset({"arith.constant", "complex.constant", "flow.tensor.constant"})


def describe(facts: ProgramFacts) -> Program:
    """Return the program as digests."""
    entries: dict[str, list[ExecutableFacts]] = {}
    for entry in facts.entry_points:
        entries.setdefault(entry.executable, []).append(entry)
    sources = []
    for text in facts.sources:
        entry_points = entries.get(text.executable, [])
        if entry_points and all(entry.bound for entry in entry_points):
            bound = _digest_of(entry.bound for entry in entry_points)
        else:
            bound = None
        sources.append(replace(fingerprint(text), bound=bound))
    phases = {}
    for phase, digest in facts.phases.items():
        phases[phase] = written(bytes.fromhex(digest))
    return Program(
        phases=phases,
        sources=tuple(sources),
        sites=facts.sites,
        operations=None if facts.operations is None else counts_text(facts.operations),
        places=dict(facts.places),
    )


def _digest_of(parts: Iterable[str]) -> str:
    return written(hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).digest())


class _Line(NamedTuple):
    """One line of an executable in generic form."""

    text: str  # with `%` for every name of a value
    names: tuple[str, ...]  # those names, in order
    defined: int  # how many of them the line defines; a pack `%0:2` is one name
    operation: str  # its name; empty for a block header or the line that closes regions


def _lines(generic: str) -> Iterator[_Line]:
    for line in filter(None, map(str.strip, generic.split("\n"))):
        names = tuple(filter(None, _NAMES.findall(line)))
        if names:
            text = _NAMES.sub(lambda match: "%" if match[1] else match[0], line)
        else:
            text = line
        if text.startswith("^"):
            yield _Line(text=text, names=names, defined=len(names), operation="")
        elif text.startswith("}"):
            yield _Line(text=text, names=names, defined=0, operation="")
        else:
            head, _, tail = text.partition('"')
            yield _Line(
                text=text,
                names=names,
                defined=head.count("%"),
                operation=tail.partition('"')[0],
            )


def _normalised(lines: Iterable[_Line]) -> Iterator[str]:
    """Yield lines without names, and the names as numbers in order of appearance."""
    numbers: dict[str, int] = {}
    for line in lines:
        for name in line.names[: line.defined]:
            numbers[name] = len(numbers)
        yield line.text
        numbered = []
        for name in line.names:
            value, mark, part = name.partition("#")
            number = numbers.setdefault(value, len(numbers))
            numbered.append(f"{number}{mark}{part}")
        yield ",".join(numbered)


def _structure(lines: Iterable[_Line]) -> Iterator[str]:
    """Yield the executable without values of constants, static shapes and offsets.

    Its names are numbered in order. Constants are written at each use: their order does
    not matter, nor whether uses of an equal value share one.
    """
    numbers: dict[str, int] = {}
    constants: dict[str, str] = {}
    for line in lines:
        if line.operation in _CONSTANTS and line.names:
            constants[line.names[0]] = (
                f"constant {(_without_shapes(line.text.rpartition(_NO_OPERANDS)[2]),)}"
            )
            continue
        yield _without_shapes(
            _ARRAY.sub(_array_kind, line.text) if "static_" in line.text else line.text
        )
        for name in line.names[: line.defined]:
            numbers[name] = len(numbers)
            constants.pop(name, None)
        for name in line.names:
            yield constants.get(name) or str(numbers.setdefault(name, len(numbers)))


def _array_kind(match: re.Match[str]) -> str:
    marks = []
    for value in match[2].split(","):
        marks.append("?" if value.strip() == _DYNAMIC else "_")
    return f"{match[1]} = [{','.join(marks)}]"


def _without_shapes(text: str) -> str:
    """Return a text without the static sizes of its shaped types."""
    return _SHAPE.sub(_shape_without_sizes, text)


def _shape_without_sizes(match: re.Match[str]) -> str:
    """Return `tensor<?x_xf32` for `tensor<?x8xf32`."""
    kinds = []
    for size in match[2][:-1].split("x"):
        kinds.append("?x" if size == "?" else "_x")
    return f"{match[1]}<{''.join(kinds)}"


def fingerprint(text: SourceText) -> Source:
    """Return the digests of an executable."""
    lines = list(_lines(text.generic))
    return Source(
        text.executable, _digest_of(_normalised(lines)), _digest_of(_structure(lines))
    )
