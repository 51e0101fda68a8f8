"""Draw all findings of a report: those of this change, and those that base has too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bot.core.findings import Finding
from bot.show.addresses import cell_address
from bot.show.alarms import BROKEN, AlarmGroup, alarms
from bot.show.blocks import (
    Block,
    Fold,
    List,
    Phrase,
    Rank,
    Row,
    Span,
    Table,
    bounded,
    code,
    fair_in_order,
    kind_of,
    listed,
    listing,
    name_cell,
    part,
    phrase,
    section,
)
from bot.show.escape import clip
from bot.show.facts import MARKS, NAME_LIMIT, Facts, cells_phrase, counted, mark_of
from bot.show.failures import MOST_NAMES, failed_builds
from bot.show.filters import plural
from bot.show.finding_groups import is_judged, keys_of, wholes_and_parts
from bot.show.finding_words import limit_words
from bot.show.views import View


def findings(facts: Facts, view: View) -> Fold:
    """Return every finding: on a page one row each, else grouped as the alarms are.

    Around them are the builds that fail, newly or already on base.
    """
    newly_broken = failed_builds(facts, "newly-broken", view)
    still_broken = failed_builds(facts, "broken", view)
    if view.is_page:
        blocks = (newly_broken, *_finding_folds(facts, view), still_broken)
        return Fold("Findings", blocks, is_open=True, name="findings")

    def groups(count: int) -> Iterator[Block]:
        for group in alarms(facts, view, count):
            if group.title != BROKEN:
                title = counted(group.title, group.cells, facts)
                yield section(title, _group_lines(group, count), name="group")

    known_list = List(listed(_known_lines(facts, view.names), "known finding"))
    on_base = section(
        "Known: base has them too, and head is not worse",
        bounded(known_list, Rank.LINE, view.findings),
        name="known",
    )
    return Fold(
        phrase(_findings_title(facts)),
        (
            newly_broken,
            part(groups, view.findings, Rank.LINE),
            on_base,
            still_broken,
        ),
        name="findings",
    )


def _finding_folds(facts: Facts, view: View) -> Iterator[Fold]:
    """Yield the table of this change's findings, then that of the known ones."""
    verdict = facts.report.verdict
    known_findings = [finding for finding in verdict.findings if finding.known]
    for label, findings in (
        ("of this change", verdict.news),
        ("that base has too, and head is not worse", known_findings),
    ):
        title = f"{plural(len(findings), 'finding')} {label}"
        table = partial(_finding_table, facts, findings)
        yield Fold(title, (part(table, view.findings, Rank.LINE),))


def _finding_table(
    facts: Facts, findings: Sequence[Finding], count: int
) -> Iterator[Table]:
    """Yield the table of findings with their rules.

    A finding about the state of a build has no metric.
    """
    shown_findings = fair_in_order(findings, lambda finding: finding.key.model, count)
    rows = list[Row]()
    for finding in shown_findings:
        model = code(clip(finding.key.model, NAME_LIMIT), cell_address(finding.key))
        label = "state"
        if finding.metric:
            label = facts.label(finding.quantity, finding.key)
        rows.append(
            (
                (model,),
                facts.names(finding.key)[1],
                label,
                (Span(clip(finding.actual, 160), kind_of(finding.weight)),),
                name_cell(clip(finding.limit, 80)),
                f"{MARKS[mark_of(finding)]} {clip(finding.rule, 80)}",
            )
        )
    headers = ("model", "target", "metric", "actual", "limit", "rule")
    yield Table(
        headers, listing(rows, len(findings), "finding"), numbers_from=len(headers)
    )


def _group_lines(group: AlarmGroup, count: int) -> List:
    """Return the first alarms with their marks."""
    lines = []
    for alarm in group.lines[:count]:
        mark = Span(f"{alarm.mark} ", kind_of(alarm.level))
        lines.append(phrase(mark, alarm.text))
    return List(listing(lines, len(group.lines), "line"))


def _known_lines(facts: Facts, names: int) -> list[Phrase]:
    """Return findings that base has, too, and that head does not make worse.

    ``stack allocations. Limit 32 KiB: `m` on `cuda` ``.
    """
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in facts.report.verdict.findings:
        if finding.known and finding.metric is not None:
            label = facts.label(finding.quantity, finding.key)
            group = (finding.metric, label, finding.kind, finding.limit)
            groups.setdefault(group, []).append(finding)
    lines = list[Phrase]()
    for findings in groups.values():
        finding = findings[0]
        label = facts.label(finding.quantity, finding.key)
        limit = limit_words(finding, is_single=False)
        cells = cells_phrase(facts, keys_of(findings), min(MOST_NAMES, names))
        lines.append(phrase(f"◽ {label}{limit}: ", cells))
    return lines


def _findings_title(facts: Facts) -> str:
    """Return `Findings: 4 of this change, 2 that base had`."""
    wholes, parts = wholes_and_parts(facts)
    newly_broken = sum(
        is_judged(facts, [delta]) for delta in facts.states["newly-broken"]
    )
    known_count = sum(
        finding.known and finding.metric is not None
        for finding in facts.report.verdict.findings
    )
    counted_keys = {finding.key for finding in wholes if finding.metric is None}
    broken_keys = {delta.key for delta in facts.states["broken"]}
    counts = {
        "of this change": len(wholes) + newly_broken,
        "of parts of the same artifacts": len(parts),
        "that base had": known_count,
        "already failing on base": len(broken_keys - counted_keys),
    }
    texts = []
    for label, count in counts.items():
        if count:
            texts.append(f"{count:,} {label}")
    if texts:
        return f"Findings: {', '.join(texts)}"
    return "Findings"
