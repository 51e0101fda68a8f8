"""Turn two sides into a report: measure, compare, judge and explain them.

A side that is a snapshot is not measured. A report can also have no verdict: this
module says why.

To try flags or a configuration is to compare two repository states with one compiler,
as a pull request does: the base side's configuration has the rules, and a compiler that
is named for one side is both sides'.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.config.configuration import Config, load_config
from bot.config.requirements import pinned_here
from bot.core.delta import CellDelta, diff
from bot.core.explanation import Explanation, Step, StepCause
from bot.core.findings import VerdictStatus, status_of
from bot.core.planned import SIDES, only_cell
from bot.core.policy import judge
from bot.core.report import Adoption, Baseline, Report
from bot.core.sharding import nothing_in_common, unmeasured_models
from bot.core.snapshot import CellKey, Snapshot, other_version
from bot.core.spec import MOVING, Sought
from bot.errors import NoVerdict, UsageError
from bot.explain.explanations import changed_models, explanations
from bot.explain.root_causes import root_causes
from bot.explain.suspects import CompilerHistory, clone_source, github_source
from bot.explain.texts import Texts, no_texts
from bot.explain.whole_models import model_edits
from bot.show.totals import everything
from bot.study.prepare import (
    Request,
    Show,
    Work,
    is_snapshot,
    load_snapshot,
    require_writable,
)
from bot.study.run import SidePlan
from bot.study.specs import exists
from bot.system.processes import Cancel

_LEAST = "reported and judged as a range"
_OF_FIRST = (
    "sizes and counts are the same each time; cause and parts come from one compile of"
    " each side"
)


def reported(
    config: Config,
    base: Snapshot,
    head: Snapshot,
    baseline: Baseline,
    texts: Texts = no_texts,
) -> Report:
    """Compare, judge and explain two sides; `texts`: as `bot.explain.texts` has it."""
    deltas = diff(base, head)
    verdict = judge(deltas, config.thresholds, config.states)
    causes = explanations(
        base, head=head, deltas=deltas, sections=config.components, texts=texts
    )
    return Report(
        base=base,
        head=head,
        baseline=baseline,
        deltas=deltas,
        verdict=verdict,
        report_id=config.report_id,
        notes=tuple(_notes(base, head=head, deltas=deltas, causes=causes)),
        explanations=causes,
        root_causes=root_causes(
            deltas,
            explanations=causes,
            changed_models=changed_models(base, head),
            backends={**base.targets, **head.targets},
        ),
        edits=model_edits(base, head, config.components),
    )


def adopting(report: Report, brought: Adoption) -> Report:
    """Return the report of a change that brings the configuration.

    Nothing is compared, so that nothing fails it. It does not pass either: it warns, so
    that nobody takes it for a comparison; without a measured cell it is unknown.
    """
    findings = tuple(
        structs.replace(finding, level="warn") for finding in report.verdict.findings
    )
    status: VerdictStatus = "unknown"
    if any(cell.measured for cell in report.head.cells):
        status = "warn"
    verdict = structs.replace(report.verdict, status=status, findings=findings)
    return structs.replace(report, verdict=verdict, adoption=brought)


def held_to_limits(report: Report, repaired: Adoption) -> Report:
    """Return the report of a change that repairs a pin which names no release.

    Head alone is held to the limits. It warns where no limit is exceeded, so that
    nobody takes it for a comparison. Without a measured build it is unknown.
    """
    findings = tuple(
        finding
        for finding in report.verdict.findings
        if (finding.kind, finding.limit) != ("state", "new")
    )
    status: VerdictStatus = status_of(findings)
    if status == "pass":
        status = "warn"
    if not any(cell.measured for cell in report.head.cells):
        status = "unknown"
    verdict = structs.replace(report.verdict, status=status, findings=findings)
    return structs.replace(report, verdict=verdict, adoption=repaired)


def require_verdict(report: Report, out: Path) -> None:
    """Raise NoVerdict, once the report is written, where it has nothing to judge."""
    if report.verdict.status == "unknown":
        raise no_verdict(report, out)


def no_verdict(report: Report, out: Path) -> NoVerdict:
    """Return why a report has no verdict, in one line."""
    where = str(out / "report.json")
    problem = f"no verdict: {report.broke or 'nothing could be compared'}"
    all_cells = chain(report.base.cells, report.head.cells)
    if any(cell.measured for cell in all_cells):
        return NoVerdict(problem, where=where, hint=_why_uncompared(report))
    failure = next((cell.failure for cell in report.head.cells if cell.failure), None)
    if failure:
        hint = failure.first_line
    else:
        hint = "no builds were planned"
    return NoVerdict(
        f"{problem}, no build could be measured on either side", where=where, hint=hint
    )


def _why_uncompared(report: Report) -> str:
    """Return why measured builds could not be compared, empty where nobody knows."""
    reason = nothing_in_common(report.base, report.head)
    if reason:
        return reason
    for delta in report.deltas:
        if delta.reason:
            return delta.reason
    for side, snapshot in (("base", report.base), ("head", report.head)):
        if not snapshot.cells:
            return f"{side} has none of these builds"
    return ""


def _notes(
    base: Snapshot,
    head: Snapshot,
    deltas: Sequence[CellDelta],
    causes: Mapping[CellKey, Explanation],
) -> Iterator[str]:
    """Yield what a reader must not miss beside the cells themselves."""
    yield from filter(None, [other_version(base, head)])
    yield from unmeasured_models(base, head)
    for delta in deltas:
        if delta.unstable and (delta.state != "same" or delta.is_open):
            note = _LEAST
            if delta.key in causes and causes[delta.key].first_compiles:
                note = _OF_FIRST
            yield f"{delta.key}: {delta.noise}; {note}"


def step_of(
    report: Report, base: str, head: str, gaps: tuple[str, ...], most_causes: int
) -> Step:
    """Return what a report says of the step from one release to the next."""
    total = everything(report)
    states = [delta.state for delta in report.deltas]
    root_causes = [cause for cause in report.root_causes if cause.total.absolute_bytes]
    causes = tuple(
        StepCause(
            cause=cause.cause,
            what=cause.what,
            models=cause.models,
            targets=cause.targets,
            net_bytes=cause.total.net_bytes,
            absolute_bytes=cause.total.absolute_bytes,
        )
        for cause in root_causes[:most_causes]
    )
    sizes = (total.cells, total.base, total.head, total.larger, total.smaller)
    return Step(
        base,
        head,
        gaps,
        *sizes,
        states.count("newly-broken"),
        states.count("fixed"),
        causes,
    )


class BothSides(NamedTuple):
    """Both sides measured or read, and what they are judged by.

    `plans`: of those sides whose compilers are here.
    """

    work: Work
    sides: Mapping[str, Snapshot]
    baseline: Baseline
    plans: Sequence[SidePlan] = ()


def both_sides(
    request: Request, show: Show, cancel: Cancel, *, one_cell: bool = False
) -> BothSides:
    """Measure both sides where they are not known yet.

    `one_cell`: more than one is refused. Whatever can be refused before a release is
    fetched is refused before.

    Raises:
        UsageError: nobody names the compilers.
    """
    works = _work_of_sides(request, show, cancel)
    named = {side: _named(side, work) for side, work in works.items()}
    rules_of_base = works["base"].config
    require_writable(request.out)
    _refuse_missing(request, works, named)
    _refuse_changed_snapshot(request, named["head"][0].spec)
    snapshots: dict[str, Snapshot] = {}
    for side, (sought, _) in named.items():
        if is_snapshot(sought.spec):
            snapshots[side] = load_snapshot(Path(sought.spec))
    new = [side for side in SIDES if side not in snapshots]
    for side in new:
        sought, rule = named[side]
        works[side], compiler = works[side].at_commit(
            sought, request.specs.get("both", "")
        )
        named[side] = compiler, rule
    cells = {cell.key for side in new for cell in works[side].planned().cells}
    if one_cell and new:
        only_cell(cells)
    specs = {side: named[side][0].spec for side in new}
    # what is here comes first: its faults cost no fetching
    new.sort(
        key=lambda side: (
            specs[side] in MOVING or works[side].places.release(specs[side]) is not None
        )
    )
    plans = [works[side].prepare(side, named[side][0]) for side in new]
    plans.sort(key=lambda plan: plan.label)
    rules = structs.replace(
        rules_of_base, timeout_seconds=works["head"].config.timeout_seconds
    )
    work = Work(request=request, config=rules, show=show, cancel=cancel)
    measured = work.measured(plans, snapshots)
    return BothSides(
        work=work,
        sides=measured,
        baseline=Baseline(named["base"][1], measured["base"].source.sha),
        plans=plans,
    )


def _work_of_sides(request: Request, show: Show, cancel: Cancel) -> dict[str, Work]:
    """Return the work of each side, with the configuration and flags of that side."""
    read = cache(load_config)
    works: dict[str, Work] = {}
    for side in SIDES:
        path = request.configs.get(side, request.config)
        flags = request.flags
        if side == "head":
            flags = (*flags, *request.tried)
        request_of_side = replace(request, config=path, flags=flags)
        works[side] = Work(
            request=request_of_side, config=read(path), show=show, cancel=cancel
        )
    return works


def _refuse_missing(
    request: Request,
    works: Mapping[str, Work],
    named: Mapping[str, tuple[Sought, str]],
) -> None:
    """Raise UsageError where nobody names the compiler of a side."""
    missing = [side for side, (sought, _) in named.items() if not sought.spec]
    if not missing:
        return
    options = [f"--{side}" for side in missing]
    if _tries(request):
        options = ["--compiler"]
    option_words = " and ".join(f"{option} SPEC" for option in options)
    hint = (
        f"give {option_words}, such as {options[0]} 3.13.0, or a --config that names"
        f" compiler.{missing[0]}"
    )
    where = str(works[missing[0]].request.config or "")
    raise UsageError(
        f"no compiler for the {' and '.join(missing)} side", where=where, hint=hint
    )


def _refuse_changed_snapshot(request: Request, head: str) -> None:
    """Raise UsageError where flags or configuration are tried on a snapshot."""
    if is_snapshot(head) and (request.tried or "head" in request.configs):
        problem = (
            "is a finished snapshot, so flags and configuration cannot be changed on it"
        )
        raise UsageError(problem, where=head, hint="name a compiler for the head side")


def _tries(request: Request) -> bool:
    """Return whether the sides differ in flags or configuration.

    What is compared is then not two compilers.
    """
    return bool(request.tried or request.configs)


def _named(side: str, work: Work) -> tuple[Sought, str]:
    """Return a side's compiler or snapshot, and how it was found.

    Its SPEC is empty where nobody named one.
    """
    specs = work.request.specs
    tries = _tries(work.request)
    names = [side, "both"]
    if tries and not is_snapshot(specs.get(_other(side), "")):
        names += ["head", "base"]
    for name in names:
        if spec := specs.get(name):
            return Sought(spec), _option_given(name, spec, work)
    compiler = work.config.compiler
    key = side
    if tries:
        key = "head" if compiler.head else "base"
    found = f"compiler.{key} of the configuration"
    if compiler.requirements:
        found = f"{compiler.requirements}, which the configuration names"
    return _pinned(work, key), found


def _other(side: str) -> str:
    """Return the name of the other side."""
    if side == "base":
        return "head"
    return "base"


def _option_given(name: str, spec: str, work: Work) -> str:
    """Return the words for an option with a SPEC: `--head 3.13.0`."""
    option = f"--{name}"
    if name == "both":
        option = "--compiler"
    if is_snapshot(spec):
        option = "snapshot"
    shown_spec = Path(spec).name
    if "==" not in spec and not exists(spec):
        shown_spec = work.release(spec) or shown_spec
    return f"{option} {shown_spec}"


def _pinned(work: Work, side: str) -> Sought:
    return pinned_here(
        work.config, side, work.request.config.parent if work.request.config else Path()
    )


def with_compiler(work: Work) -> Work:
    """Return the work with a compiler.

    The configuration names it where the request names none.

    Raises:
        UsageError: neither names one.
    """
    if work.request.specs.get("head"):
        return work
    sought = _pinned(work, "head")
    if not sought.spec:
        hint = (
            "give --compiler SPEC, such as --compiler 3.13.0, or a --config that names"
            " compiler.head"
        )
        raise UsageError(
            "no compiler is named", where=str(work.request.config or ""), hint=hint
        )
    for note in sought.notes:
        work.show.say(note)
    config = structs.replace(work.config, places=sought.places + work.config.places)
    request = replace(work.request, specs={**work.request.specs, "head": sought.spec})
    return replace(work, request=request, config=config)


def source_of(work: Work) -> CompilerHistory | None:
    """Return where the request looks up commits of the compiler.

    On GitHub, it uses the environment's token.
    """
    request = work.request
    repository = work.config.compiler.repository
    environ = os.environ
    if request.source is not None:
        return clone_source(request.source, repository, work.cancel)
    if not request.suspects or not repository:
        return None
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    return github_source(
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        token=token,
        repository=repository,
        cache=request.cache,
    )
