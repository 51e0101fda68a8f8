"""How exactly two programs can be compared, and results that are kept for the objects they were worked out of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from bot.core.json_text import canonical, counts_text, decoded
from bot.core.program import Program, Source
from bot.core.reading import ExecutableFacts, ProgramFacts, SourceText
from bot.core.snapshot import SUM_MODULUS, cut_program, is_whole, name_of, short_program, written
from bot.errors import InputError

# Results kept for the objects they were worked out of.
#
# Cells of one model share their program, so that what is read out of it alone is the same on all targets.

_Result = TypeVar("_Result")
KEPT = 64  # Results; cells come model by model, so that older ones are not asked for again


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


# What a snapshot keeps of one model's IR: the digests of its executables.

_NAMES = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(%[A-Za-z0-9_$.-]+(?:#[0-9]+)?)')
_PACK = re.compile(r"^%:([0-9]{1,4}) = ")
_TYPE = re.compile(r"[^,<>()]+(?:<[^<>]*>)?")
_NO_OPERANDS = " : () -> "
_DYNAMIC = "-9223372036854775808"  # ShapedType::kDynamic
_SHAPE = re.compile(r"\b(tensor|vector|memref)<((?:(?:[0-9]+|\?)x)+)")
_ARRAY = re.compile(r"\b(static_(?:offsets|sizes|strides|output_shape)) = array<i64: ([-0-9, ]*)>")
_CONSTANTS = frozenset({"arith.constant", "complex.constant", "flow.tensor.constant"})
_ADDRESSING = frozenset({"arith.index_cast", "arith.index_castui"})
_PLAIN = frozenset({"linalg.generic", "linalg.fill", "linalg.yield", "linalg.index", "iree_linalg_ext.yield"})


def describe(facts: ProgramFacts) -> Program:
    """The program as digests."""
    entries: dict[str, list[ExecutableFacts]] = {}
    for entry in facts.entry_points:
        entries.setdefault(entry.executable, []).append(entry)
    sources = []
    for text in facts.sources:
        own = entries.get(text.executable, [])
        bound = _digest_of(one.bound for one in own) if own and all(one.bound for one in own) else ""
        sources.append(replace(fingerprint(text), bound=bound))
    return Program(
        phases=dict(facts.phases),
        linalg_ops_before=facts.linalg_ops_before,
        sources=tuple(sources),
        sites=facts.sites,
        arguments=facts.arguments,
        operations=None if facts.operations is None else counts_text(facts.operations),
        places=dict(facts.places),
    )


def shown_texts(facts: ProgramFacts, program: Program) -> dict[str, str]:
    """Source digest → the executable's IR for people; the first one where several are equal."""
    texts: dict[str, str] = {}
    for text, source in zip(facts.sources, program.sources, strict=True):
        texts.setdefault(source.source, text.shown)
    return texts


def _digest_of(parts: Iterable[str]) -> str:
    return written(_sha256("\n".join(parts)))


def _sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


class _Line(NamedTuple):
    """One line of an executable in generic form."""

    text: str  # with `%` for every name of a value
    names: tuple[str, ...]  # those names, in order
    defined: int  # how many of them the line defines; `results` how many values (a pack `%0:2` is one name)
    results: int
    operation: str  # its name; empty for a block header or the line that closes regions


def _lines(generic: str) -> Iterator[_Line]:
    for line in filter(None, map(str.strip, generic.split("\n"))):
        names = tuple(filter(None, _NAMES.findall(line)))
        text = _NAMES.sub(lambda each: "%" if each[1] else each[0], line) if names else line
        if text.startswith("^"):
            yield _Line(text, names, len(names), 0, "")
        elif text.startswith("}"):
            yield _Line(text, names, 0, 0, "")
        else:
            head, _, rest = text.partition('"')
            pack = _PACK.match(head)
            results = int(pack[1]) if pack else head.count("%")
            yield _Line(text, names, 1 if pack else results, results, rest.partition('"')[0])


def _normalised(lines: Iterable[_Line]) -> Iterator[str]:
    """Lines without names, and the names as numbers in order of appearance."""
    numbers: dict[str, int] = {}
    for line in lines:
        for name in line.names[: line.defined]:
            numbers[name] = len(numbers)
        yield line.text
        parted = (name.partition("#") for name in line.names)
        yield ",".join(f"{numbers.setdefault(value, len(numbers))}{mark}{part}" for value, mark, part in parted)


def _structure(lines: Iterable[_Line]) -> Iterator[str]:
    """The executable without values of constants, static shapes and offsets, its names numbered in order.

    Constants are written where they are used: sharing one among uses of equal value, and their order, say nothing.
    """
    numbers: dict[str, int] = {}
    constants: dict[str, str] = {}
    for line in lines:
        if line.operation in _CONSTANTS and line.names:
            constants[line.names[0]] = f"constant {(_without_shapes(line.text.rpartition(_NO_OPERANDS)[2]),)}"
            continue
        yield _without_shapes(_ARRAY.sub(_array_kind, line.text) if "static_" in line.text else line.text)
        for name in line.names[: max(line.defined, line.results)]:
            numbers[name] = len(numbers)
            constants.pop(name, None)
        for name in line.names:
            yield constants.get(name) or str(numbers.setdefault(name, len(numbers)))


def _array_kind(match: re.Match[str]) -> str:
    marks = ",".join("?" if value.strip() == _DYNAMIC else "_" for value in match[2].split(","))
    return f"{match[1]} = [{marks}]"


def _without_shapes(text: str) -> str:
    """Shaped types as rank, element type and which dimensions are dynamic."""
    return _SHAPE.sub(
        lambda match: f"{match[1]}<{''.join('?x' if size == '?' else '_x' for size in match[2][:-1].split('x'))}", text
    )


def _computed(line: _Line) -> str:
    """What the line adds to the sum of operations: a named operation, or one on scalars with their type; else empty."""
    name = line.operation
    if name.startswith(("linalg.", "iree_linalg_ext.")):
        return "" if name in _PLAIN else name
    if not name.startswith(("arith.", "math.", "complex.")) or name in _CONSTANTS or name in _ADDRESSING:
        return ""
    operands, _, results = line.text.rpartition(" : (")[2].partition(") -> ")
    element = _TYPE.match(operands or results)
    return "" if operands.partition(",")[0] == "index" else f"{name} {element[0] if element else '?'}"


def fingerprint(text: SourceText) -> Source:
    """The digests of an executable."""
    lines = list(_lines(text.generic))
    # The low half of each hash is the beginning of its SHA-256: the low half of the sum is what baselines always had.
    hashes = (_sha256(word) for word in map(_computed, lines) if word)
    return Source(
        text.executable,
        _digest_of(_normalised(lines)),
        _digest_of(_structure(lines)),
        sum(int.from_bytes(each[4:8] + each[:4], "big") for each in hashes) % SUM_MODULUS,
    )
