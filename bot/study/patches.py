"""Goldens of suites as the measured values would have them, as patches.

Above a patch is a line for each value that changes, and for each that is left although it may be out of date: `git
apply` skips what stands before a patch, so that the same text is a commit message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.iree import flags_of
from bot.config.torch_models import METRIC_OF, Golden, SuiteModule, edited, patch, read_exactly
from bot.core.explanation import Explanation
from bot.core.planned import Model, PlannedCell
from bot.core.report import Baseline
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.errors import ConfigError, NoVerdict
from bot.show.escape import clean
from bot.study.comparison import reported
from bot.study.prepare import Work

_LINE_CHARACTERS = 300


def _text(subject: str, changes: Sequence[str], left: str, unchanged: Sequence[str], patches: Iterable[str]) -> str:
    """A commit message with what changes and, below a line that says so, what does not; and the patches."""
    lines = [subject, *(["", *changes] if changes else []), *(["", left, *unchanged] if unchanged else [])]
    shown = [f"{clean(line, _LINE_CHARACTERS)}\n" for line in lines]
    return "".join((*shown, *(["\n", *patches] if changes else [])))


def _patch(file: Path, top: Path, text: str) -> str:
    """What makes this text of a file, under its name in the repository."""
    whole = file.resolve()
    path = whole.relative_to(top) if whole.is_relative_to(top) else file
    return patch(path.as_posix(), read_exactly(file), text)


class _Value(NamedTuple):
    """What was measured for one golden: a number, or the reason why there is none."""

    golden: Golden
    module: SuiteModule
    number: int | None
    reason: str = ""

    @property
    def named(self) -> str:
        return f"{self.golden.shown}: {self.golden.key}"


def goldens(work: Work) -> str:
    """The golden files of the configuration's suites with the measured values, and causes where there is a base.

    Raises NoVerdict where nothing was measured.
    """
    held, at = tuple(module for module in work.config.suites if module.goldens), work.request.config
    if not held:
        hint = "name a suite with compstat files: suites: [{torch_models: FOLDER}]"
        raise ConfigError("has no goldens", where=str(at or "the packaged configuration"), hint=hint)
    specs, alone = work.request.specs, replace(work, config=structs.replace(work.config, models=(), suites=held))
    sides = alone.sides(specs)
    head, base = sides["head"], sides.get("base")
    values = [value for module in held for value in _values(module, head)]
    if not any(value.number is not None for value in values):
        reason = next((f"{value.named}: {value.reason}" for value in values), "no golden is selected")
        raise NoVerdict("no golden was measured", hint=clean(reason, _LINE_CHARACTERS))
    causes: Mapping[CellKey, Explanation] = {}
    if base is not None:
        causes = reported(work.config, base, head, Baseline("--base", None)).explanations
    lines, changes = [], dict[Path, dict[str, int]]()
    for value in values:
        if value.number is not None and value.number != value.golden.value:
            lines.append(f"{value.named} {value.golden.value} -> {value.number}{_why(value, base, causes)}")
            changes.setdefault(value.golden.file, {})[value.golden.key] = value.number
    top = (work.repository.top or (at or Path()).resolve().parent).resolve()
    patches = [_patch(file, top, edited(read_exactly(file), changes[file], str(file))) for file in sorted(changes)]
    subject = f"{'Goldens' if lines else 'All goldens are'} as measured with IREE {head.compiler.version}"
    missing = [f"{value.named}: {value.reason}" for value in values if value.number is None]
    return _text(subject, lines, "Not measured, and left as they are:", missing, patches)


def _values(module: SuiteModule, head: Snapshot) -> Iterator[_Value]:
    """What was measured of one module; nothing where the selectors left it out."""
    key = CellKey(module.name, module.target.name)
    cell = next((cell for cell in head.cells if cell.key == key), None)
    if cell is not None or head.plans(key):
        yield from (_Value(golden, module, *_number(module, golden, cell)) for golden in module.goldens)


def _number(module: SuiteModule, golden: Golden, cell: Cell | None) -> tuple[int | None, str]:
    if cell is None:
        return None, "not measured"
    if cell.status != "ok":
        return None, cell.failure.first_line if cell.failure else cell.status
    if flags_of(cell.command) != flags_of(PlannedCell(Model("", "", "", "", 0), module.target).command()):
        return None, "measured with other flags than the module's"
    metric = METRIC_OF[golden.key]
    numbers = [outcome.metrics.get(metric) for outcome in (cell.outcome, *cell.others) if outcome.status == "ok"]
    if None in numbers:
        return None, cell.reasons.get(metric, "not known")
    return max(number for number in numbers if number is not None), ""


def _why(value: _Value, base: Snapshot | None, explanations: Mapping[CellKey, Explanation]) -> str:
    """What the change of the compiler, from base to head, has to do with it."""
    if base is None:
        return ""
    key, metric = CellKey(value.module.name, value.module.target.name), METRIC_OF[value.golden.key]
    before = next((cell.value(metric) for cell in base.cells if cell.key == key), None)
    if before is None:
        return "; not measured on base"
    if before == value.number:
        return f"; {before} on base too, so this golden was out of date"
    explanation = explanations.get(key)
    return f"; {before} on base: {explanation.why if explanation and explanation.why else 'the cause is not known'}"
