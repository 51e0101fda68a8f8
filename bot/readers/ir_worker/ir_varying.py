"""Describe what varies among executables of one structure.

These are constants, offsets and static shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest

from .ir_lines import line_of, shortened
from .ir_members import (
    DYNAMIC,
    FUNCTION,
    Member,
    Slot,
    sizes_in,
)

IDENTICAL = "nothing: their functions are identical"  # `bot.core.program.IDENTICAL`
_VALUE_CHARACTERS = 40
_FOLLOWING = ("static_sizes", "static_output_shape")
"""Arrays that follow from the types of operands and results."""
Draft = tuple[str, Sequence[Member], list[str]]


def of_one_structure(group: Sequence[Member]) -> Draft:
    """Return a family with the loosest kind that varies.

    It has a line for each thing that varies, in turns of constants, offsets and shapes.
    """
    columns = list(_varying_columns(group))
    kinds = {slots[0].kind for slots in columns}
    if not kinds:
        return "constants", group, [IDENTICAL]
    is_shaped = bool(kinds & {"dimension", "fixed", "type"})
    # values → what has them. What repeats how another varies, such as shapes inside an
    # argument's, is left out.
    shapes = dict[tuple[str, ...], str]()
    arrays = dict[tuple[str, ...], str]()
    constants = dict[tuple[str, ...], str]()
    for slots in columns:
        slot = slots[0]
        values = tuple(map(_text_of, slots))
        if slot.constant is not None:
            if slot.kind == "type":  # the constant's value says its type
                continue
            type_ = str(slot.constant.results[0].type)
            if is_shaped and type_ == "index":
                lines = shapes
            else:
                lines = constants
            lines.setdefault(values, f"{type_} constant of {slot.op.name}")
        elif not isinstance(slot.place[0], str):
            shapes.setdefault(values, _owner(slot))
        elif slot.place[0] not in _FOLLOWING:
            arrays.setdefault(values, _owner(slot))
    if is_shaped:
        return "static-shapes", group, _lines_in_turns(shapes, constants, arrays)
    kind = "offsets" if "offset" in kinds else "constants"
    return kind, group, _lines_in_turns(arrays, constants)


def _varying_columns(group: Sequence[Member]) -> Iterator[tuple[Slot, ...]]:
    """Yield the slots of all members at each place where their values differ."""
    for slots in zip(*(member.function_slots for member in group), strict=True):
        if len({slot.value for slot in slots}) > 1:
            yield slots


def _lines_in_turns(*labels_by_kind: Mapping[tuple[str, ...], str]) -> list[str]:
    """Return a line of each kind, then the next line of each kind, and so on."""
    by_kind = [_varying_lines(labels) for labels in labels_by_kind]
    in_turns = dict.fromkeys(chain.from_iterable(zip_longest(*by_kind)))
    return [line for line in in_turns if line]


def _varying_lines(labels: Mapping[tuple[str, ...], str]) -> list[str]:
    """Return a line for each label, with its values shortened."""
    lines = []
    for values, label in labels.items():
        texts = [shortened(value, _VALUE_CHARACTERS) for value in values]
        lines.append(line_of(label, texts, len(set(values))))
    return lines


def _text_of(slot: Slot) -> str:
    """Return the text of a slot.

    It is the constant's value without its type, the whole array, or the whole
    shape.
    """
    if slot.constant is not None:
        return slot.value.removesuffix(f" : {slot.constant.results[0].type}")
    owner = slot.place[0]
    if isinstance(owner, str):
        entries = map(str, slot.op.attributes[owner])
        return f"[{', '.join(entries)}]".replace(str(DYNAMIC), "?")
    return "x".join(sizes_in(str(owner.type))) or slot.value


def _owner(slot: Slot) -> str:
    if isinstance(slot.place[0], str):
        return f"{slot.place[0]} of {slot.op.name}"
    number = getattr(slot.place[0], "arg_number", None)
    if number is None:
        return f"result of {slot.op.name}"
    if slot.op.name == FUNCTION:
        return f"argument {number}"
    return f"block argument {number} of {slot.op.name}"
