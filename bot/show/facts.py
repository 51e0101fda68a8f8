"""What every view asks of a report: cells by state, findings by cell, short names; and why, in the words of all."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol
from urllib.parse import quote

from bot.core import planned as selecting
from bot.core.delta import STATES, CellDelta, outcome
from bot.core.explanation import (
    EARLY_CAUSES,
    UNATTRIBUTED,
    ComponentDelta,
    DispatchDelta,
    Example,
    Explanation,
    LookedUp,
    RootCause,
    Suspect,
)
from bot.core.metrics import ARTIFACT_PARTS, METRICS, Metric, metric_words
from bot.core.policy import Finding
from bot.core.program import Family
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import (
    ABSENT,
    Limits,
    Line,
    Listing,
    Phrase,
    Span,
    code,
    joined,
    listing,
    name_cell,
    phrase,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.filters import UNKNOWN, amount, plural, sides, signed

_LONGEST, _KEPT, _DIGITS = 160, 80, 16
EntryPoint = tuple[str, str]  # Names of executable and entry point


@lru_cache(maxsize=1 << 14)  # a model's name stands in the address of each of its dispatches
def segment(name: str) -> str:
    """The name as a part of an address; the end of a very long one is a digest."""
    text = quote(name, safe="", errors="surrogatepass")
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:_KEPT]}={digest[:_DIGITS]}"


def cell_address(key: CellKey) -> str:
    """Of a cell."""
    return f"{segment(key.model)}/{segment(key.target)}"


def dispatch_address(key: CellKey, executable: str) -> str:
    """Of the first entry point of an executable: nearly all have one alone."""
    return f"{cell_address(key)}/{segment(executable)}"


def component_address(key: CellKey, name: str) -> str:
    """Of a component of the model in a cell."""
    return f"{cell_address(key)}/component={segment(name)}"


def cause_address(number: int) -> str:
    """Of a root cause, by the number that the report gives it (from 1)."""
    return f"cause-{number}"


def entry_points(base: Cell | None, head: Cell | None) -> dict[EntryPoint, None]:
    """Those of both sides: head's in order, then what only base has."""
    found = ((one.executable, one.name) for cell in (head, base) if cell for one in cell.dispatches)
    return dict.fromkeys(found)


def dispatch_addresses(key: CellKey, points: Iterable[EntryPoint]) -> dict[EntryPoint, str]:
    """Entry point → its address: that of the executable, and after it the name of a second one in it."""
    seen: Counter[str] = Counter()
    made: dict[EntryPoint, str] = {}
    for executable, name in points:
        short = dispatch_address(key, executable)
        made[executable, name] = f"{short}/{segment(name)}" if seen[executable] else short
        seen[executable] += 1
    return made


STACK_LIMIT_BYTES = 32_768  # The compiler's default for `--iree-llvmcpu-stack-allocation-limit`

MARKS = {"fail": "❌", "warn": "⚠️", "accepted": "☑️", "known": "◽"}  # Marks of findings

STATE_WORDS = {
    "same": "the same",
    "changed": "changed",
    "new": "new",
    "removed": "removed",
    "newly-broken": "newly broken",
    "fixed": "compiles now",
    "broken": "broken on both sides",
    "unmeasured": "not measured",
}

_ENOUGH = 0.9

NAME_LIMIT = 64  # Longer names of models and targets lose their middle


