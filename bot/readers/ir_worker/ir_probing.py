"""A program that also gives what its dispatches compute on the way: a result that says little hides less.

Made of a module at the end of the `flow` phase, whose function is called without fences. Imports the standard library
only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
else:
    import ir_kinds

_VIEW = "!hal.buffer_view"
_SEGMENTS = "operandSegmentSizes"


def probe(ir: Any, module: Any) -> int:
    """Let the only public function return the result of each of its dispatches too, in order; how many these are.

    Raises:
        ValueError: where there is no such function, or it has fences.
    """
    function = _function(ir, module)
    with module.context, ir.Location.unknown():
        end = ir_kinds.collect(ir, function, ("util.return",))[-1]
        dispatches = [op for op in ir_kinds.collect(ir, function, ("flow.dispatch",)) if op.parent == end.parent]
        views = [_exported(ir, end, *each) for op in dispatches for each in _results(op)]
        ir.Operation.create("util.return", operands=[*end.operands, *views], ip=ir.InsertionPoint(end))
        end.erase()
        _retype(ir, function, len(views))
    module.operation.verify()
    return len(views)


def _function(ir: Any, module: Any) -> Any:
    found = [op for op in ir_kinds.collect(ir, module, ("util.func",)) if len(op.regions[0].blocks)]
    public = [op for op in found if _is_public(op)]
    if len(public) != 1:
        raise ValueError(f"{len(public)} public functions, not one")
    if len(public[0].regions[0].blocks) != 1 or len(ir_kinds.collect(ir, public[0], ("util.return",))) != 1:
        raise ValueError("the public function has branches")
    if any(str(argument.type) == "!hal.fence" for argument in public[0].regions[0].blocks[0].arguments):
        raise ValueError("the public function has fences")
    return public[0]


def _is_public(op: Any) -> bool:
    return "sym_visibility" not in op.attributes or op.attributes["sym_visibility"].value == "public"


def _results(dispatch: Any) -> list[tuple[Any, list[Any]]]:
    """Each result, and its dimensions that are not fixed: the last operands, result after result."""
    count = list(dispatch.attributes[_SEGMENTS])[-1]
    sizes = list(dispatch.operands)[len(dispatch.operands) - count :]
    found = []
    for result in dispatch.results:
        own = str(result.type).count("?")
        found.append((result, sizes[:own]))
        sizes = sizes[own:]
    return found


def _exported(ir: Any, end: Any, value: Any, sizes: list[Any]) -> Any:
    made = ir.Operation.create(
        "hal.tensor.export",
        results=[ir.Type.parse(_VIEW)],
        operands=[value, *sizes],
        attributes={"source_encoding": ir.TypeAttr.get(value.type)},
        ip=ir.InsertionPoint(end),
    )
    return made.results[0]


def _retype(ir: Any, function: Any, count: int) -> None:
    """Give the function's type so many more results; what is said of the old ones goes."""
    own = function.attributes["function_type"].value
    results = [*own.results, *[ir.Type.parse(_VIEW)] * count]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(list(own.inputs), results))
    for name in ("res_attrs", "iree.reflection"):
        if name in function.attributes:
            del function.attributes[name]
