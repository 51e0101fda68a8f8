"""The stories the program can tell, each a short list of calls one can read aloud.

compare: read the configuration, open both sides, measure what is not known yet, report.
report: two snapshots → deltas → verdict → six files and the terminal.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

from bot.arguments import SIDES
from bot.compiler.cache import CellCache
from bot.compiler.files import write_atomically
from bot.compiler.repository import Repository, repository_of
from bot.compiler.runner import Cancel
from bot.compiler.toolchain import Toolchain, resolve
from bot.core.delta import CellDelta, diff
from bot.core.merging import merge_snapshots, require_common_cells, unmeasured_models
from bot.core.plan import Model, PlannedCell, Target, plan, select, shard
from bot.core.policy import judge
from bot.core.report import Baseline, Report, report_to_plain
from bot.core.serial import from_json, lines, snapshot_to_plain
from bot.core.snapshot import Snapshot
from bot.core.verdict import Verdict
from bot.errors import InputError, OutputError, UsageError
from bot.inputs.config import Config, load_config
from bot.inputs.models import load_models
from bot.inputs.requirements import pinned_compiler
from bot.measuring import Progress, SidePlan, Workshop, check_flags, measure_sides
from bot.rechecking import recheck, suspects
from bot.render.comment import render_comment
from bot.render.html import render_html
from bot.render.summary import render_summary


class Show(Protocol):
    """What a story tells while it goes on."""

    def say(self, line: str) -> None:
        """One line of news."""

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """The outcome, and where it was written."""

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """The display of long work."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for.

    Attributes:
        specs: side → SPEC; a side that is not named comes from the configuration.
        shard: (index from 1, count) of the part to measure.
    """

    specs: dict[str, str] = field(default_factory=dict)
    config: Path | None = None
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    jobs: int = 1
    cache: Path = Path(".cache")
    out: Path = Path("out")
    shard: tuple[int, int] = (1, 1)


def compare(request: Request, show: Show, cancel: Cancel) -> Verdict:
    """Measure both sides where they are not known yet, compare, judge, and write the report."""
    config = load_config(request.config)
    _require_writable(request.out)
    specs = _specs(request, config)
    known = {side: _load_snapshot(Path(spec)) for side, spec in specs.items() if _is_snapshot(spec)}
    wanted = {side: spec for side, spec in specs.items() if side not in known}
    sides = _measure(request, config, wanted, show, cancel, known)
    baseline = Baseline(_rule(request, known), sides["base"].source.sha)
    return _publish(config, sides["base"], sides["head"], baseline, request.out, show)


def measure(request: Request, show: Show, cancel: Cancel) -> None:
    """Measure one side, or a shard of it, into one snapshot file."""
    config = load_config(request.config)
    _require_writable(request.out.parent)
    if request.out.is_dir():
        raise OutputError("is a directory", where=str(request.out), mend="--out names the snapshot file")
    snapshots = _measure(request, config, request.specs, show, cancel)
    write_atomically(request.out, lines(snapshot_to_plain(snapshots["head"])))
    show.say(f"wrote {request.out}")


def merge(parts: Sequence[Path], out: Path, show: Show) -> None:
    """Join the snapshots of shards into the one of an unsharded run."""
    merged = merge_snapshots([(str(path), _load_snapshot(path)) for path in parts])
    write_atomically(out, lines(snapshot_to_plain(merged)))
    show.say(f"wrote {out}: {len(merged.cells)} cells")


def report(base: Path, head: Path, config_path: Path | None, out: Path, show: Show) -> Verdict:
    """Compare two snapshots that were measured before."""
    config = load_config(config_path)
    _require_writable(out)
    gc.disable()  # one pass over a million small values, none of them cyclic
    try:
        left, right = _load_snapshot(base), _load_snapshot(head)
        return _publish(config, left, right, Baseline(f"snapshot {base.name}", left.source.sha), out, show)
    finally:
        gc.enable()


def planned_cells(request: Request, cancel: Cancel) -> tuple[PlannedCell, ...]:
    """The cells that a request selects."""
    config = load_config(request.config)
    return _planned(request, config, _repository(request, cancel)).cells


def _rule(request: Request, known: Mapping[str, Snapshot]) -> str:
    """How the base side was found, without directories."""
    if "base" not in request.specs:
        return "compiler.base of the configuration"
    return f"{'snapshot' if 'base' in known else '--base'} {Path(request.specs['base']).name}"


def _specs(request: Request, config: Config) -> dict[str, str]:
    specs = {side: request.specs.get(side) or _configured(config, side, request.config) for side in SIDES}
    missing = [side for side, spec in specs.items() if not spec]
    if missing:
        mend = f"give --{missing[0]} SPEC, or compiler.{missing[0]} in the configuration"
        raise UsageError(f"no compiler for the {missing[0]} side", mend=mend)
    return {side: spec for side, spec in specs.items() if spec}


def _configured(config: Config, side: str, path: Path | None) -> str | None:
    if config.compiler.requirements is not None:
        return pinned_compiler((path.parent if path else Path()) / config.compiler.requirements)
    return {"base": config.compiler.base, "head": config.compiler.head}[side]


def _is_snapshot(spec: str) -> bool:
    return spec.endswith(".json")


def _load_snapshot(path: Path) -> Snapshot:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text, so no snapshot", where=str(path)) from None
    except OSError as error:
        mend = "measure one with: code-size-bot measure --compiler SPEC --out FILE"
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), mend=mend) from None
    return from_json(text, str(path))


def _repository(request: Request, cancel: Cancel) -> Repository:
    return repository_of(request.config.resolve().parent if request.config else Path.cwd(), cancel)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a request selects: models, targets, and its shard of their cells."""

    models: tuple[Model, ...]
    targets: tuple[Target, ...]
    deselected: frozenset[str]
    cells: tuple[PlannedCell, ...]


