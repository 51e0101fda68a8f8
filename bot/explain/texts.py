"""The IR text of a dispatch as operations, and what of it says its precision."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec.structs import replace

from bot.core.json_text import canonical, decoded
from bot.core.program import Program
from bot.core.snapshot_json import cut_program, is_whole, name_of, short_program
from bot.errors import InputError

_NAMES = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(%[A-Za-z0-9_$.-]+(?:#[0-9]+)?)')
_PACK = re.compile(r"^%:([0-9]{1,4}) = ")
_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_SKIP = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|->|[<>]=|[()\[\]{}<>,]')


class Unreadable(ValueError):
    """A text that is not the generic form as known here; never leaves this room."""


@dataclass(frozen=True, slots=True)
class Template:
    """One line without its SSA names.

    Attributes:
        text: the line with `%` for every name.
        name: the operation's name; "" for a block header or the line that closes regions.
        results: how many SSA names the line defines (a pack `%0:2` is one name).
        attributes: key → text, properties and discardable ones.
        operand_types, result_types: empty on a line that opens regions: its closing line has them.
        opens, closes: whether a region begins or ends here.
        block_types: of a block header, its arguments' types; None elsewhere.
    """

    text: str
    name: str = ""
    results: int = 0
    attributes: tuple[tuple[str, str], ...] = ()
    operand_types: tuple[str, ...] = ()
    result_types: tuple[str, ...] = ()
    opens: bool = False
    closes: bool = False
    block_types: tuple[str, ...] | None = None


@dataclass(slots=True)
class Operation:
    """One operation of an executable.

    Attributes:
        template: its (first) line.
        tail: the template of its closing line; the same as `template` where it has no region.
        operands, results: SSA names, `%0#1` for the second of a pack.
        parent: index of the operation around it, -1 at the top.
        block_arguments: name and type, over all its blocks.
    """

    template: Template
    tail: Template
    operands: tuple[str, ...]
    results: tuple[str, ...]
    parent: int
    block_arguments: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of the operation, with its dialect."""
        return self.template.name

    def attribute(self, key: str) -> str:
        """Text of an attribute, "" without it."""
        return next((text for name, text in self.template.attributes + self.tail.attributes if name == key), "")


@dataclass(frozen=True, slots=True)
class Text:
    """One executable's functions: its lines (template, SSA names in order) and the operations they make."""

    lines: tuple[tuple[Template, tuple[str, ...]], ...]
    operations: tuple[Operation, ...]


def _end(text: str, start: int) -> int:
    """Position after the bracket that closes the one at `start`."""
    stack: list[str] = []
    for match in _SKIP.finditer(text, start):
        token = match.group()
        if token in _OPENING:
            stack.append(_OPENING[token])
        elif token in (")", "]", "}", ">"):
            if not stack or stack.pop() != token:
                break
            if not stack:
                return match.end()
    raise Unreadable("unbalanced brackets")


def split(text: str) -> tuple[str, ...]:
    """The parts between top-level commas, stripped; () of nothing."""
    parts: list[str] = []
    depth = start = 0
    for match in _SKIP.finditer(text):
        token = match.group()
        if token in _OPENING:
            depth += 1
        elif token in (")", "]", "}", ">"):
            depth -= 1
        elif token == "," and depth == 0:  # noqa: S105 - a token of the text, not a secret
            parts.append(text[start : match.start()].strip())
            start = match.end()
    parts.append(text[start:].strip())
    return tuple(parts) if parts != [""] else ()


def _attributes(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (part.partition(" = ") for part in split(text))
    return tuple((key.strip(), value) for key, _, value in pairs)


def _types(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operand and result types of ` : (a, b) -> c`."""
    if not text.startswith(" : ("):
        raise Unreadable("no type")
    end = _end(text, 3)
    if not text.startswith(" -> ", end):
        raise Unreadable("no result type")
    results = text[end + 4 :].strip()
    inner = results[1:-1] if results.startswith("(") and _end(results, 0) == len(results) else results
    return split(text[4 : end - 1]), split(inner)


def _rest(text: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Successors and attributes from the front of `text`, and what follows them."""
    attributes: tuple[tuple[str, str], ...] = ()
    for opening, strip in (("[", 0), (" <{", 2), (" {", 1)):
        if text.startswith(opening):
            end = _end(text, len(opening) - len(opening.lstrip()))
            attributes += _attributes(text[len(opening) : end - strip]) if strip else (("successors", text[:end]),)
            text = text[end:]
    return attributes, text


def _template(text: str) -> Template:
    if text.startswith("^"):
        types = split(text[text.find("(") + 1 : text.rfind(")")]) if "(" in text else ()
        return Template(text, block_types=tuple(part.partition(": ")[2] for part in types))
    if text == "}, {":
        return Template(text, opens=True, closes=True)
    if text.startswith("})"):
        attributes, rest = _rest(text[2:])
        return Template(text, "", 0, attributes, *_types(rest), closes=True)
    head, quote, _ = text.partition('"')
    pack = _PACK.match(head)
    results = int(pack.group(1)) if pack else head.count("%")
    close = text.find('"', len(head) + 1)
    name = text[len(head) + 1 : close]
    if not quote or close < 0 or not text.startswith("(", close + 1):
        raise Unreadable("no operation")
    attributes, rest = _rest(text[_end(text, close + 1) :])
    if rest == " ({":
        return Template(text, name, results, attributes, opens=True)
    operands, types = _types(rest)
    return Template(text, name, results, attributes, operands, types)


def _results(template: Template, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if _PACK.match(template.text) and names:
        return tuple(f"{names[0]}#{index}" for index in range(template.results)), names[1:]
    return names[: template.results], names[template.results :]


@dataclass(slots=True)
class _Building:
    operations: list[Operation] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    def add(self, template: Template, names: tuple[str, ...]) -> None:
        if template.block_types is not None:
            if not self.open or len(names) != len(template.block_types):
                raise Unreadable("a block outside of a region")
            self.operations[self.open[-1]].block_arguments += zip(names, template.block_types, strict=True)
        elif template.closes:
            if not self.open:
                raise Unreadable("a region ends that never began")
            if not template.opens:
                self.operations[self.open.pop()].tail = template
        else:
            results, operands = _results(template, names)
            parent = self.open[-1] if self.open else -1
            if template.opens:
                self.open.append(len(self.operations))
            self.operations.append(Operation(template, template, operands, results, parent))


class Reader:
    """Reads texts; templates, and the texts themselves, are taken apart once."""

    def __init__(self) -> None:
        self._templates: dict[str, Template] = {}
        self._texts: dict[str, Text | None] = {}

    def template(self, text: str) -> Template:
        """The parts of a line without names; raises `Unreadable`."""
        template = self._templates.get(text)
        if template is None:
            template = self._templates[text] = _template(text)
        return template

    def read(self, text: str) -> Text | None:
        """The operations of one executable; None where the text is not understood, whatever it is."""
        if text not in self._texts:
            self._texts[text] = self._read(text)
        return self._texts[text]

    def _read(self, text: str) -> Text | None:
        lines: list[tuple[Template, tuple[str, ...]]] = []
        building = _Building()
        try:
            for line in text.split("\n"):
                if not (stripped := line.strip()):
                    continue
                names = tuple(name for name in _NAMES.findall(stripped) if name)
                if names:
                    stripped = _NAMES.sub(lambda each: "%" if each[1] else each[0], stripped)
                template = self.template(stripped)
                building.add(template, names)
                lines.append((template, names))
        except Unreadable:
            return None
        return Text(tuple(lines), tuple(building.operations)) if building.operations and not building.open else None


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
