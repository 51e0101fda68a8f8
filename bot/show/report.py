"""A comparison as blocks: one screen that says what is allowed, what changed, how much, why and what now; then folds.

The comment, the job summary, the check, the page and the terminal are these blocks, each with its
own room.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from rich.console import Console

from bot.core.delta import CellDelta, exact_changes, value_of
from bot.core.explanation import UNATTRIBUTED
from bot.core.metrics import ARTIFACT_PARTS, METRIC_BY_ID, METRICS, code_words, own_metrics
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.policy import OPEN, RAN_OUT, Finding, is_local
from bot.core.publication import APPROVAL_LABEL
from bot.core.record import Value, certain, difference, total
from bot.core.report import Adoption, Report
from bot.core.snapshot import (
    Cell,
    CellKey,
    CompilerInfo,
    ModelEdit,
    Snapshot,
    titled,
)
from bot.core.spec import RESOLVED, release_in
from bot.show.blocks import (
    ABSENT,
    Block,
    Code,
    Fold,
    Limits,
    Line,
    List,
    Listing,
    Phrase,
    Row,
    Sentence,
    Span,
    Table,
    Words,
    by,
    code,
    fair,
    fair_in_order,
    first,
    joined,
    kind_of,
    listed,
    listing,
    name_cell,
    phrase,
    plain,
    section,
    some,
    strong,
)
from bot.show.escape import clean, clean_block, clip, is_link
from bot.show.facts import (
    MARKS,
    NAME_LIMIT,
    STATE_WORDS,
    Facts,
    broken_alike,
    build_facts,
    builds,
    by_cause,
    cause_address,
    cause_words,
    cell_address,
    cells_phrase,
    component_row,
    diffs,
    dispatch_line,
    family_lines,
    is_over,
    leading,
    mark_of,
    passed_words,
    rest,
    root_details,
    root_lines,
    shown_roots,
    whole_of,
    why_words,
    worst_first,
)
from bot.show.filters import amount, change, grid_relative, plural, relative, sides, signed
from bot.show.renderers import print_blocks

_UNTRUSTED = "Measured by the pull request's own workflow run; this report cannot check its numbers."
_BROKE_CHARS, _LOUD, _LEADING = 1_000, 2, 4
_NAME, _COMPONENT, _NOTE = 42, 36, 160
Blocks = tuple[Block, ...]


def report_blocks(facts: Facts, limits: Limits, where: str = "") -> Blocks:
    """Everything, in the order in which it is read; `where` a reader finds what this size leaves out."""
    grid = build_grid(facts, limits)
    size = f"{plural(grid.models.total, 'model')} × {plural(len(facts.measured_targets), 'target')}"
    every = Fold(phrase(f"Every build: {size}"), (*_grid(grid), *_unmeasured(facts, limits)), name="grid")
    folds = [every, _changed(facts, limits), findings(facts, limits), compared(facts, limits)]
    screen = first_screen(facts, limits)
    if brought := facts.report.adoption:
        screen, folds = _first_report(facts, brought, limits), [_measured_first(facts, limits), *folds[1:]]
    counts = Counter[str]()  # what lists and tables have no room for; the parts of a story are the largest alone
    for one in every_block(folds):
        if shown := one.lines if isinstance(one, List) else one.rows if isinstance(one, Table) else None:
            counts[shown.noun] += shown.more
    missing = ", ".join(plural(count, noun) for noun, count in counts.items() if count)
    said = phrase(f"Shortened to fit. Left out here: {missing}; {where} have everything.") if missing and where else ()
    last = replace(folds[-1], blocks=(*folds[-1].blocks, Sentence(said, small=True, name="left-out")))
    return (*screen, *folds[:-1], last)


def page_blocks(facts: Facts, limits: Limits) -> Mapping[str, Blocks]:
    """What a page has beside pictures, grid and cells, by where it stands."""
    compilers = (side.compiler.metrics for side in (facts.report.base, facts.report.head))
    metrics = (*METRICS, *own_metrics(*compilers).values())
    meanings = List(listed(phrase(f"{metric.label}: {metric.about}") for metric in metrics))
    below = replace(compared(facts, limits), is_open=True)
    return {
        "header": (_verdict(facts), _changes(facts)),
        "why": (_why(facts, limits),),
        "alarms": tuple(_alarms(facts, alarms(facts, limits), limits)),
        "totals": (_totals(facts, limits),),
        "unmeasured": _unmeasured(facts, limits),
        "sections": (findings(facts, limits), below, Fold("What the metrics mean", (meanings,), name="metrics")),
    }


def print_report(report: Report, console: Console, *, quiet: bool = False) -> None:
    """Print what a person in front of a terminal wants to know; the files have the rest. `quiet`: the verdict alone."""
    limits = Limits(40, max(console.width, 40) * 13 // 10, 4, 6, 10, 10, 1, 12, 1, 4, terminal=True)
    facts = build_facts(report)
    if quiet:
        print_blocks((_verdict(facts),), console)
        return
    grid = build_grid(facts, limits)
    blocks = (
        *first_screen(facts, limits),
        section("", *(() if grid.settled else _grid(grid)), *_unmeasured(facts, limits), name="grid"),
        _failed("Newly broken", facts, "newly-broken", limits),
        _failed("Broken on both sides", facts, "broken", limits),
        section("Notes", List(listed(map(phrase, notes(facts.report, limits)))), name="notes"),
    )
    print_blocks(blocks, console)


# The first screen.


def first_screen(facts: Facts, limits: Limits) -> Blocks:
    """Verdict, what changed, totals, root causes, alarms, and what to do now."""
    how_much, why, groups = _totals(facts, limits), _why(facts, limits), alarms(facts, limits)
    return (
        _verdict(facts),
        _changes(facts),
        how_much,
        why,
        *_alarms(facts, groups, limits),
        _next(facts, groups, limits),
    )


def _first_report(facts: Facts, brought: Adoption, limits: Limits) -> Blocks:
    """Of the change that brings the configuration: what it is, and alarms."""
    links = section("", Sentence(_links(facts), small=True), name="next")
    return (_verdict(facts), _brought(facts, brought), *_alarms(facts, alarms(facts, limits), limits), links)


def _verdict(facts: Facts) -> Fold:
    broke = clip(clean(facts.report.broke), _BROKE_CHARS)
    broken = phrase("⚠️ ", strong("The analysis broke:"), " ", code(broke), ". What is known so far:") if broke else ()
    resolved = "Resolved: the earlier alarm on this pull request is gone." if facts.report.resolved else ""
    said = Sentence(headline(facts), name="headline")
    return section("", Sentence(broken), said, Sentence(phrase(resolved)), name="verdict")


def _changes(facts: Facts) -> Fold:
    nothing = phrase("nothing of what is measured: the same compiler, flags and models on both sides")
    return section(
        "",
        Sentence(phrase(strong("What changed:"), " ", joined(changes(facts), " | ") or nothing)),
        Sentence(baseline_words(facts.report) if facts.report.baseline.distance else (), small=True),
        Sentence(phrase(_UNTRUSTED) if facts.report.untrusted else (), small=True),
        name="changes",
    )


def _totals(facts: Facts, limits: Limits) -> Fold:
    """A row for each target that something changed on; its mark stands in the first column, which a telephone shows."""
    rows, still, every = totals(facts)
    cells = list[Row]()
    for row in rows:
        name = name_cell(row.target) if row.target else phrase(strong("all"))
        marked = phrase(name, *(" ", Span(row.mark, kind_of(row.level))) if row.mark else ())
        change = Span(row.change, "up" if row.moved > 0 else "down" if row.moved else "number")
        cells.append((marked, (change,), (Span(row.sizes, "number"),)))
    partly = " (builds compared)" if any(0 < row.cells < row.planned for row in rows) else ""
    quiet = f"No change on {plural(still, 'other target' if rows else 'target')}" if still else ""
    no_sum = "No artifact to compare: no build was measured on both sides." if not (every.cells or still) else ""
    return section(
        "Totals per target" if limits.every else "",
        Table(("target", "change", f"artifacts, base → head{partly}"), listed(cells, "target")),
        Sentence(quiet or no_sum, small=True),
        name="totals",
    )


def _why(facts: Facts, limits: Limits) -> Fold:
    """What all deltas have in common; on a page the few that hold most of the bytes, and the others below them."""
    lines, roots = root_lines(facts, limits), facts.report.root_causes
    shares = [root.share for root in roots[: len(lines.items)] if root.share is not None]
    of_all = f", {sum(shares) * 100:.0f} % of moved bytes" if shares else ""
    title = phrase(strong("Root causes"), f" ({len(lines.items)} of {lines.total}{of_all})")
    if not limits.every:
        return section(title, List(listed(lines.items), numbered=1), name="causes")
    most = min(_LEADING, leading(facts))
    others = listing(lines.items[most:], len(roots) - most, "root cause")
    below = Fold(plural(others.total, "more root cause"), (List(others, numbered=most + 1),), name="more")
    return section("Root causes", List(listed(lines.items[:most]), numbered=1, name="leading"), below, name="causes")


def _counted(title: str, count: int, facts: Facts) -> Phrase:
    return phrase(strong(title), f" ({builds(facts, count)})")


def _lines_of(group: AlarmGroup) -> List:
    lines = [phrase(Span(f"{line.mark} ", kind_of(line.level)), line.said) for line in group.lines]
    return List(listing(lines, group.lines.total, group.lines.noun))


def _alarms(facts: Facts, groups: Sequence[AlarmGroup], limits: Limits) -> Iterator[Block]:
    """What is broken, then what is over a limit; warnings where nothing is worse.

    A page has room for all of them, below one heading.
    """
    titles, sections = {group.title for group in groups}, list[Block]()
    for group in groups:
        loud = group.title in (BROKEN, OVER) or (group.title == WARNED and not titles & {BROKEN, OVER})
        if loud or limits.every:
            title = _counted(group.title, group.cells, facts)
            sections.append(section(title, _lines_of(group), name="" if limits.every else "alarms"))
    taken = List(accepted(facts, limits), name="accepted")
    remarks = notes(facts.report, limits)
    if limits.every:
        said = List(listing(map(phrase, remarks), remarks.total, "note"), name="note")
        yield section("Alarms" if groups else "Notes", *sections, taken, said, name="alarms")
    else:
        yield from (*sections, taken)
        yield from (Sentence(phrase(f"Note: {note}"), small=True, name="note") for note in remarks.items[:_LOUD])


_TO_DO = {"Newly broken": "make it compile again", "Over the limit": "get it below the limit"}


def _next(facts: Facts, groups: Sequence[AlarmGroup], limits: Limits) -> Fold:
    """What to do, where to read on, how to see the worst of it at home, and last how to accept it."""
    report, more, what = facts.report, _links(facts), ""
    failing = [group for group in groups if group.title in _TO_DO]
    if report.verdict.status == "fail":
        what = " and ".join(_TO_DO[group.title] for group in failing) or "see why the rules forbid it"
    elif report.verdict.status == "warn" and any(group.title == WARNED for group in groups):
        what = "look through it; a warning stops no merge"
    if limits.terminal or not what:
        return section("", Sentence(() if limits.terminal else more, small=True), name="next")
    said = phrase(strong("Next:"), f" {what}.", *(phrase(" ", more, ".") if more else ()))
    worst = [group.lines.items[0].cells[0] for group in failing[:1] if limits.commands]
    reproduced = [Fold(phrase("To reproduce ", facts.named(key)), (_commands(facts, key),)) for key in worst]
    accept = phrase("To accept: label it ", code(APPROVAL_LABEL), ".")
    is_asked = report.verdict.status == "fail" and bool(report.links or report.state_line)
    return section("", Sentence(said), *reproduced, Sentence(accept if is_asked else (), small=True), name="next")


def _links(facts: Facts) -> Phrase:
    """Where to read on: the page, and what the event gave; empty where there is neither."""
    links = [(Span(label, to=url),) for label, url in facts.report.links]
    links = [*([(Span("the page", to=facts.report.page),)] if is_link(facts.report.page) else []), *links]
    return phrase("More: ", joined(links, " · ")) if links else ()


# The folds.


def _grid(grid: Grid) -> Iterator[Block]:
    for headers, rows in grid.blocks:
        cells = [
            (
                name_cell(model),
                *(phrase(Span(one.text, kind_of(one.level), one.address if one.level else "")) for one in row),
            )
            for model, row in rows
        ]
        yield Table(("model", *headers), listed(cells, "model"), small=True)
    legend = " · ".join(f"{symbol} {meaning}" for symbol, meaning in grid.legend)
    names = joined([phrase(code(short), " is ", code(full)) for short, full in grid.names], ", ")
    yield Sentence(phrase(legend, *(phrase(". Short names: ", names) if names else ())), small=True)
    yield _more(grid.models)


def _unmeasured(facts: Facts, limits: Limits) -> Blocks:
    return (section("Not measured", List(unmeasured(facts, limits)), name="unmeasured"),)


def _changed(facts: Facts, limits: Limits) -> Fold:
    """Of the changed cells, the alarming first: why; and every metric, where there is room."""
    count = facts.count("changed")
    roots = [] if limits.details else facts.report.root_causes[: shown_roots(facts, limits)]
    details = [(number, root_details(facts, root)) for number, root in enumerate(roots, 1)]
    causes = [Line(phrase(f"Cause {number}: ", detail)) for number, detail in details if detail]
    explained = facts.report.explanations
    known = {d.key for d in facts.report.deltas if d.key in explained and d.state in ("changed", "same")}
    alarming = [one.key for one in facts.report.verdict.news]
    keys = [key for key in dict.fromkeys([*alarming, *facts.deltas]) if key in known]
    shown = fair_in_order(keys, lambda key: key.model, limits.whys)
    stories = listing([_story(facts, key, limits) for key in shown], len(keys), "explained build")
    title = plural(count, "changed build") if count else plural(stories.total, "build")
    return Fold(
        f"Why: {title}" if stories else title,
        (
            List(listed(causes)),
            *stories,
            _more(stories),
            Fold("Every metric", (_every_metric(facts, limits),), name="metrics"),
        ),
        name="changed",
    )


def _more(found: Listing[object]) -> List:
    return List(Listing((), found.more, found.noun))


def _every_metric(facts: Facts, limits: Limits) -> Table:
    """The changed metrics of the changed builds; models take turns where there are too many."""
    pairs = [
        (delta, id_)
        for delta in facts.states["changed"]
        for id_ in [value.id for value in exact_changes(delta.metrics.values())] or [METRICS[0].id]
    ]
    rows = list[Row]()
    for delta, id_ in fair_in_order(pairs, lambda pair: pair[0].key.model, limits.changed):
        metric, both = delta.metrics[id_].quantity, delta.metrics[id_].sides
        mark = next((f" {MARKS[mark_of(one)]}" for one in facts.findings.get(delta.key, ()) if one.metric == id_), "")
        words = facts.label(metric, delta.key), sides(*both, metric.unit), f"{change(*both, metric.unit)}{mark}"
        rows.append((*facts.names(delta.key), *map(phrase, words)))
    headers = ("model", "target", "metric", "base → head", "change")
    return Table(headers, listing(rows, len(pairs) if limits.changed else 0, "changed metric"), numbers_from=3)


def _story(facts: Facts, key: CellKey, limits: Limits) -> Fold:
    """Why one cell changed: its sentence, its dispatches, what differs in them, and what moved."""
    why, head, most = facts.report.explanations[key], facts.deltas[key].head, limits.dispatches
    size = code_words("code", facts.backends.get(key.target, ""))
    causes = ("cause",) * any(delta.cause != why.cause for delta in why.dispatches)
    headers = ("dispatch", *causes, "component", size, "stack frame")
    rows = list[Row]()
    for line in map(dispatch_line, why.dispatches[:most]):
        numbers = (line.numbers[label].text for label in ("code", "stack frame"))
        about = (*(line.cause for _ in causes), _component(line.component, _COMPONENT))
        rows.append((name_cell(clip(line.name, _NAME)), *about, *numbers))
    notes, lines = by(why.dispatches if most else (), lambda delta: clean(delta.note, _NOTE)), list[Phrase]()
    for told in ("", clean(why.why, _NOTE)):  # what differs, once; not what the cell's `why` said already
        notes.pop(told, None)
    for note, (one, *others) in islice(notes.items(), min(4, most)):
        more, passed = f" and {plural(len(others), 'other dispatch')}" if others else "", passed_words(one)
        alone = "the first " if passed and others else ""
        lines.append(phrase(code(clean(one.name, _NAME)), more, f": {note}", f"; {alone}{passed}" if passed else ""))
    pieces: list[Block] = []
    for name, text, more_lines in diffs(why.dispatches, 1 + limits.details, limits.diff_lines):
        hidden = f"and {plural(more_lines, 'more line')}, in report.json" if more_lines else ""
        title = phrase("The smallest piece of ", code(name), " that differs:")
        pieces += [Sentence(title, small=True), Code(text, language="diff"), Sentence(hidden, small=True)]
    moved = [component_row(delta) for delta in why.components[: min(8, most)]]
    components = [(_component(name, 2 * _COMPONENT), *sizes) for name, *sizes in moved]
    parts = ("component", "dispatch sites", f"{size}, base → head", "stack frame, base → head")
    families = List(family_lines(head.families if head else (), most))
    said = by_cause(why)
    return Fold(
        phrase(facts.named(key), f": {cause_words(why.cause)}"),
        (
            Sentence(phrase(why_words(why), f". {rest(why)}", f" By cause: {said}." if said else "")),
            Table(headers, listing(rows, len(why.dispatches), "dispatch"), len(headers) - 2, small=True),
            List(listing(lines, len(notes), "note")),
            *pieces,
            Table(parts, listing(components, len(why.components), "moved component"), small=True),
            section("What deduplication left behind", *([families] * limits.details), name="families"),
        ),
        name="story",
    )


def _component(name: str, most: int) -> Words:
    return name if name == UNATTRIBUTED else name_cell(clip(name, most))


def findings(facts: Facts, limits: Limits) -> Fold:
    """Every finding, by what it has in common, on a page a row each; what base had; what is broken, newly and still."""
    verdict, broken = facts.report.verdict, facts.count("broken")
    known, groups = known_lines(facts, limits), list[Block]()
    had = [one for one in verdict.findings if one.known]
    counts = [f"{len(verdict.news):,} of this change"] if verdict.news else []
    counts += [f"{len(verdict.findings) - len(verdict.news):,} that base had"] if known else []
    counts += [f"{broken:,} broken on both sides"] if broken else []
    title = phrase(f"Findings: {', '.join(counts)}" if counts else "Findings")
    still = _failed("Broken on both sides", facts, "broken", limits)
    if limits.every:
        each = [
            Fold(f"{plural(len(some), 'finding')} {words}", (finding_table(facts, some, limits),))
            for words, some in (("of this change", verdict.news), ("that base had, and head is not worse", had))
        ]
        blocks = (_failed(BROKEN, facts, "newly-broken", limits), *each, still)
        return Fold("Findings", blocks, is_open=True, name="findings")
    for group in alarms(facts, replace(limits, alarms=limits.findings)):
        if group.title != BROKEN:
            groups.append(section(_counted(group.title, group.cells, facts), _lines_of(group), name="group"))
    before = section("Known: base had them, and head is not worse", List(known), name="known")
    return Fold(title, (_failed(BROKEN, facts, "newly-broken", limits), *groups, before, still), name="findings")


def _failed(title: str, facts: Facts, state: str, limits: Limits) -> Fold:
    """The cells of a state by what the compiler says of them, of which there is one line where they are still broken.

    Models take turns.
    """
    groups, blocks = grouped(facts, state), list[Block]()
    shown = fair(groups, lambda group: group[0].key.model, limits.failures)
    for group in shown:
        cells, alike = list(map(_refused, group)), f", {plural(len(group), 'build')} alike" if len(group) > 1 else ""
        failure = cells[0].failure if cells[0] else None
        text, more = trimmed(failure.message, limits.lines) if failure else ("", 0)
        where = cells_phrase(facts, [delta.key for delta in group], min(limits.names, _NAMES))
        said = phrase(strong(plain(failure_words(*cells))), f"{alike}: ", where)
        if state == "newly-broken" or limits.every:
            rest = f"and {plural(more, 'more line')}, in report.json" if more else ""
            blocks += [Sentence(said), Code(text, language="text"), Sentence(rest, small=True)]
        else:
            line = text.partition("\n")[0]
            blocks.append(Sentence(phrase(said, ": ", code(clip(line, 120))) if line else said))
    more_groups = _more(listing(shown, len(groups), "group of failures"))
    return section(_counted(title, facts.count(state), facts), *blocks, more_groups, name=state)


def every_block(blocks: Sequence[Block]) -> Iterator[Block]:
    """They and what is in them, but for stories."""
    for one in blocks:
        yield one
        if isinstance(one, Fold) and one.name != "story":
            yield from every_block(one.blocks)


# The first sentence: a verdict that can be trusted without reading on, and which way the code went.


@dataclass(frozen=True, slots=True)
class Total:
    """Artifacts added up."""

    target: str  # the short name; empty for all targets
    cells: int  # how many were measured on both sides; the sums are over these
    # base, head: sums in bytes; None where there is no such cell
    base: Value
    head: Value
    # larger, smaller: how many of them grew and shrank
    larger: int
    smaller: int
    unsure: int = 0  # of how many that is open, as the compiler does not repeat itself
    planned: int = 0  # how many there are, but for those that are left out on purpose
    broken: int = 0  # how many of them are newly broken
    # mark, level: of the worst finding there: its symbol, and `fail`, `warn` or empty
    mark: str = ""
    level: str = ""

    @property
    def moved(self) -> int:
        """The part of the change that is sure, in bytes; 0 where even its sign is open."""
        return certain(difference(self.base, self.head)) or 0

    @property
    def change(self) -> str:
        """`+41.3 %`, `−3.1 %, 1 broken`, `1 broken`; `n/a` where no cell was measured on both sides."""
        parts = [relative(self.base, self.head)] if self.cells and (self.moves or not self.broken) else []
        parts += [f"{self.broken:,} broken"] if self.broken else []
        return ", ".join(parts) or "n/a"

    @property
    def moves(self) -> bool:
        """True where some artifact has another size."""
        return bool(self.larger or self.smaller or self.unsure or self.base != self.head)

    @property
    def sizes(self) -> str:
        """`510,350 → 721,214 B`, and of how many cells where that is not all: `385,162 B (2 of 4)`; or `n/a`."""
        if not self.cells:
            return "n/a"
        over = f" ({self.cells:,} of {self.planned:,})" if self.cells < self.planned else ""
        return f"{sides(self.base, self.head)}{over}"


class Totals(NamedTuple):
    """All targets."""

    # each target that something changed on; then all, where these are several. Empty where nothing changed, or no cell
    # was measured on both sides.
    rows: tuple[Total, ...]
    still: int  # how many other ones there are
    everything: Total  # the sum over all targets


def totals(facts: Facts) -> Totals:
    """Those of each measured target."""
    targets: dict[str, list[CellDelta]] = {target: [] for target in sorted(facts.measured_targets)}
    for delta in facts.report.deltas:
        if delta.key.target in targets:
            targets[delta.key.target].append(delta)
    news, rows, still = worst_first(facts.report.verdict.news), list[Total](), 0
    worst = {target: whole_of(ones[0], news) for target, ones in by(news, lambda one: one.key.target).items()}
    for target, deltas in targets.items():
        if one := worst.get(target):
            mark = "💥" if one.limit == "newly-broken" and not one.accepted else MARKS[mark_of(one)]
            level = one.weight if one.weight != "pass" else ""
            rows.append(replace(_sum(facts.short[target], deltas), mark=mark, level=level))
        elif all(delta.state == "same" or delta.excused or broken_alike(delta) for delta in deltas):
            still += 1
        else:
            rows.append(_sum(facts.short[target], deltas))
    every = everything(facts)
    if not every.cells:
        rows = []
    return Totals((*rows, every) if len(rows) > 1 else tuple(rows), still, every)


def everything(facts: Facts) -> Total:
    """The sum over all targets."""
    return _sum("", [delta for delta in facts.report.deltas if delta.key.target in facts.measured_targets])


def _sum(target: str, deltas: Sequence[CellDelta]) -> Total:
    """What has the same artifact on both sides among those that were seen adds that: it moves no sum."""
    sizes = [(delta.metrics["artifact_bytes"], delta.state == "same") for delta in deltas]
    both = [(one, one.base, one.head) if same else (one, *one.sides) for one, same in sizes]
    known = [(one, base, head) for one, base, head in both if base is not None and head is not None]
    larger, smaller = (sum((one.change or 0) * sign > 0 for one, _, _ in known) for sign in (1, -1))
    sums = total(base for _, base, _ in known), total(head for _, _, head in known)
    planned, broken = sum(not d.excused for d in deltas), sum(d.state == "newly-broken" for d in deltas)
    unsure = sum(one.is_open for one, _, _ in known)
    return Total(target, len(known), *sums, larger, smaller, unsure, planned, broken)


_ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}
_REASONS, _REASON_CHARS = 2, 120
_ALARMS = {
    "newly-broken": "newly broken",
    "fail": "over the limit",
    "forbidden": "in a state that the rules forbid",
    "accepted": "with accepted findings",
    "warn": "to look at",
}


def headline(facts: Facts) -> Phrase:
    """``❌ **Code size: 4 of 32 builds over the limit** · −123 B (−0.1 %) in all · 10 larger``."""
    report, total, alarming = facts.report, everything(facts), list(_alarm_counts(facts))
    status, subject, parts = report.verdict.status, "Code size:", [*alarming, _partly(facts)]
    icon = "⚪" if report.broke and status == "pass" else _ICONS[status]
    is_moved = total.larger or total.smaller or total.base != total.head
    net = f"{change(total.base, total.head)} in all" if is_moved else ""
    if status == "unknown":
        parts = ["unknown, as nothing could be compared", *parts]
    elif report.adoption:
        icon, subject = "🆕", "Code size is"
        parts = [_measured_from_now(report.head), *parts]
    elif not alarming:
        net = ", ".join(filter(None, (_quiet(facts, total), net)))
    lead, *more = filter(None, (*parts, net, ", ".join(_ways(facts, total))))
    return phrase(icon, " ", strong(f"{subject} {lead}"), *(f" · {one}" for one in more))


def _measured_from_now(head: Snapshot) -> str:
    """`measured from now on: 4 models on 8 targets, 4,321,012 B`."""
    cells = [cell for cell in head.cells if cell.status != "unsupported"]
    models, targets = {cell.key.model for cell in cells}, {cell.key.target for cell in cells}
    size = total(value_of(cell, "artifact_bytes") or 0 for cell in cells) or 0
    where = f"{plural(len(models), 'model')} on {plural(len(targets), 'target')}"
    return f"measured from now on: {where}, {amount(size)}"


def _alarm_counts(facts: Facts) -> Iterator[str]:
    """`2 of 32 builds newly broken`, `4 of 32 builds over the limit`, the worst first; each build is in one of them."""
    counts = Counter[str]()
    for delta in facts.report.deltas:
        worst = facts.worst(delta.key)
        kind = mark_of(worst) if worst else ""
        if delta.state == "newly-broken" and kind != "accepted":
            kind = "newly-broken"
        elif worst and worst.metric is None and kind == "fail":
            kind = "forbidden"
        elif worst and _is_lost(delta, worst):
            kind = ""  # `_partly` has them
        counts[kind] += 1
    return (f"{builds(facts, counts[kind])} {words}" for kind, words in _ALARMS.items() if counts[kind])


def _is_lost(delta: CellDelta, finding: Finding) -> bool:
    """True of a finding that warns of a build which was not measured: the first sentence counts these."""
    return delta.state == "unmeasured" and finding.metric is None and finding.level == "warn"


def _quiet(facts: Facts, total: Total) -> str:
    """Where there is no alarm: which way the code went."""
    if facts.count("changed", "same", "fixed"):
        is_still = all(map(broken_alike, facts.states["broken"]))
        if is_still and not facts.count("changed", "fixed", "new", "removed"):
            return "no change seen" if _missing(facts) or total.unsure else "nothing changed"
        if total.larger or total.smaller:
            way = "smaller" if total.smaller and not total.larger else "larger" if not total.smaller else "changed"
            return f"{way} within the rules" if total.larger else way
    return "within the rules"


def _missing(facts: Facts) -> list[CellDelta]:
    """The cells that a side planned, and that were not compared: lost, too late, or gone."""
    lost = [delta for delta in facts.states["unmeasured"] if not delta.excused]
    return [*lost, *facts.states["removed"]]


def _partly(facts: Facts) -> str:
    """How much was compared, and why not all: a sentence about less must not look like one about all. Or empty."""
    if not (lost := _missing(facts)):
        return ""
    reasons = Counter(map(_why_lost, lost))
    counts = (f"{count:,} {clip(clean(why), _REASON_CHARS)}" for why, count in reasons.most_common(_REASONS))
    return f"{builds(facts, facts.count('changed', 'same'))} compared: {plain(some(counts, len(reasons)))}"


def _why_lost(delta: CellDelta) -> str:
    if any(cell is not None and cell.status == "unsupported" for cell in (delta.base, delta.head)):
        return "not supported"
    return delta.reason.partition(": ")[0] or delta.state


def _ways(facts: Facts, total: Total) -> Iterator[str]:
    """What moved, how; what is the same only where nothing moved."""
    artifacts = {state: [one.metrics["artifact_bytes"] for one in facts.states[state]] for state in ("changed", "same")}
    as_large, fixed = sum(one.change == 0 for one in artifacts["changed"]), facts.count("fixed")
    counts = {
        "larger": total.larger,
        "smaller": total.smaller,
        "open, as the compiler does not repeat itself": total.unsure,
        "changed at the same size": as_large,
        "compile now" if fixed > 1 else "compiles now": fixed,
        "new": facts.count("new"),
    }
    if not (total.larger or total.smaller or total.unsure or as_large):
        identical = sum(delta.identical is True for delta in facts.states["same"])
        unsure = sum(one.is_open for one in artifacts["same"])
        counts[f"of {plural(facts.planned, 'build')} bit-identical"] = identical
        counts["equal in every metric"] = facts.count("same") - identical - unsure
    counts["broken on both sides"] = facts.count("broken")
    return (f"{count:,} {words}" for words, count in counts.items() if count)


# What alarms and what failed: findings by metric and root cause, cells by what refused them, values near a limit.


_NAMES = 12
_LINE_CHARS, _LINES_WORTH_READING = 200, 400
_WHY_CHARS, _LIMIT_CHARS, _ERROR_CHARS, _WHAT_CHARS, _PEOPLE = 300, 48, 200, 90, 10
# Where a compiler ran is nobody's business, and says nothing to those who read elsewhere: the last part is enough.
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<>\\])(?:/[^\s/:\"'`<>()\[\],;=]+)+/(?=[^\s/])|(?<!\w)[A-Za-z]:\\(?:[^\s\\:\"']+\\)*"
)
_FIGURES = re.compile(r"\d+")
_UNIT = re.compile(r"(?<=\d)(?=[A-Za-z%])")
_NOWHERE = "<unknown>:0: error: "
_STAGES = {
    "compile": "does not compile",
    "read": "artifact cannot be read",
    "import": "cannot be imported",
    "option": "compiler does not know an option",
    "stack-limit": "over the stack limit",
    "timeout": "timed out",
    "target": "target does not work",
}


# Cells without a usable artifact.


def trimmed(message: str, lines: int) -> tuple[str, int]:
    """The first lines of a message without absolute paths, and how many more there are."""
    worth = [line for line in clean_block(message[: _LINES_WORTH_READING * _LINE_CHARS]).split("\n") if line.strip()]
    shown = [clip(_ABSOLUTE_PATH.sub("", line[: 5 * _LINE_CHARS]), _LINE_CHARS) for line in worth[:lines]]
    return "\n".join(shown), len(worth) - len(shown)


def _refused(delta: CellDelta) -> Cell | None:
    return delta.head if delta.head is not None and delta.head.failure is not None else delta.base


def grouped(facts: Facts, state: str, lines: int = 3) -> list[list[CellDelta]]:
    """The cells of a state in groups, the largest first.

    Those of a group ended alike, with messages that begin with the same lines but for figures and the model's name.
    """
    groups: dict[tuple[object, ...], list[CellDelta]] = {}
    for delta in facts.states[state]:
        cell, likeness = _refused(delta), tuple[object, ...]()
        if cell and (failure := cell.failure):
            text, _ = trimmed(failure.message.replace(delta.key.model, "*"), lines)
            likeness = failure.stage, failure.signal, failure.exit_code, _FIGURES.sub("#", text)
        groups.setdefault(likeness, []).append(delta)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].key))


def failure_words(*cells: Cell | None) -> Phrase:
    """What happened to cells without an artifact, which failed alike: `does not compile (exit code 1)`."""
    failures = [cell.failure for cell in cells if cell and cell.failure]
    if not failures:
        return phrase("failed without a message")
    failure = failures[0]
    if RAN_OUT in failure.first_line and is_local(failure.message):
        return phrase("the compiler ran out of memory")
    if failure.signal:
        return phrase("compiler crashed (", code(clip(failure.signal, 32)), ")")
    figures = [one.figure_bytes for one in failures if one.figure_bytes is not None]
    if failure.stage == "stack-limit" and figures:
        low, high = min(figures), max(figures)
        needed = amount(high) if low == high else f"{amount(low)} to {amount(high)}"
        return phrase(f"over the compiler's stack limit, a function needs {needed}")
    how = f" (exit code {failure.exit_code})" if failure.exit_code else ""
    return phrase(_STAGES.get(failure.stage, "failed") + how)


def unmeasured(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """The cells without a measurement, by reason, those on purpose last; whole targets are named as such."""
    groups = by(facts.states["unmeasured"], lambda delta: (delta.excused, delta.reason))
    ordered = sorted(groups.items(), key=lambda entry: (entry[0][0], -len(entry[1]), entry[0]))
    lines = []
    for (_, reason), deltas in ordered[: limits.findings]:
        cells = cells_phrase(facts, [delta.key for delta in deltas], limits.names)
        lines.append(phrase(cells, f": {clip(reason or 'no reason given', _WHY_CHARS)}"))
    return listing(lines, len(groups), "reason")


# Alarms.


@dataclass(frozen=True, slots=True)
class Alarm:
    """One line: cells that broke a rule of one metric for one root cause, or that are newly broken alike."""

    mark: str  # the symbol of the worst of it
    level: str  # `fail`, `warn` or empty for an accepted one
    said: Phrase
    cells: tuple[CellKey, ...]
    title: str  # what it stands below, one of TITLES


class AlarmGroup(NamedTuple):
    """The first alarms below one title, and how many cells all of them are about."""

    title: str
    lines: Listing[Alarm]
    cells: int


BROKEN, OVER, ACCEPTED, WARNED = TITLES = ("Newly broken", "Over the limit", "Accepted", "To look at")
_TITLE_OF = {"fail": OVER, "accepted": ACCEPTED, "warn": WARNED}


def alarms(facts: Facts, limits: Limits) -> tuple[AlarmGroup, ...]:
    """Newly broken cells, then what is over a limit, then what was accepted, then warnings: the worst of each first."""
    broken = [_newly_broken(facts, group) for group in grouped(facts, "newly-broken", 1) if _is_judged(facts, group)]
    lines = [*broken, *(_alarm(facts, findings, cause, limits) for cause, findings in matters(facts))]
    groups = {title: [line for line in lines if line.title == title] for title in TITLES}
    return tuple(
        AlarmGroup(title, first(group, limits.alarms, "line"), len({key for line in group for key in line.cells}))
        for title, group in groups.items()
        if group
    )


def matters(facts: Facts) -> list[tuple[int, list[Finding]]]:
    """Findings of one level, metric and root cause together, the worst first: the cause's number, or 0, and they.

    Of a part of an artifact the finding about all of it stands for both, where that is as bad. Newly broken cells have
    lines of their own, and how many were not measured is in the first sentence.
    """
    news = []
    for one in worst_first(facts.report.verdict.news):
        delta = facts.deltas[one.key]
        told = delta.state == "newly-broken" and _is_judged(facts, [delta])
        if not told and not _is_lost(delta, one):
            news.append(one)
    wholes = {(one.key, mark_of(one)) for one in news if one.metric == "artifact_bytes"}
    groups: dict[tuple[object, ...], tuple[int, list[Finding]]] = {}
    for one in news:
        if one.metric not in ARTIFACT_PARTS or (one.key, mark_of(one)) not in wholes:
            cause = cause_of(facts, one.key)[0] if one.metric == "artifact_bytes" else 0
            state = facts.deltas[one.key].state if one.metric is None else ""
            level = (mark_of(one), one.metric, one.kind, one.limit, one.is_open, state)
            groups.setdefault((*level, cause), (cause, []))[1].append(one)
    return list(groups.values())


def cause_of(facts: Facts, key: CellKey) -> tuple[int, int]:
    """The number of the root cause that holds most of what moved in the cell's artifact, and its share in percent.

    What moved counts growth and shrinking alike. 0 and 0 where no root cause has a part in the cell.
    """
    sizes = facts.causes.get(key, ())
    return (sizes[0][1], 100 * sizes[0][0] // sum(size for size, _ in sizes)) if sizes else (0, 0)


def _is_judged(facts: Facts, group: Sequence[CellDelta]) -> bool:
    return any(finding.metric is None for delta in group for finding in facts.findings.get(delta.key, ()))


def _newly_broken(facts: Facts, group: Sequence[CellDelta]) -> Alarm:
    """Which cells, what happened to them, and the first line of what the compiler said: one cell's, if it differs."""
    keys, heads = [delta.key for delta in group], [delta.head for delta in group]
    failures = [cell.failure for cell in heads if cell and cell.failure and cell.failure.stage != "stack-limit"]
    lines = [trimmed(failure.message, 1)[0] for failure in failures]
    said = phrase(cells_phrase(facts, keys, _NAMES), ": ", failure_words(*heads))
    if lines and lines[0]:
        error = clip(lines[0].removeprefix(_NOWHERE), _ERROR_CHARS)
        said = phrase(said, ": " if len(set(lines)) == 1 else ", for example: ", code(error))
    marks = {facts.mark(key) for key in keys}
    level = next((level for level in ("fail", "warn") if level in marks), "")
    mark, title = ("☑️", ACCEPTED) if marks == {"accepted"} else ("💥", BROKEN)
    return Alarm(mark, level, phrase(said, _doubt(facts, keys)), tuple(keys), title)


