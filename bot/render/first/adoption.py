"""What is measured from now on: the report of the change that brings the configuration, mostly of the head alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.delta import value_of
from bot.core.policy import LevelSpec, Rule
from bot.core.snapshot import Cell, CellKey
from bot.core.spread import Value, total
from bot.render.text.escape import clip
from bot.render.text.filters import amount, kib, plural
from bot.render.text.phrase import Phrase, code, joined, phrase
from bot.render.text.selection import Limits, Listing, fair_in_order, listing
from bot.render.text.text_tables import ABSENT, Row, Table, name_cell
from bot.render.view.facts import NAME_LIMIT, Facts
from bot.render.view.grid import Block, GridCell, GridRow, blocks

_BROKEN = "🚫"
_GLOBS, _RULES = 4, 20
_SIZED = ("artifact_bytes", "executables", "stack_max_bytes")
_HEADERS = ("model", "target", "artifact", "executables", "largest stack frame")


@dataclass(frozen=True, slots=True)
class AdoptionView:
    """What there is to say of a first report, beside its headline.

    Attributes:
        file: the configuration's path; empty where it is not known.
        compiler: of the head.
        compared: with what the head is compared, and with what not.
        sizes: the artifacts in KiB, models × targets; the last row is the sum, where there are several models.
        models: those that are drawn there, of how many.
        broken: True where a cell of the table does not compile.
        cells: each cell's artifact, executables and stack.
        rules: the thresholds in force.
        always: True where each pull request gets a comment.
    """

    file: str
    compiler: Phrase
    compared: Phrase
    sizes: tuple[Block, ...]
    models: Listing[str]
    broken: bool
    cells: Table
    rules: Table
    always: bool


def adoption(facts: Facts, limits: Limits) -> AdoptionView | None:
    """The view of a first report; None of any other one."""
    brought = facts.report.adoption
    if brought is None:
        return None
    cells = {cell.key: cell for cell in facts.report.head.cells if cell.status != "unsupported"}
    models = sorted({key.model for key in cells})
    shown = models[: limits.grid_models]
    rows = _rows(facts, cells, shown, models)
    return AdoptionView(
        file=clip(brought.file, NAME_LIMIT),
        compiler=_compiler(facts),
        compared=_compared(facts),
        sizes=tuple(blocks([facts.short[name] for name in _targets(cells)], rows, limits.grid_width)),
        models=listing(shown, len(models), "model"),
        broken=any(not cell.measured for cell in cells.values()),
        cells=_cells(facts, list(cells.values()), limits),
        rules=_rules(brought.rules),
        always=brought.always,
    )


def measured_words(facts: Facts) -> str:
    """``measured from now on: 4 models on 8 targets, 1,234,567 B``."""
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    models, targets = ({getattr(cell.key, what) for cell in cells} for what in ("model", "target"))
    size = total(value_of(cell, "artifact_bytes") or 0 for cell in cells) or 0
    where = f"{plural(len(models), 'model')} on {plural(len(targets), 'target')}"
    return f"measured from now on: {where}, {amount(size)}"


def _targets(cells: dict[CellKey, Cell]) -> list[str]:
    return sorted({key.target for key in cells})


def _rows(facts: Facts, cells: dict[CellKey, Cell], shown: Sequence[str], models: Sequence[str]) -> list[GridRow]:
    targets = _targets(cells)
    rows = [
        GridRow(clip(model, 40), tuple(_size(facts, cells.get(CellKey(model, target))) for target in targets))
        for model in shown
    ]
    if len(models) > 1:
        rows.append(GridRow("", tuple(GridCell((), kib(_sum(cells, target)), "", "") for target in targets)))
    return rows


def _sum(cells: dict[CellKey, Cell], target: str) -> Value:
    return total(value_of(cell, "artifact_bytes") or 0 for key, cell in cells.items() if key.target == target)


def _size(facts: Facts, cell: Cell | None) -> GridCell:
    if cell is None:
        return GridCell((), ABSENT, "", "")
    size = value_of(cell, "artifact_bytes")
    return GridCell((), _BROKEN if not cell.measured else kib(size), facts.level(cell.key), "")


def _compiler(facts: Facts) -> Phrase:
    compiler = facts.report.head.compiler
    spec = phrase(" (", code(clip(compiler.spec, NAME_LIMIT)), ")") if compiler.spec else ()
    return phrase(code(clip(compiler.version, NAME_LIMIT)), spec)


def _compared(facts: Facts) -> Phrase:
    """Which cells base has too, under the same configuration."""
    broken = sum(delta.base is not None for delta in facts.states["newly-broken"])
    both = facts.count("same", "changed", "fixed", "broken") + broken
    if not both:
        return phrase("The base commit has none, and nothing was compared with it.")
    every = len(facts.report.deltas) - sum(delta.excused for delta in facts.report.deltas)
    also = f"; for the other {every - both:,} base has nothing to compare with" if every > both else ""
    said = (
        f"The base commit has none: {both:,} of {plural(every, 'cell')} compared with its files under this one{also}."
    )
    return phrase(said)


def _cells(facts: Facts, cells: Sequence[Cell], limits: Limits) -> Table:
    shown = fair_in_order(cells, lambda cell: cell.key.model, limits.findings)
    return Table(_HEADERS, listing((_row(facts, cell) for cell in shown), len(cells), "cell"), numbers_from=2)


def _row(facts: Facts, cell: Cell) -> Row:
    names = (name_cell(clip(cell.key.model, NAME_LIMIT)), name_cell(facts.short[cell.key.target]))
    if not cell.measured:
        why = cell.failure.first_line if cell.failure else cell.status
        return (*names, phrase("does not compile: ", code(clip(why, 120))), phrase(ABSENT), phrase(ABSENT))
    units = ("bytes", "count", "bytes")
    return (*names, *(phrase(amount(value_of(cell, id_), unit)) for id_, unit in zip(_SIZED, units, strict=True)))


def _rules(rules: Sequence[Rule]) -> Table:
    headers = ("rule", "metrics", "warns above", "fails above")
    rows = [(phrase(code(clip(rule.name, 48))), _about(rule), _level(rule.warn), _level(rule.fail)) for rule in rules]
    return Table(headers, listing(rows[:_RULES], len(rows), "rule"), numbers_from=len(headers))


def _about(rule: Rule) -> Phrase:
    said = [_globs(rule.metrics)]
    said += [phrase("of ", _globs(rule.models))] if rule.models != ("*",) else []
    said += [phrase("on ", _globs(rule.targets))] if rule.targets != ("*",) else []
    return joined(said, " ")


def _globs(globs: Sequence[str]) -> Phrase:
    more = f" and {len(globs) - _GLOBS} more" if len(globs) > _GLOBS else ""
    return phrase(joined([(code(clip(one, 48)),) for one in globs[:_GLOBS]], ", "), more)


def _level(spec: LevelSpec | None) -> Phrase:
    if spec is None:
        return phrase(ABSENT)
    return joined([phrase(words) for words in _amounts(spec)], ", or ") or phrase(ABSENT)


def _amounts(spec: LevelSpec) -> Iterator[str]:
    if spec.change_text:
        yield "any growth" if spec.change_text == "0" else f"growth of {spec.change_text}"
    if spec.limit is not None:
        yield f"a value of {spec.limit.text}"
