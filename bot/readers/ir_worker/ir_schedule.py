"""Read what a program submits, and which memory it asks for.

The IR at the end of the `stream` phase is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .ir_kinds import collect, name_of
from .ir_walk import Answer

Constants = Mapping[Any, "int | None"]
_COUNTED = {
    "fills": "stream.cmd.fill",
    "copies": "stream.cmd.copy",
    "awaits": "stream.timepoint.await",
    "submissions": "stream.cmd.execute",
}
_ALLOCA = "stream.resource.alloca"
_IMPORT = "stream.tensor.import"
_LENT = "iree.abi.transients.size"
"""The key in the reflection of a function whose caller lends it transient memory.

Its value is the function that returns the size.
"""
_MAKES_BUFFERS = (
    _ALLOCA,
    "stream.resource.alloc",
    _IMPORT,
    "stream.cmd.parameter.load",
)
_BRANCHES = ("cf.", "scf.")
_TO_BLOCKS = ("cf.br", "cf.cond_br", "cf.switch")
_CALL = "util.call"
_AWAIT = "stream.timepoint.await"
_GIVE_BACK = "stream.resource.dealloca"
_VIEW = "stream.resource.subview"
_STORE = "util.global.store"
_STEPS = (*_MAKES_BUFFERS, _CALL, _AWAIT, _GIVE_BACK, _VIEW, _STORE)


@dataclass
class _Buffer:
    """A piece of memory: its size in bytes, and its lifetime as the compiler names it.

    The size is None if only the run knows it.
    """

    size: int | None
    lifetime: str
    outlives: bool = False


@dataclass
class _Body:
    """The steps of one initializer or function, in their order."""

    name: str
    initializer: bool
    # a buffer that is made (1) or given back (-1), or the name of a function that is
    # called
    steps: list[tuple[_Buffer, int] | str] = field(default_factory=list)
    # global → the buffer that it gets first
    stores: dict[str, _Buffer] = field(default_factory=dict)
    # True where what is made depends on what happens at run time
    branches: bool = False

    @property
    def buffers(self) -> list[_Buffer]:
        """Return the buffers that the body makes itself."""
        buffers = []
        for step in self.steps:
            if not isinstance(step, str) and step[1] > 0:
                buffers.append(step[0])
        return buffers


def schedule(ir: Any, tops: list[Any], constants: Constants) -> Answer:
    """Return the fields of `bot.core.reading.Schedule`."""
    named = [top for top in tops if top.name in ("util.initializer", "util.func")]
    functions = {name_of(top): top for top in named if top.name == "util.func"}
    bodies = list[_Body]()
    dynamic_buffers = 0
    is_unclear = False
    counts = Counter[str]()
    allocated_bytes = 0
    for top in named:
        lent_bytes = _lent_bytes(ir, top, functions=functions, constants=constants)
        body = _body(ir, top, constants=constants, lent_bytes=lent_bytes)
        bodies.append(body)
        dynamic_buffers += sum(buffer.size is None for buffer in body.buffers)
        is_unclear = is_unclear or (body.branches and not body.initializer)
    for top in named:
        counts.update(op.name for op in collect(ir, top, {*_COUNTED.values()}))
        for op in collect(ir, top, (_ALLOCA,)):
            allocated_bytes += constants.get(op.operands[0]) or 0
    return {
        **{name: counts[operation] for name, operation in _COUNTED.items()},
        "allocated_bytes": allocated_bytes,
        "variable_bytes": _variable_bytes(bodies),
        "dynamic_buffers": dynamic_buffers,
        "program_memory_bytes": None if is_unclear else _peak(bodies),
    }


def _variable_bytes(bodies: list[_Body]) -> int | None:
    """Return the bytes of all variables; None if the size of one is unknown."""
    # Of each global the first buffer counts, which later ones replace. Several globals
    # may have parts of one buffer.
    first: dict[str, _Buffer] = {}
    for body in sorted(bodies, key=lambda body: not body.initializer):
        first = {**body.stores, **first}
    buffers = {id(buffer): buffer for buffer in first.values()}.values()
    total = 0
    for buffer in buffers:
        if buffer.lifetime == "variable":
            if buffer.size is None:
                return None
            total += buffer.size
    return total


def _lent_bytes(
    ir: Any, top: Any, functions: Mapping[str, Any], constants: Constants
) -> int | None:
    """Return the bytes that the caller lends a function for its transient memory.

    A function of the program returns them. None if there is no such function, or if
    only a run knows the size.
    """
    if "iree.reflection" not in top.attributes:
        return None
    reflection = top.attributes["iree.reflection"]
    if _LENT not in reflection or reflection[_LENT].value not in functions:
        return None
    returned = collect(ir, functions[reflection[_LENT].value], ("util.return",))
    if len(returned) != 1 or len(returned[0].operands) != 1:
        return None
    return constants.get(returned[0].operands[0])


class _BodyReading:
    """Reads an initializer or a function, step by step."""

    def __init__(self, top: Any, constants: Constants, lent_bytes: int | None) -> None:
        initializer = top.name == "util.initializer"
        self.body = _Body("" if initializer else name_of(top), initializer)
        self._constants = constants
        self._lent_bytes = lent_bytes
        self._buffers = dict[Any, _Buffer]()
        # True in the first block, the only one that always runs.
        self._is_first = True

    def visit(self, op: Any) -> None:
        """Read the next operation."""
        if len(op.operands):
            buffer = self._buffers.get(op.operands[0])
        else:
            buffer = None
        if op.name in _MAKES_BUFFERS:
            self._make(op)
        elif op.name == _CALL:
            self.body.steps.append(op.attributes["callee"].value)
        elif op.name == _AWAIT:
            # The results are the first operands, once they are there. The other
            # operands are timepoints.
            for result, operand in zip(op.results, op.operands):  # noqa: B905
                if waited := self._buffers.get(operand):
                    self._buffers[result] = waited
        elif op.name.startswith(_BRANCHES):
            self._branch(op)
        elif buffer and op.name == _GIVE_BACK:
            self.body.steps.append((buffer, -1))
        elif buffer and op.name == _VIEW:
            self._buffers[op.results[0]] = buffer
        elif buffer:
            buffer.outlives = True
            self.body.stores.setdefault(op.attributes["global"].value, buffer)

    def _make(self, op: Any) -> None:
        """Take in an operation that makes buffers, with one size for each."""
        if not self._is_first:
            self.body.branches = True
        results = [result for result in op.results if _lifetime(result)]
        sizes = [operand for operand in op.operands if str(operand.type) == "index"]
        is_import = op.name == _IMPORT
        if is_import:  # the sizes of the shape come first
            sizes = sizes[-1:]
        for result, size in zip(results, sizes, strict=True):
            lifetime = _lifetime(result)
            size_bytes = self._constants.get(size)
            if size_bytes is None and is_import and lifetime == "transient":
                size_bytes = self._lent_bytes
                self._lent_bytes = None  # it is lent once
            self._buffers[result] = _Buffer(size_bytes, lifetime)
            self.body.steps.append((self._buffers[result], 1))

    def _branch(self, op: Any) -> None:
        if self.body.buffers or op.name.startswith("scf."):
            self.body.branches = True
        if op.name in _TO_BLOCKS:
            self._is_first = False
        # A buffer that goes on into another block is kept: so data are loaded that
        # could not be mapped.
        for operand in op.operands:
            if passed := self._buffers.get(operand):
                passed.outlives = True


def _body(ir: Any, top: Any, constants: Constants, lent_bytes: int | None) -> _Body:
    """Return what a function does.

    `lent_bytes`: the size of the transient memory that its caller lends.
    """
    reading = _BodyReading(top, constants, lent_bytes)
    for op in collect(
        ir, top, lambda name: name in _STEPS or name.startswith(_BRANCHES)
    ):
        reading.visit(op)
    return reading.body


def _lifetime(value: Any) -> str:
    """Return `constant` of `!stream.resource<constant>`; empty for any other type."""
    head, _, tail = str(value.type).partition("!stream.resource<")
    if head:
        return ""
    return tail.rstrip(">")


def _peak(bodies: list[_Body]) -> int:
    """Return the most memory that is held at once.

    That is either during the setup, or later by the function that needs most.
    """
    held_bytes = 0
    peak = 0
    functions = {body.name: body for body in bodies if not body.initializer}
    for body in bodies:
        if body.initializer:
            peak = max(peak, held_bytes + _most(body, functions)[0])
            for buffer in body.buffers:
                if buffer.outlives:
                    held_bytes += buffer.size or 0
    for function in functions.values():
        peak = max(peak, held_bytes + _most(function, functions)[0])
    return peak


def _most(
    body: _Body, functions: Mapping[str, _Body], calling: tuple[str, ...] = ()
) -> tuple[int, int]:
    """Return the most memory that a body holds at once, and the memory at its end.

    Only memory that is given back is free again.
    """
    live = 0
    peak = 0
    for step in body.steps:
        if isinstance(step, str):
            called = functions.get(step)
            if called is not None and step not in calling:
                inner, at_its_end = _most(called, functions, (*calling, step))
                peak = max(peak, live + inner)
                live = live + at_its_end
        else:
            live += step[1] * (step[0].size or 0)
        peak = max(peak, live)
    return peak, live
