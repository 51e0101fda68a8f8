"""What a program binds to an entry point, taken apart: the offsets of its buffers, what it may assume, and the rest.

By the text of one function of the `stream` phase, in generic form. Imports the standard library only, for the reason
that `ir_kinds` gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = re.compile(r"%[A-Za-z0-9_$.-]+(?:#\d+)?")
_CONSTANT = re.compile(r'(%\S+) = "arith\.constant"\(\) <\{value = (.*)\}> : \(\) -> \S+$')
_SUBSPAN = re.compile(r'= "stream\.binding\.subspan"\((%\S+), (%[^,)\s]+)')
_ASSUME = re.compile(r'(%[^\s:]+)(:\d+)? = "util\.assume\.int"\(([^)]*)\) (.*)$')
_AT_ONE_SITE = re.compile(r"#util\.int\.assumption<umin = (\d+), umax = \1(?:, udiv = (\d+))?>")
_CAST = re.compile(r'(%\S+) = "arith\.(?:index_castui|index_cast|extui)"\((%[^,)\s]+)\)')
_OFFSET = "offset"


def parts_of(function: str) -> tuple[str, str, str]:
    """The offsets of the buffers, the assumptions, and the rest of the function, as texts without SSA names.

    Constants stand where they are used: in which order a release lists them says nothing.
    """
    reader = _Reader([line.strip() for line in function.split("\n")])
    rest = "\n".join(reader.rest())
    return "\n".join(reader.offsets), "\n".join(reader.assumptions), rest


class _Reader:
    """Reads the lines of one function from first to last."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.offsets: list[str] = []
        self.assumptions: list[str] = []
        self._said: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._offset_only = _offset_only(lines)

    def rest(self) -> Iterator[str]:
        """All lines but constants and assumptions, without offsets; read it to the end for these."""
        for line in self.lines:
            if constant := _CONSTANT.match(line):
                self._said[constant[1]] = constant[2]
            elif assume := _ASSUME.match(line):
                self._assume(assume)
            else:
                subspan = _SUBSPAN.search(line)
                if subspan and not self._said.get(subspan[2], "%").startswith("%"):
                    start, end = subspan.span(2)
                    self.offsets.append(self._said[subspan[2]])
                    line = f"{line[:start]}{_OFFSET}{line[end:]}"
                yield _NAME.sub(lambda name: self._number(name[0]), line)

    def _assume(self, assume: re.Match[str]) -> None:
        """What follows uses the value itself, so that an assumption more or less is none of the rest."""
        operands = [part.strip() for part in assume[3].split(",")]
        results = [f"{assume[1]}#{number}" for number in range(len(operands))] if assume[2] else [assume[1]]
        self._said.update(zip(results, map(self._number, operands), strict=False))
        lists = assume[4].split("], [")
        for number, (name, listed) in enumerate(zip(results, lists, strict=False)):
            is_offset = name in self._offset_only
            lists[number] = _AT_ONE_SITE.sub(self._site_offset, listed) if is_offset else listed
        self.assumptions.append(f"{', '.join(map(self._number, operands))} {'], ['.join(lists)}")

    def _site_offset(self, match: re.Match[str]) -> str:
        """A known value with the divisor that follows from it is an offset, and nothing that the program assumes."""
        value, divisor = match[1], match[2]
        if divisor != (None if value == "0" else value):
            return match[0]
        self.offsets.append(value)
        return _OFFSET

    def _number(self, name: str) -> str:
        if name in self._said:
            return self._said[name]
        value, _, part = name.partition("#")
        number = self._numbers.setdefault(value, len(self._numbers))
        return f"%{number}#{part}" if part else f"%{number}"


def _offset_only(lines: list[str]) -> set[str]:
    """Names that nothing uses but offsets of buffers, and casts to them."""
    used: dict[str, set[str]] = {}
    for line in lines:
        head, equals, tail = line.partition(" = ")
        for name in _NAME.findall(tail if equals and head.startswith("%") else line):
            used.setdefault(name, set()).add(line)
    subspans = {line: match[2] for line in lines if (match := _SUBSPAN.search(line))}
    casts = {line: match[1] for line in lines if (match := _CAST.match(line))}
    offsets: set[str] = set()
    for name, users in reversed(used.items()):
        if all(subspans.get(line) == name or casts.get(line) in offsets for line in users):
            offsets.add(name)
    return offsets
