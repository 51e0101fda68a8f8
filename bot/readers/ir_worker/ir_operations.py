"""How many operations of each name the compiler's last IR has, function by function.

The module as text is scanned line by line: MLIR prints one operation per line, deeper than the function around it.
Parsing it takes eight times as long (2 % of a compile), and the counts are those of a walk over the parsed module, as
the tests prove. Imports the standard library only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

import re
from collections import Counter

_NOT_CODE = """
    llvm.mlir.constant llvm.mlir.poison llvm.mlir.undef llvm.mlir.zero llvm.mlir.addressof llvm.intr.assume
    llvm.intr.lifetime.start llvm.intr.lifetime.end llvm.intr.experimental.noalias.scope.decl
    spirv.Constant spirv.Undef spirv.mlir.addressof spirv.mlir.referenceof spirv.mlir.merge
"""
"""Values that stand in the instructions which use them, one each per function, and what only tells or closes."""
NOT_CODE = frozenset(_NOT_CODE.split())
_NAME = rb'@(?P<%s>[\w$.-]+|"[^"\\\n]*")'
_HEADS = re.compile(
    rb"^( *)(?:(?P<executable>hal\.executable) "
    rb"|hal\.executable\.export [^@\n]*" + _NAME % b"export" + rb"|"
    rb"(?:llvm|spirv|vm|func)\.func [^@\n]*" + _NAME % b"function" + rb"[^\n]*\{$)",
    re.MULTILINE,
)
_OPERATION = re.compile(rb'^ +(?:%[^=\n]* = )?"?([A-Za-z_]\w*(?:\.\w+)+)', re.MULTILINE)


def operations(text: bytes) -> dict[str, dict[str, int] | None]:
    """Entry point → operation → count; None where several functions are entry points of this name.

    What an executable does not export is a helper and counts for nobody. Raises ValueError for a function without end.
    """
    found: dict[str, dict[str, int] | None] = {}
    exports: set[bytes] = set()
    at = 0
    while head := _HEADS.search(text, at):
        at = head.end()
        if head["executable"]:
            exports = set()
        elif head["export"]:
            exports.add(head["export"])
        else:
            start, at = at, _end(text, head)
            if head["function"] in exports:
                name = head["function"].strip(b'"').decode("utf-8", "replace")
                found[name] = None if name in found else _counts(text, start, at)
    return found


def _end(text: bytes, head: re.Match[bytes]) -> int:
    """Where the function's closing brace is, which stands below its first letter."""
    end = text.find(b"\n" + head[1] + b"}", head.end())
    if end < 0:
        raise ValueError("a function without its end")
    return end


def _counts(text: bytes, start: int, end: int) -> dict[str, int]:
    names = Counter(_OPERATION.findall(text, start, end))
    return {name: count for raw, count in names.items() if (name := raw.decode()) not in NOT_CODE}
