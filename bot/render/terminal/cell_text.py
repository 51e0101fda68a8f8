"""The whole story of one cell on a terminal; colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.core.metrics import METRIC_BY_ID
from bot.core.rules.delta import MetricDelta
from bot.core.values.explanation import DispatchDelta, Explanation
from bot.core.values.program import Family
from bot.core.values.snapshot import CellKey
from bot.render.reasons.cause_lines import cause_words, said
from bot.render.reasons.why import component_amounts, family_line, rest
from bot.render.text.escape import clean, clean_block
from bot.render.text.filters import change, sides, signed
from bot.render.text.phrase import Phrase
from bot.render.view.text_tables import dispatch_sides

_STYLES = {"text": "", "code": "cyan", "strong": "bold"}
_LEVELS = {"fail": "bold red", "warn": "yellow"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MESSAGE_LINES = 12
_AMOUNTS = ("sites", "code", "stack")
_FIELDS = (
    ("sites", "dispatch sites", "count"),
    ("code_bytes", "code", "bytes"),
    ("stack_bytes", "stack frame", "bytes"),
    ("alloca_bytes", "stack allocations", "bytes"),
    ("workgroup_bytes", "workgroup memory", "bytes"),
    ("vgprs", "VGPRs", "count"),
    ("sgprs", "SGPRs", "count"),
    ("vgpr_spills", "VGPR spills", "count"),
    ("sgpr_spills", "SGPR spills", "count"),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a report says of one cell.

    Attributes:
        status, failures, commands, compilers: side → word, message, command line, version; empty where there is none.
        findings: level and words of each, worst first.
        metrics: all of them.
        explanation: None where the report has none.
        families: of head.
        roots: the root causes that the cell has a part in: cause, what changed, and bytes over all cells.
    """

    key: CellKey
    state: str
    reason: str
    status: Mapping[str, str]
    failures: Mapping[str, str]
    commands: Mapping[str, str]
    compilers: Mapping[str, str]
    findings: tuple[tuple[str, str], ...]
    metrics: tuple[MetricDelta, ...]
    explanation: Explanation | None
    families: tuple[Family, ...]
    roots: tuple[tuple[str | None, str, int], ...] = ()


def print_cell(told: Told, console: Console) -> None:
    """Everything the report says of the cell."""
    for part in _cell_parts(told):
        console.print(part)
    for line in _commands(told):
        console.print(line, soft_wrap=True)  # to be copied whole


def print_dispatch(told: Told, delta: DispatchDelta, console: Console) -> None:
    """Everything the report says of one dispatch of the cell."""
    for part in (_title(told), *_dispatch_parts(delta)):
        console.print(part)


def _cell_parts(told: Told) -> Iterator[Text | Table | Padding]:
    yield _title(told)
    yield from (Text(f"{level}: {clean(words)}", _LEVELS.get(level, "")) for level, words in told.findings)
    yield from _failures(told)
    yield from _roots(told.roots)
    if told.explanation:
        yield Text.assemble("\n", _text(said(told.explanation)), ".")
    elif told.state == "changed":
        yield Text("\nthe report does not say why", "yellow")
    yield from _metrics(told.metrics)
    if told.explanation:
        yield from _explanation(told.explanation)
    if told.families:
        yield Text("\nWhat deduplication left behind", "bold")
        yield from (Padding(_text(family_line(family)), (0, 0, 0, 2)) for family in told.families)


def _title(told: Told) -> Text:
    reason = f" ({clean(told.reason)})" if told.reason else ""
    name = Text.assemble((clean(told.key.model), "bold cyan"), " on ", (clean(told.key.target), "bold cyan"))
    return Text.assemble(name, ": ", (clean(told.state), "bold"), reason)


def _text(words: Phrase) -> Text:
    """Spans keep the blanks at their ends."""
    return Text.assemble(*((_clean_span(span.text), _STYLES[span.kind]) for span in words))


def _clean_span(text: str) -> str:
    left, right = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{left and ' '}{clean(text)}{right and ' '}" if text.strip() else text and " "


def _failures(told: Told) -> Iterator[Text | Padding]:
    for side, message in told.failures.items():
        if message:
            yield Text(f"\n{side}: {clean(told.status.get(side, '')) or 'failed'}", "bold")
            lines = clean_block(message).split("\n")[:_MESSAGE_LINES]
            yield Padding(Text("\n".join(lines), "dim"), (0, 0, 0, 4))


