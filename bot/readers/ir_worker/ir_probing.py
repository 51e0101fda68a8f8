"""A program that also gives what its dispatches compute on the way: a result that says little hides less.

Made of a module at the end of the `flow` phase, whose function is called without fences. Imports the standard library
only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
else:
    import ir_kinds


def probe(ir: Any, module: Any) -> int:
    """Let the only public function return the result of each of its dispatches too, in order; how many these are.

    Raises ValueError where there is no such function, or it has branches or fences.
    """
    function = _function(ir, module)
    with module.context, ir.Location.unknown():
        end = ir_kinds.collect(ir, function, ("util.return",))[-1]
        view, views = ir.Type.parse("!hal.buffer_view"), []
        for op in ir_kinds.collect(ir, function, ("flow.dispatch",)):
            for value, sizes in _results(op) if op.parent == end.parent else ():
                export = ir.Operation.create(
                    "hal.tensor.export",
                    results=[view],
                    operands=[value, *sizes],
                    attributes={"source_encoding": ir.TypeAttr.get(value.type)},
                    ip=ir.InsertionPoint(end),
                )
                views.append(export.results[0])
        ir.Operation.create("util.return", operands=[*end.operands, *views], ip=ir.InsertionPoint(end))
        end.erase()
        own = function.attributes["function_type"].value
        function_type = ir.FunctionType.get(list(own.inputs), [*own.results, *[view] * len(views)])
        function.attributes["function_type"] = ir.TypeAttr.get(function_type)
        for name in ("res_attrs", "iree.reflection"):  # what is said of the old results
            if name in function.attributes:
                del function.attributes[name]
    module.operation.verify()
    return len(views)


def _function(ir: Any, module: Any) -> Any:
    functions = [op for op in ir_kinds.collect(ir, module, ("util.func",)) if len(op.regions[0].blocks)]
    visible = "sym_visibility"
    public = [op for op in functions if visible not in op.attributes or op.attributes[visible].value == "public"]
    if len(public) != 1:
        raise ValueError(f"{len(public)} public functions, not one")
    if len(public[0].regions[0].blocks) != 1 or len(ir_kinds.collect(ir, public[0], ("util.return",))) != 1:
        raise ValueError("the public function has branches")
    if any(str(argument.type) == "!hal.fence" for argument in public[0].regions[0].blocks[0].arguments):
        raise ValueError("the public function has fences")
    return public[0]


def _results(dispatch: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Each result, and its dimensions that are not fixed: the last operands, result after result."""
    count = list(dispatch.attributes["operandSegmentSizes"])[-1]
    sizes = list(dispatch.operands)[len(dispatch.operands) - count :]
    for result in dispatch.results:
        own = str(result.type).count("?")
        yield result, sizes[:own]
        sizes = sizes[own:]
