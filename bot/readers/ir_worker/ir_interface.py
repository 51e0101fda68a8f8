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
_ARGUMENT, _RESULT = 0, 1
_HOLDERS = ("util.global", "flow.tensor.constant")
"""Operations that may hold a parameter."""


def interface(ir: Any, module: Any) -> dict[str, Any]:
    """The fields of `bot.readers.ir_facts.Interface`."""
    with_body = (op for op in ir_kinds.collect(ir, module, ("util.func",)) if len(op.regions[0].blocks))
    functions = {op.attributes["sym_name"].value: _Function(ir, op) for op in with_body}
    called = {call.attributes["callee"].value for each in functions.values() for call in each.calls}
    public = {name: each for name, each in functions.items() if each.is_public and name not in called}
    extents = Extents(ir, module)
    for name, each in public.items():
        for index, value in enumerate(each.values[_ARGUMENT]):
            extents.add(value, {(name, str(index)): OWN})
    parameters = _parameters(ir, module, extents)
    extents.follow()
    named = module.operation.attributes
    return {
        "module": named["sym_name"].value if "sym_name" in named else "module",
        "functions": [
            {
                "name": name,
                "arguments": [_type(functions, name, _ARGUMENT, at) for at in range(len(each.values[_ARGUMENT]))],
                "extents": [extents.limits.get((name, str(at))) for at in range(len(each.values[_ARGUMENT]))],
                "results": [_type(functions, name, _RESULT, at) for at in range(len(each.values[_RESULT]))],
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
    """One function, by what passes its borders: arguments first, then results.

    Attributes:
        borders: value → the operation that imports or exports it.
        declared: types as the source had them; empty where the compiler did not write them down.
    """

    def __init__(self, ir: Any, op: Any) -> None:
        names = ("hal.tensor.import", "hal.tensor.export", "util.call", "util.return", "util.global.store")
        inner = ir_kinds.collect(ir, op, names)
        self.is_public = "sym_visibility" not in op.attributes or op.attributes["sym_visibility"].value == "public"
        returned = [value for each in inner if each.name == "util.return" for value in each.operands]
        self.values = (list(op.regions[0].blocks[0].arguments), returned)
        self.borders = (
            {each.operands[0]: each for each in inner if each.name == "hal.tensor.import"},
            {each.results[0]: each for each in inner if each.name == "hal.tensor.export"},
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
        return str(
            op.attributes[encoding].value if encoding in op.attributes else (op.results, op.operands)[side][0].type
        )
    for call in function.calls:
        callee = call.attributes["callee"].value
        for number, passed in enumerate((call.operands, call.results)[side]):
            if passed == value and callee in functions and callee != name:
                return _type(functions, callee, side, number)
    own, declared = str(value.type), function.declared[side]
    return declared[index] if own == _VIEW and index < len(declared) else own


def _parameters(ir: Any, module: Any, extents: Extents) -> list[tuple[str, str, str]]:
    """Scope, key and type of every parameter that a global or a constant refers to, once, in the program's order."""
    parameters: dict[tuple[str, str, str], None] = {}
    values = (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)  # which may be many megabytes as text
    for op in ir_kinds.collect(ir, module, _HOLDERS):
        for name in ("initial_value", "value"):
            if name not in op.attributes or isinstance(op.attributes[name], values):
                continue
            if match := _PARAMETER.match(str(op.attributes[name])):
                scope, key, kind = match[1] or "", match[2], match[3]
                parameters[scope, key, kind] = None
                if name == "value":
                    extents.add(op.results[0], {("", scope, key): OWN})
                else:
                    extents.hold(op.attributes["sym_name"].value, {("", scope, key): OWN})
    return list(parameters)


def _targets(ir: Any, module: Any) -> list[dict[str, Any]]:
    """What the devices' executables are compiled for, each once, in the program's order."""
    targets: dict[tuple[str, str, tuple[str, ...]], None] = {}
    for op in ir_kinds.collect(ir, module, ("util.global",)):
        if str(op.attributes["type"]) != "!hal.device" or "initial_value" not in op.attributes:
            continue
        backends = list(_TARGET.finditer(text := str(op.attributes["initial_value"])))
        for match, after in zip(backends, [*backends[1:], None], strict=True):
            features = _FEATURES.search(text, match.end(), after.start() if after else len(text))
            targets[match[1], match[2], tuple(filter(None, features[1].split(","))) if features else ()] = None
    return [{"backend": backend, "format": form, "features": list(has)} for backend, form, has in targets]
