"""Count the executables of a program and their launches.

The IR at the end of the `stream` phase is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .ir_kinds import COMPUTE_BOUND, KINDS, collect, kinds_of, name_of
from .ir_schedule import schedule
from .ir_text import generic, hexadecimal, without_names
from .ir_walk import Answer, entry_point_of, tops_of

_INT_LIMIT = 1 << 53
"""The value of `bot.core.record.INT_LIMIT`.

A process beside the compiler cannot import the bot.
"""
_DISPATCHES = ("stream.cmd.dispatch", "stream.async.dispatch")


def stream(ir: Any, module: Any) -> Answer:
    """Return the executables and their launches.

    If a launch has several alternatives, the first one counts.
    """
    executables = collect(ir, module, ("stream.executable",))
    dispatches = collect(ir, module, _DISPATCHES)
    sites = Counter(map(entry_point_of, dispatches))
    entry_points = list[Answer]()
    for executable in executables:
        for entry in _entry_points(ir, executable):
            symbol = (entry["executable"], entry["entry_point"])
            entry_points.append({**entry, "sites": sites.pop(symbol, 0)})
    if sites:
        raise ValueError(
            f"dispatch of {'::'.join(min(sites))}, which no stream.executable exports"
        )
    tops = tops_of(ir, module)
    constants = dict[Any, "int | None"]()
    initializer_sites = 0
    for top in tops:
        if top.name == "stream.executable":
            continue
        for op in collect(ir, top, ("arith.constant",)):
            constants[op.results[0]] = _integer(op.attributes["value"])
        if top.name == "util.initializer":
            initializer_sites += len(collect(ir, top, _DISPATCHES))
    try:
        submitted: Answer | None = schedule(ir, tops, constants)
    except (ValueError, KeyError, IndexError):
        # another release writes it otherwise: all else does not need it
        submitted = None
    return {
        "executables": len(executables),
        "entry_points": entry_points,
        "initializer_sites": initializer_sites,
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
