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
from bot.core.report import report_lines
from bot.show.comment import render_comment

CASES = tuple(everyday.CASES)
LABELS = {metric.label: metric.id for metric in METRICS}
TICKED = re.compile(r"`([^`]+)`")


@lru_cache
def drawn(case: str) -> tuple[JsonRow, str]:
    """The report as it is written, and the first screen of its comment without Markdown's escapes."""
    made = everyday.report(case)
    text = b"".join(report_lines(made))
    screen = render_comment(made).partition("<details>")[0]
    return json.loads(text, object_hook=JsonRow), screen.replace("\\", "").replace(
        "&nbsp;", " "
    )


def short(report: JsonRow) -> dict[str, str]:
    """Short name → target."""
    found = {}
    for target, backend in {**report.base.targets, **report.head.targets}.items():
        rest = (
            target.removeprefix(backend).lstrip("-_")
            if target.startswith(backend)
            else ""
        )
        found[rest or target.removesuffix("-spirv")] = target
        found[target] = target
    return found


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
        both = cell.metrics["artifact_bytes"]
        if (
            target in ("", cell.target)
            and both.base is not None
            and both.head is not None
        ):
            yield both.base, both.head


def news(report: JsonRow) -> list[JsonRow]:
    return [finding for finding in report.verdict.findings if not finding.known]


def cell_of(report: JsonRow, model: str, target: str) -> JsonRow:
    found: list[JsonRow] = [
        cell
        for cell in report.cells
        if (cell.model, short(report)[target]) == (model, cell.target)
    ]
    assert len(found) == 1, (model, target)
    return found[0]


@pytest.mark.parametrize("case", CASES)
def test_the_headline_counts_cells(case: str) -> None:
    report, screen = drawn(case)
    line = next(line for line in screen.splitlines() if "**Code size:" in line)
    icon = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}[
        report.verdict.status
    ]
    assert line.startswith(icon)
    states = Counter(cell.state for cell in report.cells)
    both = list(artifacts(report))
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
    for words, count in alarming.items():
        found = re.search(rf"([\d,]+) of \d+ builds? {words}", line)
        assert (number(found[1]) if found else 0) == count, (words, line)
    ways = {
        "larger": sum(head > base for base, head in both),
        "smaller": sum(head < base for base, head in both),
        "fixed": states["fixed"],
        "already failing on base": states["broken"],
    }
    for words, count in ways.items():
        found = re.search(rf"([\d,]+) {words}", line)
        assert (number(found[1]) if found else 0) == count, (words, line)
    if found := re.search(r"([\d,]+) of (\d+) builds bit-identical", line):
        identical = sum(
            cell.state == "same" and cell.identical is True for cell in report.cells
        )
        planned = sum(
            not (cell.state == "unmeasured" and "unsupported" in str(cell))
            for cell in report.cells
        )
        assert number(found[1]) == identical and int(found[2]) <= planned
    if found := re.search(
        r"([+−][\d,]+ B) \(([^)]+)\) (?:in all|over the \d+ builds)", line
    ):
        base, head = (sum(side) for side in zip(*both, strict=True))
        assert (number(found[1]), found[2]) == (head - base, percent(base, head))


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
        both = list(artifacts(report, target))
        base, head = (sum(side) for side in zip(*both, strict=True)) if both else (0, 0)
        told = [
            number(text)
            for text in re.findall(
                r"[\d,]*\d", sizes.partition(" (")[0].partition(", ")[0]
            )
        ]
        assert (
            (told[0], told[-1]) == (base, head)
            if both
            else "newly failing" in sizes or sizes == "n/a"
        )
        assert not both or base == head or f"({percent(base, head)})" in sizes
        assert not compared or int(compared) == len(both) < int(planned)
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
        wanted = [
            sum(count.base for count in counts),
            sum(count.head for count in counts),
        ]
        told = [number(text) for text in re.findall(r"[\d,]*\d", executables)]
        if executables:
            assert [told[0], told[-1]] == wanted if counts else executables == "n/a"
        else:
            assert not counts or wanted[0] == wanted[1]
        memory = memory.replace("<br>", " ")
        for base_value, head_value, model in re.findall(
            r"frame ([\d,]+) → ([\d,]+) B[^;]* in `([^`]+)`", memory
        ):
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
    shown = list[JsonRow]()
    for line in lines:
        said, _, detail = line.partition("<br><sub>")
        net = number(re.search(r"· ([+−±][\d,]+(?: B)?)", said)[1].replace("±", ""))  # type: ignore[index]
        named = [
            root
            for root in roots
            if root.bytes.net == net and root not in shown and _is_said(root, said)
        ]
        assert named, said
        root = named[0]
        shown.append(root)
        share = re.search(r" \((\d+) %\) ·", said)
        assert share is None or int(share[1]) == round(100 * (root.share or 0))
        if found := re.search(r"· ([\d,]+) dispatch(?:es)? in", said):
            assert number(found[1]) == root.dispatches
        _named(report, said.rpartition(" · ")[2], root)
        _each_target(report, detail, root)
    if held := re.search(
        r"Causes\*\* \((?:the first (\d+) of (\d+), )?(\d+) % of the total change",
        screen,
    ):
        shares = [root.share or 0 for root in shown]
        assert not held[1] or (int(held[1]), int(held[2])) == (len(lines), len(roots))
        assert int(held[3]) == round(100 * sum(shares))


def _is_said(root: JsonRow, said: str) -> bool:
    """Whether the words of a line are about the first word of the cause: a knob, a pass, a part."""
    first = root.what.split()[0].rstrip(":").lower()
    return first in said.replace("\\", "").lower()


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
    told = detail.partition("largest: ")[0]
    named = set()
    for net, count, names in re.findall(
        r"([+−±][\d,]+)(?: B)?(?: each)?(?: in ([\d,]+))? on ((?:`[^`]+`(?:, )?)+)",
        told,
    ):
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
    for model, target, label, mainly, left, right in rows:
        cell, metric = cell_of(report, model, target), LABELS[label]
        both = cell.metrics[metric]
        assert number(left) == (both.base if right else both.head)
        assert not right or number(right) == both.head
        assert any(
            (finding.model, finding.target, finding.metric)
            == (cell.model, cell.target, metric)
            for finding in news(report)
        )
        if found := re.search(
            r"cause (\d+) \((\d+) %\)", mainly
        ):  # it has some of the cell's change
            assert int(found[1]) <= len(report.root_causes)
            assert 0 < int(found[2]) <= 100
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
    bytes_of, dispatches = Counter[str](), Counter[str]()
    for cell in explained:
        both = cell.metrics["artifact_bytes"]
        if both.base is not None and both.head is not None:
            assert sum(cell.waterfall.values()) == both.head - both.base, (
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
    roots, counted = Counter[str](), Counter[str]()
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
