"""Find the operations at the top of a module, and what a dispatch launches."""

from __future__ import annotations

from typing import Any

Answer = dict[str, Any]
"""What the worker answers, as JSON."""


def tops_of(ir: Any, module: Any) -> list[Any]:
    """Return the operations at the top.

    `ir_kinds.collect` says why this is a walk.
    """
    tops: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "builtin.module":
            return ir.WalkResult.ADVANCE
        tops.append(op)
        return ir.WalkResult.SKIP

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return tops


def entry_point_of(dispatch: Any) -> tuple[str, ...]:
    """Return the executable and the entry point that a dispatch launches."""
    symbol = dispatch.attributes["entry_points"][0].value
    if isinstance(symbol, str):
        return (symbol,)
    return tuple(symbol)
