"""Read one model's target-independent IR.

This is the worker's answer to the request `program`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .ir_answers import Answer, Answers
from .ir_families import families
from .ir_kinds import COMPUTE_BOUND, KINDS, PLAIN, collect, is_linalg, kinds_of, name_of
from .ir_members import read

COMPONENT_CHARACTERS = 200  # a component has no more than these
_PLACE = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"(?P<position>:\d+(?::\d+)?(?: to \d*:\d+)?)?'
    r"|fused<| at "  # metadata, and the caller of a call: neither is the place itself
)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>]=|[<({\[]|[>)}\]]')
# so many places are counted in one model; what further ones have counts as without a
# place
MOST_PLACES = 1_000
_STRUCTURE = frozenset({"builtin", "func", "util", "hal", "ml_program", "cf"})
"""Dialects of the structure around the operations of a model.

They have modules, functions, weights and the calling convention around the model,
branches and assertions.
"""
_NO_OPERATIONS = frozenset({"tensor.empty", "linalg.index", "iree_linalg_ext.index"})
"""The place of a result, the number of a loop."""
_SAYS_ITS_BODY = frozenset({"linalg.generic", "linalg.map", "linalg.reduce"})
"""All other operations of linalg have the body that their name stands for."""
_CONSTANTS = frozenset({"arith.constant", "complex.constant", "ub.poison"})


def program(answers: Answers, files: Mapping[str, str]) -> Answer:
    """Return the answer; one module at a time is in memory.

    `files` has the paths of `dispatch_creation` and `stream`, and of `input`,
    `global_optimization` and `flow` where they exist.
    """
    phases: dict[str, str] = {}
    answer: Answer = {
        **answers.about(files["dispatch_creation"], _regions),
        **answers.about(files["stream"], stream),
        "phases": phases,
        "operations": None,
        "places": {},
        "linalg_ops_unfused": None,
        "sources": [],
        "sites": [],
        "families": None,
    }
    for phase, question in (("input", _model), ("global-optimization", _unfused)):
        path = files.get(phase.replace("-", "_"))
        if path is not None:
            said = answers.about(path, question)
            phases[phase] = said["digest"]
            answer |= said["facts"]
    if files.get("flow") is not None:
        answer |= answers.about(files["flow"], _flow)
    return answer


def _model(ir: Any, module: Any) -> Answer:
    return {"digest": _digest(module), "facts": contents(ir, module)}


def _unfused(ir: Any, module: Any) -> Answer:
    facts = {"linalg_ops_unfused": len(collect(ir, module, is_linalg))}
    return {"digest": _digest(module), "facts": facts}


def _regions(ir: Any, module: Any) -> Answer:
    regions = collect(ir, module, ("flow.dispatch.workgroups",))
    inside = sum(len(collect(ir, region, is_linalg)) for region in regions)
    return {"dispatch_regions": len(regions), "linalg_ops": inside}


def _flow(ir: Any, module: Any) -> Answer:
    """`sources` and `sites`, both in the program's order, and `families`."""
    sources = []
    for executable in collect(ir, module, ("flow.executable",)):
        functions = collect(ir, executable, ("func.func",))
        named = [
            *functions,
            *collect(ir, executable, ("flow.executable.export",)),
            executable,
        ]
        own_names = {name_of(op) for op in named}
        texts = {
            "generic": map(generic, functions),
            "shown": (function.get_asm(**PLAIN) for function in functions),
        }
        cleaned = {
            form: without_names("\n".join(function_texts), own_names)
            for form, function_texts in texts.items()
        }
        sources.append({"executable": name_of(executable), **cleaned})
    sites = list[Answer]()
    for top in tops_of(ir, module):
        if top.name == "flow.executable":
            continue
        for op in collect(ir, top, ("flow.dispatch",)):
            sites.append(
                {
                    "entry_point": entry_point_of(op)[-1],
                    "component": component_of(str(op.location)),
                    "initializer": top.name == "util.initializer",
                }
            )
    found_families: list[Answer] | None
    try:
        found_families = families(ir, list(read(ir, module)[0].values()))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        # Another release writes it otherwise: all else does not need it.
        found_families = None
    return {"sources": sources, "sites": sites, "families": found_families}


