"""What a model's own program consists of: its operations by name, and how many each part of the model has.

By the `input` phase, in which whatever the model was written in has become operations that all targets share. Imports
the standard library only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
    from bot.readers.ir_worker.ir_locations import component_of
else:
    import ir_kinds  # the script's own folder is first on sys.path
    from ir_locations import component_of

MOST_PLACES = 1_000
"""So many places are counted in one model; what further ones have counts as without a place."""

_STRUCTURE = frozenset({"builtin", "func", "util", "hal", "ml_program", "cf"})
"""Dialects of modules, functions, weights and the calling convention around the model; of branches and assertions."""
_NO_OPERATIONS = frozenset({"tensor.empty", "linalg.index", "iree_linalg_ext.index"})
"""The place of a result, the number of a loop."""
_SAYS_ITS_BODY = frozenset({"linalg.generic", "linalg.map", "linalg.reduce"})
"""All other operations of linalg have the body that their name stands for."""
_CONSTANTS = frozenset({"arith.constant", "complex.constant", "ub.poison"})


def contents(ir: Any, module: Any) -> dict[str, dict[str, int]]:
    """`operations`: name → count; `places`: the model's own name of a place → count, "" for what has none.

    Places count whole operations: neither what stands in the body of another one, nor constants, which many share.
    """
    counts = _Counts(ir)
    module.operation.walk(counts.visit, ir.WalkOrder.PRE_ORDER)
    return {"operations": dict(counts.operations), "places": dict(counts.places)}


def is_operation(name: str) -> bool:
    """True for what computes, moves or holds values of the model; False for the structure around it."""
    dialect, _, last = name.partition(".")
    return not (dialect in _STRUCTURE or last in ("yield", "return") or name in _NO_OPERATIONS)


class _Counts:
    """Counts while a walk from the outside in goes on."""

    def __init__(self, ir: Any) -> None:
        self.ir = ir
        self.operations, self.places = Counter[str](), Counter[str]()
        self._components: dict[str, str] = {}

    def visit(self, op: Any) -> Any:
        """One operation with its body, if it is one; else the walk goes on into it."""
        name = op.name
        if not is_operation(name):
            return self.ir.WalkResult.ADVANCE
        if name not in _CONSTANTS:
            location = str(op.location)
            if location not in self._components:
                self._components[location] = component_of(location) or ""
            place = self._components[location]
            self.places[place if place in self.places or len(self.places) < MOST_PLACES else ""] += 1
        if name.startswith("scf."):  # a loop over operations, not one that has a body
            self.operations[name] += 1
            return self.ir.WalkResult.ADVANCE
        says_its_body = name in _SAYS_ITS_BODY or not name.startswith(("linalg.", "arith."))
        whole = ir_kinds.collect(self.ir, op, is_operation) if says_its_body else [op]
        self.operations.update(each.name for each in whole)
        return self.ir.WalkResult.SKIP
