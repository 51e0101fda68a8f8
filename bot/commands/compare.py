"""`compare`: read the configuration, open both sides, measure what is not known yet, report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bot.commands.publishing import publish
from bot.core.values.planned import SIDES
from bot.core.values.snapshot import Snapshot
from bot.core.values.verdict import Verdict
from bot.core.values.whole_report import Baseline
from bot.errors import UsageError
from bot.inputs.config import Config, load_config
from bot.inputs.requirements import pinned_compiler
from bot.measurement.prepare import Request, Show, is_snapshot, load_snapshot, measured_sides, require_writable
from bot.system.processes import Cancel


def compare(request: Request, show: Show, cancel: Cancel) -> Verdict:
    """Measure both sides where they are not known yet, compare, judge, and write the report."""
    config = load_config(request.config)
    require_writable(request.out)
    specs = _specs(request, config)
    known = {side: load_snapshot(Path(spec)) for side, spec in specs.items() if is_snapshot(spec)}
    wanted = {side: spec for side, spec in specs.items() if side not in known}
    sides = measured_sides(request, config, wanted, known, show, cancel)
    baseline = Baseline(_rule(request, known), sides["base"].source.sha)
    return publish(request, config, sides["base"], sides["head"], baseline, show)


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
