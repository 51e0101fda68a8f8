"""What a program takes and gives, as the IR worker tells it, with its types taken apart."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from bot.core.record import Count, Name, Record
from bot.readers.ir_facts import read_answer

_TENSOR = re.compile(r"tensor<((?:(?:\d{1,15}|\?)x)*)([A-Za-z]\w*)>")
_SCALAR = re.compile(r"[a-z]+\d*")
_INTEGER = re.compile(r"[su]?i(\d{1,3})")
_FLOAT = re.compile(r"b?f(\d{1,3})(E\dM\d\w*)?")


class Tensor(NamedTuple):
    """A type of the compiler's IR that is a tensor's or a number's.

    Attributes:
        sizes: of the dimensions, None for one that is not fixed; none of them at all for a tensor of one value.
        element: `i8`, `si32`, `f32`, `bf16`, `index`.
    """

    sizes: tuple[int | None, ...]
    element: str
    is_scalar: bool = False

    @property
    def is_dynamic(self) -> bool:
        """True where a dimension is not fixed."""
        return None in self.sizes

    def sized(self, dynamic: int) -> Tensor:
        """The type with every dimension that is not fixed made `dynamic`."""
        return self._replace(sizes=tuple(dynamic if size is None else size for size in self.sizes))

    @property
    def size_bytes(self) -> int | None:
        """As it lies in a file; None where a dimension is not fixed, or for an element that is no plain number."""
        bits = self.bits
        if bits is None or self.is_dynamic:
            return None
        count = math.prod(size or 0 for size in self.sizes)
        return count if bits == 1 else -(-count * bits // 8)

    @property
    def is_float(self) -> bool:
        """True for floating point of any kind."""
        return _FLOAT.fullmatch(self.element) is not None

    @property
    def bits(self) -> int | None:
        """Bits of an element; None for one that is no plain number."""
        if self.element == "index":
            return 64
        match = _INTEGER.fullmatch(self.element) or _FLOAT.fullmatch(self.element)
        return int(match[1]) if match else None


def parsed(text: str) -> Tensor | None:
    """The type that the text names; None for any other (a fence, a buffer, a tensor with an encoding)."""
    if tensor := _TENSOR.fullmatch(text):
        sizes = tensor[1].split("x")[:-1]
        return Tensor(tuple(None if size == "?" else int(size) for size in sizes), tensor[2])
    return Tensor((), text, is_scalar=True) if _SCALAR.fullmatch(text) else None


class Function(Record, frozen=True):
    """A function that can be called from outside; types as the compiler writes them.

    Attributes:
        extents: of each argument how many values from 0 on may be given, as they are places in a tensor; None where all
            that it has may be.
    """

    name: Name
    arguments: tuple[Name, ...]
    results: tuple[Name, ...]
    extents: tuple[Count | None, ...]


class Parameter(Record, frozen=True):
    """A tensor that is no part of the artifact, but of a file given with it.

    Attributes:
        extent: as in a function's `extents`.
    """

    scope: str
    key: str
    type: Name
    extent: Count | None


class CompiledFor(Record, frozen=True):
    """What executables are compiled for.

    Attributes:
        format: of executables, `embedded-elf-x86_64`.
        features: of the processor, as LLVM names them: `+avx2`, where the target says.
    """

    backend: Name
    format: Name
    features: tuple[str, ...]


class _Probed(Record, frozen=True):
    probes: Count


class Interface(Record, frozen=True):
    """All that somebody who wants to run a program has to know of it, in the program's order.

    Attributes:
        module: what other modules call it.
        remembers: True where a call changes what the next one sees.
    """

    module: Name
    functions: tuple[Function, ...]
    parameters: tuple[Parameter, ...]
    targets: tuple[CompiledFor, ...]
    remembers: bool


def interface(answer: str) -> Interface:
    """The answer to the request `interface`, as JSON text; raises MalformedBinary."""
    return read_answer(answer, Interface)


def probes(answer: str) -> int:
    """How many results of dispatches the module gives, by the answer to `probe`; raises MalformedBinary."""
    return read_answer(answer, _Probed).probes
