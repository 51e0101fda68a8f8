"""Constrains the dynamic dimensions of a model's inputs: the worker's answer to the request `constrain`.

CONSTRAINT is `{"kind": "dynamic"}` (the very bytes of the model), `{"kind": "static", "size"}`,
`{"kind": "range", "min", "max"}` or `{"kind": "divisible", "by", "min", "max"}`. Inputs and dimensions count from 0;
all that are dynamic are constrained, each for itself: that two of them are one is nothing that a constraint says. The
results of a static model have the types that they had where the operations are builtin ones.

An assumption is put between an input and all that uses it, in the form that the compiler itself gives the symbolic
dimensions of an exporter. A fixed size goes into the type of the input, and a cast gives all that uses it the type that
it had. The compiler's own refinement of shapes carries the size on through operations of torch; through builtin ones
the compiler does that by itself. Neither changes what comes out for inputs that satisfy the constraint.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .ir_kinds import collect, functions_of

DYNAMIC = "?"
_TORCH = re.compile(r"!torch\.vtensor<\[([\d?,]+)\],((?:si|ui|i)\d+|b?f\d\w*)>")
_BUILTIN = re.compile(r"tensor<((?:(?:\d+|\?)x)+)((?:si|ui|i)\d+|b?f\d\w*|index|complex<\w+>)>")
_UNKNOWN = re.compile(r"[?*]|tensor$")  # in a type of another form: it has dynamic dimensions, or may have some
_SIGN = re.compile(r"^[su](?=i)")
_TORCH_CAST, _BUILTIN_CAST = "torch.tensor_static_info_cast", "tensor.cast"
_TO_BUILTIN, _FROM_BUILTIN = "torch_c.to_builtin_tensor", "torch_c.from_builtin_tensor"
_REFINE = "builtin.module(torch-shape-refinement-pipeline,torch-refine-public-return)"


class _Refused(Exception):
    """The model is not one of which this can be said; the text is the reason."""


class _Shape(NamedTuple):
    """The type of a tensor; sizes and element as they are written (`?`, `si32`)."""

    is_torch: bool
    sizes: tuple[str, ...]
    element: str

    @property
    def text(self) -> str:
        """The type."""
        return f"!torch.vtensor<[{','.join(self.sizes)}],{self.element}>" if self.is_torch else self.builtin

    @property
    def builtin(self) -> str:
        """The builtin type for it, whose integers have no sign where this one is torch's."""
        element = _SIGN.sub("", self.element) if self.is_torch else self.element
        return f"tensor<{''.join(f'{size}x' for size in self.sizes)}{element}>"


class _Input(NamedTuple):
    """An input of the entry function that has dynamic dimensions; `dynamic`: their places."""

    number: int
    value: Any
    shape: _Shape
    dynamic: tuple[int, ...]


def constrained(ir: Any, module: Any, constraint: dict[str, Any]) -> dict[str, Any]:
    """The model with its dimensions constrained, in place; or why it has none that could be."""
    try:
        function, inputs = _entry(ir, module)
        if constraint["kind"] != "dynamic":
            _constrain(ir, module, function, inputs, constraint)
    except _Refused as error:
        return {"dimensions": [], "refused": str(error)}
    return {"dimensions": [[one.number, place] for one in inputs for place in one.dynamic], "refused": None}


def _shape_of(text: str) -> _Shape | None:
    """None for a type of another form."""
    if torch := _TORCH.fullmatch(text):
        return _Shape(True, tuple(torch[1].split(",")), torch[2])
    builtin = _BUILTIN.fullmatch(text)
    return _Shape(False, tuple(builtin[1].split("x")[:-1]), builtin[2]) if builtin else None


def _entry(ir: Any, module: Any) -> tuple[Any, list[_Input]]:
    """The function that others call, and its inputs that have dynamic dimensions; raises _Refused without any."""
    functions = []
    for op in functions_of(ir, module, ("func.func", "util.func")).values():
        if "sym_visibility" not in op.attributes or op.attributes["sym_visibility"].value != "private":
            functions.append(op)
    if len(functions) != 1:
        raise _Refused(f"the model has {len(functions)} functions that others can call, and not one")
    inputs = []
    for number, value in enumerate(functions[0].regions[0].blocks[0].arguments):
        shape = _shape_of(str(value.type))
        if shape is None and _UNKNOWN.search(str(value.type)):
            raise _Refused(f"input {number} is a {value.type}, a form of which no dimension can be constrained")
        dynamic = tuple(place for place, size in enumerate(shape.sizes if shape else ()) if size == DYNAMIC)
        if shape and dynamic:
            inputs.append(_Input(number, value, shape, dynamic))
    if not inputs:
        raise _Refused("no input of the model has a dynamic dimension")
    return functions[0], inputs


