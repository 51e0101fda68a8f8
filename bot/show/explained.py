"""`explain`: what a report says of one cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from bot.core.delta import MetricDelta
from bot.core.explanation import DispatchDelta, Explanation, PassChange
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, metric_words
from bot.core.planned import beginning, matching, near_or_known, short_names
from bot.core.report import CellRow, DispatchRow, Numbers, ReportRow, Sides, report_of
from bot.core.snapshot import CellKey
from bot.errors import InputError, UsageError
from bot.show.cell_text import Told, ends_words, print_cell, print_dispatch, state_words

_HINT = "name the report.json of a compare"
_NAMES_TOLD = 8


def explain(path: Path, model: str, target: str, dispatch: str | None, console: Console) -> None:
    """Tell what the report says of one cell, or of one of its dispatches.

    `model`, `target`, `dispatch`: names, short names of targets, or globs and beginnings of one name.
    Raises InputError where the file is no report; UsageError where a name is not in it, or several are meant.
    """
    cell = _told(_load(path), model, target)
    if dispatch is None:
        print_cell(cell, console)
        return
    deltas = cell.explanation.dispatches if cell.explanation else ()
    name = _chosen("dispatch", dispatch, [name for delta in deltas for name in _names(delta)])
    for delta in deltas:
        if name in _names(delta):
            print_dispatch(cell, delta, console)


def _names(delta: DispatchDelta) -> tuple[str, ...]:
    return tuple(dict.fromkeys(side.name for side in (delta.head, delta.base) if side))


def _load(path: Path) -> ReportRow:
    path = path / "report.json" if path.is_dir() else path
    try:
        return report_of(path.read_bytes(), str(path), _HINT)
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text, so no report", where=str(path), hint=_HINT) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), hint=_HINT) from None


def _told(report: ReportRow, model: str, target: str) -> Told:
    cells = {CellKey(cell.model, cell.target): cell for cell in report.cells}
    model = _chosen("model", model, [key.model for key in cells])
    backends = {**report.base.targets, **report.head.targets}
    short = short_names({key.target for key in cells}, backends)
    key = CellKey(model, _chosen("target", target, [key.target for key in cells if key.model == model], short))
    cell = cells[key]
    failures = {"base": cell.failure.base, "head": cell.failure.head}
    explanation = Explanation(
        cell.cause,
        cell.first,
        cell.why,
        tuple(map(_delta, cell.dispatches)),
        unchanged=cell.unchanged or 0,
        rebased=cell.rebased or 0,
        short_digests=cell.short_digests,
        first_compiles=cell.first_compiles,
        components=cell.components,
        waterfall=cell.waterfall,
        parts=cell.parts,
    )
    return Told(
        key,
        cell.state,
        cell.reason,
        _words(cell.status),
        {side: failure.message if failure else "" for side, failure in failures.items()},
        _words(cell.command),
        {"base": report.base.compiler.version, "head": report.head.compiler.version},
        tuple(_findings(report, key, backends.get(key.target, ""))),
        tuple(_metrics(cell)),
        explanation
        if explanation.cause or explanation.why or explanation.dispatches or explanation.components
        else None,
        cell.families,
        tuple((root.cause, root.what, root.bytes.net) for root in report.root_causes if key in root.cells),
        backends.get(key.target, ""),
        {"base": report.base.compiler.spec, "head": report.head.compiler.spec},
    )


def _words(both: Sides) -> dict[str, str]:
    return {"base": both.base or "", "head": both.head or ""}


def _chosen(what: str, wanted: str, names: Sequence[str], short: Mapping[str, str] | None = None) -> str:
    """The one name that is meant: by itself, by a glob, by its short name, or by how it begins."""
    known = list(dict.fromkeys(names))
    matches = matching(known, wanted, short) or beginning(known, wanted, short)
    if len(matches) > 1:
        some = ", ".join(matches[:_NAMES_TOLD]) + (", …" if len(matches) > _NAMES_TOLD else "")
        raise UsageError(f"{wanted!r} matches several: {some}", where=f"--{what}", hint="name one of them")
    if not matches:
        hint = near_or_known(wanted, known, short)
        raise UsageError(f"no {what} of the report is {wanted!r}", where=f"--{what}", hint=hint)
    return matches[0]


def _findings(report: ReportRow, key: CellKey, backend: str) -> Iterable[tuple[str, str]]:
    for one in report.verdict.findings:
        if (one.model, one.target) == (key.model, key.target):
            metric = METRIC_BY_ID.get(one.metric or "")
            said = (
                f"{metric_words(metric, backend)}: {one.actual}"
                if metric
                else f"{state_words(one.limit)}: {ends_words(one.actual)}"
            )
            yield one.level, f"{said} (rule {one.rule}: {one.limit})" if metric else f"{said} (rule {one.rule})"


def _metrics(cell: CellRow) -> Iterable[MetricDelta]:
    for id_ in METRIC_IDS:
        both = cell.metrics.get(id_, Numbers(None, None))
        seen = cell.seen.get(id_)
        yield MetricDelta(id_, both.base, both.head, (seen.base, seen.head) if seen else None)


def _delta(row: DispatchRow) -> DispatchDelta:
    counts = row.operations
    operations = dict(sorted(counts.items(), key=lambda one: (-abs(one[1]), one[0])))
    passed = PassChange(row.passed, operations, others=None) if row.passed else None
    facts = row.base, row.head, row.matched, row.cause, row.component, row.note, row.diff
    return DispatchDelta(*facts, passed=passed, untraced=row.untraced)
