"""Count the instructions of a function in LLVM's machine IR.

Format: YAML documents, one for each function, as `-stop-after` writes them
(llvm/lib/CodeGen/MIRPrinter.cpp). The key `body` holds blocks; instructions are
indented by four columns or more.
"""

from __future__ import annotations

import re
from collections import Counter

from bot.core.reading import UNSPEAKABLE
from bot.core.trace import MACHINE
from bot.readers.passes import operations_of

_DOCUMENT = re.compile(r"^---$", re.MULTILINE)
_NAME = re.compile(r"^name: +['\"]?([^'\"\n]+)['\"]?$", re.MULTILINE)
_BODY = re.compile(r"^body: +\|\n", re.MULTILINE)
_NO_INSTRUCTION = re.compile(r" +(?:successors|liveins|;|\})")
_INDENTED = " " * 4


def machine_instructions(text: str, function: str) -> Counter[str] | None:
    """Return instruction → how many there are in the function.

    None without exactly one function of this name. Names that differ in punctuation
    alone are the same.
    """
    wanted_name = UNSPEAKABLE.sub("_", function)
    bodies = []
    for document in _DOCUMENT.split(text):
        name = _NAME.search(document)
        body = _BODY.search(document)
        if name and body and UNSPEAKABLE.sub("_", name[1]) == wanted_name:
            bodies.append(document[body.end() :])
    if len(bodies) != 1:
        return None
    counts = Counter[str]()
    for line in bodies[0].splitlines():
        if line.startswith(_INDENTED) and not _NO_INSTRUCTION.match(line):
            counts.update(operations_of(line.encode(), MACHINE))
    return counts
