"""Decide what an executable's main operation is, and walk IR.

An explicit table of priorities decides.

Like all of this folder it imports the standard library only: the worker loads it into
the measured compiler's process, where there is no bot. `ir` is the module
`iree.compiler.ir` of that compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

KINDS = (
    "attention",
    "conv",
    "matmul",
    "fft",
    "winograd",
    "sort",
    "topk",
    "scatter",
    "scan",
    "softmax",
    "reduction",
    "pooling",
    "gather",
    "im2col",
    "encode",
    "pack",
    "unpack",
    "transpose",
    "elementwise",
    "broadcast",
    "pad",
    "copy",
    "fill",
    "other",
)
"""All kinds, costliest first.

An executable is of the first of these kinds that one of its operations has.
"""
COMPUTE_BOUND = frozenset({"attention", "conv", "matmul"})

_EXACT = {
    "linalg.softmax": "softmax",
    "linalg.transpose": "transpose",
    "linalg.broadcast": "broadcast",
    "linalg.copy": "copy",
    "linalg.pack": "pack",
    "linalg.unpack": "unpack",
    "tensor.pack": "pack",
    "tensor.unpack": "unpack",
    "tensor.pad": "pad",
    "iree_encoding.set_encoding": "encode",
    "iree_encoding.unset_encoding": "encode",
    "iree_linalg_ext.arg_compare": "reduction",
    "iree_linalg_ext.exp_reduction": "reduction",
    "linalg.reduce": "reduction",
    "iree_tensor_ext.dispatch.tensor.store": "copy",
}
_NAME_PARTS = (
    ("attention", "attention"),
    ("winograd", "winograd"),
    ("im2col", "im2col"),
    ("conv", "conv"),
    ("matmul", "matmul"),
    ("mmt4d", "matmul"),
    ("matvec", "matmul"),
    ("vecmat", "matmul"),
    ("linalg.contract", "matmul"),
    ("linalg.dot", "matmul"),
    ("pooling", "pooling"),
    ("fill", "fill"),
    ("fft", "fft"),
    ("topk", "topk"),
    ("scatter", "scatter"),
    ("map_store", "scatter"),
    ("sort", "sort"),
    ("gather", "gather"),
    ("map_load", "gather"),
    ("scan", "scan"),
    ("unpack", "unpack"),
    ("pack", "pack"),
    ("iree_linalg_ext.", "other"),
    ("linalg.", "elementwise"),
)
"""Part of a name → the kind of other named operations of linalg and iree_linalg_ext.

The first part that is in the name decides.
"""

_NOT_COUNTED = frozenset(
    {"linalg.yield", "linalg.index", "iree_linalg_ext.yield", "iree_linalg_ext.index"}
)
_MULTIPLY = frozenset({"arith.mulf", "arith.muli", "arith.andi", "complex.mul"})
_ACCUMULATE = frozenset({"arith.addf", "arith.addi", "arith.ori", "complex.add"})
_CASTS = frozenset(
    {
        "arith.extf",
        "arith.extsi",
        "arith.extui",
        "arith.truncf",
        "arith.trunci",
        "arith.sitofp",
        "arith.uitofp",
    }
)
PLAIN = {"use_local_scope": True, "enable_debug_info": False}
"""Options that print IR so that its place does not show."""


def collect(
    ir: Any, root: Any, names: Collection[str] | Callable[[str], bool]
) -> list[Any]:
    """Return the operations of these names in the root, inner ones first.

    Walks give plain operations. Iterating over a block, or asking a value for its
    owner, would give typed views and import the dialect's Python module for them, which
    takes longer than all the rest.
    """
    is_named = names if callable(names) else names.__contains__
    operations: list[Any] = []

    def visit(op: Any) -> Any:
        if is_named(op.name):
            operations.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return operations


def name_of(op: Any) -> str:
    """Return the symbol that an operation defines."""
    return str(op.attributes["sym_name"].value)


def functions_of(ir: Any, module: Any) -> dict[str, Any]:
    """Return the functions with a body, by name."""
    functions = dict[str, Any]()
    for op in collect(ir, module, ("util.func",)):
        if len(op.regions[0].blocks):
            functions[name_of(op)] = op
    return functions


def makers_of(operations: Iterable[Any]) -> dict[Any, Any]:
    """Return each result of these operations → its operation."""
    makers = dict[Any, Any]()
    for op in operations:
        makers.update(dict.fromkeys(op.results, op))
    return makers


def is_public(function: Any) -> bool:
    """Return True if others can call the function."""
    visibility = "sym_visibility"
    return (
        visibility not in function.attributes
        or function.attributes[visibility].value == "public"
    )


def is_linalg(name: str) -> bool:
    """Return True for the structured operations of linalg and iree_linalg_ext."""
    return name.startswith(("linalg.", "iree_linalg_ext.")) and name not in _NOT_COUNTED


def kinds_of(ir: Any, function: Any) -> set[str]:
    """Return the kinds of a function's operations; empty if none is known."""
    operations = collect(ir, function, lambda name: name in _EXACT or is_linalg(name))
    return {_kind_of(ir, op) for op in operations}


