"""What a function consists of after each pass, counted from the compiler's own dumps as they stream by.

Formats, 3.5.0 to 3.13.0: MLIR's `--mlir-print-ir-after-all` heads a dump with `// -----// IR Dump After CSEPass (cse)
//----- //`, from 3.12 on `… CSEPass: cse{options} //…` (mlir/lib/Pass/IRPrinting.cpp). LLVM's `--print-after` heads a
machine function with `# *** IR Dump After Greedy Register Allocator (greedy) ***:` (MachineFunctionPrinterPass.cpp),
`--print-changed=quiet` any function with `*** IR Dump After GVNPass on NAME ***` (StandardInstrumentations.cpp).
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from bot.core.trace import LLVM, MACHINE, MLIR, SHOWN_LINES, SOUGHT, DispatchTrace, IrAround, IrLines, PassStep

LONGEST_LINE_BYTES = 1 << 16  # Of a line, what is read: a constant of a million elements is one
_HEADERS = (
    re.compile(rb"// -----// IR Dump (?P<when>After|Before) (?P<class>\S+?):? \(?(?P<name>[\w-]+)[){ ].*//----- //"),
    re.compile(
        rb"(?:# )?\*\*\* IR Dump (?P<when>After|Before) (?P<class>.+?)(?: \((?P<name>[\w-]*)\))?(?: on .*)? \*\*\*"
    ),
)
_FUNCTIONS = {
    MLIR: re.compile(rb" *(?:func|llvm|spirv|vm)\.func\b[^@]*@([\w$.-]+)\(.*\{$"),
    LLVM: re.compile(rb'define [^@]*@"?([\w$.-]+)"?\(.*\{$'),
    MACHINE: re.compile(rb"# Machine code for function ([^:]+):"),
}
_ITEMS = {
    MLIR: re.compile(rb' *(?:%[^=]*? = )?"?([a-z_]\w*\.[\w.]+)'),
    LLVM: re.compile(rb"  (?:%\S+ = )?(?:tail |musttail |notail )?(call [^@]*@llvm\.[\w.]+|[a-z]\w+)"),
    MACHINE: re.compile(rb"(?:\d+B)?\s+(?:[^=]*? = )?(?:[a-z]+(?:-[a-z]+)* )*([A-Z]\w+)"),
}
"""A line of a function → its operation or instruction; flags of machine instructions are in lower case."""
_INNER = re.compile(rb"\{ ([a-z_]\w*\.[\w.]+) .*\}")  # What `vector.mask` holds stands on its line
_ENDS = {LLVM: b"}", MACHINE: b"# End machine code for function"}
_NO_CODE = frozenset({
    "llvm.assume", "llvm.intr.assume", "memref.assume_alignment", "util.assume.int", "llvm.intr.lifetime.start",
    "llvm.intr.lifetime.end", "llvm.lifetime.start", "llvm.lifetime.end", "IMPLICIT_DEF", "KILL", "CFI_INSTRUCTION",
    "LIFETIME_START", "LIFETIME_END",
})  # fmt: skip
"""What says something to later passes, and becomes no code."""
_SUFFIX = re.compile(r"\.(?:(?:nx)?v\d+\w+|[fip]\d+|bf16)(?=\.|\Z)")
"""Of an intrinsic's name, its types: `llvm.fmuladd.v8f32`."""
TYPE = re.compile(rb"(?:vector|tensor|memref)<[^<>,]*|<\d+ x \w+>|\b(?:index|[iu]\d+|bf16|[fF]\d+\w*)\b")


def operations_of(line: bytes, level: str) -> Iterator[str]:
    """With their types, those of one line."""
    if item := _ITEMS[level].match(line):
        yield from _operation(item[1], line, level)
        if level == MLIR and b"{ " in line and (inner := _INNER.search(line)):
            yield from _operation(inner[1], line, level)


def _operation(item: bytes, line: bytes, level: str) -> Iterator[str]:
    name = _SUFFIX.sub("", item.rpartition(b"@")[2].decode()) if level == LLVM else item.decode()
    if name in _NO_CODE:
        return
    told = {MLIR: line.rpartition(b" : ")[2], LLVM: line}.get(level, b"")
    types = b" ".join(dict.fromkeys(TYPE.findall(told)))
    yield f"{name} {types.decode()}" if types else name


def header_of(line: bytes) -> tuple[tuple[str, str], bool]:
    """Of a dump's first line: the pass and what implements it, both empty where it is none; whether it is after it."""
    header = next(filter(None, (form.match(line) for form in _HEADERS)), None)
    if header is None:
        return ("", ""), False
    class_name, name = (header[part].decode(errors="replace") if header[part] else "" for part in ("class", "name"))
    return (name or class_name, class_name), header["when"] == b"After"


