"""Two sides to a report: compared, judged and explained; and why a report has no verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from msgspec import structs
from packaging.version import Version

from bot.config.configuration import Config, load_config, top_above
from bot.config.requirements import requirements_file, sought_compiler
from bot.core.delta import CellDelta, diff
from bot.core.explanation import Explanation, RootCause, Step
from bot.core.planned import SIDES
from bot.core.policy import Verdict, VerdictStatus, judge, status_of
from bot.core.report import ONCE, Adoption, Baseline, Report
from bot.core.sharding import nothing_in_common, unmeasured_models
from bot.core.snapshot import UNFETCHED, CellKey, Snapshot, other_version
from bot.core.spec import Sought
from bot.errors import NoVerdict, UsageError
from bot.explain.explanations import changed_models, explanations
from bot.explain.root_causes import root_causes
from bot.explain.suspects import Source, clone_source, github_source
from bot.explain.texts import Texts, no_texts
from bot.explain.whole_models import model_edits, overview
from bot.show.facts import build_facts
from bot.show.headline import everything
from bot.study.folding import audit_request
from bot.study.prepare import (
    Request,
    Show,
    is_snapshot,
    load_snapshot,
    measured,
    prepare,
    repository_at,
    require_writable,
)
from bot.study.run import SidePlan
from bot.system.processes import Cancel


def reported(config: Config, base: Snapshot, head: Snapshot, baseline: Baseline, texts: Texts = no_texts) -> Report:
    """Compare, judge and explain two sides; `texts`: as `bot.explain.texts` has it."""
    deltas = diff(base, head)
    verdict = judge(deltas, config.thresholds, config.states, config.noise)
    causes = explanations(base, head, deltas, config.sections, texts)
    return Report(
        base=base,
        head=head,
        baseline=baseline,
        deltas=deltas,
        verdict=verdict,
        report_id=config.report_id,
        notes=(*_notes(base, head, deltas, causes), *_once(head, verdict)),
        explanations=causes,
        root_causes=root_causes(deltas, causes, changed_models(base, head), {**base.targets, **head.targets}),
        overview=overview(base, head, config.pairs),
        edits=model_edits(base, head, config.sections),
    )


def adopting(report: Report, brought: Adoption) -> Report:
    """The report of a change that brings the configuration: what base had no say in does not fail it.

    Without a single cell that was compared it does not pass either: it warns, so that nobody takes it for a comparison.
    """
    compared = {delta.key for delta in report.deltas if delta.base is not None}
    judged = [one if one.key in compared else structs.replace(one, level="warn") for one in report.verdict.findings]
    findings = tuple(sorted(judged, key=lambda one: (one.known, one.level == "warn")))
    status: VerdictStatus = status_of(findings) if any(one.state in _JUDGED for one in report.deltas) else "warn"
    if not any(cell.measured for cell in report.head.cells):
        status = "unknown"
    verdict = structs.replace(report.verdict, status=status, findings=findings)
    return structs.replace(report, verdict=verdict, adoption=brought)


_JUDGED = frozenset({"same", "changed", "fixed"})


def require_verdict(report: Report, out: Path) -> None:
    """Raise NoVerdict, once the report is written, where it has nothing to judge."""
    if report.verdict.status == "unknown":
        raise no_verdict(report, out)


def no_verdict(report: Report, out: Path) -> NoVerdict:
    """Why a report has no verdict, in one line."""
    where, what = str(out / "report.json"), f"no verdict: {report.broke or 'nothing could be compared'}"
    if any(cell.measured for snapshot in (report.base, report.head) for cell in snapshot.cells):
        why = nothing_in_common(report.base, report.head)
        return NoVerdict(what, where=where, hint=why or next((d.reason for d in report.deltas if d.reason), ""))
    failure = next((cell.failure for cell in report.head.cells if cell.failure), None)
    hint = failure.first_line if failure else "no cells were planned"
    return NoVerdict(f"{what}, no cell could be measured on either side", where=where, hint=hint)


def _notes(
    base: Snapshot, head: Snapshot, deltas: Sequence[CellDelta], causes: Mapping[CellKey, Explanation]
) -> tuple[str, ...]:
    """What a reader must not miss beside the cells themselves."""
    first = {key for key, one in causes.items() if one.first_compiles}
    unstable = (
        f"{delta.key}: {delta.noise}; {_OF_FIRST if delta.key in first else _LEAST}"
        for delta in deltas
        if delta.unstable and (delta.state != "same" or delta.is_open)
    )
    return (*filter(None, [other_version(base, head)]), *unmeasured_models(base, head), *unstable)


_LEAST = "told and judged as a range"
_OF_FIRST = "all sizes and counts are the same each time, cause and parts are those of one compile of each side"


def _once(head: Snapshot, verdict: Verdict) -> tuple[str, ...]:
    """Which alarms rest on a single compile of the head: repeating has its price, so that not all are repeated."""
    alarming = dict.fromkeys(finding.key for finding in verdict.news)
    compiled = (cell for cell in head.cells if not (cell.failure and cell.failure.stage == UNFETCHED))
    single = {cell.key for cell in compiled if cell.compiles == 1 and cell.status in _REPEATABLE}
    once = [str(key) for key in alarming if key in single]
    if not once:
        return ()
    rest = f" and {len(once) - _NAMED} more" if len(once) > _NAMED else ""
    return (f"{ONCE}{', '.join(once[:_NAMED])}{rest}",)


_REPEATABLE = frozenset({"ok", "over-stack-limit", "failed"})
_NAMED = 3


# The way from base to head over the releases between them: a report of each step, and where root causes stand in them.
#
# A root cause is found in a step where that step's own report has one of the same cause, the same words and the same
# targets. Its words hold its sums, so that what is made of several steps is in none of them, and that is what is told.


_CAUSES = 2
_FEWEST_RELEASES = 2
"""Without a release between the two ends the one step is the report itself."""
Release = tuple[str, Snapshot]


def stepped(
    report: Report,
    way: Sequence[tuple[Release, Release]],
    offered: Sequence[str],
    config: Config,
    texts: Texts = no_texts,
) -> Report:
    """The report, with what each step of the way adds to it.

    Args:
        way: each step over the releases measured between, in order.
        offered: all releases that there are between base and head.
    """
    if len(way) < _FEWEST_RELEASES:
        return report
    steps, seen = list[Step](), list[tuple[str, set[tuple[object, ...]]]]()
    for (old, base), (new, head) in way:
        one = reported(config, base, head, Baseline(old), texts)
        first, last = sorted((Version(old), Version(new)))
        skipped = sum(first < Version(name) < last for name in offered)
        steps.append(_step(old, new, skipped, one))
        seen.append((steps[-1].name, {_key(root) for root in one.root_causes}))
    roots = (structs.replace(r, seen=tuple(name for name, keys in seen if _key(r) in keys)) for r in report.root_causes)
    return structs.replace(report, root_causes=tuple(roots), steps=tuple(steps))


def _key(root: RootCause) -> tuple[object, ...]:
    return root.cause, root.what, root.targets


def _step(old: str, new: str, skipped: int, one: Report) -> Step:
    total = everything(build_facts(one))
    broken = sum(delta.state == "newly-broken" for delta in one.deltas)
    causes = tuple((root.what, root.total.net_bytes) for root in one.root_causes[:_CAUSES] if root.total.absolute_bytes)
    return Step(old, new, skipped, total.base, total.head, total.larger, total.smaller, broken, causes)


# What the two sides of a comparison are, measured where they are not known yet.
#
# To try flags or a configuration is to compare two repository states with one compiler, as a pull request does: the
# base side's configuration has the rules, and a compiler that is named for one side is both sides'.


@dataclass(frozen=True, slots=True)
class _Side:
    """One side as it was asked for.

    Attributes:
        sought: its compiler or snapshot; the SPEC is empty where nobody named one.
        rule: how it was found, without directories.
        path: of its configuration; None for the packaged one.
    """

    sought: Sought
    rule: str
    path: Path | None
    config: Config


@dataclass(frozen=True, slots=True)
class BothSides:
    """Both sides measured or read, and what they are judged by; plans of those whose compilers are here."""

    rules: Config
    sides: Mapping[str, Snapshot]
    baseline: Baseline
    plans: tuple[SidePlan, ...] = ()


def both_sides(request: Request, show: Show, cancel: Cancel) -> BothSides:
    """Measure both sides where they are not known yet; raises where nobody names their compilers."""
    read = cache(load_config)
    paths = {side: request.configs.get(side, request.config) for side in SIDES}
    requested = {
        side: _Side(*_found(request, side, read(path), path), path, read(path)) for side, path in paths.items()
    }
    require_writable(request.out)
    _require_compilers(request, requested)
    known = {
        side: load_snapshot(Path(one.sought.spec)) for side, one in requested.items() if is_snapshot(one.sought.spec)
    }
    plans = [_plan(side, one, request, show, cancel) for side, one in requested.items() if side not in known]
    rules = structs.replace(requested["base"].config, timeout_seconds=requested["head"].config.timeout_seconds)
    sides = measured(plans, known, request, rules, show, cancel)
    return BothSides(rules, sides, Baseline(requested["base"].rule, sides["base"].source.sha), tuple(plans))


def _plan(side: str, one: _Side, request: Request, show: Show, cancel: Cancel) -> SidePlan:
    """The side, ready to be measured; flags that are tried are the head's."""
    if side == "head":
        request = replace(request, flags=(*request.flags, *request.tried))
    return prepare(side, one.sought, request, one.config, repository_at(one.path, cancel), show, cancel)


