"""Index a report for the views: builds by state, findings by build, and names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.core import planned
from bot.core.cell_story import CellStory, ReportIndex, report_index
from bot.core.delta import STATES, CellDelta, outcome
from bot.core.explanation import RootCause
from bot.core.findings import Finding
from bot.core.metrics import ARTIFACT_PARTS, Metric, metric_words
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.addresses import cell_address
from bot.show.blocks import (
    Phrase,
    Span,
    code,
    joined,
    name_cell,
    phrase,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.filters import plural

STACK_LIMIT_BYTES = 32_768
"""The compiler's default for `--iree-llvmcpu-stack-allocation-limit`."""
MARKS = {"fail": "❌", "warn": "⚠️", "accepted": "☑️", "known": "◽"}
"""The marks of findings."""
STATE_WORDS = {
    "same": "the same",
    "changed": "changed",
    "new": "new",
    "removed": "removed",
    "newly-broken": "newly failing",
    "fixed": "fixed",
    "broken": "already failing",
    "unmeasured": "not measured",
}
NAME_LIMIT = 64  # Longer names of models and targets lose their middle
VALUE_LIMIT = 300  # Characters of a note, or of another value that is not ours


class Naming(Protocol):
    """The names of builds, with the attributes of Facts."""

    @property
    def short(self) -> Mapping[str, str]:
        """Return target → the name for narrow columns."""

    @property
    def measured_targets(self) -> frozenset[str]:
        """Return the targets that `every target` stands for."""

    @property
    def models(self) -> frozenset[str]:
        """Return the models that `every model` stands for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A report, indexed."""

    report: Report
    index: ReportIndex  # what `cell_story` reads
    # every state → its builds, in order of their keys
    states: Mapping[str, Sequence[CellDelta]]
    short: Mapping[str, str]  # target → the name for narrow columns; unique
    measured_targets: frozenset[str]  # those with a build that is not unmeasured
    models: frozenset[str]  # likewise
    # the root causes that are explained, in the order of their numbers (from 1): those
    # that hold most of a failing build come first
    roots: Sequence[RootCause]
    # the other root causes, such as code whose passes were not traced
    unexplained: Sequence[RootCause]
    # build → bytes and number of the root causes that have a part in it, the largest
    # first; 0 is the number of all that is not explained
    causes: Mapping[CellKey, Sequence[tuple[int, int]]]
    # state → its words, which are true of a first report, too
    state_words: Mapping[str, str]

    @property
    def findings(self) -> Mapping[CellKey, Sequence[Finding]]:
        """Return build → its findings, worst first."""
        return self.index.findings

    @property
    def deltas(self) -> Mapping[CellKey, CellDelta]:
        """Return build → its comparison."""
        return self.index.deltas

    @property
    def backends(self) -> Mapping[str, str]:
        """Return target → its backend."""
        return self.index.backends

    def label(self, metric: Metric, key: CellKey) -> str:
        """Return the name of a metric in a build."""
        return metric_words(metric, self.backends.get(key.target, ""))

    def mark(self, key: CellKey) -> str:
        """Return `fail`, `accepted`, `warn` or nothing: the mark of the worst finding.

        An accepted finding does not fail the check.
        """
        worst = self.worst(key)
        if worst:
            return mark_of(worst)
        return ""

    def worst(self, key: CellKey) -> Finding | None:
        """Return the worst finding of a build, without those that base had."""
        findings = self.findings.get(key, ())
        news = worst_first(finding for finding in findings if not finding.known)
        if news:
            return whole_of(news[0], news)
        return None

    def level(self, key: CellKey) -> str:
        """Return `fail`, `warn` or nothing: what the build does to the verdict."""
        mark = self.mark(key)
        if mark == "accepted":
            return "warn"
        return mark

    def names(self, key: CellKey) -> tuple[Phrase, Phrase]:
        """Return model and target of a build for two columns of a table."""
        target = self.short.get(key.target, key.target)
        return name_cell(clip(key.model, NAME_LIMIT)), name_cell(target)

    def named(self, key: CellKey, to: str = "") -> Phrase:
        """Return a build in running text, ``model` on `target``.

        `to`: the address that the model is a link to.
        """
        return phrase(
            code(clip(key.model, NAME_LIMIT), to), " on ", code(self.short[key.target])
        )

    @property
    def planned(self) -> int:
        """Return the number of builds, without those that are left out on purpose."""
        return sum(not delta.excused for delta in self.report.deltas)

    def count(self, *states: str) -> int:
        """Return how many builds are in these states."""
        return sum(len(self.states[state]) for state in states)


