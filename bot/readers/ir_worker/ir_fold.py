"""Find groups of executables that can be folded, and fold them.

The first executable of a group takes the varying values as operands. All sites of the
group launch it then. Static dimensions and offsets that vary become dynamic: in types,
in operands of operations, in the workload. For targets that need it, the compiler
itself splits integers wider than 32 bits, and casts floats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from .ir_kinds import collect
from .ir_members import (
    DYNAMIC,
    Member,
    Slot,
    Unfit,
    attributes_of,
    elements_in,
    member_of,
    partition,
    read,
    sizes_in,
    with_sizes,
)
from .ir_walk import Answer

LEVELS = {
    "identical": frozenset[str](),
    "constants": frozenset({"constant"}),
    "offsets": frozenset({"constant", "offset"}),
    "static-shapes": frozenset({"constant", "offset", "dimension"}),
}
"""Level → kinds of slots that may differ and still be folded.

Each level has the kinds of the one before.
"""
DISPATCH = "flow.dispatch"
_ORDINAL = "iree_tensor_ext.dispatch.workload.ordinal"
_WORKLOAD = 0
_ARGUMENTS = 1
_DIMENSIONS = 2
"""The segments of a dispatch's operands."""
_TENSOR_OF = "!iree_tensor_ext.dispatch.tensor<readonly:{}>"
_BOUND = re.compile(r"![\w.]+<\w+:(.+)>")
_LOAD = "iree_tensor_ext.dispatch.tensor.load"
_TIE = "flow.dispatch.tie_shape"
_RESULT = "result"
_COUNTS = ("workgroup_count_from_slice", "workgroup_count_from_dag_root")
_OFFSETS = "static_offsets"
_SIZES = "static_sizes"
_STRIDES = "static_strides"
_OPERATIONS: Mapping[str, tuple[int, Mapping[int, int | str]]] = {
    _TIE: (1, {1: 0}),
    "tensor.empty": (0, {0: _RESULT}),
    "tensor.expand_shape": (1, {1: "static_output_shape"}),
    "tensor.extract_slice": (1, {1: _OFFSETS, 2: _SIZES, 3: _STRIDES}),
    "tensor.insert_slice": (2, {2: _OFFSETS, 3: _SIZES, 4: _STRIDES}),
    "tensor.pad": (1, {1: "static_low", 2: "static_high"}),
    _LOAD: (1, {1: 0, 2: _OFFSETS, 3: _SIZES, 4: _STRIDES}),
    "iree_tensor_ext.dispatch.tensor.store": (
        2,
        {2: 1, 3: _OFFSETS, 4: _SIZES, 5: _STRIDES},
    ),
}
"""Operations with operands for what is dynamic.

The number is that of the operands before those, where nothing says how many each
segment has. The mapping is segment → whose entries it has: a static array's, those of
an operand's type, or those of its result's.
"""
_OF_ANY_SHAPE = (
    "linalg.",
    "iree_linalg_ext.",
    "arith.",
    "math.",
    "tensor.collapse_shape",
    "tensor.cast",
)
"""Operations whose shape only their types state."""


def groups(ir: Any, module: Any) -> Answer:
    """Return which executables can be folded.

    This is the worker's answer to the request `groups`.
    """
    members, unfit = read(ir, module)
    all_members = list(members.values())
    entries = {}
    elements = {}
    for member in all_members:
        entries[member.name] = member.entry
        elements[member.name] = _elements(member)
    groups_by_level = {}
    for level, free in LEVELS.items():
        groups_by_level[level] = _names_of_groups(all_members, free)
    return {
        "entries": entries,
        "elements": elements,
        "unfit": unfit,
        "groups": groups_by_level,
    }


def _names_of_groups(members: list[Member], free: frozenset[str]) -> list[list[str]]:
    """Return the names in each group of members that are equal but for free slots."""
    names = []
    for group in partition(members, lambda member: member.key(free)):
        names.append([member.name for member in group])
    return names


def _elements(member: Member) -> int:
    """Return the elements of the largest tensor that the function takes or gives.

    Dynamic dimensions count as 1.
    """
    shapes = (sizes_in(str(argument.type)) for argument in member.arguments)
    return max((elements_in(sizes) for sizes in shapes if sizes), default=1)