def _kind_of(ir: Any, op: Any) -> str:
    if op.name == "linalg.generic":
        return _Generic(ir, op).kind()
    if op.name in _EXACT:
        return _EXACT[op.name]
    return next(kind for part, kind in _NAME_PARTS if part in op.name)


class _Generic:
    """A `linalg.generic`, classified by its loops, its indexing maps and its body."""

    def __init__(self, ir: Any, op: Any) -> None:
        *body, self.terminator, _ = collect(ir, op, lambda _: True)
        self.ir = ir
        self.body = body
        self.makers = makers_of(body)
        maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
        count = op.attributes["operandSegmentSizes"][0]
        self.input_maps = maps[:count]
        self.output_map = maps[count]
        arguments = op.regions[0].blocks[0].arguments
        self.inputs = {arguments[number]: number for number in range(count)}
        self.parallel = set[int]()
        self.reduces = False
        for loop, kind in enumerate(op.attributes["iterator_types"]):
            if str(kind).endswith("reduction>"):
                self.reduces = True
            else:
                self.parallel.add(loop)

    def kind(self) -> str:
        """Return one of KINDS."""
        if self.reduces:
            return self._kind_of_reduction()
        if self.body:
            if any(op.name == "tensor.extract" for op in self.body):
                return "gather"
            return "elementwise"
        # An empty body yields an operand as it is.
        number = self.inputs.get(self.terminator.operands[0])
        source = None if number is None else self.input_maps[number]
        if source is None or not len(source.results):
            return "fill"
        if source == self.output_map:
            return "copy"
        if source.is_permutation and self.output_map.is_permutation:
            return "transpose"
        return "broadcast"

    def _kind_of_reduction(self) -> str:
        is_windowed = self._is_windowed()
        factors = self._factors()
        if factors is None:
            if is_windowed:
                return "pooling"
            return "reduction"
        if is_windowed:
            return "conv"
        # Where every parallel loop moves both factors nothing is used twice: dot products
        # are mere reductions.
        if any(self.parallel - self._loops_of_factor(factor) for factor in factors):
            return "matmul"
        return "reduction"

    def _is_windowed(self) -> bool:
        """Return True if an input is read at a sum of loops (`d0 * 2 + d3`)."""
        for input_map in self.input_maps:
            for result in input_map.results:
                is_sum = isinstance(result, self.ir.AffineAddExpr)
                if is_sum and len(self._loops(result)) > 1:
                    return True
        return False

    def _loops_of_factor(self, factor: set[int]) -> set[int]:
        """Return the loops that move a factor, which is the numbers of its inputs."""
        loops = set[int]()
        for number in factor:
            for result in self.input_maps[number].results:
                loops |= self._loops(result)
        return loops

    def _factors(self) -> tuple[set[int], set[int]] | None:
        """Return the inputs that a multiply-accumulate body multiplies.

        None for other bodies, and for squares.
        """
        total = self._maker(self.terminator.operands[0])
        operands = ()
        if total is not None and total.name in _ACCUMULATE:
            operands = total.operands
        for product in map(self._maker, operands):
            if product is None or product.name not in _MULTIPLY:
                continue
            multiplicands, multipliers = map(self._inputs_of, product.operands)
            if multiplicands and multipliers and not multiplicands & multipliers:
                return multiplicands, multipliers
        return None

    def _maker(self, value: Any) -> Any:
        """Return the body's operation that made a value, seen through conversions.

        None for any other value.
        """
        maker = self.makers.get(value)
        while maker is not None and maker.name in _CASTS:
            maker = self.makers.get(maker.operands[0])
        return maker

    def _inputs_of(self, value: Any) -> set[int]:
        """Return the numbers of the inputs that a value is computed from.

        The zero points of quantised factors are inputs, too.
        """
        maker = self.makers.get(value)
        if maker is not None:
            return set().union(*map(self._inputs_of, maker.operands))
        if value in self.inputs:
            return {self.inputs[value]}
        return set()

    def _loops(self, expression: Any) -> set[int]:
        if isinstance(expression, self.ir.AffineDimExpr):
            return {expression.position}
        if isinstance(expression, self.ir.AffineBinaryExpr):
            return self._loops(expression.lhs) | self._loops(expression.rhs)
        return set()