def build_facts(report: Report) -> Facts:
    """Return the index of a report."""
    states: dict[str, list[CellDelta]] = {state: [] for state in STATES}
    for delta in report.deltas:
        states[delta.state].append(delta)
    index = report_index(report)
    targets = {delta.key.target for delta in report.deltas}
    measured = [delta.key for delta in report.deltas if delta.state != "unmeasured"]
    roots = _numbered_roots(report)
    unexplained = [root for root in report.root_causes if not is_explained(root)]
    return Facts(
        report=report,
        index=index,
        states=states,
        short=short_names(targets, index.backends),
        measured_targets=frozenset(key.target for key in measured),
        models=frozenset(key.model for key in measured),
        roots=roots,
        unexplained=unexplained,
        causes=_causes_of_cells(roots, unexplained),
        state_words=state_words(is_first=index.is_first),
    )


def state_text(story: CellStory) -> str:
    """Return the state of a build in words, and whether it is non-deterministic."""
    words = state_words(is_first=story.is_first)
    text = words.get(story.state) or clean(story.state)
    if story.noise:
        return f"{text}; non-deterministic"
    return text


def state_words(*, is_first: bool) -> Mapping[str, str]:
    """Return state → its words; nothing is newly failing in a first report."""
    words = dict(STATE_WORDS)
    if is_first:
        words["newly-broken"] = "failing"
    return words


def is_explained(root: RootCause) -> bool:
    """Return whether a root cause names what changed.

    A cause that has only other code is not explained.
    """
    if root.cause is None:
        return False
    return root.cause != "codegen" or root.passed is not None or bool(root.parts)


def _numbered_roots(report: Report) -> list[RootCause]:
    """Return the explained root causes.

    First come those that hold most of a failing build, then the largest.
    """
    explained = [root for root in report.root_causes if is_explained(root)]
    failing = set[CellKey]()
    for finding in report.verdict.news:
        if mark_of(finding) == "fail":
            failing.add(finding.key)
    failing_bytes = dict.fromkeys(range(len(explained)), 0)
    for key in failing:
        sizes = [root.by_cell.get(key, 0) for root in explained]
        if any(sizes):
            failing_bytes[sizes.index(max(sizes))] += max(sizes)
    order = sorted(failing_bytes, key=lambda place: (-failing_bytes[place], place))
    return [explained[place] for place in order]


def _causes_of_cells(
    roots: Sequence[RootCause], unexplained: Sequence[RootCause]
) -> dict[CellKey, list[tuple[int, int]]]:
    """Return build → bytes and number of the causes in it, the largest first.

    The number 0 stands for all unexplained causes.
    """
    causes: defaultdict[CellKey, list[tuple[int, int]]] = defaultdict(list)
    for number, root in enumerate(roots, 1):
        for key, size in root.by_cell.items():
            if size:
                causes[key].append((size, number))
    unexplained_bytes: Counter[CellKey] = Counter()
    for root in unexplained:
        unexplained_bytes.update(root.by_cell)
    for key, size in unexplained_bytes.items():
        if size:
            causes[key].append((size, 0))
    for sizes in causes.values():
        sizes.sort(
            key=lambda size_and_number: (-size_and_number[0], size_and_number[1])
        )
    return dict(causes)


def builds(facts: Facts, count: int) -> str:
    """Return `2 of 32 builds`: builds among all that were planned."""
    return f"{count:,} of {plural(facts.planned, 'build')}"


def whole_of(finding: Finding, findings: Iterable[Finding]) -> Finding:
    """Return the finding about the whole artifact that covers one about a part.

    It has to be as bad. Otherwise return the finding itself.
    """
    if finding.metric not in ARTIFACT_PARTS:
        return finding
    for whole in findings:
        is_whole = whole.key == finding.key and whole.metric == "artifact_bytes"
        if is_whole and mark_of(whole) == mark_of(finding):
            return whole
    return finding


