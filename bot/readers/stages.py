"""A compiler's own IR, stage after stage, from the files that it leaves: counted as passes are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from bot.core.trace import LLVM, MACHINE, MLIR, SOURCE, DispatchTrace, PassStep
from bot.readers.passes import LONGEST_LINE_BYTES, operations_of

_LLVM_IR = re.compile(rb"^(?:define|declare|target triple)\b", re.MULTILINE)
_MLIR = re.compile(rb"^\s*(?:#\w+ = |module\b|tt\.func|llvm\.func|func\.func)", re.MULTILINE)
_INSTRUCTION = re.compile(rb"\s+(?:@!?%\w+ )?([a-z][\w.]+)(?=\s|;|$)")
"""Of assembly, PTX with its predicates among it."""
_SHOWN_OF_MNEMONIC = 2
"""`ld.global.v4.b32` counts as `ld.global`: sizes and modes beside it are many."""


def stages_of(files: Mapping[str, bytes], stages: Sequence[str]) -> DispatchTrace | None:
    """What the function consists of at each stage; None where there are no such files."""
    steps, before = list[PassStep](), ("", Counter[str]())
    for stage in stages:
        texts = [data for name, data in sorted(files.items()) if name.endswith(f".{stage}")]
        if not texts:
            continue
        level = LLVM if _LLVM_IR.search(texts[0]) else MLIR if _MLIR.search(texts[0]) else MACHINE
        typed = Counter(item for text in texts for item in _items(text, level))
        changes = Counter(typed)
        changes.subtract(before[1] if before[0] == level else {})
        if not steps:  # so that the first stage can be the one in which two sides part
            steps.append(PassStep(SOURCE, "", level, {}))
        steps.append(PassStep(stage, "", level, {name: count for name, count in sorted(changes.items()) if count}))
        before = level, typed
    return DispatchTrace(tuple(steps), same_code=True) if steps else None


def _items(text: bytes, level: str) -> list[str]:
    lines = (line[:LONGEST_LINE_BYTES] for line in text.split(b"\n"))
    if level != MACHINE:
        return [item for line in lines for item in operations_of(line, level)]
    found = filter(None, (_INSTRUCTION.match(line) for line in lines))
    names = (one[1].decode() for one in found)
    return [".".join(name.split(".")[:_SHOWN_OF_MNEMONIC]) for name in names]
