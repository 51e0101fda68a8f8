"""`explain`: what a report says of one cell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.core.delta import MetricDelta
from bot.core.explanation import PASS_OPERATIONS, DispatchDelta, Explanation, PassChange
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, Metric, code_words, metric_words, own_metrics
from bot.core.parting import NOT_TRACED
from bot.core.planned import beginning, matching, near_or_known, short_names
from bot.core.program import Family
from bot.core.report import Both, CellRow, DispatchRow, ReportRow, report_of
from bot.core.snapshot import CellKey
from bot.core.spec import RESOLVED
from bot.errors import InputError, UsageError
from bot.show.compared import reproduction
from bot.show.escape import clean, clean_block
from bot.show.filters import change, plural, sides, signed
from bot.show.renderers import LEVELS, table_of, text_of
from bot.show.why import Room, Story, cause_words, dispatch_line, family_lines, story

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MESSAGE_LINES = 12
_STATES: Mapping[str, str] = {
    "newly-broken": "newly broken",
    "removed": "gone from head",
    "fixed": "compiles now",
    "broken": "broken on both sides",
    "unmeasured": "not measured",
    "same": "did not change",
}
_STATUSES: Mapping[str, str] = {
    "ok": "compiles",
    "absent": "not there",
    "failed": "does not compile",
    "timeout": "timed out",
    "over-stack-limit": "over the compiler's stack limit",
    "unsupported": "cannot be compiled for this target",
}
_Parts = Iterator["Text | Table | Padding"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a report says of one cell.

    Attributes:
        status, failures, commands, compilers: side → word, message, command line, version; empty where there is none.
        findings: level and words of each, worst first.
        metrics: all of them.
        explanation: None where the report has none.
        families: of head.
        roots: the root causes that the cell has a part in: cause, what changed, and bytes over all cells.
        backend: of the target; empty where the report does not say.
        specs: side → the SPEC of its compiler.
    """

    key: CellKey
    state: str
    reason: str
    status: Mapping[str, str]
    failures: Mapping[str, str]
    commands: Mapping[str, str]
    compilers: Mapping[str, str]
    findings: tuple[tuple[str, str], ...]
    metrics: tuple[MetricDelta, ...]
    explanation: Explanation | None
    families: tuple[Family, ...]
    roots: tuple[tuple[str | None, str, int], ...] = ()
    backend: str = ""
    specs: Mapping[str, str] = field(default_factory=dict)


def print_cell(told: Told, console: Console) -> None:
    """Everything the report says of the cell."""
    for part in _cell_parts(told):
        console.print(part)
    console.print(Text("\nTo reproduce", "bold"))
    for about, command in reproduction(told.compilers, told.commands):
        console.print(Text(clean(about), "dim"), soft_wrap=True)
        console.print(Text(clean(command)), soft_wrap=True)  # to be copied whole


def print_dispatch(told: Told, delta: DispatchDelta, console: Console) -> None:
    """Everything the report says of one dispatch of the cell."""
    for part in (_title(told), *_dispatch_parts(delta, told.backend)):
        console.print(part)
    if delta.passed or delta.untraced:
        names = {"model": told.key.model, "target": told.key.target, "dispatch": delta.name}
        names |= {side: spec.rpartition(RESOLVED)[2] or "SPEC" for side, spec in told.specs.items()}
        trace = " ".join(("code-size-bot trace", *(f"--{name} {shlex.quote(text)}" for name, text in names.items())))
        console.print(Text("\nAll passes, with the --config of the comparison", "bold"))
        console.print(Text(clean(trace)), soft_wrap=True)


def state_words(state: str) -> str:
    """A cell's state in words."""
    return _STATES.get(state, clean(state))


def ends_words(ends: str) -> str:
    """How a cell ended on both sides, `ok → failed`, in words; anything else as it is."""
    return " → ".join(_STATUSES.get(end) or state_words(end) for end in ends.split(" → "))


def _cell_parts(told: Told) -> _Parts:
    yield _title(told)
    yield from (Text(f"{level}: {clean(words)}", LEVELS.get(level, "")) for level, words in told.findings)
    yield from _failures(told)
    if told.explanation is None and told.state == "changed":
        yield Text("\nthe report does not say why", "yellow")
    if told.explanation:
        view = story(told.explanation, told.families, Room(), told.backend)
        yield from _story(told.explanation, view, told.backend)
    yield from _metric_table(
        [metric for metric in told.metrics if metric.base != metric.head or metric.is_open], told.backend
    )
    yield from _roots(told)
    if told.families:
        yield Text("\nWhat deduplication left behind", "bold")
        yield from (Padding(text_of(line), (0, 0, 0, 2)) for line in family_lines(told.families, Room()))


