"""The compiler's `--stack-usage-file`: the machine frame of every function of the CPU code generator.

One line a function, `place:function<TAB>bytes<TAB>static|dynamic`, as LLVM's AsmPrinter writes it. The place is
`file:line` (`-:1` for a model read from standard input) where the function has debug information, as all entry points
have, else the module's name, as for the library functions linked to them. All three names may hold colons, so the
function is what follows the first `:line:`, or without one what follows the last colon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.core.record import is_count
from bot.errors import MalformedBinary

FRAME_KINDS = ("static", "dynamic")
MAX_DIGITS = 19
FILE_AND_LINE = re.compile(r".*?:\d+:", re.ASCII)


@dataclass(frozen=True, slots=True)
class Frame:
    """A function's machine frame: its bytes, and whether it grows (`dynamic`) beyond them at run time."""

    stack_bytes: int
    kind: str


def read_stack_usage(text: str) -> dict[str, Frame]:
    """Function → frame; of two functions of one name (private helpers) the larger frame.

    Raises MalformedBinary naming the first line that is not of the format.
    """
    frames: dict[str, Frame] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        function, _, rest = line.partition("\t")
        size, _, kind = rest.partition("\t")
        place = FILE_AND_LINE.match(function)
        name = function[place.end() :] if place else function.rpartition(":")[2]
        is_number = size.isascii() and size.isdecimal() and len(size) < MAX_DIGITS and is_count(int(size))
        if not name or ":" not in function or not is_number or kind not in FRAME_KINDS:
            what = "not `place:function`, a number of bytes, static or dynamic"
            raise MalformedBinary(what, where=f"stack usage file, line {number}")
        if name not in frames or frames[name].stack_bytes < int(size):
            frames[name] = Frame(int(size), kind)
    return frames
