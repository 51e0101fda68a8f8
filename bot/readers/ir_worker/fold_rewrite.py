"""How executables become one: the first of them takes what varies as operands, and all sites launch that one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker.ir_kinds import collect
    from bot.readers.ir_worker.ir_members import DYNAMIC, EXECUTABLE, LEVELS, SHAPE, Member, Slot, Unfit, inner
else:
    from ir_kinds import collect
    from ir_members import DYNAMIC, EXECUTABLE, LEVELS, SHAPE, Member, Slot, Unfit, inner

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


# How static dimensions and offsets of a function become dynamic: types, operands of operations, the workload.


_ORDINAL = "iree_tensor_ext.dispatch.workload.ordinal"
_TIE = "flow.dispatch.tie_shape"
_COUNTS = ("workgroup_count_from_slice", "workgroup_count_from_dag_root")
_OFFSETS, _SIZES, _STRIDES = "static_offsets", "static_sizes", "static_strides"
_OPERATIONS: Mapping[str, tuple[int, Mapping[int, int | str]]] = {
    _TIE: (1, {1: 0}),
    "tensor.empty": (0, {0: "result"}),
    "tensor.expand_shape": (1, {1: "static_output_shape"}),
    "tensor.extract_slice": (1, {1: _OFFSETS, 2: _SIZES, 3: _STRIDES}),
    "tensor.insert_slice": (2, {2: _OFFSETS, 3: _SIZES, 4: _STRIDES}),
    "tensor.pad": (1, {1: "static_low", 2: "static_high"}),
    "iree_tensor_ext.dispatch.tensor.load": (1, {1: 0, 2: _OFFSETS, 3: _SIZES, 4: _STRIDES}),
    "iree_tensor_ext.dispatch.tensor.store": (2, {2: 1, 3: _OFFSETS, 4: _SIZES, 5: _STRIDES}),
}
"""Operations with operands for what is dynamic: operands before those where nothing says how many each segment has,
and segment → whose entries it has: a static array's, those of an operand's type, or those of its result's."""
_OF_ANY_SHAPE = ("linalg.", "iree_linalg_ext.", "arith.", "math.", "tensor.collapse_shape", "tensor.cast")
"""Operations that only their types say the shape of."""