def _title(told: Told) -> Text:
    reason = f" ({clean(told.reason)})" if told.reason else ""
    name = Text.assemble((clean(told.key.model), "bold cyan"), " on ", (clean(told.key.target), "bold cyan"))
    return Text.assemble(name, ": ", (state_words(told.state), "bold"), reason)


def _roots(told: Told) -> _Parts:
    if told.roots:
        yield Text("\nRoot causes that this build has a part in, and their bytes over all builds", "bold")
    for cause, what, net_bytes in told.roots:
        yield Text.assemble("  ", (cause_words(cause), "bold"), f": {clean(what)}: {signed(net_bytes)}")


def _failures(told: Told) -> _Parts:
    for side, message in told.failures.items():
        if message:
            yield Text(f"\n{side}: {ends_words(told.status.get(side) or 'failed')}", "bold")
            lines = clean_block(message).split("\n")[:_MESSAGE_LINES]
            yield Padding(Text("\n".join(lines), "dim"), (0, 0, 0, 4))


def _metric_table(changed: Sequence[MetricDelta], backend: str) -> _Parts:
    table = table_of("Metrics that changed", "metric", "base → head", "change")
    for m in changed:
        about = m.quantity
        table.add_row(metric_words(about, backend), sides(*m.sides, about.unit), change(*m.sides, about.unit))
    if changed:
        yield table


def _story(explanation: Explanation, view: Story, backend: str) -> _Parts:
    """The sums first, then where they come from."""
    yield Text.assemble("\n", text_of(view.said), ".")
    yield from _falls(view)
    if view.dispatches:
        yield Text(f"\nDispatches that changed ({view.dispatches.total:,}; --dispatch NAME tells more)", "bold")
    for alike in _changes(explanation.dispatches):
        yield from _change(alike, backend)
    if view.rest:
        yield Text(view.rest, "dim")
    yield from _components(view)


def _falls(view: Story) -> _Parts:
    if view.falls:
        table = table_of("The artifact's change by cause", "cause", "part", "change", numbers_from=2)
        for fall in view.falls:
            table.add_row(Text(fall.cause, "cyan"), "", fall.change)
            for what, moved in fall.parts:
                table.add_row("", Text(what), moved)
        yield table


def _components(view: Story) -> _Parts:
    if view.components:
        sizes = ("dispatch sites", f"{view.code}, base → head", "stack frame, base → head")
        table = table_of("Components that moved", "component", *sizes)
        for part in view.components:
            table.add_row(Text(part.name, "cyan"), part.sites, part.code, part.stack)
        yield table


def _changes(dispatches: Sequence[DispatchDelta]) -> Sequence[Sequence[DispatchDelta]]:
    """The dispatches that changed alike together, in the order of the first of each."""
    changes: dict[tuple[str | None, str, bool, bool], list[DispatchDelta]] = {}
    for delta in dispatches:
        change = (delta.cause, delta.note, delta.base is None, delta.head is None)
        changes.setdefault(change, []).append(delta)
    return tuple(changes.values())


def _change(alike: Sequence[DispatchDelta], backend: str) -> _Parts:
    """One change, and the dispatches that it is true of: blocks, as names are long and terminals narrow."""
    lines, known = [dispatch_line(delta) for delta in alike], [_grown(delta) for delta in alike]
    about = lines[0]
    sums = [plural(len(alike), "dispatch")] if len(alike) > 1 else []
    sums += (
        [f"{code_words('code', backend)} {signed(sum(filter(None, known)))}"]
        if len(alike) > 1 and None not in known
        else []
    )
    note = f": {about.note}" if about.note else ""
    yield Padding(Text.assemble((about.cause, "bold"), *(f", {part}" for part in sums), note), (0, 0, 0, 2))
    equal: list[str] = []
    for line in lines:
        numbers = [
            f"{_label(label, backend)} {number.text}" for label, number in line.numbers.items() if number.differs
        ]
        if not numbers:
            equal.append(line.name)
            continue
        yield Padding(Text(line.name, "cyan"), (0, 0, 0, 4))
        yield Padding(Text(f"in {line.component}: {', '.join(numbers)}"), (0, 0, 0, 6))
        if line.passed:
            yield Padding(Text(line.passed), (0, 0, 0, 6))
    if equal:
        words = f"all numbers equal ({len(equal):,}): "
        yield Padding(Text.assemble(words, (", ".join(equal), "cyan")), (0, 0, 0, 4))