def _planned(request: Request, config: Config, repository: Repository) -> _Plan:
    models = load_models(config.models, repository.top)
    models, targets = select(models, config.targets, model_globs=request.models, target_globs=request.targets)
    deselected = {target.backend for target in config.targets} - {target.backend for target in targets}
    return _Plan(models, targets, frozenset(deselected), shard(plan(models, targets, config.flags), *request.shard))


def _measure(
    request: Request,
    config: Config,
    specs: dict[str, str],
    show: Show,
    cancel: Cancel,
    known: Mapping[str, Snapshot] | None = None,
) -> dict[str, Snapshot]:
    """Measure the sides that `specs` names, beside those that are known; changed cells are asked twice."""
    if not specs:
        return dict(known or {})
    repository = _repository(request, cancel)
    chosen = _planned(request, config, repository)
    toolchains: dict[str, Toolchain] = {}
    for side, spec in specs.items():
        toolchains[side] = resolve(spec, request.cache, cancel, show.say)
        check_flags(side, toolchains[side], chosen.cells, config.flags, cancel)
    plans = [
        SidePlan(
            label=side,
            toolchain=toolchain,
            cells=chosen.cells,
            source=repository.source,
            models=chosen.models,
            targets=chosen.targets,
            deselected=chosen.deselected,
        )
        for side, toolchain in toolchains.items()
    ]
    with show.progress() as progress:
        workshop = Workshop(CellCache(request.cache), request.jobs, config.timeout_seconds, cancel, progress)
        sides = {**(known or {}), **measure_sides(plans, workshop)}
        keys = suspects(sides["base"], sides["head"]) if len(sides) == len(SIDES) else frozenset()
        return {**sides, **recheck(plans, sides, keys, workshop)} if keys else sides


def _publish(config: Config, base: Snapshot, head: Snapshot, baseline: Baseline, out: Path, show: Show) -> Verdict:
    require_common_cells(base, head)
    deltas = diff(base, head)
    verdict = judge(deltas, config.thresholds, config.states)
    made = Report(base, head, baseline, deltas, verdict, config.report_id, _notes(base, head, deltas))
    show.report(made, _write(made, config.templates, out))
    if not any(cell.measured for snapshot in (base, head) for cell in snapshot.cells):
        raise InputError(
            "no cell could be measured on either side", where=str(out / "report.json"), mend=_first_word(head)
        )
    return verdict


def _notes(base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta]) -> tuple[str, ...]:
    """What a reader must not miss beside the cells themselves."""
    unstable = (f"{delta.key}: {delta.reason}; it is not judged" for delta in deltas if delta.unstable)
    return (*unmeasured_models(base, head), *unstable)


def _first_word(snapshot: Snapshot) -> str:
    failure = next((cell.failure for cell in snapshot.cells if cell.failure), None)
    words = failure.message.strip().splitlines() if failure else ["no cells were planned"]
    return words[0] if words else ""


def _write(made: Report, templates: Path | None, out: Path) -> list[Path]:
    """The six files of the contract."""
    writers: dict[str, Callable[[], Iterable[str]]] = {
        "base.json": lambda: lines(snapshot_to_plain(made.base)),
        "head.json": lambda: lines(snapshot_to_plain(made.head)),
        "report.json": lambda: lines(report_to_plain(made)),
        "comment.md": lambda: [render_comment(made, templates)],
        "summary.md": lambda: [render_summary(made, templates)],
        "report.html": lambda: [render_html(made, templates)],
    }
    for name, write in writers.items():
        write_atomically(out / name, write())
    return [out / name for name in writers]


def _require_writable(directory: Path) -> None:
    """Find out before an hour of compiles, not after."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        mend = "choose another place with --out"
        raise OutputError(f"cannot be written to: {error.strerror}", where=str(directory), mend=mend) from None
