"""The whole story of one changed cell, as tables of plain text for a page that has room for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from bot.core.rules.delta import CellDelta
from bot.core.values.explanation import ComponentDelta, DispatchDelta, Explanation
from bot.core.values.program import Argument, Family
from bot.render.reasons.cause_lines import cause_words, said
from bot.render.reasons.why import Diff, component_amounts, diffs, rest
from bot.render.text.escape import clean, clip
from bot.render.text.filters import UNKNOWN, amount, change, sides, signed
from bot.render.text.phrase import Phrase
from bot.render.view.text_tables import dispatch_sides

TABLE_ROWS = 400
"""The most rows of one table; report.json has all."""

_NAME = 120
_NOTE = 400
_DIFF_LINES = 60
_DIFFS = 12
_MEMBERS = 12
_VARYING = 12
_VALUES = 16

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextTable:
    """One table of plain text.

    Attributes:
        title: what it is about.
        more: how many rows were left out.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """Why one cell changed, and what it is made of.

    Attributes:
        said: cause, place, phase and why as a sentence.
        rest: how many entry points did not change, in words; may be empty.
    """

    said: Phrase
    rest: str
    tables: tuple[TextTable, ...]
    diffs: tuple[Diff, ...]

    @property
    def size(self) -> int:
        """How many rows and lines it takes."""
        return sum(len(table.rows) for table in self.tables) + sum(diff.text.count("\n") for diff in self.diffs)


def story(delta: CellDelta, explanation: Explanation) -> Story:
    """Everything there is to say of one changed cell."""
    shown = tuple(table for table in _tables(delta, explanation) if table.rows)
    told = diffs(explanation.dispatches, _DIFF_LINES)
    return Story(said(explanation), rest(explanation), shown, tuple(islice(told, _DIFFS)))


def _tables(delta: CellDelta, explanation: Explanation) -> Iterator[TextTable]:
    dispatches, head = explanation.dispatches, delta.head or delta.base
    yield _table("The artifact's change by cause", _FALL, _fall_rows(explanation), len(explanation.waterfall))
    yield _table("Dispatches that changed", _DISPATCH, map(_dispatch_row, dispatches), len(dispatches))
    yield _tree(explanation.tree)
    families = head.families if head else ()
    yield _table("What deduplication left behind", _FAMILY, map(_family_row, families), len(families))
    arguments = head.program.arguments if head and head.program else ()
    yield _table(_DYNAMIC, _ARGUMENT, map(_argument_row, arguments), len(arguments))
    base, now = (cell.phases_ms if cell else {} for cell in (delta.base, delta.head))
    yield _table("Compile time by phase (informational)", _PHASE, _phase_rows(base, now), len({*base, *now}))


_DYNAMIC = "Arguments of the dispatches: what a dynamic version would have to know"
_PHASE = ("phase", "wall time, base → head", "change")
_COMPILED_IN = (
    *("input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow", "stream"),
    *("executable-sources", "executable-configurations", "executable-targets", "hal", "vm"),
)
_PHASES = {name: order for order, name in enumerate(_COMPILED_IN)}
"""The compiler's own order."""
_FALL = ("cause", "change", "parts of the artifact that are no dispatch's code")
_DISPATCH = (
    *("dispatch", "cause", "component", "code", "stack", "what differs"),
    *("sites", "workgroup memory", "matched by"),
)
_FAMILY = ("kind", "members", "what keeps them apart", "executables")
_COMPONENT = ("component", "dispatch sites", "code, base → head", "stack, base → head")
_ARGUMENT = ("entry point", "argument", "type", "values", "different", "common divisor", "sites without a constant")
_NUMBERS = (("code_bytes", "bytes"), ("stack_bytes", "bytes"), ("sites", "count"), ("workgroup_bytes", "bytes"))


def _table(title: str, headers: Row, rows: Iterable[Row], total: int) -> TextTable:
    kept = tuple(islice(rows, TABLE_ROWS))
    return TextTable(title, headers, kept, total - len(kept))


def _fall_rows(explanation: Explanation) -> Iterator[Row]:
    for cause, size in explanation.waterfall.items():
        parts = [part for part in explanation.parts if part.cause == cause]
        yield cause_words(cause), signed(size), ", ".join(f"{p.what} {signed(p.change_bytes)}" for p in parts)


def _dispatch_row(delta: DispatchDelta) -> Row:
    names = (clip(delta.name, _NAME), cause_words(delta.cause), clip(delta.component, _NAME))
    code_bytes, stack_bytes, *rest = (dispatch_sides(delta, *number) for number in _NUMBERS)
    return (*names, code_bytes, stack_bytes, clip(clean(delta.note), _NOTE), *rest, clip(delta.matched, 60))


def _tree(components: Sequence[ComponentDelta]) -> TextTable:
    names = {delta.name for delta in components}
    rows = (_component_row(delta, names) for delta in components)
    return _table("Components", _COMPONENT, rows, len(components))


def _component_row(delta: ComponentDelta, names: Collection[str]) -> Row:
    above = [end for end, char in enumerate(delta.name) if char == "." and delta.name[:end] in names]
    tail = delta.name[above[-1] + 1 :] if above else delta.name
    return ("· " * len(above) + clip(tail, _NAME), *component_amounts(delta))


def _family_row(family: Family) -> Row:
    members = ", ".join(clip(name, _NAME) for name in family.members[:_MEMBERS])
    more = ", …" if len(family.members) > _MEMBERS else ""
    varying = "; ".join(clip(clean(line), _NOTE) for line in family.varying[:_VARYING])
    kind = "identical" if family.identical else clip(family.kind, 40)
    return (kind, amount(len(family.members), "count"), varying, members + more)


def _argument_row(argument: Argument) -> Row:
    values = ", ".join(f"{value:,}" for value in argument.values[:_VALUES])
    more = ", …" if argument.distinct > min(len(argument.values), _VALUES) else ""
    divisor = UNKNOWN if argument.divisor is None else amount(argument.divisor, "count")
    counts = (amount(argument.distinct, "count"), divisor, amount(argument.unknown_sites, "count"))
    return (clip(argument.entry_point, _NAME), str(argument.index), clip(argument.type, 40), values + more, *counts)


def _phase_rows(base: Mapping[str, int], head: Mapping[str, int]) -> Iterator[Row]:
    for phase in sorted({*base, *head}, key=lambda name: (_PHASES.get(name, len(_PHASES)), name)):
        left, right = base.get(phase), head.get(phase)
        yield clip(phase, _NAME), sides(left, right, "ms"), change(left, right, "ms")
