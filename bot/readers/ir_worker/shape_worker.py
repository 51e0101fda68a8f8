"""Constrains the dynamic dimensions of a model's inputs, with the compiler's own MLIR bindings.

A stand-alone script (`python shape_worker.py WHEEL_ROOT`) that answers all that `bot/readers/ir_worker/ir_worker.py`
does, and beside that, one JSON object per line:

    {"op": "constrain", "model": PATH, "out": PATH, "constraint": CONSTRAINT,
     "dimensions": [[input, dimension]] or null}
        → {"dimensions": [[input, dimension]], "refused": null}: `out` has the model, verified, with these constrained
        → {"dimensions": [], "refused": "one line"} where that cannot be said of this model; there is no `out` then

CONSTRAINT is `{"kind": "dynamic"}` (the very bytes of the model), `{"kind": "static", "size"}`,
`{"kind": "range", "min", "max"}` or `{"kind": "divisible", "by", "min", "max"}`. Inputs and dimensions count from 0;
without `dimensions` all that are dynamic are constrained, each for itself: that two of them are one is nothing that a
constraint says. The results of a static model have the types that they had where the operations are builtin ones.

An assumption is put between an input and all that uses it, in the form that the compiler itself gives the symbolic
dimensions of an exporter. A fixed size goes into the type of the input, and a cast gives all that uses it the type that
it had. The compiler's own refinement of shapes carries the size on through operations of torch; through builtin ones
the compiler does that by itself. Neither changes what comes out for inputs that satisfy the constraint.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_worker
    from bot.readers.ir_worker.ir_kinds import collect
else:
    import ir_worker
    from ir_kinds import collect

Answer = dict[str, Any]


class Shaper(ir_worker.Worker):
    """Answers what the reader of IR does, and constrains."""

    def __init__(self, ir: Any) -> None:
        super().__init__(ir)
        self._passes = importlib.import_module("iree.compiler.passmanager")
        self.answers.update(constrain=self.constrain)

    def constrain(self, request: Answer) -> Answer:
        """Write the model with its dimensions constrained, or say why it has none that could be."""
        text = Path(request["model"]).read_bytes()
        constraint = request["constraint"]
        module = self._module(text)
        try:
            function, inputs = entry(self.ir, module)
            inputs = chosen(inputs, request["dimensions"])
            if constraint["kind"] != "dynamic":
                Rewriter(self.ir, self._passes, module, function).constrain(inputs, constraint)
                text = f"{module.operation.get_asm(enable_debug_info=True)}\n".encode()
        except Refused as error:
            return {"dimensions": [], "refused": str(error)}
        Path(request["out"]).write_bytes(text)
        return {"dimensions": [[one.index, place] for one in inputs for place in one.dynamic], "refused": None}


# The entry function, and the sizes that its inputs have.


DYNAMIC = "?"
_TORCH = re.compile(r"!torch\.vtensor<\[([\d?,]+)\],((?:si|ui|i)\d+|b?f\d\w*)>")
_BUILTIN = re.compile(r"tensor<((?:(?:\d+|\?)x)+)((?:si|ui|i)\d+|b?f\d\w*|index|complex<\w+>)>")
_UNKNOWN = re.compile(r"[?*]|tensor$")
"""In a type of another form: it has dynamic dimensions, or may have some."""
_SIGN = re.compile(r"^[su](?=i)")


class Refused(Exception):
    """The model is not one of which this can be said; the text is the reason."""


@dataclass(frozen=True)
class Shape:
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


@dataclass(frozen=True)
class Input:
    """An input of the entry function that has dynamic dimensions.

    Attributes:
        dynamic: places of the dimensions that are to be constrained.
    """

    index: int
    value: Any
    shape: Shape
    dynamic: tuple[int, ...]

    def fixed(self, size: int) -> Shape:
        """The input's type where each dimension that is constrained has this size."""
        sizes = (str(size) if place in self.dynamic else old for place, old in enumerate(self.shape.sizes))
        return replace(self.shape, sizes=tuple(sizes))


def shape_of(text: str) -> Shape | None:
    """None for a type of another form."""
    if torch := _TORCH.fullmatch(text):
        return Shape(True, tuple(torch[1].split(",")), torch[2])
    if builtin := _BUILTIN.fullmatch(text):
        return Shape(False, tuple(builtin[1].split("x")[:-1]), builtin[2])
    return None


def entry(ir: Any, module: Any) -> tuple[Any, list[Input]]:
    """The function that others call, and its inputs that have dynamic dimensions; raises Refused without any."""
    functions = []
    for op in collect(ir, module, {"func.func", "util.func"}):
        visibility = op.attributes["sym_visibility"].value if "sym_visibility" in op.attributes else "public"
        if visibility != "private" and len(op.regions[0].blocks) > 0:
            functions.append(op)
    if len(functions) != 1:
        raise Refused(f"the model has {len(functions)} functions that others can call, and not one")
    inputs = []
    for index, value in enumerate(functions[0].regions[0].blocks[0].arguments):
        shape = shape_of(str(value.type))
        if shape is None and _UNKNOWN.search(str(value.type)):
            raise Refused(f"input {index} is a {value.type}, a form of which no dimension can be constrained")
        dynamic = tuple(place for place, size in enumerate(shape.sizes if shape else ()) if size == DYNAMIC)
        if shape and dynamic:
            inputs.append(Input(index, value, shape, dynamic))
    if not inputs:
        raise Refused("no input of the model has a dynamic dimension")
    return functions[0], inputs