def folded(ir: Any, module: Any, groups: Sequence[Sequence[str]]) -> Answer:
    """Fold each group in place, and verify the result.

    Raises ValueError with the operation that broke.
    """
    members, unfit = read(ir, module)
    results = list[Answer]()
    refused = list[Answer]()
    for names in groups:
        try:
            if unknown := [name for name in names if name not in members]:
                raise Unfit(unfit.get(unknown[0], "the program has no such executable"))
            group = [members[name] for name in names]
            results.append({"members": names, "operands": _fold(ir, module, group)})
            for name in names:
                del members[name]
            members[names[0]] = member_of(ir, group[0].executable)
        except Unfit as error:
            refused.append({"members": names, "why": str(error)})
    if results:
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            messages = [str(entry.message) for entry in error.error_diagnostics[:3]]
            raise ValueError("; ".join(messages)) from None
    return {"folded": results, "left": refused}


def _fold(ir: Any, module: Any, group: Sequence[Member]) -> list[str]:
    """Fold the executables of a group.

    Returns the types of the operands that its sites pass now. Raises Unfit, before
    anything was changed, if the executables do not have one key at any level: their
    slots would not match.
    """
    if len({member.name for member in group}) < max(2, len(group)):
        raise Unfit("they are not at least two different executables")
    if len({member.key(LEVELS["static-shapes"]) for member in group}) > 1:
        raise Unfit("they differ in more than constants, offsets and static dimensions")
    sites = _sites(ir, module, group)
    with module.context, ir.Location.unknown(module.context):
        varying = _varying(ir, group)
        rewriting = _Rewriting(ir, group[0], varying)
        rewriting.check()
        rewriting.rewrite(argument_places(sites))
        for position, member in enumerate(group):
            for op in sites[member.name]:
                _rewrite_site(
                    ir, op=op, member=group[0], varying=varying, position=position
                )
    for member in group[1:]:
        member.executable.erase()
    _require_agreement(ir, module, group[0])
    return [str(varied.type) for varied in varying]


def _sites(ir: Any, module: Any, group: Sequence[Member]) -> Mapping[str, list[Any]]:
    """Return member → its dispatch sites.

    Raises Unfit if something else names a member.
    """
    sites: dict[str, list[Any]] = {member.name: [] for member in group}
    for op in collect(ir, module, (DISPATCH,)):
        symbols = map(ir.SymbolRefAttr, op.attributes["entry_points"])
        names = [symbol.value[0] for symbol in symbols]
        if len(names) == 1 and names[0] in sites:
            sites[names[0]].append(op)
        elif not sites.keys().isdisjoint(names):
            raise Unfit("a site may launch one of several executables")
    return sites


def argument_places(sites: Mapping[str, Sequence[Any]]) -> int:
    """Return how many operands each site passes to the function.

    Raises Unfit if the sites disagree.
    """
    counts = set[int]()
    for op in chain.from_iterable(sites.values()):
        counts.add(op.attributes["operandSegmentSizes"][_ARGUMENTS])
    if len(counts) > 1:
        raise Unfit("its sites pass different numbers of operands")
    if not counts or not all(sites.values()):
        raise Unfit("an executable is never launched")
    return counts.pop()


class Varying(NamedTuple):
    """Slots that vary in the same way, so that one operand replaces them."""

    type: Any
    slots: tuple[Slot, ...]  # of the representative
    # the value that each member's site passes, as the attribute of a constant
    attributes: Sequence[Any]
    is_shape: bool


def _varying(ir: Any, group: Sequence[Member]) -> list[Varying]:
    """Return the slots that vary in the group, each way of varying once."""
    ways: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    slots_by_member = [member.slots for member in group]
    for place, column in enumerate(zip(*slots_by_member, strict=True)):
        # An index is taken without its type, so that a constant and a dimension can be
        # told equal.
        values = tuple(str(slot.value).removesuffix(" : index") for slot in column)
        if len(set(values)) > 1:
            type_name = "index"
            if column[0].constant:
                type_name = str(column[0].constant.results[0].type)
            ways.setdefault((type_name, values), []).append(place)
    varying = []
    for (_, values), places in ways.items():
        slots = tuple(group[0].slots[place] for place in places)
        if slots[0].constant is None:
            type_ = ir.IndexType.get()
            attributes = [ir.IntegerAttr.get(type_, int(value)) for value in values]
        else:
            type_ = slots[0].constant.results[0].type
            constants = [member.slots[places[0]].constant for member in group]
            attributes = [constant.attributes["value"] for constant in constants]
        if str(type_).startswith("tensor") and "?" in str(type_):
            raise Unfit("a constant of dynamic shape")
        varying.append(
            Varying(
                type=type_,
                slots=slots,
                attributes=attributes,
                is_shape=any(slot.kind == "dimension" for slot in slots),
            )
        )
    return varying


