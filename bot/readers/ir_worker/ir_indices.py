"""How many values of an input may be given: one that is the place of something in a tensor has to be in it.

From the module at the end of the `flow` phase, through all of its dispatches. Imports the standard library only, for
the reason that `ir_kinds` gives.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
else:
    import ir_kinds

_INTEGER = re.compile(r"(?:^|[x<])(?:[su]?i(\d+)|(index)\b)")
_VIEW = "!hal.buffer_view"
_MOVES = (
    *("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.select", "hal.tensor.import"),
    *("tensor.", "flow.tensor.", "flow.dispatch.tie_shape", "util.optimization_barrier", "iree_encoding."),
    *("iree_tensor_ext.dispatch.tensor.load", "flow.dispatch.tensor.load"),
)
"""How operations begin whose results are values of their operands; indices among these are places."""
_COMPUTES = ("arith.", "math.", "linalg.", "iree_linalg_ext.")
_STORES = ("iree_tensor_ext.dispatch.tensor.store", "flow.dispatch.tensor.store")
_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
_BY_PLACE = ("iree_linalg_ext.gather", "iree_linalg_ext.scatter")
_ENDS = frozenset({
    *("hal.tensor.export", "hal.buffer_view.dim", "hal.buffer_view.assert", "tensor.dim", "linalg.yield"),
    *("util.return", "func.return", "flow.return"),
})  # fmt: skip
"""Operations that pass no value on, or whose results are looked at from the other side."""
_FEW_BITS = 16
_UNKNOWN = 2
"""What is computed of an input, and then is an index, may be within its tensor for no other values than 0 and 1."""
_COMPUTED, OWN, _SMALL = range(3)
"""How an input reaches a value, the most dangerous way first: computed of it; its own; its own, which had few bits on
the way: whoever computes with these has to expect all of them."""
Root = tuple[str, ...]
Reach = dict[Root, int]


class Extents:
    """Follows inputs from operation to operation.

    Attributes:
        limits: input → how many values from 0 on may be given, for those of which not all may.
    """

    def __init__(self, ir: Any, module: Any) -> None:
        self.ir = ir
        self.limits: dict[Root, int] = {}
        self._operations = ir_kinds.collect(ir, module, lambda _name: True)
        self._reached: dict[Any, Reach] = {}
        self._globals: dict[str, Reach] = defaultdict(dict)
        self._is_changed = False
        bodies = [op for op in self._operations if op.name in ("func.func", "util.func") and len(op.regions[0].blocks)]
        self._functions = {op.attributes["sym_name"].value: op for op in bodies}

    def add(self, value: Any, reach: Reach) -> None:
        """These inputs reach the value."""
        kind = str(value.type)
        match = _INTEGER.search(kind)
        bits = int(match[1] or 64) if match else 64 if kind == _VIEW else 1
        if bits > 1:
            self._merge(self._reached.setdefault(value, {}), reach, is_small=bits <= _FEW_BITS)

    def hold(self, name: str, reach: Reach) -> None:
        """These inputs reach a global."""
        self._merge(self._globals[name], reach, is_small=False)

    def _merge(self, known: Reach, reach: Reach, *, is_small: bool) -> None:
        for root, way in reach.items():
            if is_small and way == _COMPUTED:
                continue
            now = _SMALL if is_small else way
            if now < known.get(root, _SMALL + 1):
                known[root], self._is_changed = now, True

    def follow(self) -> None:
        """Go on until nothing is new."""
        self._is_changed = True
        while self._is_changed:
            self._is_changed = False
            for op in self._operations:
                self._visit(op)

    def _limit(self, reach: Reach, count: int = _UNKNOWN) -> None:
        """What these inputs reach has to be below a count."""
        for root, way in reach.items():
            most = _UNKNOWN if way == _COMPUTED else count
            self.limits[root] = min(self.limits.get(root, most), most)

    def _visit(self, op: Any) -> None:
        name = op.name
        if name == "util.global.load":
            self.add(op.results[0], self._globals[op.attributes["global"].value])
        elif name == "linalg.generic":
            arguments, own = op.regions[0].blocks[0].arguments, ir_kinds.collect(self.ir, op, ("linalg.yield",))[-1]
            self._pass(op.operands, arguments)
            self._pass(own.operands, op.results)
        elif name in ("flow.dispatch", "util.call"):
            self._enter(op, name == "flow.dispatch")
        else:
            for number, operand in enumerate(op.operands):
                if reach := self._reached.get(operand):
                    self._use(op, name, number, reach)

    def _pass(self, values: Iterable[Any], to: Iterable[Any]) -> None:
        for value, other in zip(values, to):  # noqa: B905 - a dispatch has fewer results than its function's arguments
            self.add(other, self._reached.get(value, {}))

    def _enter(self, op: Any, is_dispatch: bool) -> None:
        """Pass on what a call's operands bring, and what comes out of it."""
        operands = list(op.operands)
        symbol = op.attributes["entry_points"][0].value if is_dispatch else op.attributes["callee"].value
        function = self._functions.get(symbol if isinstance(symbol, str) else symbol[-1])
        first, count = list(op.attributes["operandSegmentSizes"])[:2] if is_dispatch else (0, len(operands))
        inside = operands[first : first + count] if function is not None else []
        for value in (each for at, each in enumerate(operands) if not first <= at < first + len(inside)):
            self._limit(self._reached.get(value, {}))
        if function is None:
            return
        self._pass(inside, function.regions[0].blocks[0].arguments)
        if not is_dispatch:
            for end in ir_kinds.collect(self.ir, function, ("util.return",)):
                self._pass(end.operands, op.results)
            return
        for store in ir_kinds.collect(self.ir, function, _STORES):
            for result in op.results:
                self._pass([store.operands[1]], [result])

    def _use(self, op: Any, name: str, number: int, reach: Reach) -> None:
        if most := self._places(op, name, number):
            self._limit(reach, most)
        elif name == "util.global.store":
            self.hold(op.attributes["global"].value, reach)
        elif name in _STORES:
            self.add(op.operands[1], reach)
        elif name not in _ENDS:
            is_own = name.startswith(_MOVES)
            computed = {root: _COMPUTED for root, way in reach.items() if way != _SMALL}
            for result in op.results:
                self.add(result, reach if is_own else computed)

    def _places(self, op: Any, name: str, number: int) -> int:
        """How many values an operand may have, as it says where; 0 where it does not."""
        kind = str(op.operands[number].type)
        if name == "tensor.extract" and number:
            table = self.ir.ShapedType(op.operands[0].type)
            return _UNKNOWN if table.is_dynamic_dim(number - 1) else max(1, table.get_dim_size(number - 1))
        if name in _SHIFTS and number:
            return int(kind.rpartition("i")[2]) if kind[-1].isdigit() else _UNKNOWN
        is_place = kind == "index" and name != "tensor.from_elements" and not name.startswith("arith.")
        is_known = name.startswith((*_MOVES, *_COMPUTES)) or name in {*_STORES, *_ENDS, "util.global.store"}
        return _UNKNOWN if is_place or not is_known or (name in _BY_PLACE and number == 1) else 0
