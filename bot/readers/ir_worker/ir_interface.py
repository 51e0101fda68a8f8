"""Read what a program takes and gives.

It has public functions, parameters, and the targets of its executables. They are read
from the module at the end of the `flow` phase.
"""

from __future__ import annotations

import re
from typing import Any

from .ir_kinds import collect, functions_of, is_public

_PARAMETER = re.compile(
    r'#flow\.parameter\.named<(?:"([^"]*)"::)?"([^"]*)"(?:, \{.*\})?> : (.+)', re.DOTALL
)
_TARGET = re.compile(r'#hal\.executable\.target<"([^"]*)", "([^"]*)"')
_FEATURES = re.compile(r'\bcpu_features = "([^"]*)"')
_DECLARED = re.compile(r"%\w+: (tensor<[^>]*>|[a-z]\w*)")
_VIEW = "!hal.buffer_view"
_EXPORT = "hal.tensor.export"
_RETURN = "util.return"
_ARGUMENT = 0
_RESULT = 1
_BY_PLACE = ("iree_linalg_ext.gather", "iree_linalg_ext.scatter")
_CASTS = ("arith.index_cast", "arith.index_castui")
_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")


def interface(ir: Any, module: Any) -> dict[str, Any]:
    """Return the fields of `bot.readers.ir_facts.Interface`."""
    functions = dict[str, _Function]()
    called = set[str]()
    remembers = False
    for name, op in functions_of(ir, module).items():
        function = _Function(ir, op)
        functions[name] = function
        called.update(call.attributes["callee"].value for call in function.calls)
        remembers = remembers or function.remembers
    public = []
    for name, function in functions.items():
        if function.is_public and name not in called:
            arguments = _types(functions, name, _ARGUMENT)
            results = _types(functions, name, _RESULT)
            public.append({"name": name, "arguments": arguments, "results": results})
    return {
        "functions": public,
        "parameters": _parameters(ir, module),
        "targets": _targets(ir, module),
        "remembers": remembers,
        "picks": _picks(ir, module),
    }


class _Function:
    """One function, by what passes its borders: arguments first, then results.

    Attributes:
        borders: value → the operation that imports or exports it.
        declared: types as the source had them; empty where the compiler did not write
            them down.
    """

    def __init__(self, ir: Any, op: Any) -> None:
        inner = collect(
            ir,
            op,
            ("hal.tensor.import", _EXPORT, "util.call", _RETURN, "util.global.store"),
        )
        self.is_public = is_public(op)
        returned = list[Any]()
        imports = dict[Any, Any]()
        exports = dict[Any, Any]()
        self.calls = list[Any]()
        self.remembers = False
        for inner_op in inner:
            if inner_op.name == _RETURN:
                returned += inner_op.operands
            elif inner_op.name == "hal.tensor.import":
                imports[inner_op.operands[0]] = inner_op
            elif inner_op.name == _EXPORT:
                exports[inner_op.results[0]] = inner_op
            elif inner_op.name == "util.call":
                self.calls.append(inner_op)
            else:
                self.remembers = True
        self.values = (list(op.regions[0].blocks[0].arguments), returned)
        self.borders = (imports, exports)
        self.declared: tuple[list[str], list[str]] = ([], [])
        declaration = "iree.abi.declaration"
        if (
            "iree.reflection" in op.attributes
            and declaration in op.attributes["iree.reflection"]
        ):
            arguments, _, results = op.attributes["iree.reflection"][
                declaration
            ].value.partition(" -> ")
            self.declared = (_DECLARED.findall(arguments), _DECLARED.findall(results))


def _types(functions: dict[str, _Function], name: str, side: int) -> list[str]:
    """Return the types of all arguments of a function, or of all its results."""
    count = len(functions[name].values[side])
    return [_type(functions, name, side, index) for index in range(count)]


def _type(functions: dict[str, _Function], name: str, side: int, index: int) -> str:
    """Return the type that an argument is imported as, or a result exported as.

    The import may be in a function that gets the argument, or in one that gives the
    result. If there is no import, it is the type of the value itself. A buffer view
    has the type of the source.
    """
    function = functions[name]
    value = function.values[side][index]
    if value in function.borders[side]:
        op = function.borders[side][value]
        encoding = ("target_encoding", "source_encoding")[side]
        if encoding in op.attributes:
            return str(op.attributes[encoding].value)
        return str((op.results, op.operands)[side][0].type)
    for call in function.calls:
        callee = call.attributes["callee"].value
        for number, passed in enumerate((call.operands, call.results)[side]):
            if passed == value and callee in functions and callee != name:
                return _type(functions, name=callee, side=side, index=number)
    type_name = str(value.type)
    declared = function.declared[side]
    if type_name == _VIEW and index < len(declared):
        return declared[index]
    return type_name


def _parameters(ir: Any, module: Any) -> list[dict[str, str]]:
    """Return scope, key and type of each parameter, in the program's order.

    These are the parameters that a global or a constant refers to, each once.
    """
    parameters = list[dict[str, str]]()
    # Attributes that may be many megabytes as text.
    values = (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)
    for op in collect(ir, module, ("util.global", "flow.tensor.constant")):
        for name in ("initial_value", "value"):
            if name not in op.attributes or isinstance(op.attributes[name], values):
                continue
            if match := _PARAMETER.match(str(op.attributes[name])):
                parameter = {"scope": match[1] or "", "key": match[2], "type": match[3]}
                if parameter not in parameters:
                    parameters.append(parameter)
    return parameters


def _targets(ir: Any, module: Any) -> list[dict[str, Any]]:
    """Return the targets for which the devices' executables are compiled.

    Each is listed once, in the program's order.
    """
    targets = list[dict[str, Any]]()
    for op in collect(ir, module, ("util.global",)):
        attributes = op.attributes
        if (
            str(attributes["type"]) != "!hal.device"
            or "initial_value" not in attributes
        ):
            continue
        text = str(attributes["initial_value"])
        matches = list(_TARGET.finditer(text))
        ends = [*(match.start() for match in matches[1:]), len(text)]
        for match, end in zip(matches, ends, strict=True):
            features = list[str]()
            if listed := _FEATURES.search(text, match.end(), end):
                features = list(filter(None, listed[1].split(",")))
            target = {"backend": match[1], "format": match[2], "features": features}
            if target not in targets:
                targets.append(target)
    return targets


def _picks(ir: Any, module: Any) -> bool:
    """Return True if the program picks something by an integer.

    The integer may become a place in a tensor, or the distance by which a tensor is
    shifted.
    """
    if collect(ir, module, _BY_PLACE):
        return True
    for op in collect(ir, module, _CASTS):
        if str(op.results[0].type).endswith("index"):
            return True
    constants = {op.results[0] for op in collect(ir, module, ("arith.constant",))}
    return any(op.operands[1] not in constants for op in collect(ir, module, _SHIFTS))
