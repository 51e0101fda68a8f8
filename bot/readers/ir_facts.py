"""Read the IR worker's answers as checked values.

They are the output of a process that ran foreign code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from bot.core.json_text import decoded
from bot.core.mappings import known_values
from bot.core.program import HASHED_PHASES
from bot.core.reading import ProgramFacts
from bot.core.record import Count, Name, Record
from bot.errors import InputError, MalformedBinary
from bot.readers.ir_worker.ir_component import COMPONENT_CHARACTERS
from bot.readers.ir_worker.ir_kinds import KINDS

_WHERE = "program IR"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TENSOR = re.compile(r"tensor<((?:(?:\d{1,15}|\?)x)*)([A-Za-z]\w*)>")
_SCALAR = re.compile(r"[a-z]+\d*")
_INTEGER = re.compile(r"[su]?i(\d{1,3})")
_FLOAT = re.compile(r"b?f(\d{1,3})(E\dM\d\w*)?")
_Answer = TypeVar("_Answer", bound=Record)


class _Allocas(Record, frozen=True):
    functions: dict[Name, Count | None]


class _Strategies(Record, frozen=True):
    functions: dict[Name, Name]


class Function(Record, frozen=True):
    """A function that can be called from outside; types as the compiler writes them."""

    name: Name
    arguments: tuple[Name, ...]
    results: tuple[Name, ...]


class Parameter(Record, frozen=True):
    """A tensor that is no part of the artifact, but of a file given with it."""

    scope: str
    key: str
    type: Name


class CompiledFor(Record, frozen=True):
    """What executables are compiled for."""

    backend: Name
    format: Name  # `embedded-elf-x86_64`
    # of the processor, as LLVM names them: `+avx2`, where the target says
    features: tuple[str, ...]


class Interface(Record, frozen=True):
    """Everything that is needed to run a program, in the program's order."""

    functions: tuple[Function, ...]
    parameters: tuple[Parameter, ...]
    targets: tuple[CompiledFor, ...]
    remembers: bool  # True where a call changes what the next one sees
    # True where an integer may be the place of something in a tensor: one that is too
    # large would be outside of it
    picks: bool


def program_facts(answer: str) -> ProgramFacts:
    """Parse the answer to the request `program`, as JSON text.

    Raises MalformedBinary with the worker's own error, or with what is wrong in its
    answer.
    """
    facts = read_answer(answer, ProgramFacts)
    if problem := next(_wrong(facts), None):
        raise MalformedBinary(problem, where=_WHERE)
    return facts


def alloca_bytes(answer: str) -> dict[str, int]:
    """Return function → bytes from the answer to the request `allocas`.

    It is empty if no function allocates. Raises MalformedBinary, also if a function's
    allocations have no constant size.
    """
    sizes = read_answer(answer, _Allocas).functions
    known_sizes = known_values(sizes)
    if unknown := sizes.keys() - known_sizes.keys():
        raise MalformedBinary(
            f"the stack allocations of {min(unknown)} have no constant size",
            where=_WHERE,
        )
    return known_sizes


def strategies(answer: str) -> dict[str, str]:
    """Parse the answer to the request `strategies`.

    Return function → its configuration, one line. Raises MalformedBinary.
    """
    functions = read_answer(answer, _Strategies).functions
    if problem := next(_no_lines(functions.values()), None):
        raise MalformedBinary(problem, where=_WHERE)
    return functions


def interface(answer: str) -> Interface:
    """Parse the answer to the request `interface`; raises MalformedBinary."""
    return read_answer(answer, Interface)


def read_answer(answer: str | bytes, kind: type[_Answer]) -> _Answer:
    """Parse an answer, which has all fields of its kind.

    Raises MalformedBinary with the reason that the worker gives, or for a missing
    field.
    """
    try:
        fields = decoded(answer, dict[str, msgspec.Raw], _WHERE)
        if "error" in fields:
            raise MalformedBinary(
                decoded(bytes(fields["error"]), str, _WHERE)[:500], where=_WHERE
            )
        if missing := set(kind.__struct_fields__) - fields.keys():
            raise MalformedBinary(f"the answer has no {min(missing)}", where=_WHERE)
        return decoded(answer, kind, _WHERE)
    except InputError as error:
        raise MalformedBinary(error.what, where=error.where) from None