class _Rewriting:
    """Rewrites the first member of a group, which is the one that is left."""

    def __init__(self, ir: Any, member: Member, varying: Sequence[Varying]) -> None:
        self._ir = ir
        self._member = member
        self._varying = varying
        self._location = member.function.location
        counts = collect(ir, member.export, lambda name: name.endswith(_COUNTS))
        self._count: Any = counts[0] if counts else None
        # What takes the place of each dimension of a value, and of each entry of an
        # operation's array.
        self._dims = dict[Any, dict[int, Any]]()
        self._sizes = dict[Any, list[str]]()
        self._entries: list[tuple[Any, str, int, Any]] = []

    def check(self) -> None:
        """Check that all varying slots can be made dynamic; raises Unfit."""
        for varied in self._varying:
            for slot in varied.slots:
                self._check_slot(slot)
        if any(varied.is_shape for varied in self._varying) and self._count is None:
            raise Unfit("its number of workgroups does not follow from its shape")

    def _check_slot(self, slot: Slot) -> None:
        if slot.kind == "fixed":
            raise Unfit(f"a constant that {slot.op.name} uses as a shape")
        if slot.constant is not None:
            return
        owner = slot.place[0]
        has_operands = slot.op.name in _OPERATIONS
        if isinstance(owner, str):
            if not has_operands:
                raise Unfit(f"{slot.op.name} has no operands for {owner}")
        elif any(owner == result for result in slot.op.results):
            if not has_operands and not slot.op.name.startswith(_OF_ANY_SHAPE):
                raise Unfit(f"{slot.op.name} of varying shape")
        elif slot.op != self._member.function:
            raise Unfit(f"{slot.op.name} of varying shape")

    def rewrite(self, places: int) -> None:
        """Give the function its new arguments, and use them.

        They come after the operands that sites pass.
        """
        block = self._member.function.regions[0].blocks[0]
        arguments, moved = self._arguments(block, places)
        first = next(iter(block.operations)).operation
        with self._ir.InsertionPoint(first):
            types = [varied.type for varied in self._varying]
            values = list(map(self._value, types, arguments))
        for varied, value in zip(self._varying, values, strict=True):
            for slot in varied.slots:
                if slot.constant is not None:
                    slot.op.operands[slot.place] = value
        dimensions = self._workload(first, values)
        for varied, value in zip(self._varying, dimensions, strict=True):
            for slot in varied.slots:
                if slot.constant is None:
                    self._take_place(slot, value, moved)
        for value, dims in self._dims.items():
            sizes = self._sizes[value].copy()
            for index in dims:
                sizes[index] = "?"
            value.set_type(self._ir.Type.parse(with_sizes(str(value.type), sizes)))
        # without the ties that are made now
        operations = collect(self._ir, self._member.function, _OPERATIONS)
        self._tie(first)
        for op in operations:
            self._remake(op)
        function_type = self._ir.FunctionType.get(
            [argument.type for argument in block.arguments], []
        )
        self._member.function.attributes["function_type"] = self._ir.TypeAttr.get(
            function_type
        )

    def _take_place(self, slot: Slot, value: Any, moved: Mapping[Any, Any]) -> None:
        """Note the value that replaces a dimension or an array's entry."""
        owner, index = slot.place
        if isinstance(owner, str):
            self._entries.append((slot.op, owner, index, value))
        else:
            owner = moved.get(owner, owner)
            self._sizes.setdefault(owner, sizes_in(str(owner.type)))
            self._dims.setdefault(owner, {})[index] = value

    def _arguments(self, block: Any, places: int) -> tuple[list[Any], dict[Any, Any]]:
        """Add the new arguments, and make those after them again.

        An argument cannot be inserted, so that the later ones have to be made
        again. Returns the new ones in order, and the old ones → those that are
        made again.
        """
        behind = list(block.arguments)[places:]
        for varied in self._varying:
            type_ = varied.type
            if str(type_).startswith("tensor<"):
                type_ = self._ir.Type.parse(_TENSOR_OF.format(type_))
            block.add_argument(type_, self._location)
        for old in behind:
            argument = block.add_argument(old.type, self._location)
            old.replace_all_uses_with(argument)
        for _ in behind:
            block.erase_argument(places)
        arguments = list(block.arguments)[places:]
        new = len(self._varying)
        return arguments[:new], dict(zip(behind, arguments[new:], strict=True))

    def _value(self, type_: Any, argument: Any) -> Any:
        """Return the value that the function uses.

        This is the argument, or all of the tensor that is passed.
        """
        if argument.type == type_:
            return argument
        sizes = list(type_.shape)
        array = self._ir.DenseI64ArrayAttr.get
        segments = [1, 0, 0, 0, 0]
        attributes = {
            _OFFSETS: array([0] * len(sizes)),
            _SIZES: array(sizes),
            _STRIDES: array([1] * len(sizes)),
            "operandSegmentSizes": self._ir.DenseI32ArrayAttr.get(segments),
        }
        return self._make(
            _LOAD,
            types=[type_],
            operands=[argument],
            attributes=attributes,
            location=self._location,
        ).results[0]

    def _workload(self, first: Any, values: Sequence[Any]) -> list[Any]:
        """Return the values, with those of dimensions as part of the workload.

        The number of workgroups is counted from the workload.
        """
        shapes = list[int]()
        for place, varied in enumerate(self._varying):
            if varied.is_shape:
                shapes.append(place)
        operands = list(values)
        count = self._count
        index = self._ir.IndexType.get()
        if not shapes:
            return operands
        block = count.operation.block
        location = count.location
        argument_count = len(list(block.arguments))
        passed = [block.add_argument(index, location) for _ in shapes]
        with self._ir.InsertionPoint(count):
            self._replace(count, [*count.operands, *passed], {})
        with self._ir.InsertionPoint(first):
            for number, place in enumerate(shapes):
                ordinal = {
                    "ordinal": self._ir.IntegerAttr.get(index, argument_count + number)
                }
                operands[place] = self._make(
                    _ORDINAL,
                    types=[index],
                    operands=[values[place]],
                    attributes=ordinal,
                    location=location,
                ).results[0]
        return operands

    def _tie(self, first: Any) -> None:
        """State the dimensions of the function's arguments.

        Arguments whose dimensions are stated already stay as they are.
        """
        for argument in self._member.arguments:
            dims = self._dims.get(argument)
            users = [use.owner.operation.name for use in argument.uses]
            if not dims or _TIE in users:
                continue
            merged = _merged([], self._sizes[argument], dims)
            with self._ir.InsertionPoint(first):
                tied = self._make(
                    _TIE,
                    types=[argument.type],
                    operands=[argument, *merged],
                    attributes={},
                    location=first.location,
                )
            self._dims[tied.results[0]] = dims
            self._sizes[tied.results[0]] = self._sizes[argument]
            argument.replace_all_uses_except(tied.results[0], tied)

    def _remake(self, op: Any) -> None:
        """Give an operation the additional operands that it needs now, if any."""
        leading, owners = _OPERATIONS[op.name]
        parts = _segments(op, leading)
        attributes = dict[str, Any]()
        is_changed = False
        for segment, owner in owners.items():
            if isinstance(owner, str) and owner != _RESULT:
                new = self._new_entries(op, owner)
                entries = list(op.attributes[owner])
                values = entries.copy()
                for index in new:
                    values[index] = DYNAMIC
                attributes[owner] = self._ir.DenseI64ArrayAttr.get(values)
            else:
                if owner == _RESULT:
                    value = op.results[0]
                else:
                    value = op.operands[owner]
                new = self._dims.get(value, {})
                entries = self._sizes.get(value, [])
            if new:
                parts[segment] = _merged(parts[segment], entries, new)
                is_changed = True
        if not is_changed:
            return
        if "operandSegmentSizes" in op.attributes:
            attributes["operandSegmentSizes"] = self._ir.DenseI32ArrayAttr.get(
                [len(part) for part in parts]
            )
        with self._ir.InsertionPoint(op):
            self._replace(op, [*chain.from_iterable(parts)], attributes)

    def _new_entries(self, op: Any, array: str) -> dict[int, Any]:
        """Return index → value of the entries of an array that become dynamic."""
        entries = dict[int, Any]()
        # Operations are equal where they are one, but have no such hash.
        for owner, name, index, value in self._entries:
            if name == array and owner == op:
                entries[index] = value
        return entries

    def _replace(
        self, op: Any, operands: Sequence[Any], changed: Mapping[str, Any]
    ) -> None:
        """Replace the operation by one with other operands.

        What is inside of it moves.
        """
        attributes = {
            **{name: op.attributes[name] for name in attributes_of(op)},
            **changed,
        }
        types = [result.type for result in op.results]
        replacement = self._make(
            op.name,
            types=types,
            operands=operands,
            attributes=attributes,
            location=op.location,
            regions=len(list(op.regions)),
        )
        for old, new in zip(op.regions, replacement.regions, strict=True):
            for block in list(old.blocks):
                block.append_to(new)
        for before, after in zip(op.results, replacement.results, strict=True):
            if before in self._dims:
                self._dims[after] = self._dims[before]
                self._sizes[after] = self._sizes[before]
            before.replace_all_uses_with(after)
        op.erase()

    def _make(
        self,
        name: str,
        types: Sequence[Any],
        operands: Sequence[Any],
        attributes: Any,
        location: Any,
        regions: int = 0,
    ) -> Any:
        parts = {
            "results": types,
            "operands": list(operands),
            "attributes": attributes,
            "regions": regions,
        }
        return self._ir.Operation.create(name, **parts, loc=location)


