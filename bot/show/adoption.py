"""What is measured from now on: the report of the change that brings the configuration, mostly of the head alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.delta import value_of
from bot.core.policy import LevelSpec, Rule
from bot.core.record import total
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
    listed,
    listing,
    name_cell,
    phrase,
    section,
)
from bot.show.escape import clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import amount, kib, plural
from bot.show.grid import GridCell, GridRow, blocks

_GLOBS, _RULES = 4, 20
_SIZED = ("artifact_bytes", "executables", "stack_max_bytes")
_MERGED = "Once this is merged, each pull request is compared with its base commit, by the thresholds of that commit."
_COMMENTED = "It gets a comment where something changed, and a check in any case."
_REQUIRED = (
    "If growth is to stop a merge, require the check in the branch protection. What is over a limit by then is known, "
    "and does not fail it."
)
_UNTRUSTED = "Measured by the pull request's own workflow run; this report cannot check its numbers."


def adoption_blocks(facts: Facts, brought: Adoption, limits: Limits) -> tuple[Block, ...]:
    """What is measured from now on, and how large it is: the start of a first report."""
    cells = {cell.key: cell for cell in facts.report.head.cells if cell.status != "unsupported"}
    models, targets = (sorted({getattr(key, what) for key in cells}) for what in ("model", "target"))
    file = phrase("the configuration ", code(clip(brought.file, NAME_LIMIT))) if brought.file else "a configuration"
    compiler = facts.report.head.compiler
    spec = phrase(" (", code(clip(compiler.spec, NAME_LIMIT)), ")") if compiler.spec else ()
    version = phrase(code(clip(compiler.version, NAME_LIMIT)), spec)
    rows: list[GridRow] = [
        (clip(model, 40), tuple(_size(facts, cells.get(CellKey(model, target))) for target in targets))
        for model in models[: limits.grid_models]
    ]
    if len(models) > 1:
        sums = [total(value_of(c, _SIZED[0]) or 0 for key, c in cells.items() if key.target == at) for at in targets]
        rows.append(("", tuple(GridCell((), kib(size), "", "") for size in sums)))
    sizes = []
    for headers, shown in blocks([facts.short[name] for name in targets], rows, limits.grid_width):
        texts = [(name_cell(row) if row else phrase("all"), *(phrase(one.text) for one in each)) for row, each in shown]
        sizes.append(Table(("artifacts in KiB", *headers), listed(texts, "model"), small=True))
    broken = "🚫 does not compile" if any(not cell.measured for cell in cells.values()) else ""
    hidden = len(models) - limits.grid_models
    more = f"…and {plural(hidden, 'more model')}." if hidden > 0 else ""
    return (
        section(
            "",
            Sentence(phrase("This pull request brings ", file, ". ", _compared(facts), " Compiler: ", version)),
            Sentence(phrase(_UNTRUSTED) if facts.report.untrusted else (), small=True),
            *sizes,
            Sentence(phrase(broken), small=True),
            Sentence(phrase(more)),
            name="adoption",
        ),
    )


def after_adoption(facts: Facts, brought: Adoption, limits: Limits) -> tuple[Block, ...]:
    """What happens next, and what is in force; its end."""
    each = "Each gets a comment." if brought.always else _COMMENTED
    lines = [phrase(f"{_MERGED} {each}"), phrase(_REQUIRED)]
    title = f"Every build: artifact, executables and stack{'; thresholds in force' if brought.rules else ''}"
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    shown = fair_in_order(cells, lambda cell: cell.key.model, limits.findings)
    headers = ("model", "target", "artifact", "executables", "largest stack frame")
    every = Table(headers, listing((_row(facts, cell) for cell in shown), len(cells), "build"), numbers_from=2)
    names = ("rule", "metrics", "warns above", "fails above")
    rules = [
        (phrase(code(clip(rule.name, 48))), _about(rule), _level(rule.warn), _level(rule.fail))
        for rule in brought.rules
    ]
    table = Table(names, listing(rules[:_RULES], len(rules), "rule"), numbers_from=len(names))
    return (
        section("What happens next", List(listed(lines)), name="after"),
        Fold(title, (every, section("Thresholds in force", table, name="rules")), name="cells"),
    )


def _size(facts: Facts, cell: Cell | None) -> GridCell:
    if cell is None:
        return GridCell((), ABSENT, "", "")
    size = value_of(cell, "artifact_bytes")
    return GridCell((), "🚫" if not cell.measured else kib(size), facts.level(cell.key), "")


def _compared(facts: Facts) -> str:
    """Which cells base has too, under the same configuration."""
    broken = sum(delta.base is not None for delta in facts.states["newly-broken"])
    both = facts.count("same", "changed", "fixed", "broken") + broken
    if not both:
        return "The base commit has none, and nothing was compared with it."
    also = f"; for the other {facts.planned - both:,} base has nothing to compare with" if facts.planned > both else ""
    builds = f"{both:,} of {plural(facts.planned, 'build')}"
    return f"The base commit has none: {builds} compared with its files under this one{also}."


def _row(facts: Facts, cell: Cell) -> Row:
    names = (name_cell(clip(cell.key.model, NAME_LIMIT)), name_cell(facts.short[cell.key.target]))
    if not cell.measured:
        why = cell.failure.first_line if cell.failure else cell.status
        return (*names, phrase("does not compile: ", code(clip(why, 120))), phrase(ABSENT), phrase(ABSENT))
    units = ("bytes", "count", "bytes")
    return (*names, *(phrase(amount(value_of(cell, id_), unit)) for id_, unit in zip(_SIZED, units, strict=True)))


def _about(rule: Rule) -> Phrase:
    said = [_globs(rule.metrics)]
    said += [phrase("of ", _globs(rule.models))] if rule.models != ("*",) else []
    said += [phrase("on ", _globs(rule.targets))] if rule.targets != ("*",) else []
    return joined(said, " ")


def _globs(globs: Sequence[str]) -> Phrase:
    more = f" and {len(globs) - _GLOBS} more" if len(globs) > _GLOBS else ""
    return phrase(joined([(code(clip(one, 48)),) for one in globs[:_GLOBS]], ", "), more)


def _level(spec: LevelSpec | None) -> Phrase:
    def amounts(spec: LevelSpec) -> Iterator[str]:
        if spec.change_text:
            yield "any growth" if spec.change_text == "0" else f"growth of {spec.change_text}"
        if spec.limit is not None:
            yield f"a value of {spec.limit.text}"

    return phrase(", or ".join(amounts(spec)) if spec else "") or phrase(ABSENT)
