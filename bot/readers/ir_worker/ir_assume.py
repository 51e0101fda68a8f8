"""Make a program state what is known of its dynamic dimensions.

Bounds and a divisor are stated with `util.assume.int`, and a tensor argument is tied to
its assumed dimensions. A tensor of PyTorch gets the operations by which `torch.export`
writes bounds down. The compiler itself makes `util.assume.int` of them.
"""

from __future__ import annotations

import re
from typing import Any

from .ir_kinds import is_public

_FUNCTIONS = ("func.func", "util.func")
_TORCH_TENSOR = re.compile(r"!torch\.vtensor<\[([\d,?]+)\]")
_TORCH_LARGEST = (1 << 63) - 1


class Assumption:
    """The known facts about a dimension; `largest` is None if it has no bound."""

    def __init__(self, smallest: int, largest: int | None, divisor: int) -> None:
        self.divisor = divisor
        self.first = -(-smallest // divisor)  # the bounds in multiples of the divisor
        self.last = None if largest is None else largest // divisor

    @property
    def text(self) -> str:
        """Return the attribute of `util.assume.int`."""
        parts = [f"umin = {self.first * self.divisor}"]
        if self.last is not None:
            parts.append(f"umax = {self.last * self.divisor}")
        if self.divisor > 1:
            parts.append(f"udiv = {self.divisor}")
        return f"[[#util.int.assumption<{', '.join(parts)}>]]"


def assumed(ir: Any, module: Any, assumption: Assumption) -> int:
    """State the assumption for each dynamic dimension of all tensor arguments.

    Only public functions count. Returns the number of dimensions.
    """
    count = 0
    for operation in module.body.operations:
        function = operation.operation
        has_body = len(function.regions) > 0 and len(function.regions[0].blocks) > 0
        if function.name in _FUNCTIONS and has_body and is_public(function):
            count += _assumed_of(
                ir,
                block=function.regions[0].blocks[0],
                assumption=assumption,
                before=count,
            )
    if not module.operation.verify():
        raise ValueError("the program with assumptions does not verify")
    return count


def _assumed_of(ir: Any, block: Any, assumption: Assumption, before: int) -> int:
    count = 0
    with (
        ir.InsertionPoint.at_block_begin(block),
        ir.Location.unknown(block.owner.context),
    ):
        for argument in list(block.arguments):
            torch = _TORCH_TENSOR.match(str(argument.type))
            if torch:
                count += _torch_shape(
                    ir,
                    argument=argument,
                    sizes=torch[1].split(","),
                    assumption=assumption,
                    number=before + count,
                )
            elif isinstance(argument.type, ir.RankedTensorType):
                count += _tied(ir, argument, assumption)
    return count


def _tied(ir: Any, argument: Any, assumption: Assumption) -> int:
    kind = ir.RankedTensorType(argument.type)
    dynamic = [number for number in range(kind.rank) if kind.is_dynamic_dim(number)]
    if not dynamic:
        return 0
    index = ir.IndexType.get()
    sizes = []
    readers = []
    for number in dynamic:
        value = ir.IntegerAttr.get(index, number)
        place = ir.Operation.create(
            "arith.constant", results=[index], attributes={"value": value}
        )
        size = ir.Operation.create(
            "tensor.dim", results=[index], operands=[argument, place.result]
        )
        attributes = {"assumptions": ir.Attribute.parse(assumption.text)}
        assumed_size = ir.Operation.create(
            "util.assume.int",
            results=[index],
            operands=[size.result],
            attributes=attributes,
        )
        sizes.append(assumed_size.result)
        readers.append(size)
    operands = [argument, *sizes]
    tie = ir.Operation.create(
        "flow.tensor.tie_shape", results=[kind], operands=operands
    )
    argument.replace_all_uses_with(tie.result)
    for reader in (tie, *readers):
        reader.operands[0] = argument
    return len(dynamic)


def _torch_shape(
    ir: Any, argument: Any, sizes: list[str], assumption: Assumption, number: int
) -> int:
    integer = ir.IntegerType.get_signless(64)
    symbol_type = ir.Type.parse("!torch.int")
    last = assumption.last
    if last is None:
        last = _TORCH_LARGEST // assumption.divisor
    symbols = list[Any]()
    terms = list[str]()
    for size in sizes:
        if size != "?":
            terms.append(size)
            continue
        attributes = {
            "symbol_name": ir.StringAttr.get(f"assumed{number + len(symbols)}"),
            "min_val": ir.IntegerAttr.get(integer, assumption.first),
            "max_val": ir.IntegerAttr.get(integer, last),
        }
        symbol = ir.Operation.create(
            "torch.symbolic_int", results=[symbol_type], attributes=attributes
        )
        terms.append(f"s{len(symbols)} * {assumption.divisor}")
        symbols.append(symbol.result)
    if not symbols:
        return 0
    names = ", ".join(f"s{place}" for place in range(len(symbols)))
    shape = ir.Attribute.parse(f"affine_map<()[{names}] -> ({', '.join(terms)})>")
    operands = [argument, *symbols]
    attributes = {"shape_expressions": shape}
    ir.Operation.create(
        "torch.bind_symbolic_shape", operands=operands, attributes=attributes
    )
    return len(symbols)