def _found(request: Request, side: str, config: Config, path: Path | None) -> tuple[Sought, str]:
    tries = _tries(request)
    other = request.specs.get("head" if side == "base" else "base", "")
    lends = ("head", "base") if tries and not is_snapshot(other) else ()
    for name in (side, "both", *lends):
        if spec := request.specs.get(name):
            option = "--compiler" if name == "both" else f"--{name}"
            return Sought(spec), f"{'snapshot' if is_snapshot(spec) else option} {Path(spec).name}"
    key = side if not tries else "head" if config.compiler.head else "base"
    return pinned(config, path, key), f"compiler.{key} of the configuration"


def pinned(config: Config, path: Path | None, side: str) -> Sought:
    """A side's compiler as a configuration names it; the SPEC is empty where it does not.

    `path`: of the configuration; None for the packaged one.
    """
    if config.compiler.requirements is not None:
        here = path.parent if path else Path()
        top = Path(os.path.relpath(top_above(here)))
        return sought_compiler(requirements_file(config.compiler.requirements, top, here))
    pins: Mapping[str, str | None] = {"base": config.compiler.base, "head": config.compiler.head}
    return Sought(pins[side] or "")


def _tries(request: Request) -> bool:
    """True where the sides differ in flags or configuration: what is compared is then not two compilers."""
    return bool(request.tried or request.configs)


