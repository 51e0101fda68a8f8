"""Files of the user as the measured values would have them, as patches: limits of a configuration, goldens of suites.

Above a patch is a line for each value that changes, and for each that is left although it may be out of date: `git
apply` skips what stands before a patch, so that the same text is a commit message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.iree import flags_of
from bot.config.configuration import Configuration
from bot.config.thresholds import parse_rules
from bot.config.torch_models import METRIC_OF, Golden, SuiteModule, edited, patch, read_exactly
from bot.config.units import in_style, parse_ratio
from bot.config.yaml_file import KeyPath, YamlFile, parse_yaml, read_as, read_yaml, with_values
from bot.core.explanation import Explanation
from bot.core.metrics import METRIC_BY_ID
from bot.core.planned import LIFTED_LIMIT_FLAG, Model, PlannedCell
from bot.core.ratcheting import Evidence, Kept, Tighter, ratcheted
from bot.core.report import Baseline
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.errors import ConfigError, NoVerdict, UsageError
from bot.show.escape import clean
from bot.show.filters import amount
from bot.study.comparison import reported
from bot.study.prepare import Work, load_snapshot

_LINE_CHARACTERS = 300
_REPORT, _SNAPSHOTS = "report.json", ("head.json", "snapshot.json")
"""What a compare writes, and the names under which a directory has a snapshot."""


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


def ratchet(work: Work, measured: Path, headroom: str) -> str:
    """The limits of the configuration as tight as what is measured now.

    `measured`: a snapshot, or the directory or `report.json` of a compare, whose head it is then; `headroom`: a
    percentage, as it was written.

    Raises ConfigError where the configuration has no thresholds of its own.
    """
    config, at = work.config, work.request.config
    if at is None:
        hint = "give the thresholds a configuration of your own: code-size-bot init writes one"
        raise UsageError("the packaged configuration is not for you to change", where="--config", hint=hint)
    file = read_yaml(at)
    if "thresholds" not in file.data:
        lines = enumerate(read_exactly(at).splitlines(), 1)
        number = next((number for number, line in lines if re.match(r"# *thresholds:", line)), None)
        hint = f"those of line {number} are a comment: take the # from them, and give them limits"
        raise ConfigError("has no thresholds of its own", where=str(at), hint=hint if number else "write some")
    alive = [cell for cell in work.planned().cells if not cell.target.unsupported]
    if measured.name == _REPORT:
        measured = measured.parent
    if measured.is_dir():
        there = (measured / name for name in _SNAPSHOTS if (measured / name).is_file())
        measured = next(there, measured / _SNAPSHOTS[0])
    snapshot = load_snapshot(measured)
    cells = {cell.key: cell for cell in snapshot.cells}
    doubts = {cell.key: _doubt(cell, cells[cell.key], snapshot) for cell in alive if cell.key in cells}
    doubtful = {key: why for key, why in doubts.items() if why}
    evidence = Evidence(snapshot, frozenset(cell.key for cell in alive), doubtful)
    try:
        share = parse_ratio(headroom).value
    except ValueError as error:
        raise UsageError(str(error), where="--headroom") from None
    outcomes = tuple(ratcheted([rule for rule in config.thresholds if not rule.beside], evidence, share))
    unchanged = [f"{one.rule.name} (line {one.rule.line}): {one.why}" for one in outcomes if isinstance(one, Kept)]
    tighter = {_place(file, one): one for one in outcomes if isinstance(one, Tighter)}
    new = {place: in_style(one.old.text, one.limit) for place, one in tighter.items()}
    text, refused = with_values(file.path, read_exactly(file.path), new)
    proposed = parse_yaml(file.path, text)
    parse_rules(proposed, read_as(proposed, Configuration).thresholds)  # what is proposed has to be taken
    unchanged += [f"{tighter[at].rule.name} (line {tighter[at].rule.line}): {why.what}" for at, why in refused.items()]
    changes = []
    for place, one in tighter.items():
        if place not in refused:
            most = f"the largest is {one.metric} of {one.key}, {amount(one.value, METRIC_BY_ID[one.metric].unit)}"
            changes.append(f"{one.rule.name}: {one.old.text} -> {new[place]}; {most}")
    subject = "Limits as tight as measured" if changes else "No limit can be tighter than it is, as measured"
    patches = [_patch(at, (work.repository.top or at.parent).resolve(), text)]
    return _text(f"{subject} with IREE {snapshot.compiler.version}", changes, "Left as they are:", unchanged, patches)


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