def _segments(op: Any, leading: int) -> list[list[Any]]:
    """Return the operands of an operation by segment.

    `leading`: the operands before those that are dynamic, where nothing says how many
    each segment has.
    """
    operands = list(op.operands)
    if "operandSegmentSizes" in op.attributes:
        segments = []
        offset = 0
        for size in op.attributes["operandSegmentSizes"]:
            segments.append(operands[offset : offset + size])
            offset += size
        return segments
    if leading:
        return [operands[:leading], operands[leading:]]
    return [operands]


def _merged(
    dynamic: Sequence[Any], entries: Sequence[Any], new: Mapping[int, Any]
) -> list[Any]:
    """Return the operands of the dynamic entries in their order.

    They are those that were dynamic, and those that become it.
    """
    remaining = list(dynamic)
    operands = []
    for index, entry in enumerate(entries):
        if index in new:
            operands.append(new[index])
        elif entry in ("?", DYNAMIC):
            operands.append(remaining.pop(0))
    return operands


def _rewrite_site(
    ir: Any, op: Any, member: Member, varying: Sequence[Varying], position: int
) -> None:
    """Launch the executable that is left, with the values inside of the member."""
    segments = list(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    make = ir.Operation.create
    with ir.InsertionPoint(op):
        passed = []
        workload = []
        for varied in varying:
            value = varied.attributes[position]
            constant = make(
                "arith.constant",
                results=[value.type],
                attributes={"value": value},
                loc=op.location,
            )
            passed.append(constant.results[0])
            if varied.is_shape:
                workload.append(constant.results[0])
        end = segments[_WORKLOAD] + segments[_ARGUMENTS]
        operands[end:end] = passed
        operands[segments[_WORKLOAD] : segments[_WORKLOAD]] = workload
        segments[_WORKLOAD] += len(workload)
        segments[_ARGUMENTS] += len(passed)
        attributes = {name: op.attributes[name] for name in attributes_of(op)}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
        attributes["entry_points"] = ir.ArrayAttr.get(
            [ir.SymbolRefAttr.get([member.name, member.entry])]
        )
        types = [result.type for result in op.results]
        site = make(
            DISPATCH,
            results=types,
            operands=operands,
            attributes=attributes,
            loc=op.location,
        )
    for old, result in zip(op.results, site.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()


def _require_agreement(ir: Any, module: Any, member: Member) -> None:
    """Check that each site passes what the function takes; no verifier does.

    Raises ValueError. An argument may be given a value of its type: a tensor is bound,
    its size may be of any.
    """
    types = [str(argument.type) for argument in member.arguments]
    for op in _sites(ir, module, [member])[member.name]:
        start, count = list(op.attributes["operandSegmentSizes"])[:_DIMENSIONS]
        for index, value in enumerate(list(op.operands)[start : start + count]):
            bound = _BOUND.fullmatch(types[index])
            passed = str(value.type)
            pattern = re.escape(bound[1] if bound else types[index]).replace(
                r"\?", r"(?:[0-9]+|\?)"
            )
            if not re.fullmatch(pattern, passed):
                raise ValueError(
                    f"'{DISPATCH}' op passes {passed} as operand {index} of"
                    f" @{member.entry}, a {types[index]}"
                )
