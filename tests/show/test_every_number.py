"""Every statement of a comment's first screen, taken back to report.json: no sentence is false of a cell.

What is read here is Markdown and JSON, not the view that made them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import ceil, log10

import everyday
import pytest
from json_rows import JsonRow

from bot.core.metrics import METRICS
from bot.core.report_json import report_lines
from bot.show.comment import render_comment

CASES = tuple(everyday.CASES)
LABELS = {metric.label: metric.id for metric in METRICS}
TICKED = re.compile(r"`([^`]+)`")
# What a statement with a number looks like; a comment need not have it.
IDENTICAL = re.compile(r"([\d,]+) of (\d+) builds bit-identical")
TOTAL = re.compile(r"([+−][\d,]+ B) \(([^)]+)\) (?:in all|over the \d+ builds)")
SHARE = re.compile(r" \((\d+) %\) ·")
DISPATCHES = re.compile(r"· ([\d,]+) dispatch(?:es)? in")
SUMMARY = re.compile(
    r"Causes\*\* \((?:the first (\d+) of (\d+), )?(\d+) % of the total change"
)
DETAILS = re.compile(r"^- Cause (\d+): (.*)$", re.MULTILINE)
PER_TARGET = re.compile(
    r"([+−±][\d,]+)(?: B)?(?: each)?(?: in ([\d,]+))? on ((?:`[^`]+`(?:, )?)+)"
)
FRAME = re.compile(r"frame ([\d,]+) → ([\d,]+) B[^;]* in `([^`]+)`")


@lru_cache
def comment_of(case: str) -> str:
    """The comment on a report, without Markdown's escapes."""
    comment = render_comment(everyday.report(case))
    return comment.replace("\\", "").replace("&nbsp;", " ")


@lru_cache
def drawn(case: str) -> tuple[JsonRow, str]:
    """The report as it is written, and the first screen of its comment."""
    text = b"".join(report_lines(everyday.report(case)))
    screen = comment_of(case).partition("<details>")[0]
    return json.loads(text, object_hook=JsonRow), screen


def short(report: JsonRow) -> dict[str, str]:
    """Short name → target."""
    targets = {}
    for target, backend in {**report.base.targets, **report.head.targets}.items():
        short_name = (
            target.removeprefix(backend).lstrip("-_")
            if target.startswith(backend)
            else ""
        )
        targets[short_name or target.removesuffix("-spirv")] = target
        targets[target] = target
    return targets


def number(text: str) -> int:
    """`−1,234 B` → −1234."""
    return int(re.sub(r"[^\d−]", "", text).replace("−", "-"))


def percent(base: int, head: int) -> str:
    """As people read it, to a tenth."""
    ratio = abs(head - base) / base * 100
    if base == head:
        return "0 %"
    sign = "+" if head > base else "−"
    return (
        f"{sign}{ratio:,.1f} %"
        if round(ratio, 1)
        else f"{sign}{ratio:.{ceil(-log10(ratio))}f} %"
    )


def artifacts(report: JsonRow, target: str = "") -> Iterator[tuple[int, int]]:
    """Both sizes of the cells that both sides measured."""
    for cell in report.cells:
        size = cell.metrics["artifact_bytes"]
        if (
            target in ("", cell.target)
            and size.base is not None
            and size.head is not None
        ):
            yield size.base, size.head


def news(report: JsonRow) -> list[JsonRow]:
    return [finding for finding in report.verdict.findings if not finding.known]


def cell_of(report: JsonRow, model: str, target: str) -> JsonRow:
    matching: list[JsonRow] = [
        cell
        for cell in report.cells
        if (cell.model, short(report)[target]) == (model, cell.target)
    ]
    assert len(matching) == 1, (model, target)
    return matching[0]


@pytest.mark.parametrize(
    "pattern",
    [IDENTICAL, TOTAL, SHARE, DISPATCHES, SUMMARY, DETAILS, PER_TARGET, FRAME],
)
def test_each_pattern_is_in_a_comment(pattern: re.Pattern[str]) -> None:
    comments = [comment_of(case) for case in CASES]
    assert any(pattern.search(comment) for comment in comments), pattern.pattern


