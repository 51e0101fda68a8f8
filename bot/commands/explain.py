"""`explain`: what a report says of one cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from bot.core.codec.report_json import report_of
from bot.core.codec.report_rows import Numbers, ReportCell, ReportRow, Words
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS
from bot.core.rules.delta import MetricDelta
from bot.core.values.explanation import DispatchDelta, Explanation
from bot.core.values.snapshot import CellKey
from bot.errors import InputError, UsageError
from bot.render.terminal.cell_text import Told, ends_words, print_cell, print_dispatch, state_words

_HINT = "name the report.json of a compare"
_NAMES_TOLD = 8


def explain(path: Path, model: str, target: str, dispatch: str | None, console: Console) -> None:
    """Tell what the report says of one cell, or of one of its dispatches.

    Args:
        model, target, dispatch: exact names, or globs that match one name.

    Raises:
        InputError: the file is no report.
        UsageError: a name is not in it, or a glob matches several.
    """
    told = _told(_load(path), model, target)
    if dispatch is None:
        print_cell(told, console)
        return
    deltas = told.explanation.dispatches if told.explanation else ()
    name = _chosen("dispatch", dispatch, [delta.name for delta in deltas])
    for delta in deltas:
        if delta.name == name:
            print_dispatch(told, delta, console)


def _load(path: Path) -> ReportRow:
    try:
        return report_of(path.read_bytes(), str(path), _HINT)
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text, so no report", where=str(path), hint=_HINT) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), hint=_HINT) from None


def _told(report: ReportRow, model: str, target: str) -> Told:
    cells = {CellKey(cell.model, cell.target): cell for cell in report.cells}
    model = _chosen("model", model, [key.model for key in cells])
    key = CellKey(model, _chosen("target", target, [key.target for key in cells if key.model == model]))
    cell = cells[key]
    failures = {"base": cell.failure.base, "head": cell.failure.head}
    return Told(
        key,
        cell.state,
        cell.reason,
        _words(cell.status),
        {side: failure.message if failure else "" for side, failure in failures.items()},
        _words(cell.command),
        {"base": report.base.compiler.version, "head": report.head.compiler.version},
        tuple(_findings(report, key)),
        tuple(_metrics(cell)),
        _explanation(cell),
        cell.families,
        tuple((root.cause, root.what, root.bytes.net) for root in report.root_causes if key in root.cells),
    )


def _words(both: Words) -> dict[str, str]:
    """A text for each side; empty where there is none."""
    return {"base": both.base or "", "head": both.head or ""}


def _chosen(what: str, wanted: str, names: Sequence[str]) -> str:
    """The one name that is meant."""
    known = list(dict.fromkeys(names))
    if wanted in known:
        return wanted
    matching = [name for name in known if fnmatchcase(name, wanted)]
    if len(matching) > 1:
        raise UsageError(f"{wanted!r} matches several: {_some(matching)}", where=f"--{what}", hint="name one of them")
    if not matching:
        raise UsageError(f"no {what} of the report is {wanted!r}", where=f"--{what}", hint=_hint(wanted, known))
    return matching[0]


def _hint(wanted: str, known: Sequence[str]) -> str:
    near = get_close_matches(wanted, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there is {_some(known)}" if known else "there is none"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_TOLD]) + (", …" if len(names) > _NAMES_TOLD else "")


def _findings(report: ReportRow, key: CellKey) -> Iterable[tuple[str, str]]:
    for one in report.verdict.findings:
        if (one.model, one.target) == (key.model, key.target):
            metric = METRIC_BY_ID.get(one.metric or "")
            said = f"{metric.label}: {one.actual}" if metric else f"{state_words(one.limit)}: {ends_words(one.actual)}"
            yield one.level, f"{said} (rule {one.rule}: {one.limit})" if metric else f"{said} (rule {one.rule})"


def _metrics(cell: ReportCell) -> Iterable[MetricDelta]:
    for id_ in METRIC_IDS:
        both = cell.metrics.get(id_, Numbers(None, None))
        yield MetricDelta(id_, both.base, both.head)


def _explanation(cell: ReportCell) -> Explanation | None:
    """None where the report says nothing of why."""
    made = Explanation(
        cell.cause,
        cell.first,
        cell.why,
        tuple(DispatchDelta(d.base, d.head, d.matched, d.cause, d.component, d.note, d.diff) for d in cell.dispatches),
        unchanged=cell.unchanged or 0,
        rebased=cell.rebased or 0,
        short_digests=cell.short_digests,
        components=cell.components,
        waterfall=cell.waterfall,
        parts=cell.parts,
    )
    return made if made.cause or made.why or made.dispatches or made.components else None
