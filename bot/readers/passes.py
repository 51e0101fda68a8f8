"""Count the operations of a function after each pass.

The compiler's own dumps are read while it prints them.

Formats, 3.5.0 to 3.13.0: MLIR's `--mlir-print-ir-after-all` heads a dump with `//
-----// IR Dump After CSEPass (cse) //----- //`, from 3.12 on `… CSEPass: cse{options}
//…` (mlir/lib/Pass/IRPrinting.cpp). LLVM's `--print-after` heads a machine function
with `# *** IR Dump After Greedy Register Allocator (greedy) ***:`
(MachineFunctionPrinterPass.cpp), `--print-changed=quiet` any function with `*** IR Dump
After GVNPass on NAME ***` (StandardInstrumentations.cpp).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from bot.core.json_text import nonzero
from bot.core.trace import LLVM, MACHINE, MLIR, PassStep

# Of a line, what is read: a constant of a million elements is one
LONGEST_LINE_BYTES = 1 << 16
_HEADERS = (
    re.compile(
        rb"// -----// IR Dump After (?P<class>\S+?):? \(?(?P<name>[\w-]+)[){"
        rb" ].*//----- //"
    ),
    re.compile(
        rb"(?:# )?\*\*\* IR Dump After (?P<class>.+?)(?: \((?P<name>[\w-]*)\))?(?: on"
        rb" .*)? \*\*\*"
    ),
)
_FUNCTIONS = {
    MLIR: re.compile(rb" *(?:func|llvm|spirv|vm)\.func\b[^@]*@([\w$.-]+)\(.*\{$"),
    LLVM: re.compile(rb'define [^@]*@"?([\w$.-]+)"?\(.*\{$'),
    MACHINE: re.compile(rb"# Machine code for function ([^:]+):"),
}
_ITEMS = {
    MLIR: re.compile(rb' *(?:%[^=]*? = )?"?([a-z_]\w*\.[\w.]+)'),
    LLVM: re.compile(
        rb"  (?:%\S+ = )?(?:tail |musttail |notail )?(call [^@]*@llvm\.[\w.]+|[a-z]\w+)"
    ),
    MACHINE: re.compile(
        rb"(?:\d+B)?\s+(?:[^=]*? = )?(?:[a-z]+(?:-[a-z]+)* )*([A-Z]\w+)"
    ),
}
"""A line of a function → its operation or instruction.

Flags of machine instructions are in lower case.
"""
# What `vector.mask` holds stands on its line
_INNER = re.compile(rb"\{ ([a-z_]\w*\.[\w.]+) .*\}")
_ENDS = {LLVM: b"}", MACHINE: b"# End machine code for function"}
_NO_CODE = frozenset(
    {
        "llvm.assume",
        "llvm.intr.assume",
        "memref.assume_alignment",
        "util.assume.int",
        "llvm.intr.lifetime.start",
        "llvm.intr.lifetime.end",
        "llvm.lifetime.start",
        "llvm.lifetime.end",
        "IMPLICIT_DEF",
        "KILL",
        "CFI_INSTRUCTION",
        "LIFETIME_START",
        "LIFETIME_END",
    }
)
"""Operations that inform later passes, and become no code."""
_ADDRESS = "getelementptr"
"""An address, which is counted without types.

`float` and `[4 x i8]` are two ways to write one address.
"""
_SUFFIX = re.compile(r"\.(?:(?:nx)?v\d+\w+|[fip]\d+|bf16)(?=\.|\Z)")
"""The types at the end of an intrinsic's name: `.v8f32` of `llvm.fmuladd.v8f32`."""
TYPE = re.compile(
    rb"(?:vector|tensor|memref)<[^<>,]*|<\d+ x"
    rb" \w+>|\b(?:index|[iu]\d+|bf16|[fF]\d+\w*)\b"
)


def operations_of(line: bytes, level: str) -> Iterator[str]:
    """Return the operations of one line, with their types."""
    if item := _ITEMS[level].match(line):
        yield from _operation(item[1], line, level)
        if level == MLIR and b"{ " in line and (inner := _INNER.search(line)):
            yield from _operation(inner[1], line, level)


def _operation(item: bytes, line: bytes, level: str) -> Iterator[str]:
    if level == LLVM:
        name = _SUFFIX.sub("", item.rpartition(b"@")[2].decode())
    else:
        name = item.decode()
    if name in _NO_CODE:
        return
    if level == LLVM and name == _ADDRESS:
        yield name
        return
    type_text = {MLIR: line.rpartition(b" : ")[2], LLVM: line}.get(level, b"")
    types = b" ".join(dict.fromkeys(TYPE.findall(type_text)))
    yield f"{name} {types.decode()}" if types else name


def header_of(line: bytes) -> tuple[str, str]:
    """Return the pass that a header line names, and the class that implements it.

    Both are empty for any other line.
    """
    header = next(filter(None, (form.match(line) for form in _HEADERS)), None)
    if header is None:
        return "", ""
    class_name = (header["class"] or b"").decode(errors="replace")
    name = (header["name"] or b"").decode(errors="replace")
    return name or class_name, class_name


class PassReader:
    """Counts one function's operations after each pass; it keeps nothing of the text.

    What MLIR prints in short is not counted: terminators, and the bodies of
    operations such as `linalg.matmul`.

    Attributes:
        steps: the passes that changed the operations, in order.
    """

    def __init__(self, function: str) -> None:
        self.steps: list[PassStep] = []
        self._function = function.encode()
        self._rest = b""
        self._pass = ("", "")
        self._level = ""
        self._end = b""
        self._typed: Counter[str] = Counter()
        self._before: tuple[str, Counter[str]] = ("", Counter())

    def feed(self, chunk: bytes) -> None:
        """Read the next part of what the compiler prints; an empty part is the end."""
        *lines, unfinished = (self._rest + chunk).split(b"\n")
        self._rest = unfinished[:LONGEST_LINE_BYTES]
        for line in lines if chunk else (unfinished, b"*** "):
            self._line(line[:LONGEST_LINE_BYTES])

    def _line(self, line: bytes) -> None:
        if line.startswith((b"// -----//", b"*** ", b"# *** ")):
            self._ended()
            self._pass = header_of(line)
        elif self._level:
            if line.startswith(self._end):
                self._ended()
            else:
                self._typed.update(operations_of(line, self._level))
        elif self._pass[0]:
            for level, form in _FUNCTIONS.items():
                if (function := form.match(line)) and function[1] == self._function:
                    indent = line[: len(line) - len(line.lstrip())]
                    self._level = level
                    self._end = _ENDS.get(level, indent + b"}")

    def _ended(self) -> None:
        """Keep what was counted of the function, if it changed."""
        if self._level and self._typed:
            level, before = self._before
            changes = Counter(self._typed)
            changes.subtract(before if level == self._level else {})
            changed = nonzero(changes)
            if changed:
                self.steps.append(PassStep(*self._pass, self._level, changed))
                self._before = self._level, self._typed
        self._typed = Counter()
        self._level = ""