def _label(label: str, backend: str) -> str:
    """What a number of a dispatch is called there."""
    return code_words(label, backend) if label == "code" else label


def _grown(delta: DispatchDelta) -> int | None:
    """Head − base of its code, where what is there is known; a side without it has none."""
    sizes = [side.code_bytes if side else 0 for side in (delta.base, delta.head)]
    base, head = sizes
    return None if base is None or head is None else head - base


def _dispatch_parts(delta: DispatchDelta, backend: str) -> _Parts:
    line, known = dispatch_line(delta), delta.head or delta.base
    kind = f" ({clean(known.kind)}, in {clean(known.executable)})" if known else ""
    yield Text.assemble("\n", (clean(delta.name), "bold cyan"), kind)
    how = f"matched by {line.matched}" if delta.base and delta.head else line.matched
    yield Text.assemble((line.cause, "bold"), f" in {line.component}; {how}")
    if line.note:
        yield Text(line.note)
    yield from _pass_parts(delta)
    table = table_of("", "", "base → head")
    for label, number in line.numbers.items():
        if number.known:
            table.add_row(_label(label, backend), number.text)
    yield table
    for name, side in (("base", delta.base), ("head", delta.head)):
        if side and side.strategy:
            yield Text(f"{name}: {clean(side.strategy)}")
    if delta.diff:
        yield Text("\nThe smallest piece that differs", "bold")
    for row in delta.diff:
        yield Text(f"  {clean_block(row)}".replace("\n", " "), _DIFF_STYLES.get(row[:1], "dim"))


def _pass_parts(delta: DispatchDelta) -> _Parts:
    if delta.passed:
        most = " most" if len(delta.passed.operations) == PASS_OPERATIONS else ""
        yield Text(f"\nAfter {clean(delta.passed.name)} the sides differ{most} in")
        table = table_of("", "operation", "change")
        for name, count in delta.passed.operations.items():
            table.add_row(Text(clean(name), "cyan"), signed(count, "count"))
        yield table
    elif delta.untraced or delta.cause == "codegen":
        yield Text(f"no pass is named: {clean(delta.untraced or NOT_TRACED)}", "yellow")


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
        tuple(_metrics(cell, _own(report))),
        explanation
        if explanation.cause or explanation.why or explanation.dispatches or explanation.components
        else None,
        cell.families,
        tuple((root.cause, root.what, root.bytes.net_bytes) for root in report.root_causes if key in root.cells),
        backends.get(key.target, ""),
        {"base": report.base.compiler.spec, "head": report.head.compiler.spec},
    )


def _words(both: Both[str]) -> dict[str, str]:
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
            metric = METRIC_BY_ID.get(one.metric or "") or _own(report).get(one.metric or "")
            said = (
                f"{metric_words(metric, backend)}: {one.actual}"
                if metric
                else f"{state_words(one.limit)}: {ends_words(one.actual)}"
            )
            yield one.level, f"{said} (rule {one.rule}: {one.limit})" if metric else f"{said} (rule {one.rule})"


def _own(report: ReportRow) -> Mapping[str, Metric]:
    return own_metrics(report.base.compiler.metrics, report.head.compiler.metrics)


def _metrics(cell: CellRow, own: Mapping[str, Metric]) -> Iterable[MetricDelta]:
    for id_ in (*METRIC_IDS, *own):
        both = cell.metrics.get(id_, Both[int]())
        seen = cell.seen.get(id_)
        yield MetricDelta(id_, both.base, both.head, (seen.base or (), seen.head or ()) if seen else None, own.get(id_))


def _delta(row: DispatchRow) -> DispatchDelta:
    counts = row.operations
    operations = dict(sorted(counts.items(), key=lambda one: (-abs(one[1]), one[0])))
    passed = PassChange(row.passed, operations, others=None) if row.passed else None
    facts = row.base, row.head, row.matched, row.cause, row.component, row.note, row.diff
    return DispatchDelta(*facts, passed=passed, untraced=row.untraced)
