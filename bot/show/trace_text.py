"""A trace on a terminal, and as JSON: the passes of both compilers side by side, and where they part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from bot.core.parting import TRACE_SCHEMA, Traced
from bot.core.trace import IrAround, TraceRow, operation_words
from bot.show.drawing import text_of
from bot.show.escape import clean
from bot.show.ir_around import around_texts
from bot.show.why_lines import suspect_words

_NAMED = 3
_NAME = 44
"""Characters of a pass's name."""


def print_trace(traced: Traced, console: Console) -> None:
    """The passes after which another difference stands, the one that parts the sides marked, and how to see all."""
    sides = {name: traced.rows[name] for name in ("base", "head")}
    sizes = " → ".join("n/a" if row.code_bytes is None else f"{row.code_bytes:,}" for row in sides.values())
    console.print(Text(clean(f"{sides['head'].name} of {traced.key}: {sizes} B"), "bold"), soft_wrap=True)
    shown = [traced.parting.rows[place] for place in traced.parting.shown]
    if shown:
        base, head = (clean(traced.compilers[name].partition("rc")[0]) for name in sides)
        console.print(_line(console.width, "\nafter", base, head, "apart", ""), style="dim")
        for row in shown:
            base, head = ("–" if state is None else f"{state.total:,}" for state in (row.base, row.head))
            line = _line(console.width, row.name, base, head, f"{row.share:.0%}", operation_words(row.apart, 1))
            console.print(line, style="bold" if row is traced.parting.row else "")
        more = len(traced.parting.rows) - len(shown)
        console.print(f"operations of the function after each pass; the difference is as before after {more} more\n")
    console.print(Text(clean(parting_words(traced)), "bold"), soft_wrap=True)
    for title, text in around_texts(traced.around):
        console.print(Text(f"\n{title}", "bold"), soft_wrap=True)
        console.print(Text(text), soft_wrap=True)
    if traced.looked_up:
        console.print(text_of(suspect_words(traced.looked_up, traced.suspects)), soft_wrap=True)
        for one in traced.suspects:
            console.print(Text(clean(f"  {one.date} {one.url or one.commit} {one.title} ({one.why})")), soft_wrap=True)
    for name, side in traced.traces.items():
        if side.same_code is not None:
            is_same = "the code that is in the artifact" if side.same_code else "other code than is in the artifact"
            console.print(f"{name}: the traced compile gives {is_same}")
    for name, commands in traced.commands.items():
        console.print(f"shown by, {name}:")
        for command in commands:
            console.print(Text(f"  {clean(command, 4_000)}"), soft_wrap=True)


def _line(width: int, name: str, base: str, head: str, share: str, what: str) -> Text:
    """Of at most `width` characters."""
    name = clean(name)
    clipped = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
    return Text(f"{clipped:{_NAME}} {base:>8} {head:>8} {share:>5}  {clean(what)}"[:width], no_wrap=True)


def parting_words(traced: Traced) -> str:
    """After which pass the sides have parted, and by which operations; or why nobody can say."""
    row = traced.parting.row
    if row is None:
        return f"no pass parts them: {traced.parting.why}"
    alone = " (which changes operations on base only)" if row.head is None else ""
    alone = " (which changes operations on head only)" if row.base is None else alone
    return f"they part after {row.name}{alone}: {operation_words(traced.parting.operations, _NAMED)}"


def trace_json(traced: Traced) -> Mapping[str, Any]:
    """`passes[]` each `{name, base, head, apart}` and `parts_at`, as the contract has them."""
    return {
        "schema": TRACE_SCHEMA,
        "model": traced.key.model,
        "target": traced.key.target,
        "dispatch": {name: row.name for name, row in traced.rows.items()},
        "code_bytes": {name: row.code_bytes for name, row in traced.rows.items()},
        "same_code": {name: side.same_code for name, side in traced.traces.items()},
        "compilers": traced.compilers,
        "passes": [_pass(row) for row in traced.parting.rows],
        "parts_at": traced.parting.row.name if traced.parting.row else None,
        "parts_at_place": traced.parting.at,
        "operations": traced.parting.operations,
        "why": traced.parting.why,
        "commands": traced.commands,
        "around": {name: _around(one) for name, one in zip(("base", "head"), traced.around, strict=False)},
        **({"suspects": traced.suspects, "looked_up": traced.looked_up} if traced.looked_up else {}),
    }


def _pass(row: TraceRow) -> Mapping[str, Any]:
    totals = {name: None if state is None else state.total for name, state in (("base", row.base), ("head", row.head))}
    return {"name": row.name, "level": row.level, **totals, "share": row.share, "apart": row.apart}


def _around(one: IrAround) -> Mapping[str, Any]:
    return {"pass": one.name, "idle": one.idle, "before": one.before, "after": one.after, "why": one.why}