def _digest(module: Any) -> str:
    """Digest all functions and data of a module, without its devices.

    The module is printed as a whole: printing an operation of it takes as long. The
    module's own lines, which have its attributes, are those that are not indented.
    """
    lines = [
        line for line in generic(module.operation).split("\n") if line.startswith(" ")
    ]
    kept_lines = [
        line
        for line in lines
        if not (line.startswith('  "util.global"') and "type = !hal.device" in line)
    ]
    return hexadecimal("\n".join(kept_lines))


def tops_of(ir: Any, module: Any) -> list[Any]:
    """Return the operations at the top.

    `ir_kinds.collect` says why this is a walk.
    """
    tops: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "builtin.module":
            return ir.WalkResult.ADVANCE
        tops.append(op)
        return ir.WalkResult.SKIP

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return tops


def entry_point_of(dispatch: Any) -> tuple[str, ...]:
    """(executable, entry point) that a dispatch launches."""
    symbol = dispatch.attributes["entry_points"][0].value
    if isinstance(symbol, str):
        return (symbol,)
    return tuple(symbol)


def generic(op: Any) -> str:
    """Return the operation in generic form.

    Its name, operands, properties, regions and types are in one notation. A release
    that adds an optional operand to an operation prints one more count of 0 for it:
    this is left out.
    """
    return _TRAILING_ZEROS.sub(r"\1>", op.get_asm(print_generic_op_form=True, **PLAIN))


