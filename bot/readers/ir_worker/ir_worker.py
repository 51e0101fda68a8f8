"""Read a compiler's IR dumps with that compiler's own MLIR bindings.

The bindings are in a process of their own.

A stand-alone script (`python ir_worker.py WHEEL_ROOT`): beside its siblings `ir_*` it
imports the standard library and, from WHEEL_ROOT, `iree.compiler.ir`; nothing of the
bot. One JSON object per line, one answer a request; first of all {"ready": true}, or
{"error": "one line"} and the end:

    {"op": "program", "dispatch_creation": PATH, "stream": PATH,
     and where at hand "input": PATH, "global_optimization": PATH, "flow": PATH}
        → the fields of `bot.core.reading.ProgramFacts`; without flow no sources and
          sites, and no families
    {"op": "allocas", "executable_targets": PATH}
        → {"functions": {name: bytes, null where not constant}}, empty where no function
          of the file allocates
    {"op": "strategies", "executable_configurations": PATH}
        → {"functions": {name: one line}}, the functions that the compiler configured
    {"op": "interface", "flow": PATH}
        → the fields of `bot.readers.ir_facts.Interface`
    {"op": "groups", "flow": PATH}
        → {"entries": {executable: its entry point},
           "elements": {executable: those of the largest tensor that it takes or gives},
           "unfit": {executable: why it cannot be folded},
           "groups": {"identical", "constants", "offsets", "static-shapes":
           [[executable, two or more]]}: executables that differ in nothing but what
           the level and those before it allow}
    {"op": "fold", "flow": PATH, "out": PATH, "groups": [[executable]]}
        → {"folded": [{"members": [executable], "operands": [type]}],
           "left": [{"members": [executable], "why": text}],
           "executables": how many there are now}:
           `out` has the program with each group made one, verified; where nothing was
           folded, the very text of `flow`
    {"op": "assume", "model": PATH, "out": PATH, "smallest": 16,
     "largest": 512 or null, "divisor": 16}
        → {"dimensions": how many dynamic dimensions the arguments have}:
          `out` has the model with these assumptions
    anything that goes wrong
        → {"error": "one line"}; the worker lives until its input ends

The files are those of `--dump-compilation-phases-to`: `1.input`,
`4.global-optimization`, `5.dispatch-creation`, `6.flow`, `7.stream`,
`9.executable-configurations`, `10.executable-targets`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# the folder is a package of its own then, without the bot around it
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = "ir_worker"

from .ir_answers import Answers
from .ir_assume import Assumption, assumed
from .ir_fold import folded, groups
from .ir_interface import interface
from .ir_kinds import collect, makers_of, name_of
from .ir_program import program
from .ir_walk import Answer

HERE = "on this machine: "  # `bot.core.this_machine.HERE`
_UNUSED_MODULES = ("numpy", "iree.compiler.dialects")
_NEVER_CONFIGURED = (
    "arith.",
    "math.",
    "util.",
    "hal.",
    "linalg.yield",
    "linalg.index",
    "tensor.empty",
)
"""Operations that never have a configuration, which are most of all.

Asking each for its attributes would take most of the time.
"""
_WHOLE_WRAPPER = re.compile(
    r"#[\w.]+\.(?:translation_info|lowering_config|compilation_info)<(.*)>", re.DOTALL
)
_PIPELINE = re.compile(
    r"^pipeline = (?:#[\w.]+\.\w*pipeline<(\w+)>|#[\w.]+\.(\w+)(?![\w<])|)"
)
_FORMER_NAME = re.compile(r"^(?:CPU|LLVMGPU|SPIRV)(?=[A-Z])")
"""The beginning of a pipeline's former name, which had the name of its backend.

The new spelling is not another choice.
"""
_FORMER_VMVX = "VMVXDefault"
"""The former name of VMVX's pipeline."""
_DIALECT = re.compile(r"#iree_\w+\.(?=\w)")