def _alarm(facts: Facts, findings: Sequence[Finding], cause: int, limits: Limits) -> Alarm:
    """``artifact, 4 builds: `m` on `x86_64` 1 → 2 B (+66.5 %), …; limit: … · largest part: cause 1 (69 to 95 %)``."""
    one, keys = findings[0], tuple(finding.key for finding in findings)
    if len(findings) == 1:
        said = finding_words(facts, one)
    elif one.metric is None:
        said = phrase(cells_phrase(facts, keys, _NAMES), f": {STATE_WORDS[facts.deltas[one.key].state]}")
    else:
        shown = fair_in_order(findings, lambda finding: finding.key.model, limits.alarms)
        named = (phrase(facts.named(f.key, cell_address(f.key)), f" {_values(f)}") for f in shown)
        about = f"{facts.label(one.quantity, one.key)}, {plural(len(keys), 'build')}: "
        said = phrase(about, some(named, len(findings)), limit_words(one, alone=False))
    if cause:  # how much of what moved in the cells it holds; in words where it is not shown
        shares = sorted(cause_of(facts, key)[1] for key in keys)
        what = clean(facts.report.root_causes[cause - 1].what.partition(", with ")[0], _WHAT_CHARS)
        is_shown = cause <= shown_roots(facts, limits)
        name = Span(f"cause {cause}", to=cause_address(cause)) if is_shown else what
        share = f"{shares[0]} %" if shares[0] == shares[-1] else f"{shares[0]} to {shares[-1]} %"
        said = phrase(said, " · largest part: ", name, f" ({share})")
    mark, said = mark_of(one), phrase(said, _doubt(facts, keys))
    return Alarm(MARKS[mark], one.weight, said, keys, _TITLE_OF[mark])