def _wrong(facts: ProgramFacts) -> Iterator[str]:
    """Yield a line for every fact that no program can have."""
    yield from _wrong_entries(facts)
    if facts.initializer_sites > facts.dispatch_sites:
        yield "more launches in initializers than in the whole program"
    yield from _no_lines(site.entry_point for site in facts.sites)
    places = list[str]()
    for site in facts.sites:
        if site.component is not None:
            places.append(site.component)
    places += filter(None, facts.places)
    yield from _no_lines(places, COMPONENT_CHARACTERS)
    yield from _wrong_families(facts)


def _wrong_entries(facts: ProgramFacts) -> Iterator[str]:
    entries = facts.entry_points
    for entry in entries:
        if entry.kind not in KINDS:
            yield f"entry point of unknown kind {entry.kind!r:.40}"
    if not facts.phases.keys() <= set(HASHED_PHASES):
        yield f"not digests of phases: {sorted(facts.phases)!r:.40}"
    digests = [(entry.bound, "an entry point") for entry in entries]
    digests += [(digest, "a phase") for digest in facts.phases.values()]
    for digest, label in digests:
        if not _DIGEST.fullmatch(digest):
            yield f"{label} has no digest: {digest!r:.40}"
    names = {(entry.executable, entry.entry_point) for entry in entries}
    if len(names) != len(entries):
        yield "an entry point is listed twice"
    if len({executable for executable, _ in names}) > facts.executables:
        yield f"entry points of more than {facts.executables} executables"


def _wrong_families(facts: ProgramFacts) -> Iterator[str]:
    sources = {source.executable for source in facts.sources}
    if len(sources) != len(facts.sources):
        yield "the source of an executable is listed twice"
    members = list[str]()
    varying = list[str]()
    for family in facts.families or ():
        members += family.members
        varying += family.varying
    if len(set(members)) != len(members) or not sources.issuperset(members):
        yield (
            "an executable of a family is also in another family, or not in the program"
        )
    yield from _no_lines(varying)


def _no_lines(texts: Iterable[str], characters: int | None = None) -> Iterator[str]:
    """Yield texts that are empty, too long or not one line of printable text."""
    for text in texts:
        if (
            not text
            or not text.isprintable()
            or (characters and len(text) > characters)
        ):
            yield f"not a line of text: {text!r:.40}"


class Tensor(NamedTuple):
    """A type of the compiler's IR that is a tensor's or a number's."""

    # of the dimensions, None for one that is not fixed; none of them at all for a
    # tensor of one value
    sizes: tuple[int | None, ...]
    element: str  # `i8`, `si32`, `f32`, `bf16`, `index`
    is_scalar: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Return True if a dimension is not fixed."""
        return None in self.sizes

    def sized(self, dynamic: int) -> Tensor:
        """Return the type with every dimension that is not fixed made `dynamic`."""
        return self._replace(
            sizes=tuple(dynamic if size is None else size for size in self.sizes)
        )

    @property
    def size_bytes(self) -> int | None:
        """Return the tensor's size in a file.

        None if a dimension is not fixed, or if an element is not a plain
        number.
        """
        bits = self.bits
        if bits is None or self.is_dynamic:
            return None
        count = math.prod(size or 0 for size in self.sizes)
        if bits == 1:
            return count
        return -(-count * bits // 8)

    @property
    def is_float(self) -> bool:
        """Return True for floating point of any kind."""
        return _FLOAT.fullmatch(self.element) is not None

    @property
    def bits(self) -> int | None:
        """Return the bits of an element; None if it is not a plain number."""
        if self.element == "index":
            return 64
        match = _INTEGER.fullmatch(self.element) or _FLOAT.fullmatch(self.element)
        if match:
            return int(match[1])
        return None


def parsed(text: str) -> Tensor | None:
    """Return the type that the text names.

    None for any other type (a fence, a buffer, a tensor with an encoding).
    """
    if tensor := _TENSOR.fullmatch(text):
        sizes = tensor[1].split("x")[:-1]
        return Tensor(
            tuple(None if size == "?" else int(size) for size in sizes), tensor[2]
        )
    if _SCALAR.fullmatch(text):
        return Tensor((), text, is_scalar=True)
    return None