class IrWorker:
    """Answers requests with the given bindings, the module `iree.compiler.ir`."""

    def __init__(self, ir: Any) -> None:
        self.ir = ir
        remembered = Answers(ir, self._module)
        self.answers: dict[str, Callable[[Answer], Answer]] = {
            "program": lambda request: program(remembered, request),
            "allocas": lambda request: self._allocas(
                Path(request["executable_targets"]).read_bytes()
            ),
            "strategies": lambda request: strategies(
                ir, self._load(request["executable_configurations"])
            ),
            "interface": lambda request: interface(ir, self._load(request["flow"])),
            "groups": lambda request: groups(ir, self._load(request["flow"])),
            "fold": self._fold,
            "assume": self._assume,
        }

    def answer(self, line: str) -> Answer:
        """Return the answer to one request; never raises."""
        try:
            request = json.loads(line)
            answer = self.answers.get(request["op"])
            if answer:
                return answer(request)
            return {"error": f"unknown op {request['op']!r}"}
        except Exception as error:
            return {"error": _one_line(error)}

    def _allocas(self, text: bytes) -> Answer:
        """Return function → bytes of its stack allocations.

        They are added up as the compiler's gate does.
        """
        if b"llvm.alloca" not in text and b"llvm.func" in text:
            # nothing allocates: the parse, all of the time, could only yield zeros
            return {"functions": {}}
        module = self._module(text)
        sizes = Counter[str]()
        unknown = dict[str, None]()
        for function in collect(self.ir, module, ("llvm.func",)):
            if len(function.regions[0].blocks):
                allocas = collect(self.ir, function, ("llvm.alloca",))
                names: tuple[str, ...] = ()
                if allocas:
                    names = ("llvm.mlir.constant", "llvm.intr.vscale", "llvm.mul")
                counts = makers_of(collect(self.ir, function, names))
                alloca_sizes = [_alloca_bytes(op, counts) for op in allocas]
                name = name_of(function)
                if None in alloca_sizes:
                    size = None
                else:
                    size = sum(filter(None, alloca_sizes))
                # private helpers may share a name; the larger counts
                sizes[name] = max(sizes[name], size or 0)
                unknown.update({name: None} if size is None else {})
        return {"functions": {**sizes, **unknown}}

    def _fold(self, request: Answer) -> Answer:
        text = Path(request["flow"]).read_bytes()
        module = self._module(text)
        answer = folded(self.ir, module, request["groups"])
        if answer["folded"]:
            text = module.operation.get_asm(enable_debug_info=True).encode()
        Path(request["out"]).write_bytes(text)
        return answer

    def _assume(self, request: Answer) -> Answer:
        module = self._load(request["model"])
        assumption = Assumption(
            request["smallest"], request["largest"], request["divisor"]
        )
        with module.context:
            dimensions = assumed(self.ir, module, assumption)
        text = module.operation.get_asm(enable_debug_info=True)
        Path(request["out"]).write_text(text, encoding="utf-8")
        return {"dimensions": dimensions}

    def _load(self, path: str) -> Any:
        return self._module(Path(path).read_bytes())

    def _module(self, text: bytes) -> Any:
        """Parse a module in a context of its own.

        Types and attributes are never freed within one. The caller must hold the module
        while it uses its operations: they do not keep it alive.
        """
        context = self.ir.Context()
        context.enable_multithreading(False)
        context.allow_unregistered_dialects = True
        return self.ir.Module.parse(text, context)