def _doubt(facts: Facts, keys: Sequence[CellKey]) -> str:
    """That an alarm rests on a single compile of the head: repeating has its price, so that not all are repeated."""
    heads = [facts.deltas[key].head for key in keys]
    once = sum(head is not None and head.compiles == 1 for head in heads)
    return "" if not once else " · compiled once" if once == len(keys) else f" · {once} of them compiled once"


def _values(finding: Finding) -> str:
    (base, head), unit = finding.sides, finding.quantity.unit
    if head is None:
        return f"{amount(base, unit)} on base, not known any more"
    values = amount(head, unit) if base is None else sides(base, head, unit)
    grown = "" if base is None or base == head else f" ({relative(base, head)})"
    return f"{values}{grown}{f', {OPEN}' if finding.is_open else ''}"


def finding_words(facts: Facts, finding: Finding, *, named: bool = True) -> Phrase:
    """A finding as a clause: what, where (unless not `named`), both values, and the limit."""
    where, delta = facts.named(finding.key, cell_address(finding.key)) if named else (), facts.deltas[finding.key]
    if finding.metric is None:
        why = failure_words(delta.head) if delta.head and delta.state in ("newly-broken", "broken") else ()
        return joined(filter(None, (where, STATE_WORDS[delta.state], why)), ": ")
    about = joined(filter(None, (facts.label(finding.quantity, finding.key), where)), ", ")
    return phrase(about, f": {_values(finding)}", limit_words(finding))