def _table(title: str, *headers: str) -> Table:
    table = Table(
        title=Text(f"\n{title}", "bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for header in headers:
        table.add_column(header, overflow="fold", justify="right" if "→" in header or header == "change" else "left")
    return table


def _metrics(metrics: Sequence[MetricDelta]) -> Iterator[Table]:
    changed = [m for m in metrics if m.base != m.head]
    if not changed:
        return
    table = _table("Metrics that changed", "metric", "base → head", "change")
    for m in changed:
        about = METRIC_BY_ID[m.id]
        table.add_row(about.label, sides(m.base, m.head, about.unit), change(m.base, m.head, about.unit))
    yield table


def _roots(roots: Sequence[tuple[str | None, str, int]]) -> Iterator[Text]:
    if roots:
        yield Text("\nRoot causes that this cell has a part in, and their bytes over all cells", "bold")
    for cause, what, net_bytes in roots:
        yield Text.assemble("  ", (cause_words(cause), "bold"), f": {clean(what)}: {signed(net_bytes)}")


def _waterfall(explanation: Explanation) -> Iterator[Table]:
    """The change of the artifact by cause; what no dispatch explains part by part."""
    if not explanation.waterfall:
        return
    table = _table("The artifact's change by cause", "cause", "part", "change")
    for cause, size in explanation.waterfall.items():
        table.add_row(Text(cause_words(cause), "cyan"), "", signed(size))
        for part in explanation.parts:
            if part.cause == cause:
                table.add_row("", clean(part.what), signed(part.change_bytes))
    table.add_row("all", "", signed(sum(explanation.waterfall.values())))
    yield table


def _alike(delta: DispatchDelta) -> bool:
    """True where all numbers are the same."""
    return all(getattr(delta.base, field, None) == getattr(delta.head, field, None) for field, _, _ in _FIELDS)


def _dispatch(delta: DispatchDelta) -> Iterator[Text | Padding]:
    """A block instead of a table's row: names are long, terminals are narrow."""
    numbers = [
        f"{label} {dispatch_sides(delta, field, unit)}"
        for field, label, unit in _FIELDS
        if getattr(delta.base, field, None) != getattr(delta.head, field, None)
    ]
    yield Text.assemble("  ", (clean(delta.name), "cyan"))
    place = f"{cause_words(delta.cause)} in {clean(delta.component)}: {', '.join(numbers)}"
    yield Padding(Text(place), (0, 0, 0, 4))
    if delta.note:
        yield Padding(Text(clean(delta.note), "dim"), (0, 0, 0, 4))


def _same_size(deltas: Sequence[DispatchDelta]) -> Iterator[Padding]:
    """By cause: other code of the same size."""
    causes: dict[str | None, list[str]] = {}
    for delta in deltas:
        causes.setdefault(delta.cause, []).append(clean(delta.name))
    for cause, names in causes.items():
        words = f"{cause_words(cause)}, all numbers equal ({len(names):,}): "
        yield Padding(Text.assemble(words, (", ".join(names), "cyan")), (0, 0, 0, 2))


def _explanation(explanation: Explanation) -> Iterator[Table | Text | Padding]:
    yield from _waterfall(explanation)
    if explanation.dispatches:
        yield Text(f"\nDispatches that changed ({len(explanation.dispatches):,}; --dispatch NAME tells more)", "bold")
        resized = [delta for delta in explanation.dispatches if not _alike(delta)]
        for delta in resized:
            yield from _dispatch(delta)
        yield from _same_size([delta for delta in explanation.dispatches if _alike(delta)])
    if told := rest(explanation):
        yield Text(told, "dim")
    if explanation.components:
        table = _table("Components that moved", "component", *(f"{what}, base → head" for what in _AMOUNTS))
        for part in explanation.components:
            table.add_row(Text(clean(part.name), "cyan"), *component_amounts(part))
        yield table


def _commands(told: Told) -> Iterator[Text]:
    """One command for both sides where they are the same."""
    yield Text("\nTo reproduce", "bold")
    sides: dict[str, list[str]] = {}
    for side, command in told.commands.items():
        sides.setdefault(clean(command), []).append(f"{side}: IREE {clean(told.compilers.get(side, ''))}")
    for command, names in sides.items():
        yield Text(f"# {'; '.join(names)}", "dim")
        yield Text(command or "# not measured on this side")


def _dispatch_parts(delta: DispatchDelta) -> Iterator[Text | Table | Padding]:
    known = delta.head or delta.base
    kind = f" ({clean(known.kind)}, in {clean(known.executable)})" if known else ""
    yield Text.assemble("\n", (clean(delta.name), "bold cyan"), kind)
    how = f" in {clean(delta.component)}; matched by {clean(delta.matched)}"
    yield Text.assemble((cause_words(delta.cause), "bold"), how)
    if delta.note:
        yield Text(clean(delta.note))
    yield _numbers(delta)
    for name, side in (("base", delta.base), ("head", delta.head)):
        if side and side.strategy:
            yield Text(f"{name}: {clean(side.strategy)}")
    if delta.diff:
        yield Text("\nThe smallest piece that differs", "bold")
        yield from map(_diff_line, delta.diff)


def _numbers(delta: DispatchDelta) -> Table:
    table = _table("", "", "base → head")
    for field, label, unit in _FIELDS:
        if any(getattr(side, field, None) is not None for side in (delta.base, delta.head)):
            table.add_row(label, dispatch_sides(delta, field, unit))
    return table


def _diff_line(line: str) -> Text:
    shown = clean_block(line).replace("\n", " ")
    return Text(f"  {shown}", _DIFF_STYLES.get(line[:1], "dim"))
