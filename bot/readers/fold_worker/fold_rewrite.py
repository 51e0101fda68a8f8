"""How executables become one: the first of them takes what varies as operands, and all sites launch that one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.fold_worker.fold_shapes import Shapes
    from bot.readers.ir_worker.ir_members import EXECUTABLE, LEVELS, Member, Slot, Unfit, inner
else:
    from fold_shapes import Shapes
    from ir_members import EXECUTABLE, LEVELS, Member, Slot, Unfit, inner

DISPATCH = "flow.dispatch"
_WORKLOAD, _ARGUMENTS, _DIMENSIONS = 0, 1, 2
"""Segments of the operands of a dispatch."""
_TENSOR_OF = "!iree_tensor_ext.dispatch.tensor<readonly:{}>"
_BOUND = re.compile(r"![\w.]+<\w+:(.+)>")
_LOAD = "iree_tensor_ext.dispatch.tensor.load"


@dataclass(frozen=True)
class Varying:
    """Slots that vary in the same way, which one operand takes the place of.

    Attributes:
        values: what each member has there, in the order of the group.
        slots: of the representative.
        attributes: the value that each member's site passes, as the attribute of a constant.
    """

    values: tuple[str, ...]
    type: Any
    slots: tuple[Slot, ...]
    attributes: tuple[Any, ...]
    is_shape: bool


def fold(ir: Any, module: Any, group: Sequence[Member]) -> list[str]:
    """Make the executables of a group one, in place; the types of the operands that its sites pass now.

    The compiler itself splits what is wider than 32 bits, and casts floats, for targets that take neither.

    Raises Unfit before anything was changed.
    """
    require_alike(group)
    sites = sites_of(ir, module, group)
    with module.context, ir.Location.unknown(module.context):
        varying = columns(ir, group)
        shapes = Shapes(ir, group[0], varying)
        shapes.check()
        places = argument_places(sites)
        Rewriting(ir, group[0], varying).representative(places, shapes)
        for at, member in enumerate(group):
            for op in sites[member.name]:
                _rewrite_site(ir, op, group[0], varying, at)
    for member in group[1:]:
        member.executable.erase()
    _require_agreement(ir, module, group[0])
    return [str(one.type) for one in varying]


def require_alike(group: Sequence[Member]) -> None:
    """Raises Unfit where the executables are not two or more of one key at some level: their slots would not match."""
    if len({member.name for member in group}) < max(2, len(group)):
        raise Unfit("they are not two executables or more, each named once")
    if len({member.key(LEVELS["static-shapes"]) for member in group}) > 1:
        raise Unfit("they differ in more than constants, offsets and static dimensions")


def sites_of(ir: Any, module: Any, group: Sequence[Member]) -> Mapping[str, list[Any]]:
    """Member → its dispatch sites; raises Unfit where something else names a member."""
    wanted: dict[str, list[Any]] = {member.name: [] for member in group}
    for op in inner(module.operation):
        if op.name == DISPATCH:
            names = [ir.SymbolRefAttr(entry).value[0] for entry in op.attributes["entry_points"]]
            if len(names) == 1 and names[0] in wanted:
                wanted[names[0]].append(op)
            elif not wanted.keys().isdisjoint(names):
                raise Unfit("a site may launch one of several executables")
    return wanted


def argument_places(sites: Mapping[str, Sequence[Any]]) -> int:
    """How many operands each site passes to the function; raises Unfit where they disagree."""
    counts = {list(op.attributes["operandSegmentSizes"])[_ARGUMENTS] for ops in sites.values() for op in ops}
    if len(counts) > 1:
        raise Unfit("its sites pass different numbers of operands")
    if not counts or not all(sites.values()):
        raise Unfit("an executable is launched nowhere")
    return int(counts.pop())


def columns(ir: Any, group: Sequence[Member]) -> list[Varying]:
    """What varies in the group, each way of varying once."""
    ways: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for at, slots in enumerate(zip(*(member.slots for member in group), strict=True)):
        # An index is taken without its type, so that a constant and a dimension can be told equal.
        values = tuple(str(slot.value).removesuffix(" : index") for slot in slots)
        if len(set(values)) > 1:
            type_name = str(slots[0].constant.results[0].type) if slots[0].constant else "index"
            ways.setdefault((type_name, values), []).append(at)
    return [_varying(ir, group, values, places) for (_, values), places in ways.items()]


def _varying(ir: Any, group: Sequence[Member], values: tuple[str, ...], places: Sequence[int]) -> Varying:
    first = group[0].slots[places[0]]
    if first.constant is None:
        type_ = ir.IndexType.get()
        attributes = tuple(ir.IntegerAttr.get(type_, int(value)) for value in values)
    else:
        type_ = first.constant.results[0].type
        attributes = tuple(member.slots[places[0]].constant.attributes["value"] for member in group)
    slots = tuple(group[0].slots[at] for at in places)
    if str(type_).startswith("tensor") and "?" in str(type_):
        raise Unfit("a constant of dynamic shape")
    return Varying(values, type_, slots, attributes, any(slot.kind == "dimension" for slot in slots))


@dataclass(frozen=True)
class Rewriting:
    """The first member of a group, becoming the one that is left."""

    ir: Any
    member: Member
    varying: Sequence[Varying]

    def representative(self, places: int, shapes: Shapes) -> None:
        """Give the function its new arguments, behind the operands that sites pass, and use them."""
        block = self.member.function.regions[0].blocks[0]
        arguments, moved = self._arguments(block, places)
        first = next(iter(block.operations)).operation
        with self.ir.InsertionPoint(first):
            values = [self._value(one.type, argument) for one, argument in zip(self.varying, arguments, strict=True)]
        for one, value in zip(self.varying, values, strict=True):
            for slot in one.slots:
                if slot.constant is not None:
                    slot.op.operands[slot.place] = value
        shapes.rewrite(first, values, moved)
        function_type = self.ir.FunctionType.get([argument.type for argument in block.arguments], [])
        self.member.function.attributes["function_type"] = self.ir.TypeAttr.get(function_type)

    def _arguments(self, block: Any, places: int) -> tuple[list[Any], dict[Any, Any]]:
        """The new arguments in order, and those behind them, where results go, made anew: there is no inserting."""
        behind = list(block.arguments)[places:]
        location = self.member.function.location
        for one in self.varying:
            bound = self.ir.Type.parse(_TENSOR_OF.format(one.type)) if _is_tensor(one.type) else one.type
            block.add_argument(bound, location)
        moved = [block.add_argument(argument.type, location) for argument in behind]
        for old, argument in zip(behind, moved, strict=True):
            old.replace_all_uses_with(argument)
        for _ in behind:
            block.erase_argument(places)
        arguments, new = list(block.arguments)[places:], len(self.varying)
        return arguments[:new], dict(zip(behind, arguments[new:], strict=True))

    def _value(self, type_: Any, argument: Any) -> Any:
        """The value that the function uses: the argument, or all of the tensor that is passed."""
        if not _is_tensor(type_):
            return argument
        sizes = list(type_.shape)
        arrays = {"static_offsets": [0] * len(sizes), "static_sizes": sizes, "static_strides": [1] * len(sizes)}
        attributes = {name: self.ir.DenseI64ArrayAttr.get(values) for name, values in arrays.items()}
        attributes["operandSegmentSizes"] = self.ir.DenseI32ArrayAttr.get([1, 0, 0, 0, 0])
        return self.ir.Operation.create(
            _LOAD, results=[type_], operands=[argument], attributes=attributes, loc=self.member.function.location
        ).results[0]


def _is_tensor(type_: Any) -> bool:
    return str(type_).startswith("tensor<")


def _require_agreement(ir: Any, module: Any, member: Member) -> None:
    """Raises ValueError where a site does not pass what the function takes, which no verifier looks at.

    An argument may be given a value of its type: a tensor is bound, its size may be of any.
    """
    taken = [str(argument.type) for argument in member.function.regions[0].blocks[0].arguments]
    for op in sites_of(ir, module, [member])[member.name]:
        start, count = list(op.attributes["operandSegmentSizes"])[:_DIMENSIONS]
        for at, value in enumerate(list(op.operands)[start : start + count]):
            bound, passed = _BOUND.fullmatch(taken[at]), str(value.type)
            wanted = re.escape(bound[1] if bound else taken[at]).replace(r"\?", r"(?:[0-9]+|\?)")
            if not re.fullmatch(wanted, passed):
                raise ValueError(f"'{DISPATCH}' op passes {passed} as operand {at} of @{member.entry}, a {taken[at]}")


def _rewrite_site(ir: Any, op: Any, member: Member, varying: Sequence[Varying], at: int) -> None:
    """Launch the one that is left, with what the member had inside."""
    segments, operands = list(op.attributes["operandSegmentSizes"]), list(op.operands)
    with ir.InsertionPoint(op):
        constants = [one.attributes[at] for one in varying]
        make, location = ir.Operation.create, op.location
        passed = [
            make("arith.constant", results=[value.type], attributes={"value": value}, loc=location).results[0]
            for value in constants
        ]
        workload = [value for one, value in zip(varying, passed, strict=True) if one.is_shape]
        end = segments[_WORKLOAD] + segments[_ARGUMENTS]
        operands[end:end] = passed
        operands[segments[_WORKLOAD] : segments[_WORKLOAD]] = workload
        segments[_WORKLOAD] += len(workload)
        segments[_ARGUMENTS] += len(passed)
        attributes = {_name(one): op.attributes[_name(one)] for one in op.attributes}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
        attributes["entry_points"] = ir.ArrayAttr.get([ir.SymbolRefAttr.get([member.name, member.entry])])
        types = [result.type for result in op.results]
        site = ir.Operation.create(DISPATCH, results=types, operands=operands, attributes=attributes, loc=op.location)
    for old, result in zip(op.results, site.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()


def _name(attribute: Any) -> str:
    return attribute if isinstance(attribute, str) else attribute.name


def executables(module: Any) -> int:
    """How many the program has."""
    return sum(op.operation.name == EXECUTABLE for op in module.body.operations)