def limit_words(finding: Finding, *, alone: bool = True) -> str:
    """`; limit 54,534 B`; of several builds, or where it is no figure, as the rule has it."""
    if finding.head is None:
        return ""
    parts = [_UNIT.sub(" ", clean(part)) for part in clip(finding.limit, _LIMIT_CHARS).split(" and ")]
    if finding.kind == "limit":
        return f"; limit {parts[0]}"
    if alone and finding.base is not None and finding.allowed is not None and finding.seen is None:
        return f"; limit {amount(finding.base + finding.allowed, finding.quantity.unit)}"
    words = "no growth" if parts == ["0"] else " and ".join(f"+{part}" for part in parts)
    return f"; limit: the larger of {words}" if len(parts) > 1 else f"; limit: {words}"


def finding_table(facts: Facts, findings: Sequence[Finding], limits: Limits) -> Table:
    """Each finding with its rule; one about the state of a cell has no metric."""
    rows = list[Row]()
    for one in fair_in_order(findings, lambda finding: finding.key.model, limits.findings):
        model = code(clip(one.key.model, NAME_LIMIT), cell_address(one.key))
        label = facts.label(one.quantity, one.key) if one.metric else "state"
        actual = Span(clip(one.actual, 160), kind_of(one.weight))
        rule = f"{MARKS[mark_of(one)]} {clip(one.rule, 80)}"
        limit = name_cell(clip(one.limit, 80))
        rows.append(((model,), facts.names(one.key)[1], label, (actual,), limit, rule))
    headers = ("model", "target", "metric", "actual", "limit", "rule")
    return Table(headers, listing(rows, len(findings), "finding"), numbers_from=len(headers))