@pytest.mark.parametrize("case", CASES)
def test_the_headline_counts_cells(case: str) -> None:
    report, screen = drawn(case)
    line = next(line for line in screen.splitlines() if "**Code size:" in line)
    icon = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}[
        report.verdict.status
    ]
    assert line.startswith(icon)
    states = Counter(cell.state for cell in report.cells)
    sizes = list(artifacts(report))
    fails = {
        (finding.model, finding.target)
        for finding in news(report)
        if finding.level == "fail"
    }
    broken = {
        (cell.model, cell.target)
        for cell in report.cells
        if cell.state == "newly-broken"
    }
    lost = {
        (cell.model, cell.target)
        for cell in report.cells
        if cell.state in ("unmeasured", "removed")
    }
    warned = (
        {(finding.model, finding.target) for finding in news(report)}
        - fails
        - broken
        - lost
    )
    alarming = {
        "newly failing": len(broken),
        "fails? the check": len(fails - broken),
        "with warnings": len(warned),
    }
    for label, count in alarming.items():
        match = re.search(rf"([\d,]+) of \d+ builds? {label}", line)
        assert (number(match[1]) if match else 0) == count, (label, line)
    ways = {
        "larger": sum(head > base for base, head in sizes),
        "smaller": sum(head < base for base, head in sizes),
        "fixed": states["fixed"],
        "already failing on base": states["broken"],
    }
    for label, count in ways.items():
        match = re.search(rf"([\d,]+) {label}", line)
        assert (number(match[1]) if match else 0) == count, (label, line)
    if match := IDENTICAL.search(line):
        identical = sum(
            cell.state == "same" and cell.identical is True for cell in report.cells
        )
        planned = sum(
            not (
                cell.state == "unmeasured"
                and "unsupported" in (cell.status.base, cell.status.head)
            )
            for cell in report.cells
        )
        assert number(match[1]) == identical and int(match[2]) <= planned
    if match := TOTAL.search(line):
        base, head = (sum(side) for side in zip(*sizes, strict=True))
        assert (number(match[1]), match[2]) == (head - base, percent(base, head))


@pytest.mark.parametrize("case", CASES)
def test_the_table_has_the_three_measures_of_each_target(case: str) -> None:
    report, screen = drawn(case)
    row = (
        r"^\| (`[^`]+`|\*\*all\*\*)(?: \((\d+) of (\d+)\))?: ([^|]+) \|"
        r" ([^|]+?)(?:<br>executables ([^|]+))? \|$"
    )
    rows = re.findall(row, screen, re.MULTILINE)
    assert bool(rows) == ("largest change of stack or registers" in screen)
    for name, compared, planned, sizes, memory, executables in rows:
        target = "" if "all" in name else short(report)[name.strip("`")]
        cells = [cell for cell in report.cells if target in ("", cell.target)]
        pairs = list(artifacts(report, target))
        base, head = (
            (sum(side) for side in zip(*pairs, strict=True)) if pairs else (0, 0)
        )
        printed = [
            number(text)
            for text in re.findall(
                r"[\d,]*\d", sizes.partition(" (")[0].partition(", ")[0]
            )
        ]
        assert (
            (printed[0], printed[-1]) == (base, head)
            if pairs
            else "newly failing" in sizes or sizes == "n/a"
        )
        assert not pairs or base == head or f"({percent(base, head)})" in sizes
        assert not compared or int(compared) == len(pairs) < int(planned)
        broken = sum(cell.state == "newly-broken" for cell in cells)
        assert (f"{broken} newly failing" in sizes) == bool(broken)
        counts = [
            cell.metrics["executables"]
            for cell in cells
            if "executables" in cell.metrics
        ]
        counts = [
            count
            for count in counts
            if count.base is not None and count.head is not None
        ]
        expected = [
            sum(count.base for count in counts),
            sum(count.head for count in counts),
        ]
        printed = [number(text) for text in re.findall(r"[\d,]*\d", executables)]
        if executables:
            assert (
                [printed[0], printed[-1]] == expected
                if counts
                else executables == "n/a"
            )
        else:
            assert not counts or expected[0] == expected[1]
        memory = memory.replace("<br>", " ")
        for base_value, head_value, model in FRAME.findall(memory):
            frame = cell_of(report, model, name.strip("`")).metrics["stack_max_bytes"]
            assert (number(base_value), number(head_value)) == (frame.base, frame.head)


@pytest.mark.parametrize("case", CASES)
def test_a_root_cause_says_what_is_true_of_all_its_deltas(case: str) -> None:
    report, screen = drawn(case)
    lines = [line for line in screen.splitlines() if line.startswith("1. ")]
    roots = [
        root
        for root in report.root_causes
        if root.cause and (root.cause != "codegen" or root["pass"])
    ]
    printed_roots = list[JsonRow]()
    for line in lines:
        sentence = line.partition("<br><sub>")[0]
        net = number(re.search(r"· ([+−±][\d,]+(?: B)?)", sentence)[1].replace("±", ""))  # type: ignore[index]
        named = [
            root
            for root in roots
            if root.bytes.net == net
            and root not in printed_roots
            and _is_said(root, sentence)
        ]
        assert named, sentence
        root = named[0]
        printed_roots.append(root)
        share = SHARE.search(sentence)
        assert share is None or int(share[1]) == round(100 * (root.share or 0))
        if match := DISPATCHES.search(sentence):
            assert number(match[1]) == root.dispatches
        _named(report, sentence.rpartition(" · ")[2], root)
    for place, detail in DETAILS.findall(comment_of(case)):
        _each_target(report, detail, printed_roots[int(place) - 1])
    if summary := SUMMARY.search(screen):
        shares = [root.share or 0 for root in printed_roots]
        assert not summary[1] or (int(summary[1]), int(summary[2])) == (
            len(lines),
            len(roots),
        )
        assert int(summary[3]) == round(100 * sum(shares))


