"""How static dimensions and offsets of a function become dynamic: types, operands of operations, the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker.ir_kinds import collect
    from bot.readers.ir_worker.ir_members import DYNAMIC, SHAPE, Member, Unfit
else:
    from ir_kinds import collect
    from ir_members import DYNAMIC, SHAPE, Member, Unfit

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