def hexadecimal(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def without_names(text: str, names: set[str]) -> str:
    """Replace these symbols in the text, as references and as strings, by `@`.

    Only whole symbols are replaced.
    """
    either = "|".join(re.escape(name) for name in sorted(names))
    symbols = re.compile(
        rf'(?P<string>(?<!@)"(?:{either})")|@(?:"(?:{either})"|(?:{either})(?![\w$.-]))'
    )
    return symbols.sub(lambda match: '"@"' if match["string"] else "@", text)


# What a model's own program consists of, by the `input` phase, in which whatever the
# model was written in has become operations that all targets share.


def contents(ir: Any, module: Any) -> Answer:
    """Count the operations of the model, and their places.

    `operations`: name → count. `places`: the model's own name of a place → count, ""
    for operations without one.

    Places count whole operations: neither what stands in the body of another one, nor
    constants, which many share.
    """
    operations = Counter[str]()
    places = Counter[str]()
    components = dict[str, str]()

    def visit(op: Any) -> Any:
        name = op.name
        if not is_operation(name):
            return ir.WalkResult.ADVANCE
        if name not in _CONSTANTS:
            location = str(op.location)
            if location not in components:
                components[location] = component_of(location) or ""
            place = components[location]
            places[place if place in places or len(places) < MOST_PLACES else ""] += 1
        if name.startswith("scf."):  # a loop over operations, not one that has a body
            operations[name] += 1
            return ir.WalkResult.ADVANCE
        says_its_body = name in _SAYS_ITS_BODY or not name.startswith(
            ("linalg.", "arith.")
        )
        if says_its_body:
            whole = collect(ir, op, is_operation)
        else:
            whole = [op]
        operations.update(inner_op.name for inner_op in whole)
        return ir.WalkResult.SKIP

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return {"operations": dict(operations), "places": dict(places)}


def is_operation(name: str) -> bool:
    """Return True for what computes, moves or holds values of the model.

    False for the structure around it.
    """
    dialect, _, last = name.partition(".")
    return not (
        dialect in _STRUCTURE or last in ("yield", "return") or name in _NO_OPERATIONS
    )


# The model's own name of a place, from the text of an MLIR location: that is the same
# in all compiler releases, while the bindings' classes for locations are not. Up to
# 3.11.0 there is only one, whose accessors crash the process on locations of another
# kind.


def component_of(location: str) -> str | None:
    """Return the first name in a location's text that names something.

    See MLIR's LangRef, "Location Attributes". The name of a call is its callee's alone,
    that of fused parts is the first part's that has one. Names end at their first `;`
    (TFLite joins the names of merged operations so). None for places in files, and for
    such names as `<root>` and `%0`.
    """
    if location.startswith("loc("):
        offset = len("loc(")
    else:
        offset = len(location)
    while token := _PLACE.search(location, offset):
        offset = token.end()
        if token["name"] is None:
            offset = _behind(location, offset)
        elif not token["position"] and (name := _name(token["name"])):
            return name
    return None


def _behind(text: str, start: int) -> int:
    """Return the place behind the bracket that closes the one around the start."""
    depth = 1
    for token in _BRACKETS.finditer(text, start):
        depth += (token[0] in "<({[") - (token[0] in ">)}]")
        if not depth:
            return token.end()
    return len(text)


def _name(escaped: str) -> str | None:
    r"""Return the printed name as it was.

    MLIR escapes as `\\`, or as two hexadecimal digits of a UTF-8 byte.
    """
    data = _ESCAPE.sub(
        lambda match: (
            bytes.fromhex(match[1].decode()) if len(match[1]) == 2 else match[1]
        ),
        escaped.encode("utf-8", "replace"),
    )
    name = data.decode("utf-8", "replace").partition(";")[0]
    if name == "<root>" or not any(map(str.isalpha, name)):
        return None
    return "".join(
        letter if letter.isprintable() else "?"
        for letter in name[:COMPONENT_CHARACTERS]
    )


# What the schedule of a program says, the IR at the end of the stream phase:
# executables, launches and memory.

Constants = Mapping[Any, "int | None"]
# that of `bot.core.record`, which a process beside the compiler cannot import
_INT_LIMIT = 1 << 53
_DISPATCHES = ("stream.cmd.dispatch", "stream.async.dispatch")
_TRAILING_ZEROS = re.compile(r"(SegmentSizes = array<i32: \d+(?:, \d+)*?)(?:, 0)+>")
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

It names the function that says how much.
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


def stream(ir: Any, module: Any) -> Answer:
    """Return executables and their launches.

    Of the alternatives that a launch may have, the first listed counts.
    """
    executables = collect(ir, module, ("stream.executable",))
    dispatches = collect(ir, module, _DISPATCHES)
    sites = Counter(map(entry_point_of, dispatches))
    entry_points = [
        {**entry, "sites": sites.pop((entry["executable"], entry["entry_point"]), 0)}
        for executable in executables
        for entry in _entry_points(ir, executable)
    ]
    if sites:
        raise ValueError(
            f"dispatch of {'::'.join(min(sites))}, which no stream.executable exports"
        )
    tops = tops_of(ir, module)
    makers = [
        op
        for top in tops
        if top.name != "stream.executable"
        for op in collect(ir, top, ("arith.constant",))
    ]
    constants = {op.results[0]: _integer(op.attributes["value"]) for op in makers}
    try:
        submitted: Answer | None = _schedule(ir, tops, constants)
    except (ValueError, KeyError, IndexError):
        # another release writes it otherwise: all else does not need it
        submitted = None
    return {
        "executables": len(executables),
        "entry_points": entry_points,
        "initializer_sites": sum(
            len(collect(ir, top, _DISPATCHES))
            for top in tops
            if top.name == "util.initializer"
        ),
        "schedule": submitted,
    }


def _entry_points(ir: Any, executable: Any) -> Iterator[Answer]:
    functions = {name_of(op): op for op in collect(ir, executable, ("func.func",))}
    for export in collect(ir, executable, ("stream.executable.export",)):
        function = functions.get(export.attributes["function_ref"].value)
        kinds = set[str]()
        text = ""
        if function is not None:
            kinds = kinds_of(ir, function)
            text = without_names(generic(function), {*functions})
        yield {
            "executable": name_of(executable),
            "entry_point": name_of(export),
            "kind": min(kinds, key=KINDS.index, default="other"),
            "memory_bound": bool(kinds) and not kinds & COMPUTE_BOUND,
            "bound": hexadecimal(text),
        }


def _integer(attribute: Any) -> int | None:
    """Return the value of an integer constant without its sign.

    The compiler's assumptions have it so. None for other constants, and for a value
    above `_INT_LIMIT`: not all JSON readers hold a 64-bit -1 exactly.
    """
    text, _, kind = str(attribute).rpartition(" : ")
    if not text:
        return {"true": 1, "false": 0}.get(kind)
    if kind == "index":
        bits = 64
    elif re.fullmatch(r"i\d+", kind):
        bits = int(kind[1:])
    else:
        bits = 0
    if not bits or not re.fullmatch(r"-?\d+", text):
        return None
    value: int = int(text) % 2**bits
    if value > _INT_LIMIT:
        return None
    return value


# What it submits, and which memory it asks for.


@dataclass
class _Buffer:
    """A piece of memory: its size in bytes, None where only the run tells.

    Its lifetime as the compiler names it.
    """

    size: int | None
    lifetime: str
    outlives: bool = False


@dataclass
class _Body:
    """What one initializer or function does, in its order."""

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
        """The buffers that it makes itself."""
        return [
            step[0] for step in self.steps if not isinstance(step, str) and step[1] > 0
        ]


def _schedule(ir: Any, tops: list[Any], constants: Constants) -> Answer:
    """Return the fields of `bot.core.reading.Schedule`."""
    named = [top for top in tops if top.name in ("util.initializer", "util.func")]
    functions = {name_of(top): top for top in named if top.name == "util.func"}
    bodies = list[_Body]()
    counts = Counter[str]()
    allocated_bytes = 0
    for top in named:
        lent_bytes = _lent_bytes(ir, top, functions=functions, constants=constants)
        bodies.append(_body(ir, top, constants=constants, lent_bytes=lent_bytes))
    for top in named:
        counts.update(op.name for op in collect(ir, top, {*_COUNTED.values()}))
        for op in collect(ir, top, (_ALLOCA,)):
            allocated_bytes += constants.get(op.operands[0]) or 0
    dynamic_buffers = 0
    for body in bodies:
        dynamic_buffers += sum(buffer.size is None for buffer in body.buffers)
    unclear = any(body.branches and not body.initializer for body in bodies)
    return {
        **{name: counts[operation] for name, operation in _COUNTED.items()},
        "allocated_bytes": allocated_bytes,
        "variable_bytes": _variable_bytes(bodies),
        "dynamic_buffers": dynamic_buffers,
        "program_memory_bytes": None if unclear else _peak(bodies),
    }


def _variable_bytes(bodies: list[_Body]) -> int | None:
    """Return the bytes of all variables; None where the size of one is unknown."""
    # Of each global the first buffer counts, which later ones replace. Several globals
    # may have parts of one buffer.
    first: dict[str, _Buffer] = {}
    for body in sorted(bodies, key=lambda body: not body.initializer):
        first = {**body.stores, **first}
    buffers = {id(buffer): buffer for buffer in first.values()}.values()
    sizes = [buffer.size for buffer in buffers if buffer.lifetime == "variable"]
    if None in sizes:
        return None
    return sum(filter(None, sizes))


def _lent_bytes(
    ir: Any, top: Any, functions: Mapping[str, Any], constants: Constants
) -> int | None:
    """Return the bytes that the caller lends a function for its transient memory.

    A function of the program says that. None where there is none, or where only a run
    tells.
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
    """Reads what an initializer or a function does, in its order."""

    def __init__(self, top: Any, constants: Constants, lent_bytes: int | None) -> None:
        initializer = top.name == "util.initializer"
        self.body = _Body("" if initializer else name_of(top), initializer)
        self._constants = constants
        self._lent_bytes = lent_bytes
        self._buffers = dict[Any, _Buffer]()
        # True in the first block, the only one that always runs.
        self._is_first = True

    def visit(self, op: Any) -> None:
        """Take in the next operation."""
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
    """`constant` of `!stream.resource<constant>`; empty for any other type."""
    head, _, tail = str(value.type).partition("!stream.resource<")
    if head:
        return ""
    return tail.rstrip(">")


def _peak(bodies: list[_Body]) -> int:
    """Return the most that is held at once.

    Either while it is set up, or then by the function that needs most.
    """
    held_bytes = 0
    peak = 0
    functions = {body.name: body for body in bodies if not body.initializer}
    for body in bodies:
        if body.initializer:
            peak = max(peak, held_bytes + _most(body, functions)[0])
            held_bytes += sum(
                buffer.size or 0 for buffer in body.buffers if buffer.outlives
            )
    return max(
        [peak, *(held_bytes + _most(body, functions)[0] for body in functions.values())]
    )


def _most(
    body: _Body, functions: Mapping[str, _Body], calling: tuple[str, ...] = ()
) -> tuple[int, int]:
    """Return the most that a body holds at once, and what it holds at its end.

    Only what is given back is free again.
    """
    live = peak = 0
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
