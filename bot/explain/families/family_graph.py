"""An executable as a graph of operations, described without names and places; which of its operations compute."""

from __future__ import annotations

from collections.abc import Iterator

from bot.explain.families.family_views import CONSTANTS, value_of
from bot.explain.texts import Operation, Template, Text, split

_SCALAR = ("arith.", "math.", "complex.")
_STRUCTURED = ("linalg.", "iree_linalg_ext.")
_PLAIN = frozenset({"linalg.generic", "linalg.fill", "linalg.yield", "linalg.index", "iree_linalg_ext.yield"})
_ADDRESSING = frozenset({"arith.index_cast", "arith.index_castui"})
_ORDERED = frozenset({"indexing_maps", "operandSegmentSizes", "function_type", "sym_name"})


def is_scalar(operation: Operation) -> bool:
    """Computes on scalars (or elements), and not an address."""
    name = operation.name
    computes = name.startswith(_SCALAR) and name not in CONSTANTS and name not in _ADDRESSING
    return computes and "index" not in operation.tail.operand_types[:1]


def is_named(operation: Operation) -> bool:
    """A structured operation with a name of its own: `linalg.matmul`, not `linalg.generic` or a fill."""
    return operation.name.startswith(_STRUCTURED) and operation.name not in _PLAIN


def is_structured(operation: Operation) -> bool:
    """Has one block argument per operand, and a map for each where it has maps."""
    count = len(operation.block_arguments)
    return operation.name.startswith(_STRUCTURED) and 0 < count == len(operation.operands)


def element_of(operation: Operation) -> str:
    """The element type that a scalar operation works on."""
    types = operation.tail.operand_types or operation.tail.result_types
    return types[0] if types else "?"


def maps_of(operation: Operation) -> tuple[str, ...]:
    """The indexing map of each operand; "" where the operation has none."""
    text = operation.attribute("indexing_maps")
    maps = split(text[1:-1]) if text.startswith("[") else ()
    return maps if len(maps) == len(operation.operands) else ("",) * len(operation.operands)


def unordered(template: Template) -> str:
    """A line without anything that depends on the order of operands."""
    attributes = sorted(f"{key}={value}" for key, value in template.attributes if key not in _ORDERED)
    return f"{template.name}{attributes}{sorted(template.operand_types)}{template.result_types}"


def container(operation: Operation) -> str:
    """An operation without its operands: a structured one may have an input more."""
    attributes = [f"{key}={value}" for key, value in operation.template.attributes if key not in _ORDERED]
    types = () if operation.block_arguments else operation.tail.operand_types
    return f"{operation.name}{attributes}{types}{operation.tail.result_types}"


def children(text: Text, index: int) -> list[int]:
    """Indices of all operations inside the one at `index`."""
    inside, members = {index}, []
    for at in range(index + 1, len(text.operations)):
        if text.operations[at].parent not in inside:
            break
        inside.add(at)
        members.append(at)
    return members


Edge = tuple[str, str, str]


def edges(text: Text) -> Iterator[tuple[Edge, int, int]]:
    """Who feeds whom: source, consumer and place as texts, with the indices of both operations (-1: none)."""
    sources: dict[str, tuple[str, int]] = {}
    for at, operation in enumerate(text.operations):
        maps, user = maps_of(operation), container(operation)
        loose = bool(operation.block_arguments)
        for position, name in enumerate(operation.operands):
            source, origin = sources.get(name, ("?", -1))
            yield (source, user, maps[position] if loose else str(position)), origin, at
        constant = operation.name in CONSTANTS
        for name in operation.results:
            sources[name] = (operation.template.text, -1) if constant else (user, at)
        places = maps if is_structured(operation) else ("",) * len(operation.block_arguments)
        for (name, type_), place in zip(operation.block_arguments, places, strict=True):
            sources[name] = (f"in {type_} {place}", -1)


def spoken(text: Text, operation: Operation) -> str:
    """An operation and its operands for people: `arith.subf (f32) of arith.addf and block argument 1`."""
    known: dict[str, str] = {}
    for one in text.operations:
        said = f"constant {value_of(one.template)}" if one.name in CONSTANTS else one.name
        known.update(dict.fromkeys(one.results, said))
        kind = "block argument" if one.parent >= 0 else "argument"
        known.update({name: f"{kind} {at}" for at, (name, _) in enumerate(one.block_arguments)})
        if one is operation:
            break
    operands = " and ".join(known.get(name, "?") for name in operation.operands)
    return f"{operation.name} ({element_of(operation)}) of {operands}"
