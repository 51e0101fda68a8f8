"""What a compiler's IR dumps say, read with that compiler's own MLIR bindings in a process of their own.

A stand-alone script (`python ir_worker.py WHEEL_ROOT`): beside its siblings `ir_*` it imports the standard library
and, from WHEEL_ROOT, `iree.compiler.ir`; nothing of the bot. One JSON object per line, one answer a request:

    first → {"ready": true}, or {"error": "one line"} and the end
    {"op": "program", "dispatch_creation": PATH, "stream": PATH,
     and where at hand "input": PATH, "global_optimization": PATH, "flow": PATH}
        → {"dispatch_regions", "linalg_ops", "executables": int,
           "linalg_ops_before": int, or null without global_optimization,
           "entry_points": [{"executable", "entry_point", "kind", "memory_bound", "bound", "bound_parts", "sites"}],
           "phases": {"input", "global-optimization": 64 hexadecimal digits}, those at hand,
           "operations": {operation: count}, or null without input,
           "places": {component, "" for none: count}, empty without input,
           "sources": [{"executable", "generic", "shown"}], empty without flow,
           "sites": [{"entry_point", "component": text or null, "initializer": bool}], empty without flow,
           "families": [{"kind", "members": [executable], "varying": [one line]}], or null where that is not known,
           "arguments": [{"entry_point", "index", "type", "values": [int], "distinct": int,
                          "divisor": int, or null where not all are constant, "unknown_sites": int}]}
    {"op": "allocas", "executable_targets": PATH}
        → {"functions": {name: bytes, null where not constant}}, empty where no function of the file allocates
    {"op": "strategies", "executable_configurations": PATH}
        → {"functions": {name: one line}}, the functions that the compiler configured
    {"op": "interface", "flow": PATH}
        → {"functions": [{"name", "arguments": [type], "results": [type]}],
           "parameters": [{"scope", "key", "type"}],
           "targets": [{"backend", "format", "features": [text]}]}
    {"op": "probe", "flow": PATH, "probed": PATH}
        → {"probes": int}; the module is written to `probed`, so many results of dispatches behind its own
    anything that goes wrong → {"error": "one line"}; the worker lives until its input ends

The files are those of `--dump-compilation-phases-to`: `1.input`, `4.global-optimization`, `5.dispatch-creation`,
`6.flow`, `7.stream`, `9.executable-configurations`, `10.executable-targets`. The fields mean what they mean in
`bot.core.reading` and `bot.core.program`, those of `interface` in `bot.readers.ir_facts`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
    from bot.readers.ir_worker.ir_interface import interface
    from bot.readers.ir_worker.ir_probing import probe
    from bot.readers.ir_worker.ir_program import ProgramReader
    from bot.readers.ir_worker.ir_strategies import strategies
else:
    import ir_kinds  # the script's own folder is first on sys.path
    from ir_interface import interface
    from ir_probing import probe
    from ir_program import ProgramReader
    from ir_strategies import strategies

Answer = dict[str, Any]
HERE = "on this machine: "
"""`bot.core.policy.HERE`."""
_UNUSED_MODULES = ("numpy", "iree.compiler.dialects.linalg", "iree.compiler.dialects.llvm")


class Worker:
    """Answers requests with the bindings it is given (the module `iree.compiler.ir`)."""

    def __init__(self, ir: Any) -> None:
        self.ir = ir
        self.answers: dict[str, Callable[[Answer], Answer]] = {
            "program": ProgramReader(ir, self._load).answer,
            "allocas": lambda request: self.allocas(request["executable_targets"]),
            "strategies": lambda request: self.strategies(request["executable_configurations"]),
            "interface": lambda request: interface(ir, self._load(request["flow"])),
            "probe": lambda request: self.probe(request["flow"], request["probed"]),
        }

    def answer(self, line: str) -> Answer:
        """The answer to one request; never raises."""
        try:
            request = json.loads(line)
            answer = self.answers.get(request["op"])
            return answer(request) if answer else {"error": f"unknown op {request['op']!r}"}
        except Exception as error:
            return {"error": _one_line(error)}

    def strategies(self, executable_configurations: str) -> Answer:
        """Function → the configuration chosen for it."""
        return {"functions": strategies(self.ir, self._load(executable_configurations))}

    def probe(self, flow: str, probed: str) -> Answer:
        """How many dispatches' results the module gives beside its own, which is written."""
        module = self._load(flow)
        count = probe(self.ir, module)
        with open(probed, "w", encoding="utf-8") as file:
            file.write(f"{module}\n")
        return {"probes": count}

    def allocas(self, executable_targets: str) -> Answer:
        """Function → bytes of its stack allocations, added up as the compiler's gate does."""
        text = _read(executable_targets)
        if b"llvm.alloca" not in text and b"llvm.func" in text:
            return {"functions": {}}  # nothing allocates: the parse, all of the time, could only yield zeros
        module, sizes = self._module(text), Counter[str]()
        unknown: dict[str, None] = {}
        for function in self._collect(module, "llvm.func"):
            if len(function.regions[0].blocks):
                allocas = self._collect(function, "llvm.alloca")
                makers = (
                    self._collect(function, "llvm.mlir.constant", "llvm.intr.vscale", "llvm.mul") if allocas else []
                )
                counts = {result: op for op in makers for result in op.results}
                each = [_alloca_bytes(op, counts) for op in allocas]
                name, size = function.attributes["sym_name"].value, None if None in each else sum(filter(None, each))
                sizes[name] = max(sizes[name], size or 0)  # private helpers may share a name; the larger counts
                unknown.update({name: None} if size is None else {})
        return {"functions": {**sizes, **unknown}}

    def _load(self, path: str) -> Any:
        return self._module(_read(path))

    def _module(self, text: bytes) -> Any:
        """A module in a context of its own: types and attributes are never freed within one.

        The caller must hold the module while it uses its operations: they do not keep it alive.
        """
        context = self.ir.Context()
        context.enable_multithreading(False)
        context.allow_unregistered_dialects = True
        return self.ir.Module.parse(text, context)

    def _collect(self, root: Any, *names: str) -> list[Any]:
        return ir_kinds.collect(self.ir, root, names)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _one_line(error: BaseException) -> str:
    """The error, a file in it without its directory; what the machine refuses is not the program's."""
    if isinstance(error, OSError):
        return f"{HERE}{os.path.basename(str(error.filename))}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"{HERE}no memory to read the IR"
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def _alloca_bytes(op: Any, counts: dict[Any, Any]) -> int | None:
    """Bits of all elements, rounded up to the alignment, as bytes: LLVMCPUCheckIRBeforeLLVMConversion.cpp.

    The compiler's gate looks at buffers only. The two allocations that its dispatch ABI adds later are left out:
    the parameters of an import (a structure without alignment), and the copy of the processor's data (8 x i64
    aligned to 8 bytes; buffers are aligned to more).
    """
    element = op.attributes["elem_type"].value
    alignment = op.attributes["alignment"].value if "alignment" in op.attributes else 0
    if hasattr(element, "body") and not alignment:
        return 0
    count, bits = _constant(op.operands[0], counts), _bits(element)
    if count is None or bits is None:
        return None
    if (alignment, count * bits) == (8, 8 * 64):
        return 0
    step = 8 * alignment or 1
    return -(-count * bits // step) * step // 8


def _bits(element: Any) -> int | None:
    """Bits of an LLVM type as the gate counts them: elements side by side without padding, vscale 1."""
    if hasattr(element, "element_type"):
        inner = _bits(element.element_type)
        shape = element.shape if hasattr(element, "shape") else [getattr(element, "num_elements", 2)]
        return None if inner is None else inner * math.prod(shape)
    fields = [_bits(field) for field in element.body or [None]] if hasattr(element, "body") else []
    if fields:
        return None if None in fields else sum(field or 0 for field in fields)
    return getattr(element, "width", None)


def _constant(value: Any, makers: dict[Any, Any]) -> int | None:
    """The value of an element count, None where it is not constant; vscale is 1, the gate's assumption."""
    maker = makers.get(value)
    if maker is None:
        return None
    if maker.name == "llvm.mlir.constant":
        return int(maker.attributes["value"].value)
    factors = [_constant(operand, makers) for operand in maker.operands]
    return None if None in factors else math.prod(factor or 0 for factor in factors)


def _bindings(root: str) -> Any:
    """The module `iree.compiler.ir` of the wheel, without what is not needed and slow to import.

    None in `sys.modules` refuses an import at once. The bindings do without numpy. The dialects' Python modules
    (seconds where they are not yet byte-compiled) only add typed views; those of LLVM's types are in an extension
    module.
    """
    sys.path[0:1] = [root]
    sys.modules.update(dict.fromkeys(_UNUSED_MODULES))  # type: ignore[arg-type]
    bindings = importlib.import_module("iree.compiler.ir")
    with contextlib.suppress(ImportError):
        importlib.import_module("iree.compiler._mlir_libs._mlirDialectsLLVM")
    return bindings


def main(root: str, worker_of: Callable[[Any], Worker] = Worker) -> int:
    """Serve until standard input ends; 1 where the bindings cannot be imported."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not end up between the answers

    def say(answer: Answer) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        worker = worker_of(_bindings(root))
    except Exception as error:
        say({"error": _one_line(error)})
        return 1
    say({"ready": True})
    for line in sys.stdin:
        say(worker.answer(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
