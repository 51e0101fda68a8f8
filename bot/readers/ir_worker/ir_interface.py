"""What a program takes and gives: its public functions, its parameters, and what its executables are compiled for.

From the module at the end of the `flow` phase, as are the extents: one input that is the place of something in a tensor
has to be in it, which is followed through all dispatches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .ir_kinds import collect, functions_of, is_public, name_of

_PARAMETER = re.compile(r'#flow\.parameter\.named<(?:"([^"]*)"::)?"([^"]*)"(?:, \{.*\})?> : (.+)', re.DOTALL)
_TARGET = re.compile(r'#hal\.executable\.target<"([^"]*)", "([^"]*)"')
_FEATURES = re.compile(r'\bcpu_features = "([^"]*)"')
_DECLARED = re.compile(r"%\w+: (tensor<[^>]*>|[a-z]\w*)")
_VIEW, _EXPORT, _RETURN, _DISPATCH = "!hal.buffer_view", "hal.tensor.export", "util.return", "flow.dispatch"
_ARGUMENT, _RESULT = 0, 1


def interface(ir: Any, module: Any) -> dict[str, Any]:
    """The fields of `bot.readers.ir_facts.Interface`."""
    functions = {name: _Function(ir, op) for name, op in functions_of(ir, module).items()}
    called = {call.attributes["callee"].value for each in functions.values() for call in each.calls}
    public = {name: each for name, each in functions.items() if each.is_public and name not in called}
    extents = _Extents(ir, module)
    for name, each in public.items():
        for index, value in enumerate(each.values[_ARGUMENT]):
            extents.add(value, {(name, str(index)): _OWN})
    parameters = _parameters(ir, module, extents)
    limits = extents.follow()
    return {
        "functions": [
            {
                "name": name,
                "arguments": [_type(functions, name, _ARGUMENT, at) for at in range(len(each.values[_ARGUMENT]))],
                "extents": [limits.get((name, str(at))) for at in range(len(each.values[_ARGUMENT]))],
                "results": [_type(functions, name, _RESULT, at) for at in range(len(each.values[_RESULT]))],
            }
            for name, each in public.items()
        ],
        "parameters": [
            {"scope": scope, "key": key, "type": kind, "extent": limits.get(("", scope, key))}
            for scope, key, kind in parameters
        ],
        "targets": _targets(ir, module),
        "remembers": any(each.remembers for each in functions.values()),
    }


class _Function:
    """One function, by what passes its borders: arguments first, then results.

    Attributes:
        borders: value → the operation that imports or exports it.
        declared: types as the source had them; empty where the compiler did not write them down.
    """

    def __init__(self, ir: Any, op: Any) -> None:
        inner = collect(ir, op, ("hal.tensor.import", _EXPORT, "util.call", _RETURN, "util.global.store"))
        self.is_public = is_public(op)
        returned = [value for each in inner if each.name == _RETURN for value in each.operands]
        self.values = (list(op.regions[0].blocks[0].arguments), returned)
        self.borders = (
            {each.operands[0]: each for each in inner if each.name == "hal.tensor.import"},
            {each.results[0]: each for each in inner if each.name == _EXPORT},
        )
        self.calls = [each for each in inner if each.name == "util.call"]
        self.remembers = any(each.name == "util.global.store" for each in inner)
        self.declared: tuple[list[str], list[str]] = ([], [])
        declaration = "iree.abi.declaration"
        if "iree.reflection" in op.attributes and declaration in op.attributes["iree.reflection"]:
            taken, _, given = op.attributes["iree.reflection"][declaration].value.partition(" -> ")
            self.declared = (_DECLARED.findall(taken), _DECLARED.findall(given))


def _type(functions: dict[str, _Function], name: str, side: int, index: int) -> str:
    """The type that an argument is imported as, or a result exported as; else what the value itself is.

    Here, or in the function that an argument is handed to or a result comes from; a buffer view as the source has it.
    """
    function = functions[name]
    value = function.values[side][index]
    if value in function.borders[side]:
        op, encoding = function.borders[side][value], ("target_encoding", "source_encoding")[side]
        if encoding in op.attributes:
            return str(op.attributes[encoding].value)
        return str((op.results, op.operands)[side][0].type)
    for call in function.calls:
        callee = call.attributes["callee"].value
        for number, passed in enumerate((call.operands, call.results)[side]):
            if passed == value and callee in functions and callee != name:
                return _type(functions, callee, side, number)
    own, declared = str(value.type), function.declared[side]
    return declared[index] if own == _VIEW and index < len(declared) else own


def _parameters(ir: Any, module: Any, extents: _Extents) -> list[tuple[str, str, str]]:
    """Scope, key and type of every parameter that a global or a constant refers to, once, in the program's order."""
    parameters: dict[tuple[str, str, str], None] = {}
    values = (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)  # which may be many megabytes as text
    for op in collect(ir, module, ("util.global", "flow.tensor.constant")):
        for name in ("initial_value", "value"):
            if name not in op.attributes or isinstance(op.attributes[name], values):
                continue
            if match := _PARAMETER.match(str(op.attributes[name])):
                scope, key, kind = match[1] or "", match[2], match[3]
                parameters[scope, key, kind] = None
                if name == "value":
                    extents.add(op.results[0], {("", scope, key): _OWN})
                else:
                    extents.hold(name_of(op), {("", scope, key): _OWN})
    return list(parameters)


