"""`explain`: what a report file says of one cell or dispatch, as blocks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from bot.core.delta import MetricDelta
from bot.core.explanation import PASS_OPERATIONS, DispatchDelta, Explanation, PassChange
from bot.core.ladder import PHASE_WORDS
from bot.core.metrics import (
    METRIC_BY_ID,
    METRIC_IDS,
    code_words,
    metric_words,
    own_metrics,
)
from bot.core.near import near_or_known
from bot.core.parting import NOT_TRACED
from bot.core.planned import beginning, matching, short_names
from bot.core.report import (
    Both,
    DispatchRow,
    ReportCellRow,
    ReportRow,
    RootRow,
    report_of,
)
from bot.core.snapshot import CellKey
from bot.core.spec import RESOLVED
from bot.errors import InputError, UsageError
from bot.show.blocks import (
    Block,
    Code,
    Line,
    List,
    Phrase,
    Row,
    Sentence,
    Span,
    Table,
    by,
    code,
    joined,
    kind_of,
    listed,
    name_cell,
    phrase,
    section,
    strong,
)
from bot.show.compared import reproduction
from bot.show.defaults import tried_lines
from bot.show.escape import clean, clean_block
from bot.show.facts import STATE_WORDS
from bot.show.filters import change, plural, sides, signed
from bot.show.proofs import proof_line, root_proof_words
from bot.show.renderers import print_blocks
from bot.show.run_times import run_paragraphs
from bot.show.why import (
    cause_words,
    component_row,
    dispatch_line,
    family_lines,
    rest,
    waterfall,
    why_words,
)

_HINT = "name a report.json that `compare` wrote"
_NAMES_TOLD, _MESSAGE_LINES = 8, 12


def explain(
    path: Path, model: str, target: str, dispatch: str | None, console: Console
) -> None:
    """Tell what the report says of one cell, or of one of its dispatches.

    `model`, `target`, `dispatch`: names, short names of targets, or globs and
    beginnings of one name. Raises InputError where the file is no report; UsageError
    where a name is not in it, or several are meant.
    """
    path = path / "report.json" if path.is_dir() else path
    try:
        report = report_of(path.read_bytes(), str(path), _HINT)
    except UnicodeDecodeError:
        raise InputError(
            "is not UTF-8 text, so it is not a report", where=str(path), hint=_HINT
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), hint=_HINT
        ) from None
    cells = {CellKey(cell.model, cell.target): cell for cell in report.cells}
    model = _chosen("model", model, [key.model for key in cells])
    backends = {**report.base.targets, **report.head.targets}
    short = short_names({key.target for key in cells}, backends)
    key = CellKey(
        model,
        _chosen(
            "target",
            wanted=target,
            names=[key.target for key in cells if key.model == model],
            short=short,
        ),
    )
    cell, backend = cells[key], backends.get(key.target, "")
    why = f" ({cell.reason})" if cell.reason else ""
    title = phrase(
        code(key.model),
        " on ",
        code(key.target),
        ": ",
        strong(STATE_WORDS.get(cell.state, clean(cell.state))),
        why,
    )
    deltas = tuple(map(_delta, cell.dispatches))
    if dispatch is None:
        defaults = [
            Sentence(clean(line)) for line in tried_lines(report.changed_defaults)
        ]
        blocks = [
            *_findings(report, key, backend),
            Sentence(run_paragraphs(report.run_times).get(key, "")),
            *_cell(report, cell=cell, deltas=deltas, backend=backend),
            *defaults,
        ]
    else:
        names = [
            [side.name for side in (delta.head, delta.base) if side] for delta in deltas
        ]
        name = _chosen("dispatch", dispatch, [name for each in names for name in each])
        chosen = [
            delta for delta, each in zip(deltas, names, strict=True) if name in each
        ]
        blocks = [
            block
            for delta in chosen
            for block in _dispatch(report, key=key, delta=delta, backend=backend)
        ]
    print_blocks([Sentence(title), *blocks], console)


def _chosen(
    what: str, wanted: str, names: Sequence[str], short: Mapping[str, str] | None = None
) -> str:
    """The one name that is meant: by itself, by a glob, by its short name, or by how it begins."""
    known = list(dict.fromkeys(names))
    matches = matching(known, wanted, short) or beginning(known, wanted, short)
    if len(matches) > 1:
        some = ", ".join(matches[:_NAMES_TOLD]) + (
            ", …" if len(matches) > _NAMES_TOLD else ""
        )
        raise UsageError(
            f"{wanted!r} matches several: {some}",
            where=f"--{what}",
            hint="name one of them",
        )
    if not matches:
        hint = near_or_known(wanted, known, short)
        raise UsageError(
            f"the report has no {what} {wanted!r}", where=f"--{what}", hint=hint
        )
    return matches[0]


def _delta(row: DispatchRow) -> DispatchDelta:
    operations = dict(
        sorted(row.operations.items(), key=lambda one: (-abs(one[1]), one[0]))
    )
    passed = (
        PassChange(row.pass_name, operations, others=None) if row.pass_name else None
    )
    return replace(row, passed=passed)


def _findings(report: ReportRow, key: CellKey, backend: str) -> Iterator[Block]:
    metrics = {
        **METRIC_BY_ID,
        **own_metrics(report.base.compiler.metrics, report.head.compiler.metrics),
    }
    for finding in report.verdict.findings:
        if (finding.model, finding.target) == (key.model, key.target):
            metric = metrics.get(finding.metric or "")
            label = metric_words(metric, backend) if metric else "state"
            said = f"{finding.level}: {label}: {finding.actual} (rule {finding.rule}: {finding.limit})"
            yield Sentence((Span(said, kind_of(finding.level)),))


def _cell(
    report: ReportRow,
    cell: ReportCellRow,
    deltas: tuple[DispatchDelta, ...],
    backend: str,
) -> Iterator[Block]:
    """Everything the report says of the cell: the sums first, then where they come from."""
    status, commands = (
        {"base": both.base or "", "head": both.head or ""}
        for both in (cell.status, cell.command)
    )
    for side, failure in (("base", cell.failure.base), ("head", cell.failure.head)):
        if failure and failure.message:
            text = "\n".join(clean_block(failure.message).split("\n")[:_MESSAGE_LINES])
            title = f"{side}: {clean(status.get(side) or 'failed')}"
            yield section(title, Code(text, language="text"), name="failure")
    if cell.cause or cell.why or deltas or cell.components:
        yield from _story(replace(cell, dispatches=deltas), backend)
    elif cell.state == "changed":
        yield Sentence((Span("the report has no reason", "warn"),))
    own, rows = (
        own_metrics(report.base.compiler.metrics, report.head.compiler.metrics),
        [],
    )
    for id_ in (*METRIC_IDS, *own):
        both, seen = cell.metrics.get(id_, Both[int](None, None)), cell.seen.get(id_)
        one = MetricDelta(
            id=id_,
            base=both.base,
            head=both.head,
            seen=(seen.base or (), seen.head or ()) if seen else None,
            own=own.get(id_),
        )
        if one.base != one.head or one.is_open:
            unit = one.quantity.unit
            words = (
                metric_words(one.quantity, backend),
                sides(*one.sides, unit),
                change(*one.sides, unit),
            )
            rows.append(tuple(map(phrase, words)))
    yield Table(
        ("metric", "base → head", "change"),
        listed(rows),
        caption=phrase("Metrics that changed"),
    )
    key = CellKey(cell.model, cell.target)
    causes = [_root_cause(root) for root in report.root_causes if key in root.cells]
    about = "Root causes of this build, with their bytes over all builds"
    yield section(about, List(listed(causes)), name="causes")
    yield section(
        "What deduplication left behind",
        List(family_lines(cell.families)),
        name="families",
    )
    versions = {
        "base": report.base.compiler.version,
        "head": report.head.compiler.version,
    }
    lines = [
        Code(f"{clean(about)}\n{clean(command)}")
        for about, command in reproduction(versions, commands)
    ]
    yield section("To reproduce", *lines, name="reproduce")


def _root_cause(root: RootRow) -> Phrase:
    """Return a root cause with its bytes, and what its experiments say."""
    tried = ""
    if root.proof.members:
        tried = root_proof_words(
            root.proof,
            what=root.what,
            parts=root.parts,
            pass_name=root.pass_name,
            dispatches=root.dispatches,
            total=root.bytes,
        )
    ending = f"; {clean(tried)}" if tried else ""
    return phrase(
        strong(cause_words(root.cause)),
        f": {clean(root.what)}: {signed(root.bytes.net_bytes)}{ending}",
    )


def _story(why: Explanation, backend: str) -> Iterator[Block]:
    yield Sentence(phrase(why_words(why), "."))
    rows = list[Row]()
    for cause, size, parts in waterfall(why):
        rows += [(name_cell(cause), "", size), *(("", *part) for part in parts)]
    yield Table(
        ("cause", "part", "change"),
        listed(rows),
        numbers_from=2,
        caption="The artifact's change by cause",
    )
    alike = by(
        why.dispatches,
        lambda delta: (delta.cause, delta.note, delta.base is None, delta.head is None),
    )
    title = (
        f"Dispatches that changed ({len(why.dispatches):,}; --dispatch NAME shows more)"
    )
    yield section(
        title,
        *(block for deltas in alike.values() for block in _change(deltas, backend)),
        name="dispatches",
    )
    yield Sentence(rest(why), small=True)
    headers = (
        "component",
        "dispatch sites",
        f"{_label('code', backend)}, base → head",
        "stack frame, base → head",
    )
    components: list[Row] = [
        (name_cell(name), *sizes) for name, *sizes in map(component_row, why.components)
    ]
    yield Table(headers, listed(components), caption="Components that changed")


def _change(alike: Sequence[DispatchDelta], backend: str) -> Iterator[Block]:
    """One change, and the dispatches that it is true of: lines, as names are long and terminals narrow."""
    lines, equal = [dispatch_line(delta) for delta in alike], list[str]()
    count = f", {plural(len(alike), 'dispatch')}" if len(alike) > 1 else ""
    note = f": {lines[0].note}" if lines[0].note else ""
    yield Sentence(phrase(strong(lines[0].cause), count, note))
    shown = []
    for line in lines:
        numbers = [
            f"{_label(name, backend)} {one.text}"
            for name, one in line.numbers.items()
            if one.differs
        ]
        if numbers:
            where = phrase(f"in {line.component}: {', '.join(numbers)}")
            shown.append(Line(name_cell(line.name), where, phrase(line.passed)))
        else:
            equal.append(line.name)
    if equal:
        shown.append(
            Line(
                phrase(
                    f"all numbers equal ({len(equal):,}): ",
                    joined(map(name_cell, equal), ", "),
                ),
                (),
            )
        )
    yield List(listed(shown))


def _label(label: str, backend: str) -> str:
    return code_words(label, backend) if label == "code" else label


def _dispatch(
    report: ReportRow, key: CellKey, delta: DispatchDelta, backend: str
) -> Iterator[Block]:
    line, known = dispatch_line(delta), delta.head or delta.base
    kind = f" ({clean(known.kind)}, in {clean(known.executable)})" if known else ""
    how = f"matched by {line.matched}" if delta.base and delta.head else line.matched
    said = Sentence(phrase(strong(line.cause), f" in {line.component}; {how}"))
    yield section(
        phrase(code(delta.name), kind),
        said,
        Sentence(phrase(line.note)),
        name="dispatch",
    )
    if delta.passed:
        most = " most" if len(delta.passed.operations) == PASS_OPERATIONS else ""
        rows = [
            (name_cell(name), phrase(signed(n, "count")))
            for name, n in delta.passed.operations.items()
        ]
        table = Table(("operation", "change"), listed(rows))
        yield section(
            f"After {delta.passed.name} the sides differ{most} in", table, name="pass"
        )
    elif delta.untraced or delta.cause == "codegen":
        yield Sentence(
            (Span(f"no pass is named: {clean(delta.untraced or NOT_TRACED)}", "warn"),)
        )
    numbers = [
        (phrase(_label(name, backend)), phrase(one.text))
        for name, one in line.numbers.items()
        if one.known
    ]
    yield Table(("", "base → head"), listed(numbers))
    yield from _experiments(delta)
    for name, side in (("base", delta.base), ("head", delta.head)):
        yield Sentence(
            phrase(f"{name}: {side.strategy}" if side and side.strategy else "")
        )
    text = "\n".join(clean_block(row).replace("\n", " ") for row in delta.diff)
    yield section(
        "The smallest piece that differs", Code(text, language="diff"), name="diff"
    )
    if delta.passed or delta.untraced or delta.attribution:
        names = {"model": key.model, "target": key.target, "dispatch": delta.name}
        for name, compiler in (
            ("base", report.base.compiler),
            ("head", report.head.compiler),
        ):
            names[name] = compiler.spec.rpartition(RESOLVED)[2] or "SPEC"
        trace = " ".join(
            (
                "code-size-bot trace",
                *(f"--{name} {shlex.quote(text)}" for name, text in names.items()),
            )
        )
        yield section(
            "All passes, with the --config of the comparison",
            Code(clean(trace)),
            name="trace",
        )


def _experiments(delta: DispatchDelta) -> Iterator[Block]:
    """Show the bytes of a dispatch's change by phase, and the experiment with its configuration."""
    parts = delta.attribution or {}
    rows = [
        (phrase(words), phrase(signed(parts[phase])))
        for phase, words in PHASE_WORDS.items()
        if phase in parts
    ]
    table = Table(("phase", "change"), listed(rows))
    yield section("Bytes of the change by phase, by experiment", table, name="phases")
    if delta.proof is not None:
        yield Sentence((strong(proof_line(delta.proof)),))
