"""`goldens`: the golden files of the configuration's suites as the measured values would have them, as a patch.

Above the patch is a line for each value that changes, with its cause where there is a base: `git apply` skips what
stands before a patch, so that the same text is a commit message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.compiler.probe import flags_of
from bot.config.configuration import load_config
from bot.config.torch_models import METRIC_OF, Golden, SuiteModule, edited, patch, read_exactly
from bot.core.explanation import Explanation
from bot.core.planned import Model, PlannedCell
from bot.core.report import Baseline
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.errors import ConfigError, NoVerdict
from bot.show.escape import clean
from bot.study.comparison import reported
from bot.study.prepare import Request, Show, is_snapshot, load_snapshot, measured, prepare, repository_at
from bot.system.processes import Cancel

_WHY_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class _Value:
    """What was measured for one golden: a number, or the reason why there is none."""

    golden: Golden
    module: SuiteModule
    number: int | None
    reason: str = ""

    @property
    def is_news(self) -> bool:
        return self.number is not None and self.number != self.golden.value

    @property
    def named(self) -> str:
        return f"{self.golden.shown}: {self.golden.key}"


def goldens(request: Request, show: Show, cancel: Cancel) -> str:
    """The text: subject, causes, what could not be measured, patch; raises NoVerdict where nothing was measured."""
    config = load_config(request.config)
    held = tuple(module for module in config.suites if module.goldens)
    if not held:
        hint = "name a suite with compstat files: suites: [{torch_models: FOLDER}]"
        raise ConfigError("has no goldens", where=str(request.config or "the packaged configuration"), hint=hint)
    known = {side: load_snapshot(Path(spec)) for side, spec in request.specs.items() if is_snapshot(spec)}
    repository, alone = repository_at(request.config, cancel), replace(config, models=(), suites=held)
    plans = [
        prepare(side, spec, request, alone, repository, show, cancel)
        for side, spec in request.specs.items()
        if side not in known
    ]
    sides = measured(plans, known, request, alone, show, cancel)
    values = [value for module in held for value in _values(module, sides["head"])]
    if not any(value.number is not None for value in values):
        reason = next((f"{value.named}: {value.reason}" for value in values), "no golden is selected")
        raise NoVerdict("no golden was measured", hint=clean(reason, _WHY_CHARACTERS))
    causes: Mapping[CellKey, Explanation] = {}
    if "base" in sides:
        causes = reported(config, sides["base"], sides["head"], Baseline("--base", None)).explanations
    top = repository.top or (request.config or Path()).resolve().parent
    return "".join((*_told(values, sides, causes), *_patches(values, top.resolve())))


def _values(module: SuiteModule, head: Snapshot) -> list[_Value]:
    """What was measured of one module; nothing where the selectors left it out."""
    key = CellKey(module.name, module.target.name)
    cell = next((cell for cell in head.cells if cell.key == key), None)
    if cell is None and not head.plans(key):
        return []
    return [_Value(golden, module, *_number(module, golden, cell)) for golden in module.goldens]


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


def _told(
    values: Sequence[_Value], sides: Mapping[str, Snapshot], explanations: Mapping[CellKey, Explanation]
) -> list[str]:
    base, version = sides.get("base"), sides["head"].compiler.version
    news = [value for value in values if value.is_news]
    said = [f"Goldens as measured with IREE {version}" if news else f"All goldens are as measured with IREE {version}"]
    lines = [f"{value.named} {value.golden.value} -> {value.number}{_why(value, base, explanations)}" for value in news]
    missing = [f"{value.named}: {value.reason}" for value in values if value.number is None]
    if missing:
        said += ["", "Not measured, and left as they are:", *missing]
    if news:
        said[1:1] = ["", *lines]
    return [f"{clean(line, _WHY_CHARACTERS)}\n" for line in said] + (["\n"] if news else [])


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


def _patches(values: Sequence[_Value], top: Path) -> list[str]:
    changes: dict[Path, dict[str, int]] = {}
    for value in values:
        if value.is_news and value.number is not None:
            changes.setdefault(value.golden.file, {})[value.golden.key] = value.number
    patches = []
    for file in sorted(changes):
        whole = file.resolve()
        path = whole.relative_to(top) if whole.is_relative_to(top) else Path(file)
        old = read_exactly(file)
        patches.append(patch(path.as_posix(), old, edited(old, changes[file], str(file))))
    return patches
