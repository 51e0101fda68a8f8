"""`ratchet`: the limits of a configuration as tight as what is measured now, as a patch of its file.

Above the patch is a line for each limit that changes, and for each that is left although it could be too loose: `git
apply` skips what stands before a patch, so that the same text is a commit message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from msgspec.structs import replace

from bot.compiler.probe import flags_of
from bot.config.configuration import Configuration, load_config
from bot.config.thresholds import parse_rules
from bot.config.torch_models import METRIC_OF, Golden, SuiteModule, edited, patch, read_exactly
from bot.config.units import in_style, parse_ratio
from bot.config.yaml_file import KeyPath, YamlFile, parse_yaml, read_as, read_yaml, with_values
from bot.core.explanation import Explanation
from bot.core.metrics import METRIC_BY_ID, own_metrics
from bot.core.planned import LIFTED_LIMIT_FLAG, Model, PlannedCell
from bot.core.report import Baseline
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.thresholds import Evidence, Kept, Tighter, ratcheted
from bot.errors import ConfigError, NoVerdict, UsageError
from bot.show.escape import clean
from bot.show.filters import amount
from bot.study.comparison import reported
from bot.study.prepare import Request, Show, is_snapshot, load_snapshot, measured, planned, prepare, repository_at
from bot.system.processes import Cancel

_LINE_CHARACTERS = 300
_REPORT, _SNAPSHOTS = "report.json", ("head.json", "snapshot.json")
"""What a compare writes, and the names under which a directory has a snapshot."""


def ratchet(request: Request, measured: Path, headroom: str, cancel: Cancel) -> str:
    """The lines and the patch.

    Args:
        measured: a snapshot, or the directory or `report.json` of a compare, whose head it is then.
        headroom: a percentage, as it was written.

    Raises ConfigError where the configuration has no thresholds of its own.
    """
    if request.config is None:
        hint = "give the thresholds a configuration of your own: code-size-bot init writes one"
        raise UsageError("the packaged configuration is not for you to change", where="--config", hint=hint)
    config, file = load_config(request.config), read_yaml(request.config)
    if "thresholds" not in file.data:
        lines = enumerate(read_exactly(request.config).splitlines(), 1)
        at = next((number for number, line in lines if re.match(r"# *thresholds:", line)), None)
        hint = f"those of line {at} are a comment: take the # from them, and give them limits" if at else "write some"
        raise ConfigError("has no thresholds of its own", where=str(request.config), hint=hint)
    repository = repository_at(request.config, cancel)
    cells = planned(request, config, repository).cells
    snapshot = load_snapshot(_snapshot_in(measured))
    there = {cell.key: cell for cell in snapshot.cells}
    alive = [cell for cell in cells if not cell.target.unsupported]
    doubts = {cell.key: _doubt(cell, there[cell.key], snapshot) for cell in alive if cell.key in there}
    doubtful = {key: why for key, why in doubts.items() if why}
    evidence = Evidence(snapshot, frozenset(cell.key for cell in alive), doubtful, frozenset(config.noise))
    rules = [rule for rule in config.thresholds if not rule.beside]
    outcomes = tuple(ratcheted(rules, evidence, _headroom(headroom)))
    unchanged = [f"{one.rule.name} (line {one.rule.line}): {one.why}" for one in outcomes if isinstance(one, Kept)]
    tighter = {_place(file, one): one for one in outcomes if isinstance(one, Tighter)}
    new = {place: in_style(one.old.text, one.limit) for place, one in tighter.items()}
    text, refused = with_values(file.path, read_exactly(file.path), new)
    proposed = parse_yaml(file.path, text)
    own = own_metrics(config.compiler.metrics)
    parse_rules(proposed, read_as(proposed, Configuration).thresholds, own)  # what is proposed has to be taken
    unchanged += [f"{tighter[at].rule.name} (line {tighter[at].rule.line}): {why.what}" for at, why in refused.items()]
    changes = []
    for place, one in tighter.items():
        if place not in refused:
            most = f"the largest is {one.metric} of {one.key}, {amount(one.value, METRIC_BY_ID[one.metric].unit)}"
            changes.append(f"{one.rule.name}: {one.old.text} -> {new[place]}; {most}")
    top, whole = (repository.top or request.config.parent).resolve(), request.config.resolve()
    path = whole.relative_to(top) if whole.is_relative_to(top) else request.config
    diff = patch(path.as_posix(), read_exactly(request.config), text)
    return "".join(_limit_lines(changes, unchanged, snapshot.compiler.version, diff))


def _snapshot_in(path: Path) -> Path:
    if path.name == _REPORT:
        path = path.parent
    there = (path / name for name in _SNAPSHOTS if (path / name).is_file())
    return next(there, path / _SNAPSHOTS[0]) if path.is_dir() else path


def _headroom(text: str) -> Fraction:
    try:
        return parse_ratio(text).value
    except ValueError as error:
        raise UsageError(str(error), where="--headroom") from None


def _doubt(planned: PlannedCell, cell: Cell, snapshot: Snapshot) -> str:
    """Why a cell's measurement is not of the configuration as it is now; empty where it is."""
    if planned.model.digest and snapshot.models.get(planned.key.model) != planned.model.digest:
        return "was measured with another text of the model"
    lifted = LIFTED_LIMIT_FLAG in cell.command
    if flags_of(cell.command) != flags_of(planned.command(lifted=lifted)):
        return "was measured with other flags"
    return ""


def _place(file: YamlFile, one: Tighter) -> KeyPath:
    rule = file.data["thresholds"][one.place]
    own = one.level == "fail" and "limit" in rule
    return ("thresholds", one.place, "limit") if own else ("thresholds", one.place, one.level, "limit")


def _limit_lines(changes: Sequence[str], unchanged: Sequence[str], version: str, diff: str) -> Iterator[str]:
    subject = "Limits as tight as measured" if changes else "No limit can be tighter than it is, as measured"
    lines = [f"{subject} with IREE {version}"]
    if changes:
        lines += ["", *changes]
    if unchanged:
        lines += ["", "Left as they are:", *unchanged]
    yield from (f"{clean(line, _LINE_CHARACTERS)}\n" for line in lines)
    if diff:
        yield f"\n{diff}"


# `goldens`: the golden files of the configuration's suites as the measured values would have them, as a patch.
#
# Above the patch is a line for each value that changes, with its cause where there is a base: `git apply` skips what
# stands before a patch, so that the same text is a commit message.


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