def _is_said(root: JsonRow, line: str) -> bool:
    """Whether the words of a line are about the first word of the cause: a knob, a pass, a part."""
    first = root.what.split()[0].rstrip(":").lower()
    return first in line.replace("\\", "").lower()


def _named(report: JsonRow, where: str, root: JsonRow) -> None:
    """Models and targets: all of them by name, or how many."""
    models, _, targets = where.rpartition(" on ")
    if count := re.search(r"(\d+) models?$", models):
        assert int(count[1]) == len(root.models)
    else:
        assert set(TICKED.findall(models)) == set(root.models)
    if count := re.match(r"(\d+) targets?", targets):
        assert int(count[1]) == len(root.targets)
    else:
        assert {short(report)[name] for name in TICKED.findall(targets)} == set(
            root.targets
        )


def _each_target(report: JsonRow, detail: str, root: JsonRow) -> None:
    per_target = detail.partition("largest: ")[0]
    named = set()
    for net, count, names in PER_TARGET.findall(per_target):
        for name in TICKED.findall(names):
            tally = root.by_target[short(report)[name]]
            assert number(net.replace("±", "")) == tally.net
            assert not count or number(count) == tally.deltas
            named.add(short(report)[name])
    assert named in (set(root.by_target), set())


@pytest.mark.parametrize("case", CASES)
def test_an_alarm_has_its_cells_own_numbers(case: str) -> None:
    report, screen = drawn(case)
    row = (
        r"^\| \S+ `([^`]+)` on `([^`]+)`: ([^|<]+)(<br>mainly [^|]+)? \| ([\d,]+)(?: →"
        r" ([\d,]+))?.*<br>limit: .*$"
    )
    rows = re.findall(row, screen, re.MULTILINE)
    fails = [
        finding
        for finding in news(report)
        if finding.level == "fail" and finding.metric and not finding.accepted
    ]
    assert bool(rows) == bool(fails)
    for model, target, label, mainly, first_size, second_size in rows:
        cell = cell_of(report, model, target)
        metric = LABELS[label]
        value = cell.metrics[metric]
        assert number(first_size) == (value.base if second_size else value.head)
        assert not second_size or number(second_size) == value.head
        assert any(
            (finding.model, finding.target, finding.metric)
            == (cell.model, cell.target, metric)
            for finding in news(report)
        )
        # it has some of the cell's change
        if match := re.search(r"cause (\d+) \((\d+) %\)", mainly):
            assert int(match[1]) <= len(report.root_causes)
            assert 0 < int(match[2]) <= 100
    for line in screen.splitlines():
        if line.startswith("| 💥"):
            for models, targets in re.findall(
                r"((?:`[^`]+`(?:, )?)+) on ((?:`[^`]+`(?:, )?)+)", line
            ):
                pairs = [
                    (model, target)
                    for model in TICKED.findall(models)
                    for target in TICKED.findall(targets)
                ]
                assert all(
                    cell_of(report, *pair).state == "newly-broken" for pair in pairs
                )


@pytest.mark.parametrize("case", CASES)
def test_root_causes_hold_every_byte_and_every_dispatch_once(case: str) -> None:
    report, _ = drawn(case)
    explained = [cell for cell in report.cells if cell.waterfall or cell.dispatches]
    bytes_of = Counter[str]()
    dispatches = Counter[str]()
    for cell in explained:
        size = cell.metrics["artifact_bytes"]
        if size.base is not None and size.head is not None:
            assert sum(cell.waterfall.values()) == size.head - size.base, (
                cell.model,
                cell.target,
            )
        bytes_of.update(
            {
                cause: size
                for cause, size in cell.waterfall.items()
                if cause != "unknown"
            }
        )
        dispatches.update(row.cause for row in cell.dispatches if row.cause)
    roots = Counter[str]()
    counted = Counter[str]()
    for root in report.root_causes:
        roots[root.cause or "unknown"] += root.bytes.net
        counted[root.cause or "unknown"] += root.dispatches
        assert sum(tally.net for tally in root.by_target.values()) == root.bytes.net
        assert {key.target for key in root.cells} == set(root.targets)
    assert {cause: size for cause, size in bytes_of.items() if size} == {
        cause: size for cause, size in roots.items() if size and cause != "unknown"
    }
    assert {**dispatches} == {
        cause: count for cause, count in counted.items() if count and cause != "unknown"
    }
