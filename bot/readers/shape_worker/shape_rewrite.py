"""How a constraint is written into a model, so that its compiler knows of it and what it computes stays.

An assumption is put between an input and all that uses it, in the form that the compiler itself gives the symbolic
dimensions of an exporter. A fixed size goes into the type of the input, and a cast gives all that uses it the type that
it had. The compiler's own refinement of shapes carries the size on through operations of torch; through builtin ones
the compiler does that by itself. Neither changes what comes out for inputs that satisfy the constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker.ir_kinds import collect
    from bot.readers.shape_worker.shape_inputs import DYNAMIC, Input, Refused, shape_of
else:
    from ir_kinds import collect
    from shape_inputs import DYNAMIC, Input, Refused, shape_of

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