def mark_of(finding: Finding) -> str:
    """Return `fail` or `warn`.

    Return `accepted` for a failing finding that was accepted, and `known` for one that
    base had, too.
    """
    if finding.known:
        return "known"
    if finding.accepted is not None:
        return "accepted"
    return finding.level


def worst_first(news: Iterable[Finding]) -> list[Finding]:
    """Return failing findings, accepted ones, warnings, each in their order."""
    return sorted(
        news, key=lambda finding: ("fail", "accepted", "warn").index(mark_of(finding))
    )


def short_names(targets: Iterable[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Return target → its short name, as it is shown."""
    names = {}
    for target, short in planned.short_names(targets, backends).items():
        names[target] = clip(short, NAME_LIMIT)
    return names


def broken_alike(delta: CellDelta) -> bool:
    """Return whether neither side compiles, and both fail in the same way.

    A build does not count if one side's stack gate refuses it, and the other side's
    compiler crashes.
    """
    return delta.state == "broken" and outcome(delta.base) == outcome(delta.head)


def is_over(cell: Cell | None) -> bool:
    """Return whether the compiler's stack gate refuses the build."""
    return cell is not None and cell.status == "over-stack-limit"


def by_model(keys: Iterable[CellKey]) -> dict[str, list[str]]:
    """Return model → targets, in order."""
    models: dict[str, list[str]] = {}
    for key in keys:
        models.setdefault(key.model, []).append(key.target)
    return models


def cells_phrase(facts: Naming, keys: Sequence[CellKey], limit: int) -> Phrase:
    """Return builds in words, with about `limit` names.

    `` `bert`, `vit` on `cuda`, `rocm`; `gpt2` on `cuda`; 7 more builds ``. Models with
    the same targets are taken together.
    """
    shapes: dict[tuple[str, ...], list[str]] = {}
    for model, targets in by_model(keys).items():
        shapes.setdefault(tuple(targets), []).append(model)
    parts = []
    named_builds = 0
    room = limit
    most_targets = max(1, limit)
    for shared_targets, models in shapes.items():
        if len(models) > 1 and set(models) == facts.models:
            named_models = models
            subject = phrase("every model")
        else:
            named_models = models[: max(1, room)]
            links = [(_model_link(model, shared_targets),) for model in named_models]
            subject = joined(links, ", ")
        where = targets_phrase(facts, shared_targets[:most_targets])
        parts.append(phrase(subject, " on ", where))
        named_builds += len(named_models) * min(len(shared_targets), most_targets)
        room -= len(named_models) + len(shared_targets) - 1
        if room <= 0:
            break
    unnamed = len(keys) - named_builds
    if unnamed:
        parts.append(phrase(plural(unnamed, "more build")))
    return joined(parts, "; ")


def _model_link(model: str, targets: Sequence[str]) -> Span:
    """Return a model's name, which leads to its build if it has only one target."""
    address = ""
    if len(targets) == 1:
        address = cell_address(CellKey(model, targets[0]))
    return code(clip(model, NAME_LIMIT), address)


def targets_phrase(facts: Naming, targets: Sequence[str]) -> Phrase:
    """Return targets in words."""
    if len(targets) > 1 and set(targets) == facts.measured_targets:
        return phrase("every target")
    return joined([(code(facts.short[target]),) for target in targets], ", ")


def counted(title: str, count: int, facts: Facts) -> Phrase:
    """Return `**Fails the check** (4 of 32 builds)`."""
    if title == STATE_WORDS["newly-broken"].capitalize():
        title = facts.state_words["newly-broken"].capitalize()
    return phrase(strong(title), f" ({builds(facts, count)})")


def is_lost(delta: CellDelta, finding: Finding) -> bool:
    """Return whether a finding is a warning about a build that was not measured.

    The first sentence of the report counts these.
    """
    return (
        delta.state == "unmeasured"
        and finding.metric is None
        and finding.level == "warn"
    )


def notes(report: Report) -> list[Phrase]:
    """Return the notes of the report, then those of base and of head."""
    texts = [*report.notes]
    for name, side in (("base", report.base), ("head", report.head)):
        texts += [f"{name}: {note}" for note in side.notes]
    return [phrase(clip(text, VALUE_LIMIT)) for text in texts]