def _constrain(ir: Any, module: Any, function: Any, inputs: Sequence[_Input], constraint: dict[str, Any]) -> None:
    """Do it in place; raises _Refused where the compiler does not take what came of it."""
    block, is_static = function.regions[0].blocks[0], constraint["kind"] == "static"
    try:
        with module.context, ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            if is_static:
                _fix(ir, function, inputs, constraint["size"])
            else:
                divisor = f", udiv = {constraint['by']}" if constraint["kind"] == "divisible" else ""
                limits = f"umin = {constraint['min']}, umax = {constraint['max']}{divisor}"
                assumption = ir.Attribute.parse(f"[[#util.int.assumption<{limits}>]]")
                for one in inputs:
                    _assume(ir, one, assumption)
        module.operation.verify()
        if is_static and any(one.shape.is_torch for one in inputs):
            _refine(ir, module)
    except ir.MLIRError as error:
        message = "; ".join(str(one.message) for one in error.error_diagnostics[:3]) or str(error)
        one_line = " ".join(message.split())[:400]
        raise _Refused(f"the compiler does not take the model with it: {one_line}") from None


def _assume(ir: Any, one: _Input, assumption: Any) -> None:
    """All that used the input uses it with sizes of which something is known."""
    whole = one.shape.builtin
    tensor = _make(ir, _TO_BUILTIN, whole, one.value) if one.shape.is_torch else one.value
    results, sizes = [tensor] if one.shape.is_torch else [], []
    for place in (place for place, size in enumerate(one.shape.sizes) if size == DYNAMIC):
        number = _make(ir, "arith.constant", "index", value=ir.Attribute.parse(f"{place} : index"))
        size = _make(ir, "tensor.dim", "index", tensor, number)
        results.append(size)
        if place in one.dynamic:
            size = _make(ir, "util.assume.int", "index", size, assumptions=assumption)
        sizes.append(size)
    results.append(_make(ir, "flow.tensor.tie_shape", whole, tensor, *sizes))
    last = _make(ir, _FROM_BUILTIN, one.shape.text, results[-1]) if one.shape.is_torch else results[-1]
    _put_between(one.value, last, results)


def _fix(ir: Any, function: Any, inputs: Sequence[_Input], size: int) -> None:
    """The inputs have the size in their types; all that used them uses what is cast to the types that they had."""
    for one in inputs:
        sizes = (str(size) if place in one.dynamic else old for place, old in enumerate(one.shape.sizes))
        one.value.set_type(ir.Type.parse(one.shape._replace(sizes=tuple(sizes)).text))
        cast = _make(ir, _TORCH_CAST if one.shape.is_torch else _BUILTIN_CAST, one.shape.text, one.value)
        _put_between(one.value, cast, [cast])
    old = function.attributes["function_type"].value
    types = [argument.type for argument in function.regions[0].blocks[0].arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, list(old.results)))


def _refine(ir: Any, module: Any) -> None:
    """The sizes reach the results; a cast that an operation is left with becomes one that every release lowers."""
    passes = importlib.import_module("iree.compiler.passmanager")
    with module.context:
        passes.PassManager.parse(_REFINE).run(module.operation)
    for cast in collect(ir, module, {_TORCH_CAST}):
        if next(iter(cast.results[0].uses), None) is None:
            cast.erase()
            continue
        # Where both types are known a builtin cast takes the place of torch's.
        before, after = _shape_of(str(cast.operands[0].type)), _shape_of(str(cast.results[0].type))
        if before is not None and after is not None:
            with module.context, ir.InsertionPoint(cast), cast.location:
                tensor = _make(ir, _TO_BUILTIN, before.builtin, cast.operands[0])
                wide = _make(ir, _BUILTIN_CAST, after._replace(element=before.element).builtin, tensor)
                cast.results[0].replace_all_uses_with(_make(ir, _FROM_BUILTIN, after.text, wide))
            cast.erase()
    module.operation.verify()


def _make(ir: Any, name: str, type_text: str, *operands: Any, **attributes: Any) -> Any:
    """The result of a new operation."""
    types = [ir.Type.parse(type_text)]
    return ir.Operation.create(name, results=types, operands=list(operands), attributes=attributes).results[0]


def _put_between(value: Any, last: Any, results: Sequence[Any]) -> None:
    """All that used the value uses the last one, but for what the last one is made from."""
    value.replace_all_uses_with(last)
    for result in results:
        operands = result.owner.operands
        for place, operand in enumerate(operands):
            if operand == last:
                operands[place] = value