def chosen(inputs: Sequence[Input], dimensions: Sequence[Sequence[int]] | None) -> list[Input]:
    """The inputs with the dimensions that were asked for alone; all where none were."""
    if dimensions is None:
        return list(inputs)
    dynamic = [(one.index, place) for one in inputs for place in one.dynamic]
    wanted = {(index, place) for index, place in dimensions}
    if strange := sorted(wanted - set(dynamic)):
        known = ", ".join(f"{place} of input {index}" for index, place in dynamic)
        index, place = strange[0]
        raise Refused(f"dimension {place} of input {index} is not dynamic; these are: {known}")
    narrowed = [
        replace(one, dynamic=tuple(each for each in one.dynamic if (one.index, each) in wanted)) for one in inputs
    ]
    return [one for one in narrowed if one.dynamic]


# How a constraint is written into a model, so that its compiler knows of it and what it computes stays.


_TORCH_CAST, _BUILTIN_CAST = "torch.tensor_static_info_cast", "tensor.cast"
_TO_BUILTIN, _FROM_BUILTIN = "torch_c.to_builtin_tensor", "torch_c.from_builtin_tensor"
_REFINE = "builtin.module(torch-shape-refinement-pipeline,torch-refine-public-return)"


class Rewriter:
    """Constrains inputs of one function of a module, with the bindings `ir` and `passmanager`."""

    def __init__(self, ir: Any, passes: Any, module: Any, function: Any) -> None:
        self._ir, self._passes, self._module, self._function = ir, passes, module, function

    def constrain(self, inputs: Sequence[Input], constraint: dict[str, Any]) -> None:
        """Do it in place; raises Refused where the compiler does not take what came of it."""
        ir, block = self._ir, self._function.regions[0].blocks[0]
        try:
            with self._module.context, ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
                if constraint["kind"] == "static":
                    self._fix(inputs, constraint["size"])
                else:
                    divisor = f", udiv = {constraint['by']}" if constraint["kind"] == "divisible" else ""
                    limits = f"umin = {constraint['min']}, umax = {constraint['max']}{divisor}"
                    assumption = ir.Attribute.parse(f"[[#util.int.assumption<{limits}>]]")
                    for one in inputs:
                        self._assume(one, assumption)
            self._module.operation.verify()
            if constraint["kind"] == "static" and any(one.shape.is_torch for one in inputs):
                self._refine()
        except ir.MLIRError as error:
            message = "; ".join(str(one.message) for one in error.error_diagnostics[:3]) or str(error)
            one_line = " ".join(message.split())[:400]
            raise Refused(f"the compiler does not take the model with it: {one_line}") from None

    def _assume(self, one: Input, assumption: Any) -> None:
        """All that used the input uses it with sizes of which something is known."""
        whole = one.shape.builtin
        tensor = self._make(_TO_BUILTIN, whole, one.value) if one.shape.is_torch else one.value
        results, sizes = [tensor] if one.shape.is_torch else [], []
        for place in (place for place, size in enumerate(one.shape.sizes) if size == DYNAMIC):
            number = self._make("arith.constant", "index", value=self._ir.Attribute.parse(f"{place} : index"))
            results.append(self._make("tensor.dim", "index", tensor, number))
            is_asked = place in one.dynamic
            sizes.append(
                self._make("util.assume.int", "index", results[-1], assumptions=assumption) if is_asked else results[-1]
            )
        results.append(self._make("flow.tensor.tie_shape", whole, tensor, *sizes))
        last = self._make(_FROM_BUILTIN, one.shape.text, results[-1]) if one.shape.is_torch else results[-1]
        _put_between(one.value, last, results)

    def _fix(self, inputs: Sequence[Input], size: int) -> None:
        """The inputs have the size in their types; all that used them uses what is cast to the types that they had."""
        ir = self._ir
        for one in inputs:
            one.value.set_type(ir.Type.parse(one.fixed(size).text))
            cast = self._make(_TORCH_CAST if one.shape.is_torch else _BUILTIN_CAST, one.shape.text, one.value)
            _put_between(one.value, cast, [cast])
        old = self._function.attributes["function_type"].value
        types = [argument.type for argument in self._function.regions[0].blocks[0].arguments]
        self._function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, list(old.results)))

    def _refine(self) -> None:
        """The sizes reach the results; a cast that an operation is left with becomes one that every release lowers."""
        ir, module = self._ir, self._module
        with module.context:
            self._passes.PassManager.parse(_REFINE).run(module.operation)
        for cast in collect(ir, module, {_TORCH_CAST}):
            if next(iter(cast.results[0].uses), None) is None:
                cast.erase()
                continue
            # Where both types are known a builtin cast takes the place of torch's.
            before, after = shape_of(str(cast.operands[0].type)), shape_of(str(cast.results[0].type))
            if before is not None and after is not None:
                with module.context, ir.InsertionPoint(cast), cast.location:
                    tensor = self._make(_TO_BUILTIN, before.builtin, cast.operands[0])
                    wide = self._make(_BUILTIN_CAST, replace(after, element=before.element).builtin, tensor)
                    cast.results[0].replace_all_uses_with(self._make(_FROM_BUILTIN, after.text, wide))
                cast.erase()
        module.operation.verify()

    def _make(self, name: str, type_text: str, *operands: Any, **attributes: Any) -> Any:
        """The result of a new operation."""
        types = [self._ir.Type.parse(type_text)]
        return self._ir.Operation.create(name, results=types, operands=list(operands), attributes=attributes).results[0]


def _put_between(value: Any, last: Any, results: Sequence[Any]) -> None:
    """All that used the value uses the last one, but for what the last one is made from."""
    value.replace_all_uses_with(last)
    for result in results:
        operands = result.owner.operands
        for place, operand in enumerate(operands):
            if operand == last:
                operands[place] = value


if __name__ == "__main__":
    sys.exit(ir_worker.main(sys.argv[1], Shaper))
