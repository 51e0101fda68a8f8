"""Which dimensions of a model can be constrained: its entry function, and the sizes that its inputs have.

Imports the standard library and the reader of IR only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker.ir_kinds import collect
else:
    from ir_kinds import collect

DYNAMIC = "?"
_TORCH = re.compile(r"!torch\.vtensor<\[([\d?,]+)\],((?:si|ui|i)\d+|b?f\d\w*)>")
_BUILTIN = re.compile(r"tensor<((?:(?:\d+|\?)x)+)((?:si|ui|i)\d+|b?f\d\w*|index|complex<\w+>)>")
_UNKNOWN = re.compile(r"[?*]|tensor$")
"""In a type of another form: it has dynamic dimensions, or may have some."""
_SIGN = re.compile(r"^[su](?=i)")


class Refused(Exception):
    """The model is not one of which this can be said; the text is the reason."""


@dataclass(frozen=True)
class Shape:
    """The type of a tensor; sizes and element as they are written (`?`, `si32`)."""

    is_torch: bool
    sizes: tuple[str, ...]
    element: str

    @property
    def text(self) -> str:
        """The type."""
        return f"!torch.vtensor<[{','.join(self.sizes)}],{self.element}>" if self.is_torch else self.builtin

    @property
    def builtin(self) -> str:
        """The builtin type for it, whose integers have no sign where this one is torch's."""
        element = _SIGN.sub("", self.element) if self.is_torch else self.element
        return f"tensor<{''.join(f'{size}x' for size in self.sizes)}{element}>"


@dataclass(frozen=True)
class Input:
    """An input of the entry function that has dynamic dimensions.

    Attributes:
        dynamic: places of the dimensions that are to be constrained.
    """

    index: int
    value: Any
    shape: Shape
    dynamic: tuple[int, ...]

    def fixed(self, size: int) -> Shape:
        """The input's type where each dimension that is constrained has this size."""
        sizes = (str(size) if place in self.dynamic else old for place, old in enumerate(self.shape.sizes))
        return replace(self.shape, sizes=tuple(sizes))


def shape_of(text: str) -> Shape | None:
    """None for a type of another form."""
    if torch := _TORCH.fullmatch(text):
        return Shape(True, tuple(torch[1].split(",")), torch[2])
    if builtin := _BUILTIN.fullmatch(text):
        return Shape(False, tuple(builtin[1].split("x")[:-1]), builtin[2])
    return None


def entry(ir: Any, module: Any) -> tuple[Any, list[Input]]:
    """The function that others call, and its inputs that have dynamic dimensions; raises Refused without any."""
    functions = []
    for op in collect(ir, module, {"func.func", "util.func"}):
        visibility = op.attributes["sym_visibility"].value if "sym_visibility" in op.attributes else "public"
        if visibility != "private" and len(op.regions[0].blocks) > 0:
            functions.append(op)
    if len(functions) != 1:
        raise Refused(f"the model has {len(functions)} functions that others can call, and not one")
    inputs = []
    for index, value in enumerate(functions[0].regions[0].blocks[0].arguments):
        shape = shape_of(str(value.type))
        if shape is None and _UNKNOWN.search(str(value.type)):
            raise Refused(f"input {index} is a {value.type}, a form of which no dimension can be constrained")
        dynamic = tuple(place for place, size in enumerate(shape.sizes if shape else ()) if size == DYNAMIC)
        if shape and dynamic:
            inputs.append(Input(index, value, shape, dynamic))
    if not inputs:
        raise Refused("no input of the model has a dynamic dimension")
    return functions[0], inputs


def chosen(inputs: Sequence[Input], dimensions: Sequence[Sequence[int]] | None) -> list[Input]:
    """The inputs with the dimensions that were asked for alone; all where none were."""
    if dimensions is None:
        return list(inputs)
    dynamic = [(one.index, place) for one in inputs for place in one.dynamic]
    wanted = {(index, place) for index, place in dimensions}
    if strange := sorted(wanted - set(dynamic)):
        known = ", ".join(f"{place} of input {index}" for index, place in dynamic)
        index, place = strange[0]
        raise Refused(f"dimension {place} of input {index} is not dynamic; these are: {known}")
    narrowed = [
        replace(one, dynamic=tuple(each for each in one.dynamic if (one.index, each) in wanted)) for one in inputs
    ]
    return [one for one in narrowed if one.dynamic]
