"""The local commands, each a short list of calls.

compare: read the configuration, open both sides, measure what is not known yet, report.
report: two snapshots → deltas → verdict → six files and the terminal.

What it tells on GitHub is in `bot.github.reviewing` and `bot.github.posting`, which use the same calls.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.cli.grammar import SIDES
from bot.compiler.caches.cell_cache import TextStore
from bot.core.codec.serial import lines, snapshot_to_plain
from bot.core.rules.delta import CellDelta, diff
from bot.core.rules.merging import merge_snapshots, nothing_in_common, unmeasured_models
from bot.core.rules.policy import judge
from bot.core.rules.sharding import known_costs, matrix
from bot.core.values.report import Baseline, Report, report_to_plain
from bot.core.values.snapshot import Failure, Snapshot
from bot.core.values.verdict import Verdict
from bot.errors import NoVerdict, OutputError, UsageError
from bot.inputs.config import Config, load_config
from bot.inputs.requirements import pinned_compiler
from bot.insight.explanations import changed_models, explanations
from bot.insight.facts.precision import Texts, no_texts
from bot.insight.roots.clusters import root_causes
from bot.insight.tables.whole_models import overview
from bot.measurement.prepare import (
    Request,
    Show,
    is_snapshot,
    load_snapshot,
    measured,
    planned,
    prepare,
    repository_at,
    require_writable,
    selected,
)
from bot.render.html.page import render_html
from bot.render.markdown.comment import render_comment
from bot.render.markdown.summary import render_summary
from bot.system.files import write_atomically
from bot.system.processes import Cancel


def compare(request: Request, show: Show, cancel: Cancel) -> Verdict:
    """Measure both sides where they are not known yet, compare, judge, and write the report."""
    config = load_config(request.config)
    require_writable(request.out)
    specs = _specs(request, config)
    known = {side: load_snapshot(Path(spec)) for side, spec in specs.items() if is_snapshot(spec)}
    wanted = {side: spec for side, spec in specs.items() if side not in known}
    sides = _measure(request, config, wanted, known, show, cancel)
    baseline = Baseline(_rule(request, known), sides["base"].source.sha)
    return _publish(request, config, sides["base"], sides["head"], baseline, show)


def measure(request: Request, show: Show, cancel: Cancel) -> None:
    """Measure one side, or a shard of it, into one snapshot file."""
    config = load_config(request.config)
    require_writable(request.out.parent)
    if request.out.is_dir():
        raise OutputError("is a directory", where=str(request.out), hint="--out names the snapshot file")
    snapshots = _measure(request, config, request.specs, {}, show, cancel)
    write_snapshot(request.out, snapshots["head"])
    say_failed(snapshots["head"], show)
    show.say(f"wrote {request.out}")


_FAILED_AT_ONCE = 40


def say_failed(snapshot: Snapshot, show: Show) -> None:
    """Name the cells that could not be measured, a line each: in a shard nobody else does."""
    failed = [cell for cell in snapshot.cells if not cell.measured and cell.status != "unsupported"]
    for cell in failed[:_FAILED_AT_ONCE]:
        show.say(f"{cell.status}: {cell.key}: {_first_line(cell.failure)}")
    if len(failed) > _FAILED_AT_ONCE:
        show.say(f"and {len(failed) - _FAILED_AT_ONCE} more: the snapshot has them all")


def merge(parts: Sequence[Path], out: Path, show: Show) -> None:
    """Join the snapshots of shards into the one of an unsharded run."""
    merged = merge_snapshots([(str(path), load_snapshot(path)) for path in parts])
    write_snapshot(out, merged)
    show.say(f"wrote {out}: {len(merged.cells)} cells")


def report(request: Request, base: Path, head: Path, show: Show) -> Verdict:
    """Compare two snapshots that were measured before; no compiler is needed."""
    config = load_config(request.config)
    require_writable(request.out)
    gc.disable()  # one pass over a million small values, none of them cyclic
    try:
        sides = selected({"base": load_snapshot(base), "head": load_snapshot(head)}, request)
        baseline = Baseline(f"snapshot {base.name}", sides["base"].source.sha)
        return _publish(request, config, sides["base"], sides["head"], baseline, show)
    finally:
        gc.enable()


def plan_shards(request: Request, shards: int, costs: Path | None, cancel: Cancel) -> dict[str, Any]:
    """The matrix of `shards` runners, dealt out by the costs of an earlier snapshot where there is one."""
    cells = planned(request, load_config(request.config), repository_at(request.config, cancel)).cells
    return matrix(cells, shards, known_costs(load_snapshot(costs).cells) if costs else None)


def _rule(request: Request, known: Mapping[str, Snapshot]) -> str:
    """How the base side was found, without directories."""
    if "base" not in request.specs:
        return "compiler.base of the configuration"
    return f"{'snapshot' if 'base' in known else '--base'} {Path(request.specs['base']).name}"


def _specs(request: Request, config: Config) -> dict[str, str]:
    specs = {side: request.specs.get(side) or _configured(config, side, request.config) for side in SIDES}
    missing = [side for side, spec in specs.items() if not spec]
    if missing:
        sides, options = " and ".join(missing), " and ".join(f"--{side} SPEC" for side in missing)
        hint = f"give {options}, such as --{missing[0]} 3.13.0, or a --config that names compiler.{missing[0]}"
        raise UsageError(f"no compiler for the {sides} side", hint=hint)
    return {side: spec for side, spec in specs.items() if spec}


def _configured(config: Config, side: str, path: Path | None) -> str | None:
    if config.compiler.requirements is not None:
        return pinned_compiler((path.parent if path else Path()) / config.compiler.requirements)
    return {"base": config.compiler.base, "head": config.compiler.head}[side]


def _measure(
    request: Request,
    config: Config,
    specs: Mapping[str, str],
    known: Mapping[str, Snapshot],
    show: Show,
    cancel: Cancel,
) -> dict[str, Snapshot]:
    if not specs:
        return selected(known, request)
    repository = repository_at(request.config, cancel)
    plans = [prepare(side, spec, request, config, repository, show, cancel) for side, spec in specs.items()]
    return measured(plans, known, request, config, show, cancel)


def _publish(
    request: Request, config: Config, base: Snapshot, head: Snapshot, baseline: Baseline, show: Show
) -> Verdict:
    made = reported(config, base, head, baseline, TextStore(request.cache).load)
    show.report(made, write_report(made, config.templates, request.out))
    require_verdict(made, request.out)
    return made.verdict


def reported(config: Config, base: Snapshot, head: Snapshot, baseline: Baseline, texts: Texts = no_texts) -> Report:
    """Compare, judge and explain two sides; `texts`: as `bot.insight.facts.precision` has it."""
    deltas = diff(base, head)
    verdict = judge(deltas, config.thresholds, config.states, config.noise)
    told = explanations(base, head, deltas, config.sections, texts)
    return Report(
        base=base,
        head=head,
        baseline=baseline,
        deltas=deltas,
        verdict=verdict,
        report_id=config.report_id,
        notes=(*_notes(base, head, deltas), *_once(head, verdict)),
        explanations=told,
        root_causes=root_causes(deltas, told, changed_models(base, head)),
        overview=overview(base, head, config.pairs, config.depths, _shares(config)),
    )


def _shares(config: Config) -> dict[str, float]:
    return {metric: float(band.value) for metric, band in config.noise.items()}


def require_verdict(made: Report, out: Path) -> None:
    """Raise NoVerdict, once the report is written, where it has nothing to judge."""
    if made.verdict.status == "unknown":
        raise no_verdict(made, out)


def no_verdict(made: Report, out: Path) -> NoVerdict:
    """Why a report has no verdict, in one line."""
    where, what = str(out / "report.json"), f"no verdict: {made.broke or 'nothing could be compared'}"
    if any(cell.measured for snapshot in (made.base, made.head) for cell in snapshot.cells):
        why = nothing_in_common(made.base, made.head)
        return NoVerdict(what, where=where, hint=why or next((d.reason for d in made.deltas if d.reason), ""))
    return NoVerdict(f"{what}, no cell could be measured on either side", where=where, hint=_first_word(made.head))


def _notes(base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta]) -> tuple[str, ...]:
    """What a reader must not miss beside the cells themselves."""
    unstable = (
        f"{delta.key}: {delta.noise}; judged by the most innocent pair"
        for delta in deltas
        if delta.unstable and delta.state != "same"
    )
    return (*unmeasured_models(base, head), *unstable)


def _once(head: Snapshot, verdict: Verdict) -> tuple[str, ...]:
    """Which alarms rest on a single compile of the head: repeating has its price, so that not all are repeated."""
    alarming = dict.fromkeys(finding.key for finding in verdict.findings)
    single = {cell.key for cell in head.cells if cell.compiles == 1 and cell.status in _REPEATABLE}
    once = [str(key) for key in alarming if key in single]
    if not once:
        return ()
    rest = f" and {len(once) - _NAMED} more" if len(once) > _NAMED else ""
    return (f"alarms that rest on a single compile of the head: {', '.join(once[:_NAMED])}{rest}",)


_REPEATABLE = frozenset({"ok", "over-stack-limit", "failed"})
_NAMED = 3


def _first_word(snapshot: Snapshot) -> str:
    failure = next((cell.failure for cell in snapshot.cells if cell.failure), None)
    return _first_line(failure) if failure else "no cells were planned"


def _first_line(failure: Failure | None) -> str:
    return failure.message.strip().partition("\n")[0] if failure else ""


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the contract's `snapshot.json`."""
    write_atomically(path, lines(snapshot_to_plain(snapshot)))


def write_report(made: Report, templates: Path | None, out: Path) -> list[Path]:
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
