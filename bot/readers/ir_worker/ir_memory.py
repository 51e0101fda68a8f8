"""Which memory a program asks for, and what it submits: read from its schedule, the IR at the end of the stream phase.

Imports the standard library only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
else:
    import ir_kinds  # the script's own folder is first on sys.path

_COUNTED = {
    "fills": "stream.cmd.fill",
    "copies": "stream.cmd.copy",
    "awaits": "stream.timepoint.await",
    "submissions": "stream.cmd.execute",
}
_ALLOCA = "stream.resource.alloca"
_ALLOCATIONS = (_ALLOCA, "stream.resource.alloc")
_IMPORT, _LOAD = "stream.tensor.import", "stream.cmd.parameter.load"
_MAKES_BUFFERS = (*_ALLOCATIONS, _IMPORT, _LOAD)
_BRANCHES = ("cf.", "scf.")
_CALL, _AWAIT = "util.call", "stream.timepoint.await"
_GIVE_BACK, _VIEW, _STORE = "stream.resource.dealloca", "stream.resource.subview", "util.global.store"
_STEPS = (*_MAKES_BUFFERS, _CALL, _AWAIT, _GIVE_BACK, _VIEW, _STORE)


@dataclass
class _Buffer:
    """A piece of memory: its size in bytes, None where only the run tells; its lifetime as the compiler names it."""

    size: int | None
    lifetime: str
    outlives: bool = False


@dataclass
class _Body:
    """What one initializer or function does, in its order.

    Attributes:
        steps: a buffer that is made (1) or given back (-1), or the name of a function that is called.
        stores: global → the buffer that it gets first.
        branches: True where what is made depends on what happens at run time.
    """

    name: str
    initializer: bool
    steps: list[tuple[_Buffer, int] | str] = field(default_factory=list)
    stores: dict[str, _Buffer] = field(default_factory=dict)
    branches: bool = False

    @property
    def buffers(self) -> list[_Buffer]:
        """The buffers that it makes itself."""
        return [step[0] for step in self.steps if not isinstance(step, str) and step[1] > 0]


def schedule(ir: Any, tops: list[Any], constants: Mapping[Any, int | None]) -> dict[str, Any]:
    """What `bot.core.reading.Schedule` has."""
    named = [top for top in tops if top.name in ("util.initializer", "util.func")]
    bodies = [_body(ir, top, constants) for top in named]
    names = Counter(op.name for top in named for op in ir_kinds.collect(ir, top, {*_COUNTED.values()}))
    allocas = [op for top in named for op in ir_kinds.collect(ir, top, (_ALLOCA,))]
    buffers = [buffer for body in bodies for buffer in body.buffers]
    unclear = any(body.branches and not body.initializer for body in bodies)
    # Of each global the first buffer, which later ones replace; several globals may have parts of one.
    first: dict[str, _Buffer] = {}
    for body in sorted(bodies, key=lambda body: not body.initializer):
        first = {**body.stores, **first}
    variables = [
        each.size for each in {id(each): each for each in first.values()}.values() if each.lifetime == "variable"
    ]
    return {
        **{name: names[operation] for name, operation in _COUNTED.items()},
        "allocated_bytes": sum(constants.get(op.operands[0]) or 0 for op in allocas),
        "variable_bytes": None if None in variables else sum(filter(None, variables)),
        "dynamic_buffers": sum(buffer.size is None for buffer in buffers),
        "program_memory_bytes": None if unclear else _peak(bodies),
    }


def _body(ir: Any, top: Any, constants: Mapping[Any, int | None]) -> _Body:
    initializer = top.name == "util.initializer"
    body = _Body("" if initializer else top.attributes["sym_name"].value, initializer)
    buffers: dict[Any, _Buffer] = {}
    for op in ir_kinds.collect(ir, top, lambda name: name in _STEPS or name.startswith(_BRANCHES)):
        buffer = buffers.get(op.operands[0]) if len(op.operands) else None
        if op.name in _MAKES_BUFFERS:
            for result, size in _sizes(op, constants):
                buffers[result] = _Buffer(size, _lifetime(result))
                body.steps.append((buffers[result], 1))
        elif op.name == _CALL:
            body.steps.append(op.attributes["callee"].value)
        elif op.name == _AWAIT:  # the results are the first operands, once they are there
            for result, value in zip(op.results, op.operands):  # noqa: B905 - the other operands are timepoints
                buffers.update({result: buffers[value]} if value in buffers else {})
        elif op.name.startswith(_BRANCHES):
            body.branches = body.branches or bool(body.buffers) or op.name.startswith("scf.")
            # A buffer that goes on into another block is kept: so data are loaded that could not be mapped.
            for passed in filter(None, map(buffers.get, op.operands)):
                passed.outlives = True
        elif buffer and op.name == _GIVE_BACK:
            body.steps.append((buffer, -1))
        elif buffer and op.name == _VIEW:
            buffers[op.results[0]] = buffer
        elif buffer:
            buffer.outlives = True
            body.stores.setdefault(op.attributes["global"].value, buffer)
    return body


def _sizes(op: Any, constants: Mapping[Any, int | None]) -> Iterator[tuple[Any, int | None]]:
    """Each buffer with its size: one operand for each, of an import the last, behind the shape's own."""
    results = [result for result in op.results if _lifetime(result)]
    sizes = [operand for operand in op.operands if str(operand.type) == "index"]
    if op.name == _IMPORT:
        sizes = sizes[-1:]
    if len(sizes) != len(results):
        raise ValueError(f"{op.name} has {len(results)} buffers and {len(sizes)} sizes")
    return ((result, constants.get(size)) for result, size in zip(results, sizes, strict=True))


def _lifetime(value: Any) -> str:
    """`constant` of `!stream.resource<constant>`; empty for any other type."""
    head, _, tail = str(value.type).partition("!stream.resource<")
    return "" if head else tail.rstrip(">")


def _peak(bodies: list[_Body]) -> int:
    """The most that is held at once: while it is set up, or then by the function that needs most."""
    held, peak = 0, 0
    functions = {body.name: body for body in bodies if not body.initializer}
    for body in bodies:
        if body.initializer:
            peak = max(peak, held + _most(body, functions)[0])
            held += sum(buffer.size or 0 for buffer in body.buffers if buffer.outlives)
    return max([peak, *(held + _most(body, functions)[0] for body in functions.values())])


def _most(body: _Body, functions: Mapping[str, _Body], calling: tuple[str, ...] = ()) -> tuple[int, int]:
    """The most that it holds at once, and what it holds at its end: only what is given back is free again."""
    live = most = 0
    for step in body.steps:
        if isinstance(step, str):
            called = functions.get(step)
            if called is not None and step not in calling:
                inner, at_its_end = _most(called, functions, (*calling, step))
                most, live = max(most, live + inner), live + at_its_end
        else:
            live += step[1] * (step[0].size or 0)
        most = max(most, live)
    return most, live
