"""Large constants become parameters by reference: a model file keeps its structure, not its weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iree.compiler import ir

KEPT_INLINE = frozenset({("tosa.rescale", 1), ("tosa.rescale", 2), ("tosa.table", 1)})
"""Operands that are code, not weights: multipliers and shifts of a rescale, the entries of a lookup table."""

SMALLEST_ELEMENTS = 64
"""Constants with fewer elements, and those of one repeated value, stay inline."""


def externalize_constants(module_bytes: bytes) -> str:
    """The module with its weights as ``util.global … = #flow.parameter.named<"model"::…>``, as text.

    The generic form is read by every release (the pretty form of ``tosa.const`` changed in 3.13.0).
    """
    with ir.Context():
        module = ir.Module.parse(module_bytes)
        first = module.body.operations[0]
        for number, constant in enumerate(list(weights(module.operation))):
            replace(constant, number, first)
        for attribute in [name for name in module.operation.attributes if name.startswith("tfl.")]:
            del module.operation.attributes[attribute]  # the converter's own version and metadata blob
        text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
        return str(text)


def weights(op: Any) -> Iterator[Any]:
    """The constants to externalise, in program order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "tosa.const" and is_weight(inner.operation.results[0]):
                    yield inner.operation
                yield from weights(inner.operation)


def is_weight(value: Any) -> bool:
    """Whether a constant is large enough, and used as data."""
    use = next(iter(value.uses), None)
    elements = ir.DenseElementsAttr(value.owner.attributes["values"])
    return (
        use is not None
        and len(elements) >= SMALLEST_ELEMENTS
        and not elements.is_splat
        and (use.owner.name, use.operand_number) not in KEPT_INLINE
    )


def replace(constant: Any, number: int, first: Any) -> None:
    """Put a global before ``first`` and a load in place of the constant."""
    value = constant.results[0]
    use = next(iter(value.uses))
    name = f"w{number}_{use.owner.name.rpartition('.')[2]}_{use.operand_number}"
    reference = f'#flow.parameter.named<"model"::"{name}">'
    declared = ir.Operation.parse(f"util.global private @{name} = {reference} : {value.type}")
    ir.InsertionPoint(first).insert(declared)
    with ir.InsertionPoint(constant), constant.location:
        symbol = {"global": ir.FlatSymbolRefAttr.get(name)}
        load = ir.Operation.create("util.global.load", results=[value.type], attributes=symbol)
    value.replace_all_uses_with(load.results[0])
    constant.erase()