def known_lines(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """What base had and head is no worse in: ``stack allocations; limit 32 KiB: `m` on `cuda` ``."""
    known = (one for one in facts.report.verdict.findings if one.known and one.metric is not None)
    groups, lines = by(known, lambda one: (one.metric, one.kind, one.limit)), list[Phrase]()
    for group in groups.values():
        label = facts.label(group[0].quantity, group[0].key)
        cells = cells_phrase(facts, [one.key for one in group], min(_NAMES, limits.names))
        lines.append(phrase(f"◽ {label}{limit_words(group[0], alone=False)}: ", cells))
    return first(lines, limits.findings, "known finding")


def accepted(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """What was accepted, by whom, the worst first."""
    groups = by(facts.report.verdict.findings, lambda finding: finding.accepted)
    taken, lines = [(given, findings) for given, findings in groups.items() if given], list[Phrase]()
    for given, findings in taken[:_PEOPLE]:
        cells = cells_phrase(facts, sorted({one.key for one in findings}), min(_NAMES, limits.names))
        why = clean(given.why, _WHY_CHARS)
        who = phrase("☑️ Accepted by ", code(clean(given.who, NAME_LIMIT)), *(": ", code(why)) if why else ())
        lines.append(phrase(who, f" ({plural(len(findings), 'finding')}: ", cells, ")"))
    return listing(lines, len(taken), "acceptance")


# The grid model × target: the state of every cell at a glance.


# In the order of the legend.
_LEGEND: Mapping[str, tuple[str, str]] = {
    "newly-broken": ("💥", "newly broken"),
    "fail": ("❌", "over the limit"),
    "accepted": ("☑️", "accepted"),
    "warn": ("⚠️", "to look at"),
    "other": ("ᵒ", "by another metric than the artifact"),
    "number": ("±1.2", "change of the artifact in percent"),
    "open": ("↕", "open: sizes overlap, as the compiler does not repeat itself"),
    "bytes": ("≠", "changed, artifact as large as before"),
    "fixed": ("🟢", "compiles now"),
    "new": ("🆕", "new"),
    "removed": ("➖", "removed"),
    "broken": ("🚫", "broken on both sides"),
    "unmeasured": ("·", "not measured"),
    "identical": ("=", "bit-identical"),
    "same": ("≈", "all metrics equal, bytes not compared"),
}
_NAME_LIMIT = 40
_SEVERITY = ("newly-broken", "removed", "broken", "changed", "fixed", "new", "unmeasured", "same")


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell."""

    marks: tuple[str, ...]  # keys of the legend, in order
    text: str  # symbols and number, nothing else
    level: str  # `fail`, `warn` or empty
    words: str = ""  # what the marks mean
    symbols: str = ""  # the text without numbers
    address: str = ""  # of the cell on the page; empty where there is no such cell


GridRow = tuple[str, tuple[GridCell, ...]]  # A model, and its cells


class Grid(NamedTuple):
    """The grid."""

    # headers and rows of one table, or of several where the targets are too many for one
    blocks: tuple[tuple[tuple[str, ...], tuple[GridRow, ...]], ...]
    models: Listing[str]  # how many models are drawn, of how many
    legend: tuple[tuple[str, str], ...]  # symbol and meaning of the symbols that are used
    names: tuple[tuple[str, str], ...]  # short and full name of the targets whose names were shortened
    settled: bool  # nothing to see: all cells drawn are the same on both sides


def build_grid(facts: Facts, limits: Limits) -> Grid:
    """Draw the grid: targets that were measured nowhere have no column, and the worst models are drawn first."""
    drawn = sorted(facts.measured_targets)
    deltas = [delta for delta in facts.report.deltas if delta.key.target in facts.measured_targets]
    worst: dict[str, int] = {}
    for delta in deltas:
        place = _SEVERITY.index(delta.state) + (0 if facts.level(delta.key) else len(_SEVERITY))
        worst[delta.key.model] = min(place, worst.get(delta.key.model, place))
    models = sorted(sorted(worst, key=lambda model: (worst[model], model))[: limits.grid_models])
    rows = [(clip(m, _NAME_LIMIT), tuple(grid_cell(facts, CellKey(m, t)) for t in drawn)) for m in models]
    marks = {mark for _, cells in rows for cell in cells for mark in cell.marks}
    names = tuple((facts.short[t], clip(t, NAME_LIMIT)) for t in drawn if facts.short[t] != clip(t, NAME_LIMIT))
    return Grid(
        tuple(blocks([facts.short[target] for target in drawn], rows, limits.grid_width)),
        listing(models, len(worst), "model"),
        tuple(entry for key, entry in _LEGEND.items() if key in marks),
        names,
        all(delta.state == "same" for delta in deltas),
    )


def grid_cell(facts: Facts, key: CellKey) -> GridCell:
    """What the grid has of one cell."""
    delta = facts.deltas.get(key)
    if delta is None:
        return GridCell((), "", "")
    marks = tuple(_marks(facts, delta))
    sizes = delta.metrics["artifact_bytes"].sides
    text = "".join(grid_relative(*sizes) if mark == "number" else _LEGEND[mark][0] for mark in marks)
    words = ", ".join(f"artifact {relative(*sizes)}" if mark == "number" else _LEGEND[mark][1] for mark in marks)
    symbols = "".join(_LEGEND[mark][0] for mark in marks if mark != "number")
    return GridCell(marks, text, facts.level(key), words, symbols, cell_address(key))


def _marks(facts: Facts, delta: CellDelta) -> Iterator[str]:
    level = facts.mark(delta.key)
    if level and (delta.state != "newly-broken" or level == "accepted"):
        yield level
        worst = facts.worst(delta.key)
        if worst is not None and worst.metric not in (None, "artifact_bytes"):
            yield "other"
    if delta.state == "changed":
        artifact = delta.metrics["artifact_bytes"]
        yield "open" if artifact.is_open else "number" if artifact.change and artifact.ratio is not None else "bytes"
    elif delta.state == "same":
        yield "identical" if delta.identical else "same"
    else:
        yield delta.state


def blocks(
    headers: Sequence[str], rows: Sequence[GridRow], width: int
) -> Iterator[tuple[tuple[str, ...], tuple[GridRow, ...]]]:
    """Cut the columns into tables of at most `width` small characters, with room for borders and padding."""
    first = 6 + max((len(model) for model, _ in rows), default=0) * 5 // 4
    starts, used = [0], first
    for index, header in enumerate(headers):
        cost = 5 + max(len(header), *(len(cells[index].text) for _, cells in rows), 0)
        if index > starts[-1] and used + cost > width:
            starts.append(index)
            used = first
        used += cost
    for start, end in zip(starts, [*starts[1:], len(headers)], strict=True):
        if headers:
            yield tuple(headers[start:end]), tuple((model, cells[start:end]) for model, cells in rows)


# The first report, of the change that brings the configuration: of the head alone.


_SIZED = ("artifact_bytes", "executables", "stack_max_bytes")


def _brought(facts: Facts, brought: Adoption) -> Fold:
    """Which configuration it is, and the compiler."""
    file = phrase("the configuration ", code(clip(brought.file, NAME_LIMIT))) if brought.file else "a configuration"
    rule = ", which the base commit has not: nothing was compared. Compiler: "
    return section(
        "",
        Sentence(phrase("This pull request brings ", file, rule, compiler_name(facts.report.head.compiler))),
        Sentence(phrase(_UNTRUSTED) if facts.report.untrusted else (), small=True),
        name="adoption",
    )


def _measured_first(facts: Facts, limits: Limits) -> Fold:
    """How large every build is."""
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    rows = list[Row]()
    for cell in fair_in_order(cells, lambda cell: cell.key.model, limits.findings):
        values = (amount(value_of(cell, id_), METRIC_BY_ID[id_].unit) for id_ in _SIZED)
        rows.append((*facts.names(cell.key), *values))
    headers = ("model", "target", "artifact", "executables", "largest stack frame")
    every = Table(headers, listing(rows, len(cells), "build"), numbers_from=2)
    return Fold("Every build: artifact, executables and stack", (every,), name="cells")


# What was compared: what is not the same on both sides, as its author would say it; compilers, commits, commands.


_FLAG_CHARS, _FEW, _FLAGS = 100, 3, 4
_VALUE_LIMIT, _COMMAND_LIMIT = 300, 2_000
_DIGEST_CHARS, _REVISION_CHARS = 16, 10
FlagChange = tuple[tuple[str, ...], tuple[str, ...]]  # Flags that went, and flags that came


def changes(facts: Facts) -> tuple[Phrase, ...]:
    """What is not the same on both sides, a phrase each; empty where all is."""
    report = facts.report
    parts = list[Phrase]()
    if report.base.compiler.digest != report.head.compiler.digest:
        left, right = compiler_name(report.base.compiler), compiler_name(report.head.compiler)
        parts.append(phrase("compiler ", left, *(" → ", right) if left != right else (", another build on head",)))
    parts += [*_flags(facts), *_models(report)]
    return (*parts, *_came_and_went("target", report.base.targets, report.head.targets))


def compiler_name(compiler: CompilerInfo) -> Phrase:
    """A release as the user gave it, `IREE 3.13.0`; of any other SPEC the version, and the SPEC.

    `latest` and `nightly` come with the release that they were.
    """
    name, spec, release = titled(compiler.version), compiler.spec, release_in(compiler.spec)
    if " " in compiler.version:  # it says itself what it is
        spec = ""
    elif release:
        name, spec = titled(release), spec.rpartition(RESOLVED)[0]
    elif not compiler.version and not spec:
        name = "not known"
    return phrase(clip(clean(name), 48), *(phrase(" (", code(clip(spec, 48)), ")") if spec else ()))


def _flags(facts: Facts) -> Iterator[Phrase]:
    """Each difference of flags, and of which cells; nothing of where it is all of them."""
    groups: dict[FlagChange, list[CellKey]] = {}
    for delta in facts.report.deltas:
        if (change := _flag_change(delta)) is not None:
            groups.setdefault(change, []).append(delta.key)
    different = [(change, keys) for change, keys in groups.items() if any(change)]
    for change, keys in different[:_FLAGS]:
        where = phrase(" for ", cells_phrase(facts, keys, _FEW)) if len(groups) > 1 else ()
        yield phrase(_flag_words(change), where)
    if len(different) > _FLAGS:
        yield phrase(f"{plural(len(different) - _FLAGS, 'more difference')} of flags")


def _flag_change(delta: CellDelta) -> FlagChange | None:
    """None where a side's command is not known, or cannot be read."""
    base, head = _flags_of(delta.base), _flags_of(delta.head)
    if base is None or head is None:
        return None
    return tuple(flag for flag in base if flag not in head), tuple(flag for flag in head if flag not in base)


def _flags_of(cell: Cell | None) -> tuple[str, ...] | None:
    """Those of a command; the limit that is lifted where the stack gate refused a cell is the bot's own.

    None where there is no command, or none that can be read.
    """
    flags = _flags_in(cell.command) if cell else None
    if flags is None or not is_over(cell):
        return flags
    return tuple(flag for flag in flags if flag != LIFTED_LIMIT_FLAG)


_QUOTED = re.compile(r"""['"\\]|[^\S \t\r\n]""")
"""What makes words otherwise than at white space, as a shell knows it; nearly no command has any, and shlex is slow."""


@lru_cache(maxsize=1)
def _flags_in(command: str) -> tuple[str, ...] | None:
    """Remembered, as both sides of a cell have most often the same command."""
    try:
        words = shlex.split(command) if _QUOTED.search(command) else command.split()
    except ValueError:
        return None
    return tuple(word for word in words if word.startswith("--")) if words else None


def _flag_words(change: FlagChange) -> Phrase:
    """``flag `--cpu=v3` → `v4` ``; what came or went alone is named as such."""
    (went, came), parts = ({flag.partition("=")[0]: flag for flag in flags} for flags in change), list[Phrase]()
    for name in {**went, **came}:
        old, new = went.get(name, ""), came.get(name, "")
        words = (" → ", code(clip(new.partition("=")[2] or new, _FLAG_CHARS))) if old and new else ()
        parts.append(phrase(code(clip(old or new, _FLAG_CHARS)), *(words or (" added" if new else " removed",))))
    return phrase("flag " if len(parts) == 1 else "flags ", some(parts[:_FLAGS], len(parts)))


def _models(report: Report) -> Iterator[Phrase]:
    base, head, edits = report.base.models, report.head.models, {edit.model: edit for edit in report.edits}
    edited = sorted(name for name in base.keys() & head.keys() if base[name] != head[name])
    for name in edited[:_FEW]:
        yield phrase("model ", code(clip(name, NAME_LIMIT)), " edited", _edit(edits.get(name)))
    if len(edited) > _FEW:
        yield phrase(f"{plural(len(edited) - _FEW, 'more model')} edited")
    yield from _came_and_went("model", base, head)


def _edit(edit: ModelEdit | None) -> Phrase:
    """`` (operations: `classifier` +2, `pooler` −1 and 3 more)``, the largest first; empty where a side is not known.

    Names of operations where none of the whole ones came or went, which have a component.
    """
    if edit is None or edit.operations is None or edit.components is None:
        return ()
    ordered = sorted((edit.components or edit.operations).items(), key=lambda one: (-abs(one[1]), one[0]))
    parts = (phrase(code(clip(name, 48)), f" {signed(count, 'count')}") for name, count in ordered[:_FEW])
    counts = some(parts, len(ordered)) or "none came or went"
    return phrase(" (operations: ", counts, ")")


def _came_and_went(noun: str, base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[Phrase]:
    for names, what in ((sorted(head.keys() - base.keys()), "new"), (sorted(base.keys() - head.keys()), "removed")):
        shown = some((name_cell(clip(name, NAME_LIMIT)) for name in names[:_FEW]), len(names))
        if names:
            yield phrase(f"{noun if len(names) == 1 else noun + 's'} ", shown, f" {what}")


# Both sides, and how to do it again.


def baseline_words(report: Report) -> Phrase:
    """How the base was found; and where it is not of the base commit itself, how long before it was measured."""
    baseline, measured = report.baseline, report.base.source.sha
    at = phrase(", base commit ", _short(baseline.sha)) if baseline.sha else ()
    age: Phrase = ()
    if baseline.distance:
        of = phrase(" at ", _short(measured)) if measured else ()
        age = phrase(f", measured {plural(baseline.distance, 'commit')} before it", of)
    return phrase("Baseline: ", code(clip(baseline.rule, _VALUE_LIMIT)), at, age, ".")


def _short(sha: str) -> Span:
    return code(sha[:_REVISION_CHARS])


def compared(facts: Facts, limits: Limits) -> Fold:
    """Commands of alarming cells, both sides, and what there is to say of the rest."""
    report, exact = facts.report, list[Block]()
    lost = {delta.key for delta in facts.states["unmeasured"] if None in (delta.base, delta.head)}
    alarming = [delta.key for delta in facts.states["newly-broken"]]
    keys = [key for key in dict.fromkeys([*alarming, *(one.key for one in report.verdict.news)]) if key not in lost]
    for key in fair_in_order(keys, lambda key: key.model, limits.commands):
        exact += [Sentence(facts.named(key)), _commands(facts, key)]
    title = f"How to reproduce: the exact commands of {plural(len(keys), 'alarming build')}"
    exact.append(List(Listing((), max(0, len(keys) - limits.commands), "command")))
    what = ("compiler version", "compiler revision", "compiler SHA-256", "SPEC", "source commit", "source ref", "flags")
    rows = [(phrase(name), *both) for name, *both in zip(what, *map(_side, (report.base, report.head)), strict=True)]
    remarks: Listing[str] = Listing() if limits.every else notes(report, limits)  # a page has them above
    return Fold(
        "How to reproduce, and what was compared" if keys and not limits.every else "What was compared",
        (
            Fold(title if limits.every else "", tuple(exact), not limits.every, name="commands"),
            Table(("", "base", "head"), listed(rows, "row"), numbers_from=3),
            Sentence(baseline_words(report)),
            List(listing(map(phrase, remarks), remarks.total, "note")),
        ),
        name="compared",
    )


def _fact(value: str | None) -> Phrase:
    return phrase(code(clip(value, _VALUE_LIMIT))) if value else phrase(ABSENT)


def _side(side: Snapshot) -> Iterator[Phrase]:
    compiler, source = side.compiler, side.source
    yield from map(_fact, (compiler.version, compiler.revision, compiler.digest[:_DIGEST_CHARS], compiler.spec))
    yield phrase(_fact(source.sha), " with uncommitted changes" if source.dirty else "")
    yield from map(_fact, (source.ref, " ".join(side.flags)))


def _commands(facts: Facts, key: CellKey) -> Code:
    """That of a build on both sides, and which compiler."""
    report, delta = facts.report, facts.deltas[key]
    versions = {"base": report.base.compiler.version, "head": report.head.compiler.version}
    commands = {"base": delta.base.command if delta.base else "", "head": delta.head.command if delta.head else ""}
    too_long = f"# longer than {_COMMAND_LIMIT:,} characters: see report.json"
    lines = reproduction(versions, commands)
    return Code("\n".join(f"{about}\n{line if len(line) <= _COMMAND_LIMIT else too_long}" for about, line in lines))


def reproduction(versions: Mapping[str, str], commands: Mapping[str, str]) -> list[tuple[str, str]]:
    """A comment that names sides and compilers, and the command of these sides; once where both have the same."""
    names: dict[str, list[str]] = {}
    for side, command in commands.items():
        names.setdefault(command, []).append(f"{side}: {titled(clip(versions.get(side, ''), 48))}")
    return [(f"# {'; '.join(name)}", command or "# not measured on this side") for command, name in names.items()]


def notes(report: Report, limits: Limits) -> Listing[str]:
    """What broke or was left out while the report was made, and what each side says of itself."""
    every = [*report.notes]
    for name, side in (("base", report.base), ("head", report.head)):
        every += [f"{name}: {note}" for note in side.notes]
    return first([clip(note, _VALUE_LIMIT) for note in every], limits.failures, "note")