class Naming(Protocol):
    """What cells are named by, with the attributes of Facts."""

    @property
    def short(self) -> Mapping[str, str]:
        """Target → the name for narrow columns."""

    @property
    def measured_targets(self) -> frozenset[str]:
        """Those of which `every target` is said."""

    @property
    def models(self) -> frozenset[str]:
        """Those of which `every model` is said."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A report, indexed."""

    report: Report
    states: Mapping[str, Sequence[CellDelta]]  # every state → its cells, in order of their keys
    findings: Mapping[CellKey, Sequence[Finding]]  # cell → its findings, worst first
    deltas: Mapping[CellKey, CellDelta]
    short: Mapping[str, str]  # target → the name for narrow columns; unique
    # measured_targets, models: those that have a cell which is more than unmeasured
    measured_targets: frozenset[str]
    models: frozenset[str]
    backends: Mapping[str, str]  # target → its backend
    # cell → bytes and number (from 1) of the root causes that have a part in it, the largest first
    causes: Mapping[CellKey, Sequence[tuple[int, int]]]
    state_words: Mapping[str, str]  # state → its words, which are true of a first report, too

    def label(self, metric: Metric, key: CellKey) -> str:
        """What a metric is called in a cell."""
        return metric_words(metric, self.backends.get(key.target, ""))

    def mark(self, key: CellKey) -> str:
        """`fail`, `accepted`, `warn` or nothing: the worst finding of a cell, where accepted ones do not fail."""
        worst = self.worst(key)
        return mark_of(worst) if worst else ""

    def worst(self, key: CellKey) -> Finding | None:
        """The worst finding of a cell; those that base had are none of this change."""
        news = worst_first(one for one in self.findings.get(key, ()) if not one.known)
        return whole_of(news[0], news) if news else None

    def level(self, key: CellKey) -> str:
        """`fail`, `warn` or nothing: what the cell does to the verdict."""
        mark = self.mark(key)
        return "warn" if mark == "accepted" else mark

    def names(self, key: CellKey) -> tuple[Phrase, Phrase]:
        """Model and target of a cell in two columns of a table."""
        return name_cell(clip(key.model, NAME_LIMIT)), name_cell(self.short.get(key.target, key.target))

    def named(self, key: CellKey, to: str = "") -> Phrase:
        """A cell in running text, ``model` on `target``; `to`: where the model leads."""
        return phrase(code(clip(key.model, NAME_LIMIT), to), " on ", code(self.short[key.target]))

    @property
    def planned(self) -> int:
        """How many cells there are but for those that are left out on purpose."""
        return sum(not delta.excused for delta in self.report.deltas)

    def count(self, *states: str) -> int:
        """How many cells are in these states."""
        return sum(len(self.states[state]) for state in states)


def build_facts(report: Report) -> Facts:
    """Index a report."""
    states: dict[str, list[CellDelta]] = {state: [] for state in STATES}
    findings: defaultdict[CellKey, list[Finding]] = defaultdict(list)
    for delta in report.deltas:
        states[delta.state].append(delta)
    for finding in report.verdict.findings:
        findings[finding.key].append(finding)
    targets = {delta.key.target for delta in report.deltas}
    backends = {**report.base.targets, **report.head.targets}
    cells = [delta.key for delta in report.deltas if delta.state != "unmeasured"]
    measured, models = frozenset(key.target for key in cells), frozenset(key.model for key in cells)
    deltas = {delta.key: delta for delta in report.deltas}
    causes: defaultdict[CellKey, list[tuple[int, int]]] = defaultdict(list)
    for number, root in enumerate(report.root_causes, 1):
        for key, size in root.by_cell.items():
            if size:
                causes[key].append((size, number))
    for sizes in causes.values():
        sizes.sort(key=lambda one: (-one[0], one[1]))
    short = short_names(targets, backends)
    words = STATE_WORDS | ({"newly-broken": "broken"} if report.adoption else {})
    return Facts(report, states, dict(findings), deltas, short, measured, models, backends, causes, words)


def leading(facts: Facts) -> int:
    """How many root causes, of the largest, hold nine tenths of all bytes that moved; all where nothing moved."""
    found = facts.report.root_causes
    sums = accumulate(root.share or 0 for root in found)
    return next((count for count, share in enumerate(sums, 1) if share >= _ENOUGH), len(found))


def shown_roots(facts: Facts, limits: Limits) -> int:
    """How many root causes have a line: those that hold nine tenths of the bytes, or as many as there is room for."""
    return min(limits.causes, len(facts.report.root_causes) if limits.every else leading(facts))


def builds(facts: Facts, count: int) -> str:
    """`2 of 32 builds`: cells among all that were planned."""
    return f"{count:,} of {plural(facts.planned, 'build')}"


def whole_of(finding: Finding, findings: Iterable[Finding]) -> Finding:
    """Of a part of an artifact the finding about all of it, where that is as bad; any other finding itself."""
    if finding.metric not in ARTIFACT_PARTS:
        return finding
    wholes = (one for one in findings if (one.key, one.metric) == (finding.key, "artifact_bytes"))
    return next((one for one in wholes if mark_of(one) == mark_of(finding)), finding)