class PassReader:
    """Counts one function's operations after each pass; nothing of the text is kept.

    What MLIR prints in short is not counted: terminators, and what `linalg.matmul` and its like have inside.

    Attributes:
        steps: the passes that changed them, in order.
    """

    def __init__(self, function: str) -> None:
        self.steps: list[PassStep] = []
        self._function = function.encode()
        self._rest = b""
        self._pass = ("", "")
        self._is_after = False
        self._level, self._end = "", b""
        self._typed: Counter[str] = Counter()
        self._before: tuple[str, Counter[str]] = ("", Counter())

    def feed(self, chunk: bytes) -> None:
        """The next part of what the compiler prints; an empty one is its end."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:LONGEST_LINE_BYTES]
        for line in lines if chunk else (rest, b"*** "):
            self._line(line[:LONGEST_LINE_BYTES])

    def _line(self, line: bytes) -> None:
        if line.startswith((b"// -----//", b"*** ", b"# *** ")):
            self._ended()
            self._pass, self._is_after = header_of(line)
        elif self._level:
            if line.startswith(self._end):
                self._ended()
            else:
                self._counted(line)
        elif self._pass[0]:
            for level, form in _FUNCTIONS.items():
                if (function := form.match(line)) and function[1] == self._function:
                    indent = line[: len(line) - len(line.lstrip())]
                    self._level, self._end = level, _ENDS.get(level, indent + b"}")

    def _counted(self, line: bytes) -> None:
        self._typed.update(operations_of(line, self._level))

    def _ended(self) -> None:
        """Keep what was counted of the function, where that is something else than before."""
        if self._level and self._typed:
            level, before = self._before
            changes = Counter(self._typed)
            changes.subtract(before if level == self._level else {})
            if changed := {name: count for name, count in sorted(changes.items()) if count}:
                self.steps.append(PassStep(*self._pass, self._level, changed))
                self._before = self._level, self._typed
        self._typed, self._level = Counter(), ""


_EVERYWHERE = (".constant", ".yield")  # What a pass makes or takes away of these says nothing of what it does
_COLUMNS = 160  # Of a line that is shown, so much about


class _Lines:
    """The first lines that hold some operations, each with its neighbours; without operations, the first lines."""

    def __init__(self, operations: Collection[str]) -> None:
        self._operations = operations
        self._lines: list[tuple[int, bytes]] = []
        self._before, self._last = (0, b""), -1
        self.total = self.holding = 0
        self.names = set[str]()

    def add(self, line: bytes, names: Sequence[str]) -> None:
        """The next line, with the operations on it."""
        self.total += 1
        held = {one for name in names for one in (name, name.partition(" ")[0]) if one in self._operations}
        self.names |= held
        self.holding += bool(held)
        if len(self._lines) < SHOWN_LINES:
            if held and self._before[0] and self._before not in self._lines:
                self._lines.append(self._before)
            if held or self._last == self.total - 1 or not self._operations:
                self._lines.append((self.total, line))
        self._last = self.total if held else self._last
        self._before = self.total, line

    def cut(self) -> IrLines:
        """What is shown."""
        texts = textwrap.dedent("\n".join(line.decode(errors="replace").expandtabs(2) for _, line in self._lines))
        third = _COLUMNS // 3
        shown = (
            text if len(text) <= _COLUMNS else f"{text[: 2 * third]} … {text[-third:]}" for text in texts.split("\n")
        )
        lines = tuple(zip((number for number, _ in self._lines), shown, strict=False))
        return IrLines(lines, self.total, tuple(name for name in self._operations if name in self.names), self.holding)


class AroundReader(PassReader):
    """Finds one run of a pass, by what the function consists of before and after it, and cuts both texts.

    What it reads has the function before and after each run of the pass, or after each pass that changed it.

    Attributes:
        texts: before and after; None as long as the run has not come.
    """

    def __init__(self, function: str, trace: DispatchTrace, run: IrAround) -> None:
        super().__init__(function)
        self.texts: tuple[IrLines, IrLines] | None = None
        states, place = list(trace.states()), run.step
        ends = [
            (one.name, last.typed if last and last.level == one.level else None, one.typed)
            for last, one in zip((None, *states), states, strict=False)
        ]
        own = (run.name, states[place].typed, states[place].typed) if run.idle else ends[place]
        self._own, self._own_level = own, states[place].level
        self._earlier = 0 if run.idle else ends[:place].count(own)
        changes = Counter[str]()
        for name, change in () if run.idle else trace.steps[place].changes.items():
            if not name.partition(" ")[0].endswith(_EVERYWHERE):
                changes[name.partition(" ")[0]] += change
        by_change = sorted(changes, key=lambda name: (changes[name], name))
        gone, new = by_change[:SOUGHT], by_change[: -SOUGHT - 1 : -1]
        self._sought: tuple[Collection[str], ...] = (
            dict.fromkeys((*run.operations, *(name for name in gone if changes[name] < 0))),
            run.operations,
            [name for name in new if changes[name] > 0],
            (),
        )
        self._lines = [_Lines(one) for one in self._sought]
        self._last: tuple[Counter[str], list[_Lines]] | None = None

    def _counted(self, line: bytes) -> None:
        names = list(operations_of(line, self._level))
        self._typed.update(names)
        for one in self._lines:
            one.add(line, names)

    def _ended(self) -> None:
        name, before, after = self._own
        is_run = (
            self._typed
            and self._is_after
            and (self._pass[0], self._level, self._typed) == (name, self._own_level, after)
        )
        if is_run and self._last and before in (None, self._last[0]) and self.texts is None:
            if self._earlier == 0:
                (old, *_, old_start), (_, new, own, start) = self._last[1], self._lines
                shown = next((one for one in (new, own) if one.holding), start)
                self.texts = (old if old.holding else old_start).cut(), shown.cut()
            self._earlier -= 1
        if self._typed:
            self._last = self._typed, self._lines
        self._typed, self._level, self._lines = Counter(), "", [_Lines(one) for one in self._sought]