def _one_line(error: BaseException) -> str:
    """Return the error as one line, with file names without their directories.

    Errors that the machine causes are not the program's.
    """
    if isinstance(error, OSError):
        return f"{HERE}{os.path.basename(str(error.filename))}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"{HERE}not enough memory to read the IR"
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def _alloca_bytes(op: Any, counts: Mapping[Any, Any]) -> int | None:
    """Return the bytes of a stack allocation as the compiler's gate counts them.

    All elements' bits are rounded up to the alignment, see
    LLVMCPUCheckIRBeforeLLVMConversion.cpp. The compiler's gate looks at buffers only.
    The two allocations that its dispatch ABI adds later are left out: the parameters of
    an import (a structure without alignment), and the copy of the processor's data (8 x
    i64 aligned to 8 bytes; buffers are aligned to more).
    """
    element = op.attributes["elem_type"].value
    alignment = 0
    if "alignment" in op.attributes:
        alignment = op.attributes["alignment"].value
    if hasattr(element, "body") and not alignment:
        return 0
    count = _constant(op.operands[0], counts)
    bits = _bits(element)
    if count is None or bits is None:
        return None
    if (alignment, count * bits) == (8, 8 * 64):
        return 0
    step = 8 * alignment or 1
    return -(-count * bits // step) * step // 8


def _bits(element: Any) -> int | None:
    """Return the bits of an LLVM type as the gate counts them.

    Elements are side by side without padding, and vscale is 1.
    """
    if hasattr(element, "element_type"):
        inner = _bits(element.element_type)
        if inner is None:
            return None
        sizes: list[int] = [getattr(element, "num_elements", 2)]
        if hasattr(element, "shape"):
            sizes = list(element.shape)
        return inner * math.prod(sizes)
    fields = []
    if hasattr(element, "body"):
        fields = [_bits(field) for field in element.body or [None]]
    if fields:
        if None in fields:
            return None
        return sum(field or 0 for field in fields)
    return getattr(element, "width", None)


def _constant(value: Any, makers: Mapping[Any, Any]) -> int | None:
    """Return the value of an element count; None if it is not constant.

    Vscale is 1, as the gate assumes.
    """
    maker = makers.get(value)
    if maker is None:
        return None
    if maker.name == "llvm.mlir.constant":
        return int(maker.attributes["value"].value)
    factors = [_constant(operand, makers) for operand in maker.operands]
    if None in factors:
        return None
    return math.prod(factor or 0 for factor in factors)


def strategies(ir: Any, module: Any) -> Answer:
    """Return function → its configurations, in one line.

    The line is `pipeline, sizes and options | operation: its configuration | …`, with
    one part for each configuration. The answer has the functions in
    `hal.executable.variant`s that have a `translation_info`
    (`9.executable-configurations`). A function that several variants configure
    differently has the parts of all variants.
    """
    texts: dict[str, dict[str, None]] = {}
    for variant in collect(ir, module, ("hal.executable.variant",)):
        # A walk gives the operations of a function before the function itself. So the
        # operations since the last function belong to the next one.
        configurations: list[str] = []
        for op in collect(
            ir, variant, lambda name: not name.startswith(_NEVER_CONFIGURED)
        ):
            for number in range(len(op.attributes)):
                named = op.attributes[number]
                if named.name == "lowering_config":
                    configurations.append(f"{op.name}: {_short(str(named.attr))}")
                elif named.name == "compilation_info" or named.name.endswith(
                    ("config", "strategy")
                ):
                    configurations.append(
                        f"{op.name}: {named.name} = {_short(str(named.attr))}"
                    )
            if op.name == "func.func":
                if "translation_info" in op.attributes:
                    text = " | ".join(
                        [
                            _translation(str(op.attributes["translation_info"])),
                            *configurations,
                        ]
                    )
                    texts.setdefault(name_of(op), {})[" ".join(text.split())] = None
                configurations = []
    return {"functions": {name: " || ".join(lines) for name, lines in texts.items()}}


def _translation(attribute: str) -> str:
    """Return the pipeline of a `translation_info`.

    An example is `DoubleTilingExpert {enable_loop_peeling}` for
    `#iree_codegen.translation_info<pipeline = …>`.
    """
    wrapper = _WHOLE_WRAPPER.fullmatch(attribute)
    inner = _PIPELINE.sub(
        lambda match: match[1] or match[2] or "",
        wrapper[1] if wrapper else attribute,
        count=1,
    )
    inner = _FORMER_NAME.sub(
        "", inner.replace(_FORMER_VMVX, "vmvx_pipeline", 1), count=1
    )
    return _DIALECT.sub("", inner).replace(", {", " {", 1)


def _short(attribute: str) -> str:
    """Return a configuration without its wrapper and the names of dialects.

    All have that wrapper. Nothing else is lost.
    """
    wrapper = _WHOLE_WRAPPER.fullmatch(attribute)
    return _DIALECT.sub("", wrapper[1] if wrapper else attribute)


def _bindings(root: str) -> Any:
    """Import `iree.compiler.ir` of the wheel, without what is slow and not needed.

    None in `sys.modules` refuses an import at once. The bindings do without numpy, and
    without the dialects' Python modules. Those only add typed views, and to compile them
    takes up to seconds. LLVM's types are in an extension module.

    Byte code beside the bindings is not read: anybody who ran a compiler may have written
    it.
    """
    sys.pycache_prefix = os.path.join(os.devnull, "none")
    sys.path[0:1] = [root]
    sys.modules.update(dict.fromkeys(_UNUSED_MODULES))  # type: ignore[arg-type]
    bindings = importlib.import_module("iree.compiler.ir")
    with contextlib.suppress(ImportError):
        importlib.import_module("iree.compiler._mlir_libs._mlirDialectsLLVM")
    return bindings


def main(root: str) -> int:
    """Serve until standard input ends; return 1 if the bindings cannot be imported."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not end up between the answers

    def say(answer: Answer) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        worker = IrWorker(_bindings(root))
    except Exception as error:
        say({"error": _one_line(error)})
        return 1
    say({"ready": True})
    for line in sys.stdin:
        say(worker.answer(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
