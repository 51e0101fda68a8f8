"""What is measured from now on: the report of the change that brings the configuration, mostly of the head alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.delta import value_of
from bot.core.policy import LevelSpec, Rule
from bot.core.record import Value, total
from bot.core.report import Adoption
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import (
    ABSENT,
    Block,
    Fold,
    Limits,
    List,
    Phrase,
    Row,
    Sentence,
    Table,
    code,
    fair_in_order,
    joined,
    listing,
    name_cell,
    phrase,
    section,
)
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import amount, kib, plural
from bot.show.grid import GridCell, GridRow, blocks

_BROKEN = "🚫"
_GLOBS, _RULES = 4, 20
_SIZED = ("artifact_bytes", "executables", "stack_max_bytes")
_MERGED = "Once this is merged, each pull request is compared with its base commit, by the thresholds of that commit."
_COMMENTED = "It gets a comment where something changed, and a check in any case."
_REQUIRED = (
    "If growth is to stop a merge, require the check in the branch protection. What is over a limit by then is known, "
    "and does not fail it."
)
_HEADERS = ("model", "target", "artifact", "executables", "largest stack frame")


def adoption_blocks(facts: Facts, brought: Adoption, limits: Limits) -> tuple[Block, ...]:
    """What is measured from now on, and how large it is: the start of a first report."""
    cells = {cell.key: cell for cell in facts.report.head.cells if cell.status != "unsupported"}
    models = sorted({key.model for key in cells})
    shown = models[: limits.grid_models]
    file = phrase("the configuration ", code(clip(brought.file, NAME_LIMIT))) if brought.file else "a configuration"
    what = phrase("This pull request brings ", file, ". ", _compared(facts), " Compiler: ", _compiler(facts))
    untrusted = "Measured by the pull request's own workflow run; this report cannot check its numbers."
    sizes = [
        Table(
            ("artifacts in KiB", *block.headers),
            listing([_sized(row) for row in block.rows], len(block.rows), "model"),
            small=True,
        )
        for block in blocks(
            [facts.short[name] for name in _targets(cells)], _rows(facts, cells, shown, models), limits.grid_width
        )
    ]
    broken = "🚫 does not compile" if any(not cell.measured for cell in cells.values()) else ""
    more = f"…and {plural(len(models) - len(shown), 'more model')}." if len(models) > len(shown) else ""
    return (
        section(
            "",
            Sentence(what),
            Sentence(phrase(untrusted) if facts.report.untrusted else (), small=True),
            *sizes,
            Sentence(phrase(broken), small=True),
            Sentence(phrase(more)),
            name="adoption",
        ),
    )


def after_adoption(facts: Facts, brought: Adoption, limits: Limits) -> tuple[Block, ...]:
    """What happens next, and what is in force; its end."""
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    each = "Each gets a comment." if brought.always else _COMMENTED
    lines = [phrase(f"{_MERGED} {each}"), phrase(_REQUIRED)]
    title = f"Every build: artifact, executables and stack{'; thresholds in force' if brought.rules else ''}"
    return (
        section("What happens next", List(listing(lines, len(lines), "line")), name="after"),
        Fold(
            title,
            (_cells(facts, cells, limits), section("Thresholds in force", _rules(brought.rules), name="rules")),
            name="cells",
        ),
    )


def _sized(row: GridRow) -> Row:
    return (name_cell(row.model) if row.model else phrase("all"), *(phrase(cell.text) for cell in row.cells))


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
        f"The base commit has none: {both:,} of {plural(every, 'build')} compared with its files under this one{also}."
    )
    return phrase(said)


def _cells(facts: Facts, cells: Sequence[Cell], limits: Limits) -> Table:
    shown = fair_in_order(cells, lambda cell: cell.key.model, limits.findings)
    return Table(_HEADERS, listing((_row(facts, cell) for cell in shown), len(cells), "build"), numbers_from=2)


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
