"""Count the operations of a model's own program, and their places.

The `input` phase is read: there, all that the model was written in has become
operations that all targets share.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .ir_component import component_of
from .ir_kinds import collect
from .ir_walk import Answer

# so many places are counted in one model; what further ones have counts as without a
# place
MOST_PLACES = 1_000
_STRUCTURE = frozenset({"builtin", "func", "util", "hal", "ml_program", "cf"})
"""Dialects of the structure around the operations of a model.

They have modules, functions, weights, branches, assertions, and the calling convention
around the model.
"""
_NO_OPERATIONS = frozenset({"tensor.empty", "linalg.index", "iree_linalg_ext.index"})
"""Operations that only hold the place of a result, or the number of a loop."""
_SAYS_ITS_BODY = frozenset({"linalg.generic", "linalg.map", "linalg.reduce"})
"""Operations of linalg with a body of any kind.

The names of all other operations of linalg say what their bodies do.
"""
_CONSTANTS = frozenset({"arith.constant", "complex.constant", "ub.poison"})


def contents(ir: Any, module: Any) -> Answer:
    """Count the operations of the model, and their places.

    `operations`: name → count. `places`: the model's own name of a place → count, ""
    for operations without one.

    Places count whole operations: neither what stands in the body of another one, nor
    constants, which many share.
    """
    operations = Counter[str]()
    places = Counter[str]()
    components = dict[str, str]()

    def visit(op: Any) -> Any:
        name = op.name
        if not is_operation(name):
            return ir.WalkResult.ADVANCE
        if name not in _CONSTANTS:
            location = str(op.location)
            if location not in components:
                components[location] = component_of(location) or ""
            place = components[location]
            places[place if place in places or len(places) < MOST_PLACES else ""] += 1
        if name.startswith("scf."):  # a loop over operations, not one that has a body
            operations[name] += 1
            return ir.WalkResult.ADVANCE
        says_its_body = name in _SAYS_ITS_BODY or not name.startswith(
            ("linalg.", "arith.")
        )
        if says_its_body:
            whole = collect(ir, op, is_operation)
        else:
            whole = [op]
        operations.update(inner_op.name for inner_op in whole)
        return ir.WalkResult.SKIP

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return {"operations": dict(operations), "places": dict(places)}


def is_operation(name: str) -> bool:
    """Return True for an operation that computes, moves or holds values of the model.

    False for the structure around it.
    """
    dialect, _, last = name.partition(".")
    return not (
        dialect in _STRUCTURE or last in ("yield", "return") or name in _NO_OPERATIONS
    )
