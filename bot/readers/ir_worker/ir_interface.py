"""What a program takes and gives: its public functions, its parameters, and what its executables are compiled for.

From the module at the end of the `flow` phase. Imports the standard library only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
    from bot.readers.ir_worker.ir_indices import OWN, Extents
else:
    import ir_kinds
    from ir_indices import OWN, Extents

_PARAMETER = re.compile(r'#flow\.parameter\.named<(?:"([^"]*)"::)?"([^"]*)"(?:, \{.*\})?> : (.+)', re.DOTALL)
_TARGET = re.compile(r'#hal\.executable\.target<"([^"]*)", "([^"]*)"')
_FEATURES = re.compile(r'\bcpu_features = "([^"]*)"')
_DECLARED = re.compile(r"%\w+: (tensor<[^>]*>|[a-z]\w*)")
_VIEW = "!hal.buffer_view"
_HOLDERS = ("util.global", "flow.tensor.constant")
"""Operations that may hold a parameter."""


def interface(ir: Any, module: Any) -> dict[str, Any]:
    """The fields of `bot.readers.interfaces.Interface`."""
    functions = _functions(ir, module)
    called = {call.attributes["callee"].value for each in functions.values() for call in each.calls}
    public = {name: each for name, each in functions.items() if each.is_public and name not in called}
    extents = Extents(ir, module)
    for name, each in public.items():
        for index, value in enumerate(each.arguments):
            extents.add(value, {(name, str(index)): OWN})
    parameters = _parameters(ir, module, extents)
    extents.follow()
    return {
        "module": module.operation.attributes["sym_name"].value
        if "sym_name" in module.operation.attributes
        else "module",
        "functions": [
            {
                "name": name,
                "arguments": [_argument(functions, name, index) for index in range(len(each.arguments))],
                "extents": [extents.limits.get((name, str(index))) for index in range(len(each.arguments))],
                "results": [_result(functions, name, index) for index in range(len(each.returned))],
            }
            for name, each in public.items()
        ],
        "parameters": [
            {"scope": scope, "key": key, "type": kind, "extent": extents.limits.get(("", scope, key))}
            for scope, key, kind in parameters
        ],
        "targets": _targets(ir, module),
        "remembers": any(each.remembers for each in functions.values()),
    }


class _Function:
    """One function, by what passes its borders."""

    def __init__(self, ir: Any, op: Any) -> None:
        names = ("hal.tensor.import", "hal.tensor.export", "util.call", "util.return", "util.global.store")
        inner = ir_kinds.collect(ir, op, names)
        self.is_public = "sym_visibility" not in op.attributes or op.attributes["sym_visibility"].value == "public"
        self.arguments = list(op.regions[0].blocks[0].arguments)
        self.imports = {each.operands[0]: each for each in inner if each.name == "hal.tensor.import"}
        self.exports = {each.results[0]: each for each in inner if each.name == "hal.tensor.export"}
        self.calls = [each for each in inner if each.name == "util.call"]
        self.returned = [value for each in inner if each.name == "util.return" for value in each.operands]
        self.remembers = any(each.name == "util.global.store" for each in inner)
        self.declared = _declared(op)


def _functions(ir: Any, module: Any) -> dict[str, _Function]:
    """Name → function, of those that have a body."""
    found = (op for op in ir_kinds.collect(ir, module, ("util.func",)) if len(op.regions[0].blocks))
    return {op.attributes["sym_name"].value: _Function(ir, op) for op in found}


def _declared(op: Any) -> tuple[list[str], list[str]]:
    """Types of arguments and results as the source had them; empty where the compiler did not write them down."""
    if "iree.reflection" not in op.attributes or "iree.abi.declaration" not in op.attributes["iree.reflection"]:
        return [], []
    taken, _, given = op.attributes["iree.reflection"]["iree.abi.declaration"].value.partition(" -> ")
    return _DECLARED.findall(taken), _DECLARED.findall(given)


def _argument(functions: dict[str, _Function], name: str, index: int) -> str:
    """The type that an argument is imported as, here or in the function that it is handed to; else what it is."""
    function = functions[name]
    value = function.arguments[index]
    if value in function.imports:
        return _type(function.imports[value], "target_encoding", "results")
    for call in function.calls:
        for number, operand in enumerate(call.operands):
            callee = call.attributes["callee"].value
            if operand == value and callee in functions and callee != name:
                return _argument(functions, callee, number)
    return _said(value, function.declared[0], index)


def _result(functions: dict[str, _Function], name: str, index: int) -> str:
    """The type that a result is exported as, here or in the function that it comes from; else what it is."""
    function = functions[name]
    value = function.returned[index]
    if value in function.exports:
        return _type(function.exports[value], "source_encoding", "operands")
    for call in function.calls:
        for number, result in enumerate(call.results):
            callee = call.attributes["callee"].value
            if result == value and callee in functions and callee != name:
                return _result(functions, callee, number)
    return _said(value, function.declared[1], index)


def _said(value: Any, declared: list[str], index: int) -> str:
    """A value's own type; of a buffer view what the source said of it."""
    own = str(value.type)
    return declared[index] if own == _VIEW and index < len(declared) else own


def _type(op: Any, encoding: str, side: str) -> str:
    if encoding in op.attributes:
        return str(op.attributes[encoding].value)
    return str(getattr(op, side)[0].type)


def _parameters(ir: Any, module: Any, extents: Extents) -> list[tuple[str, str, str]]:
    """Scope, key and type of every parameter that a global or a constant refers to, once, in the program's order."""
    found: dict[tuple[str, str, str], None] = {}
    for op in ir_kinds.collect(ir, module, _HOLDERS):
        for name in ("initial_value", "value"):
            text = _opaque_text(ir, op.attributes[name]) if name in op.attributes else ""
            if match := _PARAMETER.match(text):
                scope, key, kind = match[1] or "", match[2], match[3]
                found[scope, key, kind] = None
                if name == "value":
                    extents.add(op.results[0], {("", scope, key): OWN})
                else:
                    extents.hold(op.attributes["sym_name"].value, {("", scope, key): OWN})
    return list(found)


def _opaque_text(ir: Any, attribute: Any) -> str:
    """An attribute as text, unless it holds values, which may be many megabytes."""
    return "" if isinstance(attribute, (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)) else str(attribute)


def _targets(ir: Any, module: Any) -> list[dict[str, Any]]:
    """What the devices' executables are compiled for, each once, in the program's order."""
    found: dict[tuple[str, str, tuple[str, ...]], None] = {}
    for op in ir_kinds.collect(ir, module, ("util.global",)):
        if str(op.attributes["type"]) != "!hal.device" or "initial_value" not in op.attributes:
            continue
        backends = list(_TARGET.finditer(said := str(op.attributes["initial_value"])))
        for match, after in zip(backends, [*backends[1:], None], strict=True):
            features = _FEATURES.search(said, match.end(), after.start() if after else len(said))
            found[match[1], match[2], tuple(filter(None, features[1].split(","))) if features else ()] = None
    return [{"backend": backend, "format": form, "features": list(has)} for backend, form, has in found]
