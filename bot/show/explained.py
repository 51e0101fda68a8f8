"""Draw a build or a dispatch of a report file, for `explain`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from bot.core.cell_story import BuildCause, CellStory, cell_story
from bot.core.explanation import PASS_OPERATIONS, DispatchDelta, Explanation
from bot.core.findings import Finding
from bot.core.ladder import PHASE_WORDS
from bot.core.metrics import METRIC_BY_ID, code_words, metric_words
from bot.core.near import near_or_known
from bot.core.parting import NOT_TRACED
from bot.core.planned import beginning, matching, short_names
from bot.core.report_reading import ReportRow, file_index, report_of
from bot.core.snapshot import CellKey
from bot.core.spec import RESOLVED
from bot.errors import InputError, UsageError
from bot.show.blocks import (
    Block,
    Code,
    Fold,
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
from bot.show.facts import NAME_LIMIT, mark_of, state_text
from bot.show.failures import MESSAGE_LINES, trimmed
from bot.show.filters import change, plural, sides, signed
from bot.show.proofs import proof_line, root_proof_words
from bot.show.renderers import print_blocks
from bot.show.run_times import run_paragraph
from bot.show.tried_flags import tried_flag_lines
from bot.show.why import (
    DispatchLine,
    cause_words,
    component_headers,
    component_row,
    dispatch_line,
    family_lines,
    number_label,
    rest,
    waterfall,
    why_words,
)

_HINT = "name a report.json that `compare` wrote"
_NAMES_LISTED = 8


def explain(
    path: Path, model: str, target: str, dispatch: str | None, console: Console
) -> None:
    """Print one build of a report, or one of its dispatches.

    `model`, `target`, `dispatch`: names, short names of targets, or globs and
    beginnings of one name.

    Raises:
        InputError: the file is not a report.
        UsageError: a name is not in the report, or matches several.
    """
    report = _read_report(path)
    keys = [row.key for row in report.cells]
    key = _chosen_key(keys, model, target, report.backends)
    story = cell_story(file_index(report, [key]), key)
    blocks: list[Block] = [Sentence(_title(story))]
    if dispatch is None:
        blocks += _findings(story)
        blocks.append(Sentence(run_paragraph(story)))
        blocks += _cell(report, story)
        for words in tried_flag_lines(report.changed_flags):
            blocks.append(Sentence(words))
        for line in tried_lines(report.changed_defaults):
            blocks.append(Sentence(clean(line)))
    else:
        deltas: Sequence[DispatchDelta] = ()
        if story.explanation:
            deltas = story.explanation.dispatches
        for delta in _chosen_dispatches(deltas, dispatch):
            blocks += _dispatch(report, story, delta)
    print_blocks(blocks, console)


def _read_report(path: Path) -> ReportRow:
    """Read a report file, or the `report.json` of a folder.

    Raises:
        InputError: the file cannot be read, or is not a report.
    """
    if path.is_dir():
        path = path / "report.json"
    try:
        return report_of(path.read_bytes(), str(path), _HINT)
    except UnicodeDecodeError:
        raise InputError(
            "is not UTF-8 text, so it is not a report", where=str(path), hint=_HINT
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), hint=_HINT
        ) from None


def _chosen_key(
    keys: Sequence[CellKey], model: str, target: str, backends: Mapping[str, str]
) -> CellKey:
    """Return the build that the model and the target match.

    Raises:
        UsageError: none or several match.
    """
    model = _chosen("model", model, [key.model for key in keys])
    targets = [key.target for key in keys if key.model == model]
    short = short_names({key.target for key in keys}, backends)
    return CellKey(model, _chosen("target", target, targets, short))


def _title(story: CellStory) -> Phrase:
    state = strong(state_text(story))
    reason = f" ({story.reason})" if story.reason else ""
    key = story.key
    return phrase(code(key.model), " on ", code(key.target), ": ", state, reason)


def _chosen_dispatches(
    deltas: Sequence[DispatchDelta], dispatch: str
) -> Iterator[DispatchDelta]:
    """Yield the dispatches that have the matched name on head or on base.

    Raises:
        UsageError: no name matches, or several do.
    """
    names: list[str] = []
    for delta in deltas:
        names += _side_names(delta)
    name = _chosen("dispatch", dispatch, names)
    for delta in deltas:
        if name in _side_names(delta):
            yield delta


def _side_names(delta: DispatchDelta) -> list[str]:
    return [side.name for side in (delta.head, delta.base) if side]


def _chosen(
    noun: str,
    pattern: str,
    names: Sequence[str],
    short: Mapping[str, str] | None = None,
) -> str:
    """Return the name that matches: by itself, a glob, its short name or its beginning.

    Raises:
        UsageError: no name matches, or several do.
    """
    candidates = list(dict.fromkeys(names))
    matches = matching(candidates, pattern, short)
    if not matches:
        matches = beginning(candidates, pattern, short)
    if not matches:
        raise UsageError(
            f"the report has no {noun} {pattern!r}",
            where=f"--{noun}",
            hint=near_or_known(pattern, candidates, short),
        )
    if len(matches) > 1:
        listed_names = ", ".join(matches[:_NAMES_LISTED])
        if len(matches) > _NAMES_LISTED:
            listed_names += ", …"
        raise UsageError(
            f"{pattern!r} matches several: {listed_names}",
            where=f"--{noun}",
            hint="name one of them",
        )
    return matches[0]


def _findings(story: CellStory) -> Iterator[Block]:
    for finding in story.findings:
        metric = finding.own or METRIC_BY_ID.get(finding.metric or "")
        label = "state"
        if metric:
            label = metric_words(metric, story.backend)
        text = (
            f"{_weight_words(finding)}: {label}: {finding.actual}"
            f" (rule {finding.rule}: {finding.limit})"
        )
        yield Sentence((Span(text, kind_of(finding.weight)),))


def _weight_words(finding: Finding) -> str:
    """Return what a finding does to the verdict: `fail`, `accepted by alice`, ….

    A known finding has no effect: base has it too.
    """
    mark = mark_of(finding)
    if mark == "known":
        return "known, base has it too"
    if mark == "accepted":
        return f"accepted by {clean(finding.accepted or '', NAME_LIMIT)}"
    return mark


def _cell(report: ReportRow, story: CellStory) -> Iterator[Block]:
    """Yield a build of the report: first the sums, then their causes."""
    yield from _failures(story)
    if story.explanation:
        yield from _explanation(story.explanation, story.backend)
    elif story.state == "changed" and story.noise:
        yield Sentence((Span(f"no cause: {story.noise}", "warn"),))
    elif story.state == "changed":
        yield Sentence((Span("the report has no reason", "warn"),))
    yield _changed_metrics(story)
    yield section(
        "Root causes of this build, with their bytes over all builds",
        List(listed([_root_cause(cause) for cause in story.causes])),
        name="causes",
    )
    yield section(
        "What deduplication left behind",
        List(family_lines(story.families)),
        name="families",
    )
    yield section("To reproduce", *_reproduction(report, story), name="reproduce")


def _failures(story: CellStory) -> Iterator[Block]:
    """Yield the first lines that the compiler of each failed side printed."""
    for side, result in (("base", story.results.base), ("head", story.results.head)):
        if result and result.failure and result.failure.message:
            lines, _ = trimmed(result.failure.message, MESSAGE_LINES)
            message = Code(lines, language="text")
            yield section(f"{side}: {clean(result.status)}", message, name="failure")


def _changed_metrics(story: CellStory) -> Table:
    """Return the table of the metrics that differ between the sides."""
    rows: list[Row] = []
    for metric in story.changed_metrics:
        unit = metric.quantity.unit
        rows.append(
            (
                phrase(metric_words(metric.quantity, story.backend)),
                phrase(sides(*metric.sides, unit)),
                phrase(change(*metric.sides, unit)),
            )
        )
    return Table(
        ("metric", "base → head", "change"),
        listed(rows),
        caption=phrase("Metrics that changed"),
    )


def _reproduction(report: ReportRow, story: CellStory) -> list[Code]:
    versions = {
        "base": report.base.compiler.version,
        "head": report.head.compiler.version,
    }
    blocks = []
    for remark, command in reproduction(versions, story.commands):
        blocks.append(Code(f"{clean(remark)}\n{clean(command)}"))
    return blocks


def _root_cause(root: BuildCause) -> Phrase:
    """Return a root cause with its bytes, and the results of its experiments."""
    ending = ""
    if root.proof.members:
        tried = root_proof_words(
            root.proof,
            what=root.what,
            parts=root.parts,
            pass_name=root.pass_name,
            dispatches=root.dispatches,
            total=root.total,
        )
        if tried:
            ending = f"; {clean(tried)}"
    return phrase(
        strong(cause_words(root.cause)),
        f": {clean(root.what)}: {signed(root.total.net_bytes)}{ending}",
    )


def _explanation(explanation: Explanation, backend: str) -> Iterator[Block]:
    """Yield why a build changed: by cause, by dispatch and by component."""
    yield Sentence(phrase(why_words(explanation), "."))
    rows = list[Row]()
    for cause, size, parts in waterfall(explanation):
        rows.append((name_cell(cause), "", size))
        rows += [("", *part) for part in parts]
    yield Table(
        ("cause", "part", "change"),
        listed(rows),
        numbers_from=2,
        caption="The artifact's change by cause",
    )
    groups = by(
        explanation.dispatches,
        lambda delta: (delta.cause, delta.note, delta.base is None, delta.head is None),
    )
    blocks: list[Block] = []
    for deltas in groups.values():
        blocks += _change(deltas, backend)
    count = len(explanation.dispatches)
    title = f"Dispatches that changed ({count:,}; --dispatch NAME shows more)"
    yield section(title, *blocks, name="dispatches")
    yield Sentence(rest(explanation), small=True)
    components: list[Row] = []
    for component in explanation.components:
        name, *sizes = component_row(component)
        components.append((name_cell(name), *sizes))
    headers = component_headers(code_words("code", backend))
    yield Table(headers, listed(components), caption="Components that changed")


def _change(deltas: Sequence[DispatchDelta], backend: str) -> Iterator[Block]:
    """Yield one change, and a list of the dispatches that have it.

    A list, and not a table, as names are long and terminals are narrow.
    """
    lines = [dispatch_line(delta) for delta in deltas]
    count = ""
    if len(deltas) > 1:
        count = f", {plural(len(deltas), 'dispatch')}"
    note = f": {lines[0].note}" if lines[0].note else ""
    yield Sentence(phrase(strong(lines[0].cause), count, note))
    items: list[Line] = []
    equal_names: list[str] = []
    for line in lines:
        numbers = []
        for name, figure in line.numbers.items():
            if figure.differs:
                numbers.append(f"{number_label(name, backend)} {figure.text}")
        if numbers:
            detail = phrase(f"in {line.component}: {', '.join(numbers)}")
            items.append(Line(name_cell(line.name), detail, phrase(line.passed)))
        else:
            equal_names.append(line.name)
    if equal_names:
        names = joined(map(name_cell, equal_names), ", ")
        text = phrase(f"all numbers equal ({len(equal_names):,}): ", names)
        items.append(Line(text, ()))
    yield List(listed(items))


def _dispatch(
    report: ReportRow, story: CellStory, delta: DispatchDelta
) -> Iterator[Block]:
    """Yield one dispatch of the report."""
    line = dispatch_line(delta)
    yield _dispatch_heading(delta, line)
    yield from _pass_blocks(delta)
    numbers = []
    for name, figure in line.numbers.items():
        if figure.known:
            label = phrase(number_label(name, story.backend))
            numbers.append((label, phrase(figure.text)))
    yield Table(("", "base → head"), listed(numbers))
    yield from _experiments(delta)
    for name, side in (("base", delta.base), ("head", delta.head)):
        if side and side.strategy:
            yield Sentence(phrase(f"{name}: {side.strategy}"))
    text = "\n".join(clean_block(row).replace("\n", " ") for row in delta.diff)
    yield section(
        "The smallest piece that differs", Code(text, language="diff"), name="diff"
    )
    if delta.passed or delta.untraced or delta.attribution:
        yield section(
            "All passes, with the --config of the comparison",
            Code(clean(_trace_command(report, story.key, delta))),
            name="trace",
        )


def _dispatch_heading(delta: DispatchDelta, line: DispatchLine) -> Fold:
    kind = ""
    kernel = delta.head or delta.base
    if kernel:
        kind = f" ({clean(kernel.kind)}, in {clean(kernel.executable)})"
    match = line.matched
    if delta.base and delta.head:
        match = f"matched by {match}"
    summary = phrase(strong(line.cause), f" in {line.component}; {match}")
    return section(
        phrase(code(delta.name), kind),
        Sentence(summary),
        Sentence(phrase(line.note)),
        name="dispatch",
    )


def _pass_blocks(delta: DispatchDelta) -> Iterator[Block]:
    """Yield the operations in which the sides differ after the parting pass.

    Without a named pass, yield the reason.
    """
    if delta.passed:
        operations = delta.passed.operations
        rows = []
        for name, count in operations.items():
            rows.append((name_cell(name), phrase(signed(count, "count"))))
        degree = ""
        if len(operations) == PASS_OPERATIONS:  # the report has no more than these
            degree = " most"
        printed_for = ""
        if delta.passed.printed_for:
            printed_for = f" (printed for {delta.passed.printed_for})"
        yield section(
            f"After {delta.passed.name}{printed_for} the sides differ{degree} in",
            Table(("operation", "change"), listed(rows)),
            name="pass",
        )
    elif delta.untraced or delta.cause == "codegen":
        reason = clean(delta.untraced or NOT_TRACED)
        yield Sentence((Span(f"no pass is named: {reason}", "warn"),))


def _trace_command(report: ReportRow, key: CellKey, delta: DispatchDelta) -> str:
    options = {
        "model": key.model,
        "target": key.target,
        "dispatch": delta.name,
        "base": report.base.compiler.spec.rpartition(RESOLVED)[2] or "SPEC",
        "head": report.head.compiler.spec.rpartition(RESOLVED)[2] or "SPEC",
    }
    arguments = ["code-size-bot trace"]
    for name, value in options.items():
        arguments.append(f"--{name} {shlex.quote(value)}")
    return " ".join(arguments)


def _experiments(delta: DispatchDelta) -> Iterator[Block]:
    """Yield the bytes of a dispatch's change by phase, and the result of its proof."""
    parts = delta.attribution or {}
    rows = []
    for phase, label in PHASE_WORDS.items():
        if phase in parts:
            rows.append((phrase(label), phrase(signed(parts[phase]))))
    table = Table(("phase", "change"), listed(rows))
    yield section("Bytes of the change by phase, by experiment", table, name="phases")
    if delta.proof is not None:
        yield Sentence((strong(proof_line(delta.proof)),))