def mark_of(finding: Finding) -> str:
    """`fail` or `warn`; `accepted` for a failing finding that was, `known` for one that base had."""
    if finding.known:
        return "known"
    return finding.level if finding.accepted is None else "accepted"


def worst_first(news: Iterable[Finding]) -> list[Finding]:
    """Failing findings, accepted ones, warnings; the order within each is kept."""
    return sorted(news, key=lambda finding: ("fail", "accepted", "warn").index(mark_of(finding)))


def short_names(targets: Iterable[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Target → its short name, as it is shown."""
    return {target: clip(short, NAME_LIMIT) for target, short in selecting.short_names(targets, backends).items()}


def broken_alike(delta: CellDelta) -> bool:
    """True where neither side compiles, and both end in the same way: not refused on one and crashed on the other."""
    return delta.state == "broken" and outcome(delta.base) == outcome(delta.head)


def is_over(cell: Cell | None) -> bool:
    """True where the compiler's stack gate refuses the cell."""
    return cell is not None and cell.status == "over-stack-limit"


def by_model(keys: Iterable[CellKey]) -> dict[str, list[str]]:
    """Model → targets, in order."""
    models: dict[str, list[str]] = {}
    for key in keys:
        models.setdefault(key.model, []).append(key.target)
    return models


def cells_phrase(facts: Naming, keys: Sequence[CellKey], limit: int) -> Phrase:
    """Cells in words, with about `limit` names: `` `bert`, `vit` on `cuda`, `rocm`; `gpt2` on `cuda`; 7 more cells ``.

    Models with the same targets are taken together.
    """
    shapes: dict[tuple[str, ...], list[str]] = {}
    for model, targets in by_model(keys).items():
        shapes.setdefault(tuple(targets), []).append(model)
    parts, told, room = [], 0, limit
    for where, models in shapes.items():
        everywhere = len(models) > 1 and set(models) == facts.models
        shown = models if everywhere else models[: max(1, room)]
        # a model's name leads to the cell where there is one alone
        to = [cell_address(CellKey(model, where[0])) if len(where) == 1 else "" for model in shown]
        named = [(code(clip(model, NAME_LIMIT), at),) for model, at in zip(shown, to, strict=True)]
        who = phrase("every model") if everywhere else joined(named, ", ")
        parts.append(phrase(who, " on ", targets_phrase(facts, where[: max(1, limit)])))
        told, room = told + len(shown) * min(len(where), max(1, limit)), room - len(shown) - len(where) + 1
        if room <= 0:
            break
    rest = len(keys) - told
    return joined([*parts, *([phrase(plural(rest, "more build"))] if rest else [])], "; ")


def targets_phrase(facts: Naming, targets: Sequence[str]) -> Phrase:
    """Targets in words."""
    if len(targets) > 1 and set(targets) == facts.measured_targets:
        return phrase("every target")
    return joined([(code(facts.short[target]),) for target in targets], ", ")


# Why.


_NAME, _NOTE, _WHY, _DIFF_LINE = 120, 400, 240, 200
_WHAT, _TITLE = 200, 100
_PARTS, _OPERATIONS = 6, 1
NUMBERS = (
    ("sites", "dispatch sites", "count"),
    ("code_bytes", "code", "bytes"),
    *((metric.of_entry, metric.label, metric.unit) for metric in METRICS if metric.of_entry),
)
"""The numbers of an entry point: field, label and unit."""
_CAUSES = {"container": "rest of the executables", "host": "host program", "packaging": "tables of the artifact"}
"""What is no code of a dispatch, by what it is."""
_FIRST_COMPILES = (
    "the compiler does not repeat itself here, with the same sizes and counts each time: "
    "cause and parts are those of one compile of each side"
)


class Number(NamedTuple):
    """A number on both sides: in words, whether a side knows it, and whether it differs."""

    text: str
    known: bool
    differs: bool


class DispatchLine(NamedTuple):
    """One dispatch that is not the same on both sides."""

    name: str
    cause: str
    component: str
    note: str
    passed: str  # what the compiler's pass did to it, where that was traced and the note does not say it
    matched: str
    numbers: Mapping[str, Number]  # with all labels of NUMBERS


def cause_words(cause: str | None) -> str:
    """A cause in words; `cause not known` for None."""
    if cause is None:
        return "cause not known"
    return _CAUSES.get(cause) or clip(clean(cause), 24).replace("dedup-", "dedup ")


def why_words(explanation: Explanation) -> Phrase:
    """``**strategy** in `encoder`: other tile sizes; the sides first differ in configuration``.

    And of which compiles all this is, where the compiler does not repeat itself.
    """
    component = explanation.component
    place = code(clean(component, NAME_LIMIT)) if component and component != UNATTRIBUTED else None
    why = clip(clean(explanation.why).rstrip(".: "), _WHY)
    cause, told = strong(cause_words(explanation.cause)), f": {why}" if why else ""
    where = phrase(" in " if explanation.cause else "; most moved in ", place) if place else ()
    reason = phrase(cause, where, told) if explanation.cause else phrase(cause, told, where)
    first = clip(clean(explanation.phase), 40) if explanation.phase else ""
    differ = f"; the sides first differ in {first}" if first else ""
    return phrase(reason, differ, f"; {_FIRST_COMPILES}" if explanation.first_compiles else "")


def rest(explanation: Explanation) -> str:
    """The dispatches that there is nothing to tell of, in a sentence; empty where there are none."""
    same, moved = explanation.unchanged, explanation.rebased
    parts = [f"{plural(same, 'other dispatch')} did not change"] if same else []
    if moved:
        what = "the same numbers, and what the program binds there differs"
        parts.append(f"{plural(moved, 'other dispatch')} {'has' if moved == 1 else 'have'} {what}")
    return f"{'; '.join(parts)}." if parts else ""


def waterfall(explanation: Explanation) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Cause, change of the artifact by it, and its parts that are no dispatch's code; the largest first, then all."""
    for cause, size in sorted(explanation.waterfall.items(), key=lambda one: -abs(one[1])):
        parts = [(clean(one.what), signed(one.change_bytes)) for one in explanation.parts if one.cause == cause]
        yield cause_words(cause), signed(size), parts
    if explanation.waterfall:
        yield "all", signed(sum(explanation.waterfall.values())), []


def by_cause(explanation: Explanation) -> str:
    """The same in words: `strategy +57,000 B, VM bytecode +12 B`; empty where there are fewer than two causes.

    Bytes that no dispatch's code explains are named by the part of the artifact that they are in.
    """
    sizes: dict[str, int] = {}
    for cause, size in explanation.waterfall.items():
        parts = {clean(part.what): part.change_bytes for part in explanation.parts if part.cause == cause}
        sizes |= parts if sum(parts.values()) == size else {cause_words(cause): size}
    ordered = sorted(sizes.items(), key=lambda one: -abs(one[1]))
    more = f" and {len(ordered) - _PARTS} more" if len(ordered) > _PARTS else ""
    return ", ".join(f"{name} {signed(size)}" for name, size in ordered[:_PARTS]) + more if len(ordered) > 1 else ""


def dispatch_line(delta: DispatchDelta) -> DispatchLine:
    """What there is to say of one dispatch; a side without it has `–`: `– → 9,999 B`."""
    numbers = {}
    for field, label, unit in NUMBERS:
        left, right = getattr(delta.base, field, None), getattr(delta.head, field, None)
        if delta.base is None:
            text = f"{ABSENT} → {amount(right, unit)}"
        else:
            text = f"{amount(left, unit)} → {ABSENT}" if delta.head is None else sides(left, right, unit)
        numbers[label] = Number(text, left is not None or right is not None, left != right)
    names = (clean(delta.name, _NAME), cause_words(delta.cause), clean(delta.component, _NAME))
    matched = clean(delta.matched, 60).replace("-", " ")
    return DispatchLine(*names, clean(delta.note, _NOTE), passed_words(delta), matched, numbers)


def passed_words(delta: DispatchDelta) -> str:
    """`after iree-llvmcpu-peel: 57 operations more (scf.for +9 and 12 more)`."""
    if delta.passed is None or delta.passed.name in delta.note:
        return ""
    printed_for = f" (printed for {delta.passed.printed_for})" if delta.passed.printed_for else ""
    return clean(f"after {delta.passed.name}{printed_for}: {delta.passed.words(_OPERATIONS)}", _NOTE)


def diffs(dispatches: Sequence[DispatchDelta], most: int, most_lines: int) -> Iterator[tuple[str, str, int]]:
    """The smallest differing pieces of dispatches, each text once: name, first lines, and how many more there are."""
    first: dict[tuple[str, ...], str] = {}
    for delta in dispatches if most_lines else ():
        first.setdefault(delta.diff, delta.name)
    for diff, name in [(diff, name) for diff, name in first.items() if diff][:most]:
        lines = [clip(line.replace("\n", " "), _DIFF_LINE) for line in diff[:most_lines]]
        yield clean(name, NAME_LIMIT), "\n".join(lines), max(0, len(diff) - most_lines)


def component_row(delta: ComponentDelta) -> tuple[str, str, str, str]:
    """Its name, and both sides of its dispatch sites, code and stack frame."""
    amounts = (("dispatch_sites", "count"), ("code_bytes", "bytes"), ("stack_bytes", "bytes"))
    sites, size, stack = (sides(delta.base.get(what), delta.head.get(what), unit) for what, unit in amounts)
    return clean(delta.name, _NAME), sites, size, stack


def family_lines(families: Sequence[Family], most: int | None = None, *, roomy: bool = False) -> Listing[Phrase]:
    """What deduplication left behind, a line each; `roomy`: with all that keeps the executables apart.

    ``constants keep 6 executables apart (`a`, `b`, …): `arith.constant i32: 3, 5` ``; or that they are identical.
    """
    members, varying, characters = (12, 12, 400) if roomy else (2, 3, 120)
    lines = []
    for one in families[:most]:
        count, kind = plural(len(one.members), "executable"), clean(one.kind, 24).replace("-", " ")
        apart = f"{kind} {'keep' if kind.endswith('s') else 'keeps'} {count} apart"
        names = joined([(code(clean(name, 48)),) for name in one.members[:members]], ", ")
        texts = () if one.identical else one.varying[:varying]
        what = joined([(code(clean(line, characters)),) for line in texts], "; ")
        about = f"{count} have identical functions" if one.identical else apart
        more = ", …" if len(one.members) > members else ""
        lines.append(phrase(about, " (", names, more, ")", ": " if what else "", what))
    return listing(lines, len(families), "family")


# Root causes.


def root_lines(facts: Facts, limits: Limits) -> Listing[Line]:
    """The root causes with most bytes: those that hold nine tenths of them, or as many as there is room for.

    With `every` all that there is room for. The detail is each target's part where there are several, and the largest
    delta.
    """
    roots = facts.report.root_causes
    lines = []
    for number, root in enumerate(roots[: shown_roots(facts, limits)], 1):
        detail = root_details(facts, root) if limits.details else ()
        said, address = _root_said(facts, root, number, limits), cause_address(number)
        lines.append(Line(said, detail, suspect_words(root.looked_up, root.suspects), address))
    return listing(lines, len(roots), "root cause")


def _root_said(facts: Facts, root: RootCause, number: int, limits: Limits) -> Phrase:
    """What, cause, net change, its share of all that moved, and where; a page counts dispatches of several models."""
    what = clean(root.what, _WHAT)
    cause = "" if root.example.dispatch == "" and root.cause != "input" else f" ({cause_words(root.cause)})"
    if root.cause is None:
        what, cause = f"cause not known: {what}", ""
    models = _named((clip(model, NAME_LIMIT) for model in root.models), len(root.models), "model")
    targets = _named((facts.short[target] for target in root.targets), len(root.targets), "target")
    is_counted = root.dispatches and (limits.every or len(root.models) == 1)
    counted = f"{plural(root.dispatches, 'dispatch')} in " if is_counted else ""
    share = "" if root.share is None else f" ({root.share * 100:.0f} %)"
    size = f"{signed(root.total.net_bytes)}{share}"
    lead = Span(what, "strong", cause_address(number))
    traced = f", {root.traced[0]:,} of {plural(root.dispatches, 'dispatch')} traced" if _is_shared(root) else ""
    return phrase(lead, f"{cause} · {size} · {counted}", models, " on ", targets, traced)


def _is_shared(root: RootCause) -> bool:
    """Whether some of its dispatches have a pass that was printed for another target only."""
    return root.cause in EARLY_CAUSES and root.passed is not None and root.traced[0] < root.dispatches


def _named(names: Iterable[str], count: int, noun: str) -> Phrase:
    return phrase(plural(count, noun)) if count > 1 else joined([(code(name),) for name in names], ", ")


def root_details(facts: Facts, root: RootCause) -> Phrase:
    """How much moved, each target's part, and the largest delta."""
    parts = []
    if abs(root.total.net_bytes) != root.total.absolute_bytes:
        parts.append(phrase(f"{amount(root.total.absolute_bytes)} moved, growth and shrinking alike"))
    if len(root.by_target) > 1:
        parts.append(joined(_by_target(facts, root), ", "))
    if root.total.deltas > 1 or root.example.dispatch:
        parts.append(phrase("largest: ", _example(facts, root.example)))
    if _is_shared(root):
        alike = plural(root.dispatches - root.traced[0], "dispatch")
        parts.append(phrase(f"{alike} by the passes of another target on which the IR of both sides is the same"))
    return joined(parts, "; ")


def suspect_words(known: LookedUp | None, suspects: Sequence[Suspect]) -> Phrase:
    """Which commits may have done it, never which did; titles are a stranger's text."""
    if known is None:
        return ()
    files, own = _files(known.files), _files(known.this_pull_request)
    parts = [phrase("this pull request changes ", own)] if own else []
    if suspects:
        named = [(code(one.commit[:10], one.url),) for one in suspects]
        of = f", one of {known.commits} commits to " if known.commits != 1 else ", the only commit to "
        parts.append(phrase("suspect: ", named[0], " ", code(clip(clean(suspects[0].title), _TITLE)), of, files))
        parts += [phrase("then ", joined(named[1:], ", "))] if named[1:] else []
    elif known.commits is not None:
        touched = f"{plural(known.commits, 'commit')} touched " if known.commits else "no commit touched "
        unsaid = ", and none speaks of it" if known.commits and not known.note else ""
        parts.append(phrase(touched, files, f" between the two{unsaid}"))
    return joined([*parts, *([phrase(clean(known.note))] if known.note else [])], "; ")


def _files(paths: Sequence[str]) -> Phrase:
    """The name of the first, and how many more there are."""
    more = f" and {plural(len(paths) - 1, 'file')} more" if paths[1:] else ""
    return phrase(code(clip(paths[0].rpartition("/")[2], NAME_LIMIT)), more) if paths else ()


def _by_target(facts: Facts, root: RootCause) -> Iterator[Phrase]:
    """Each target's part, largest first; one for those with the same: ``+1,675 B each on `cuda`, `rocm` ``."""
    alike: dict[tuple[int, int], list[str]] = {}
    for name, sum_ in sorted(root.by_target.items(), key=lambda one: -one[1].absolute_bytes):
        alike.setdefault((sum_.net_bytes, sum_.deltas), []).append(name)
    for (net_bytes, deltas), names in alike.items():
        each = " each" if len(names) > 1 else ""
        counted = f" in {deltas:,}" if root.dispatches else ""
        where = joined([(code(facts.short[name]),) for name in names], ", ")
        yield phrase(f"{signed(net_bytes)}{each}{counted} on ", where)


def _example(facts: Facts, one: Example) -> Phrase:
    place = phrase(" in ", code(clip(one.component, NAME_LIMIT))) if one.component not in ("", UNATTRIBUTED) else ()
    model = code(clip(one.key.model, NAME_LIMIT), cell_address(one.key))
    cell = phrase(" of ", model, " on ", code(facts.short[one.key.target]))
    if not one.dispatch:
        return phrase(signed(one.change_bytes), cell)
    size = sides(one.base_bytes, one.head_bytes)
    shown = signed(one.change_bytes) if UNKNOWN in size or one.base_bytes == one.head_bytes else size
    explanation = facts.report.explanations.get(one.key)
    once = " (one compile of each side)" if explanation and explanation.first_compiles else ""
    address = example_address(facts, one)
    return phrase(code(clip(one.dispatch, NAME_LIMIT), address), place, cell, f" {shown}{once}")


def example_address(facts: Facts, one: Example) -> str:
    """That of its dispatch; empty where it is none, or none of those that are known to have changed."""
    explanation = facts.report.explanations.get(one.key)
    deltas = explanation.dispatches if explanation else ()
    named = (delta.head or delta.base for delta in deltas if delta.name == one.dispatch)
    return next((dispatch_address(one.key, known.executable) for known in named if known), "")