class Shapes:
    """The function of one member, with operands in place of what varies in its static dimensions and offsets."""

    def __init__(self, ir: Any, member: Member, varying: Sequence[Any]) -> None:
        self._ir, self._member = ir, member
        self._varying = varying
        self._dims: dict[Any, dict[int, Any]] = {}
        self._sizes: dict[Any, list[str]] = {}
        self._entries: list[tuple[Any, str, int, Any]] = []

    def check(self) -> None:
        """Raises Unfit where something varies that cannot be made dynamic."""
        slots = (slot for one in self._varying for slot in one.slots if slot.constant is None or slot.kind == "fixed")
        for slot in slots:
            if slot.kind == "fixed":
                raise Unfit(f"a constant that {slot.op.name} takes as a shape")
            owner, is_known = slot.place[0], slot.op.name in _OPERATIONS
            if isinstance(owner, str):
                if not is_known:
                    raise Unfit(f"{slot.op.name} has no operands for {owner}")
            elif any(owner == result for result in slot.op.results):
                if not is_known and not slot.op.name.startswith(_OF_ANY_SHAPE):
                    raise Unfit(f"{slot.op.name} of varying shape")
            elif slot.op != self._member.function:
                raise Unfit(f"{slot.op.name} of varying shape")
        if any(one.is_shape for one in self._varying) and self._count() is None:
            raise Unfit("its number of workgroups is not counted from its shape")

    def _count(self) -> Any:
        for region in self._member.export.regions:
            for block in region.blocks:
                for op in block.operations:
                    if op.operation.name.endswith(_COUNTS):
                        return op.operation
        return None

    def rewrite(self, first: Any, values: Sequence[Any], moved: Mapping[Any, Any]) -> None:
        """Make it so.

        Args:
            first: the first operation of the function that was there before.
            values: the value of each way of varying.
            moved: arguments of the function → those that took their places.
        """
        self._gather(self._workload(first, values), moved)
        for value, dims in self._dims.items():
            text = str(value.type)
            shape = SHAPE.search(text)
            assert shape is not None  # noqa: S101 - a dimension was read from it
            sizes = "x".join("?" if at in dims else size for at, size in enumerate(self._sizes[value]))
            value.set_type(self._ir.Type.parse(f"{text[: shape.start(2)]}{sizes}x{text[shape.end(2) :]}"))
        self._tie(first)
        operations = collect(self._ir, self._member.function, _OPERATIONS)
        for op in [op for op in operations if self._concerns(op)]:
            self._remake(op)

    def _workload(self, first: Any, values: Sequence[Any]) -> list[Any]:
        """The values, those of dimensions as the workload that the number of workgroups is counted from."""
        shapes = [at for at, one in enumerate(self._varying) if one.is_shape]
        operands, count = list(values), self._count()
        if not shapes:
            return operands
        block = count.operation.block
        index, location = self._ir.IndexType.get(), count.location
        known = len(list(block.arguments))
        passed = [block.add_argument(index, location) for _ in shapes]
        with self._ir.InsertionPoint(count):
            self._replace(count, [*count.operands, *passed], {})
        with self._ir.InsertionPoint(first):
            for number, at in enumerate(shapes):
                ordinal = {"ordinal": self._ir.IntegerAttr.get(index, known + number)}
                operands[at] = self._ir.Operation.create(
                    _ORDINAL, results=[index], operands=[values[at]], attributes=ordinal, loc=location
                ).results[0]
        return operands

    def _gather(self, values: Sequence[Any], moved: Mapping[Any, Any]) -> None:
        """What takes the place of each dimension and entry."""
        for one, value in zip(self._varying, values, strict=True):
            for slot in one.slots:
                if slot.constant is not None:
                    continue
                owner, at = slot.place
                if isinstance(owner, str):
                    self._entries.append((slot.op, owner, at, value))
                else:
                    owner = moved.get(owner, owner)
                    self._sizes.setdefault(owner, _sizes(owner))
                    self._dims.setdefault(owner, {})[at] = value

    def _tie(self, first: Any) -> None:
        """Say of the function's arguments what their dimensions are, where nothing says it yet."""
        for argument in self._member.function.regions[0].blocks[0].arguments:
            dims = self._dims.get(argument)
            uses = [use.owner for use in argument.uses]
            if not dims or any(user.operation.name == _TIE for user in uses):
                continue
            merged = _merged([], self._sizes[argument], dims)
            with self._ir.InsertionPoint(first):
                tied = self._ir.Operation.create(
                    _TIE, results=[argument.type], operands=[argument, *merged], loc=first.location
                )
            self._dims[tied.results[0]], self._sizes[tied.results[0]] = dims, self._sizes[argument]
            argument.replace_all_uses_except(tied.results[0], tied)

    def _concerns(self, op: Any) -> bool:
        """Whether an operation has an operand more now."""
        for whose in _OPERATIONS[op.name][1].values():
            if isinstance(whose, str) and whose != "result":
                if self._new_entries(op, whose):
                    return True
            elif _value_of(op, whose) in self._dims:
                if op.name != _TIE or op.results[0] not in self._dims:
                    return True
                # A tie may have been made just now, with operands for all dynamic dimensions of its result.
                return str(op.results[0].type).count("?") != len(op.operands) - 1
        return False

    def _new_entries(self, op: Any, array: str) -> dict[int, Any]:
        """What becomes dynamic of an array; operations are equal where they are one, but have no such hash."""
        return {at: value for owner, name, at, value in self._entries if name == array and owner == op}

    def _remake(self, op: Any) -> None:
        leading, whose = _OPERATIONS[op.name]
        parts, attributes = _parts(op, leading), {}
        for segment, owner in whose.items():
            if isinstance(owner, str) and owner != "result":
                new = self._new_entries(op, owner)
                entries = list(op.attributes[owner])
                parts[segment] = _merged(parts[segment], entries, new)
                values = [DYNAMIC if at in new else entry for at, entry in enumerate(entries)]
                attributes[owner] = self._ir.DenseI64ArrayAttr.get(values)
            elif dims := self._dims.get(value := _value_of(op, owner)):
                parts[segment] = _merged(parts[segment], self._sizes[value], dims)
        if "operandSegmentSizes" in op.attributes:
            attributes["operandSegmentSizes"] = self._ir.DenseI32ArrayAttr.get([len(part) for part in parts])
        with self._ir.InsertionPoint(op):
            self._replace(op, [operand for part in parts for operand in part], attributes)

    def _replace(self, op: Any, operands: Sequence[Any], changed: Mapping[str, Any]) -> None:
        """The operation with other operands; what is inside of it moves."""
        names = [one if isinstance(one, str) else one.name for one in op.attributes]
        attributes = {**{name: op.attributes[name] for name in names}, **changed}
        types = [result.type for result in op.results]
        replacement = self._ir.Operation.create(
            op.name,
            results=types,
            operands=list(operands),
            attributes=attributes,
            regions=len(list(op.regions)),
            loc=op.location,
        )
        for old, new in zip(op.regions, replacement.regions, strict=True):
            for block in list(old.blocks):
                block.append_to(new)
        for before, after in zip(op.results, replacement.results, strict=True):
            if before in self._dims:
                self._dims[after], self._sizes[after] = self._dims[before], self._sizes[before]
            before.replace_all_uses_with(after)
        op.erase()


def _sizes(value: Any) -> list[str]:
    shape = SHAPE.search(str(value.type))
    return shape[2][:-1].split("x") if shape else []


def _value_of(op: Any, whose: int | str) -> Any:
    return op.results[0] if whose == "result" else op.operands[whose]


def _parts(op: Any, leading: int) -> list[list[Any]]:
    """The operands, segment by segment."""
    operands = list(op.operands)
    if "operandSegmentSizes" not in op.attributes:
        return [operands[:leading], operands[leading:]] if leading else [operands]
    parts, at = [], 0
    for size in op.attributes["operandSegmentSizes"]:
        parts.append(operands[at : at + size])
        at += size
    return parts


def _merged(known: Sequence[Any], entries: Sequence[Any], new: Mapping[int, Any]) -> list[Any]:
    """The operands of the dynamic entries in their order: those that were dynamic, and those that become it."""
    rest, operands = list(known), []
    for at, entry in enumerate(entries):
        if at in new:
            operands.append(new[at])
        elif entry in ("?", DYNAMIC):
            operands.append(rest.pop(0))
    return operands