def _require_compilers(request: Request, requested: Mapping[str, _Side]) -> None:
    missing = [side for side, one in requested.items() if not one.sought.spec]
    if missing:
        sides, options = " and ".join(missing), " and ".join(f"--{side} SPEC" for side in missing)
        wanted = ("--compiler SPEC", "--compiler") if _tries(request) else (options, f"--{missing[0]}")
        hint = f"give {wanted[0]}, such as {wanted[1]} 3.13.0, or a --config that names compiler.{missing[0]}"
        where = str(requested[missing[0]].path or "")
        raise UsageError(f"no compiler for the {sides} side", where=where, hint=hint)
    head = requested["head"].sought.spec
    if is_snapshot(head) and (request.tried or "head" in request.configs):
        what = "was measured before, so that no flags or configuration can be tried on it"
        raise UsageError(what, where=head, hint="name a compiler for the head side")


def with_compiler(request: Request, config: Config, show: Show) -> tuple[Request, Config]:
    """The request and the configuration, with the compiler that the latter names where the former does not."""
    if request.specs.get("head"):
        return request, config
    sought = pinned(config, request.config, "head")
    if not sought.spec:
        hint = "give --compiler SPEC, such as --compiler 3.13.0, or a --config that names compiler.head"
        raise UsageError("no compiler is named", where=str(request.config or ""), hint=hint)
    return audit_request(request, config, sought, show.say)


def source_of(request: Request, config: Config, cancel: Cancel) -> Source | None:
    """Where the request says that commits of the compiler are looked up, on GitHub with the environment's token."""
    repository, environ = config.compiler.repository, os.environ
    if request.source is not None:
        return clone_source(request.source, repository, cancel)
    if not request.suspects or not repository:
        return None
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    api_url, server_url = environ.get("GITHUB_API_URL"), environ.get("GITHUB_SERVER_URL")
    hosts = api_url or "https://api.github.com", server_url or "https://github.com"
    return github_source(*hosts, token, repository, request.cache)