def _targets(ir: Any, module: Any) -> list[dict[str, Any]]:
    """What the devices' executables are compiled for, each once, in the program's order."""
    targets: dict[tuple[str, str, tuple[str, ...]], None] = {}
    for op in collect(ir, module, ("util.global",)):
        if str(op.attributes["type"]) != "!hal.device" or "initial_value" not in op.attributes:
            continue
        backends = list(_TARGET.finditer(text := str(op.attributes["initial_value"])))
        for match, after in zip(backends, [*backends[1:], None], strict=True):
            features = _FEATURES.search(text, match.end(), after.start() if after else len(text))
            targets[match[1], match[2], tuple(filter(None, features[1].split(","))) if features else ()] = None
    return [{"backend": backend, "format": form, "features": list(has)} for backend, form, has in targets]


# How many values of an input may be given: one that is the place of something in a tensor has to be in it.


_INTEGER = re.compile(r"(?:^|[x<])(?:[su]?i(\d+)|(index)\b)")
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
    *(_EXPORT, "hal.buffer_view.dim", "hal.buffer_view.assert", "tensor.dim", "linalg.yield"),
    *(_RETURN, "func.return", "flow.return"),
})  # fmt: skip
"""Operations that pass no value on, or whose results are looked at from the other side."""
_FEW_BITS = 16
_UNKNOWN = 2
"""What is computed of an input, and then is an index, may be within its tensor for no other values than 0 and 1."""
_COMPUTED, _OWN, _SMALL = range(3)
"""How an input reaches a value, the most dangerous way first: computed of it; its own; its own, which had few bits on
the way: whoever computes with these has to expect all of them."""
Reach = dict[tuple[str, ...], int]  # input → how it reaches a value


class _Extents:
    """Follows inputs from operation to operation."""

    def __init__(self, ir: Any, module: Any) -> None:
        self.ir, self._limits = ir, Reach()
        self._operations = collect(ir, module, lambda _name: True)
        self._reached: dict[Any, Reach] = {}
        self._globals: dict[str, Reach] = defaultdict(dict)
        self._is_changed = True
        self._functions = functions_of(ir, module, ("func.func", "util.func"))

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
            now = _SMALL if is_small else way
            if not (is_small and way == _COMPUTED) and now < known.get(root, _SMALL + 1):
                known[root], self._is_changed = now, True

    def follow(self) -> Reach:
        """Go on until nothing is new; input → how many values from 0 on may be given, where not all may."""
        while self._is_changed:
            self._is_changed = False
            for op in self._operations:
                self._visit(op)
        return self._limits

    def _limit(self, reach: Reach, count: int = _UNKNOWN) -> None:
        """What these inputs reach has to be below a count."""
        for root, way in reach.items():
            most = _UNKNOWN if way == _COMPUTED else count
            self._limits[root] = min(self._limits.get(root, most), most)

    def _visit(self, op: Any) -> None:
        if op.name == "util.global.load":
            self.add(op.results[0], self._globals[op.attributes["global"].value])
        elif op.name == "linalg.generic":
            self._pass(op.operands, op.regions[0].blocks[0].arguments)
            self._pass(collect(self.ir, op, ("linalg.yield",))[-1].operands, op.results)
        elif op.name in (_DISPATCH, "util.call"):
            self._enter(op, op.name == _DISPATCH)
        else:
            for number, operand in enumerate(op.operands):
                if reach := self._reached.get(operand):
                    self._use(op, op.name, number, reach)

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
        for end in collect(self.ir, function, _STORES if is_dispatch else (_RETURN,)):
            if is_dispatch:
                self._pass([end.operands[1]] * len(op.results), op.results)
            else:
                self._pass(end.operands, op.results)

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
