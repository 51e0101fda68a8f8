"""Every alarm of the default thresholds over release steps, flags and edits, judged: `python -m alarm_evidence`.

An alarm is true where the printed commands of both sides, run anew in a shell, give
figures that break the rule by the same measure: growth above what the level allowed, a
value above the limit, a command that fails on head alone. The figures are those of the
compiler's own tools where a metric has such a source (`compiler_figures`), else those
of the cell measured alone, from an empty cache. An alarm that these do not bear out is
false.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from alarm_sources import Comparison, of_edits, of_flags, of_steps
from compiler_figures import STATISTICS, Compiled, compiled
from evidence_page import table
from evidence_work import PAIR, Section, Work, alone, home_of, plain, require
from repeat_evidence import name_of

from bot.core.planned import LIFTED_LIMIT_FLAG, SIDES
from bot.core.snapshot_json import from_json

SECOND_SOURCE = frozenset(
    {
        *STATISTICS,
        "artifact_bytes",
        "executable_bytes",
        "vm_bytes",
        "rodata_bytes",
        "unattributed_bytes",
    }
)
Answer = Literal["true", "false", "not judged"]


@dataclass(frozen=True)
class Anew:
    """One side of a cell, run again."""

    ran: bool  # whether the printed command gave an artifact, at the compiler's own limits
    # metric → value; None is not known
    figures: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Alarm:
    """A finding with its judgement."""

    kind: str
    comparison: str
    cell: str
    level: str
    what: str
    answer: Answer
    said: str


def answered(finding: Mapping[str, Any], base: Anew, head: Anew) -> tuple[Answer, str]:
    """Return whether the new run bears a finding out, and what it gave."""
    if finding["kind"] == "state":
        if finding["limit"] != "newly-broken":
            return "not judged", f"{finding['limit']}: there are no two commands to run"
        return _as(base.ran and not head.ran), f"base {_ran(base)}, head {_ran(head)}"
    old, new = (side.figures.get(finding["metric"]) for side in (base, head))
    figures = f"anew {_shown(old)} → {_shown(new)}"
    if finding["kind"] == "unknown":
        return _as(old is not None and new is None), figures
    if new is None or (finding["kind"] == "change" and old is None):
        return "false", figures
    value = new if finding["kind"] == "limit" else new - (old or 0)
    return _as(value > finding["allowed"]), figures


def _as(borne_out: bool) -> Answer:
    return "true" if borne_out else "false"


def _ran(side: Anew) -> str:
    return "gives an artifact" if side.ran else "fails"


def _shown(value: int | None) -> str:
    return "n/a" if value is None else f"{value:,}"


# Run anew.


def figures_of(
    seen: Compiled, metrics: Iterable[str], measured: Mapping[str, int | None]
) -> dict[str, int | None]:
    """Return each metric, by its second source if it has one."""
    return {name: seen.figures.get(name, measured.get(name)) for name in metrics}


def anew(
    work: Work, one: Comparison, cell: Mapping[str, Any], side: str, metrics: set[str]
) -> Anew:
    """Run the printed command of a side again.

    The cell is measured alone for the metrics that only the bot can read.
    """
    command = cell["command"][side]
    binary = work.binary(one.compilers[side])
    if not command:
        return Anew(False)
    home = home_of(command, one.homes[side])
    with tempfile.TemporaryDirectory(prefix="alarm-") as name:
        (Path(name) / "gated").mkdir()
        (Path(name) / "whole").mkdir()
        compiled_side = compiled(command, binary, home, Path(name) / "whole")
        limited = command.replace(LIFTED_LIMIT_FLAG, "")
        ran = (
            compiled_side.ran
            if limited == command
            else compiled(limited, binary, home, Path(name) / "gated").ran
        )
        measured = (
            measured_alone(work, one=one, cell=cell, side=side, scratch=Path(name))
            if metrics - SECOND_SOURCE
            else {}
        )
        return Anew(ran, figures_of(compiled_side, metrics, measured))


def measured_alone(
    work: Work, one: Comparison, cell: Mapping[str, Any], side: str, scratch: Path
) -> Mapping[str, int | None]:
    """Return the metrics of a cell that is measured by itself, from an empty cache."""
    out = scratch / "alone.json"
    arguments = [
        "measure",
        "--compiler",
        one.compilers[side],
        "--jobs",
        "1",
        "--out",
        str(out),
        *one.words[side],
    ]
    arguments += [f"--model={cell['model']}", f"--target={cell['target']}"]
    require(
        replace(work, selectors=()).program(
            arguments, scratch, work.empty_cache(scratch)
        ),
        arguments,
    )
    (measured_cell,) = from_json(out.read_text(encoding="utf-8")).cells
    return measured_cell.metrics


def judged(work: Work, one: Comparison) -> list[Alarm]:
    """Return every alarm of a comparison, cells side by side."""
    report = one.report()
    findings: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for finding in report["verdict"]["findings"]:
        if not finding["known"]:
            findings[name_of(finding)].append(finding)
    cells = [cell for cell in report["cells"] if name_of(cell) in findings]
    with ThreadPoolExecutor(work.jobs) as pool:
        alarms_of_cells = pool.map(
            lambda cell: of_cell(work, one, cell, findings[name_of(cell)]), cells
        )
        return [alarm for alarms in alarms_of_cells for alarm in alarms]


def of_cell(
    work: Work,
    one: Comparison,
    cell: Mapping[str, Any],
    findings: Sequence[Mapping[str, Any]],
) -> list[Alarm]:
    """Return the alarms of a cell.

    Judgements are kept, so that an interrupted run goes on after them.
    """
    identity = json.dumps(
        [one.name, name_of(cell), cell["command"], findings], sort_keys=True
    )
    answers_file = (
        work.folder("alarms", "judged")
        / f"{hashlib.sha256(identity.encode()).hexdigest()}.json"
    )
    if not answers_file.is_file():
        work.say(f"{one.name}: {len(findings)} alarms of {name_of(cell)}")
        partly = answers_file.with_suffix(".part")
        partly.write_text(
            json.dumps(answers(work, one, cell, findings)), encoding="utf-8"
        )
        partly.replace(answers_file)
    alarms = []
    for finding, (answer, explanation) in zip(
        findings, json.loads(answers_file.read_text(encoding="utf-8")), strict=True
    ):
        description = f"{finding['metric'] or finding['limit']} {finding['actual']}"
        alarms.append(
            Alarm(
                kind=one.kind,
                comparison=one.name,
                cell=name_of(cell),
                level=finding["level"],
                what=description,
                answer=answer,
                said=explanation,
            )
        )
    return alarms


def answers(
    work: Work,
    one: Comparison,
    cell: Mapping[str, Any],
    findings: Sequence[Mapping[str, Any]],
) -> list[tuple[Answer, str]]:
    """Run both sides of a cell again, and return what that says of its alarms."""
    metrics = {finding["metric"] for finding in findings if finding["metric"]}
    try:
        base, head = (
            anew(work, one=one, cell=cell, side=side, metrics=metrics) for side in SIDES
        )
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return [
            ("not judged", f"{type(error).__name__}: {error}"[:200]) for _ in findings
        ]
    return [answered(finding, base, head) for finding in findings]


# What is told.


def count_row(words: Sequence[str], cells: int, found: Sequence[Alarm]) -> list[str]:
    """Return a line of the table: alarms by level and by judgement."""
    levels = Counter(alarm.level for alarm in found)
    answers = Counter(alarm.answer for alarm in found)
    counts = (
        cells,
        levels["fail"],
        levels["warn"],
        answers["true"],
        answers["false"],
        answers["not judged"],
    )
    return [*words, *(f"{count:,}" for count in counts)]


def lines(
    cells: Mapping[tuple[str, str], int], found: Sequence[Alarm]
) -> Iterator[str]:
    """Yield counts for each comparison and for all.

    Every alarm that is not true is listed by its name.
    """
    rows = []
    for (kind, name), count in cells.items():
        alarms_of_comparison = [
            alarm for alarm in found if (alarm.kind, alarm.comparison) == (kind, name)
        ]
        rows.append(
            count_row(
                [kind, f"`{name}`" if kind == "flags" else plain(name)],
                count,
                alarms_of_comparison,
            )
        )
    rows.append(
        count_row(["**all**", f"{len(cells)} comparisons"], sum(cells.values()), found)
    )
    head = [
        "kind",
        "comparison",
        "builds",
        "fail",
        "warn",
        "true",
        "false",
        "not judged",
    ]
    yield from (*table(head, rows, left=2), "")
    for answer in ("false", "not judged"):
        cells_of_text: dict[tuple[str, str], list[str]] = {}
        for alarm in (alarm for alarm in found if alarm.answer == answer):
            text = f"{alarm.level}, {plain(alarm.what)}; {plain(alarm.said)}"
            cells_of_text.setdefault((plain(alarm.comparison), text), []).append(
                f"`{alarm.cell}`"
            )
        yield from (
            f"- {answer}: {where}, {', '.join(names)}: {text}"
            for (where, text), names in cells_of_text.items()
        )


def alarms(work: Work) -> Section:
    """Return the section of the page."""
    cells: dict[tuple[str, str], int] = {}
    all_alarms: list[Alarm] = []
    for source in (of_steps, of_flags, of_edits):
        for comparison in source(work):
            cells[comparison.kind, comparison.name] = len(comparison.report()["cells"])
            all_alarms += judged(work, comparison)
    about = (
        f"Suite {work.suite}, thresholds of `configs/default.yml`. Flags and edits use"
        f" IREE {PAIR[1]}. The printed commands of both sides run again for each"
        " finding. The finding is true if the new figures break the rule too. The"
        " figures come from the compiler's own tools, if these have the metric."
        " Otherwise the build is measured alone, from an empty cache."
    )
    heading = "## Findings at the default thresholds"
    return Section(
        [heading, "", about, "", *lines(cells, all_alarms)],
        not any(alarm.answer == "false" for alarm in all_alarms),
    )


if __name__ == "__main__":
    raise SystemExit(alone(alarms, __doc__))
