"""The same comparison twice, and a compiler against itself from machines that differ: no difference may appear.

`python -m repeat_evidence` compares the second release of PAIR with itself: a side that
was measured with one job is the base of runs from other folders, with caches of their
own, on other numbers of processors and with less memory.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence_page import table
from evidence_work import PAIR, Machine, Section, Work, alone, home_of, require
from printed_commands import Side, ran

from bot.core.metrics import METRICS
from bot.core.snapshot import Cell, Snapshot
from bot.core.snapshot_json import from_json

TIMES = frozenset({"compile_cpu_ms", "compile_peak_rss_kib"})
EXACT = frozenset(metric.id for metric in METRICS if metric.exact)
RUNS = 12
"""How often the command of a differing build runs before the build counts as deterministic."""
SHOWN = 40


@dataclass(frozen=True)
class Place:
    """The machine and the folder in which a compiler is compared with itself."""

    words: str
    folder: str
    jobs: int
    machine: Machine | None = None


BASE = Place("where the base was measured", "one", 1)
PLACES = (
    Place("another folder and cache, 2 jobs", "another/folder", 2),
    Place(
        "a third folder, 1 processor, 8 GiB of memory a process",
        "a/third/folder",
        1,
        Machine(1, 8 << 30),
    ),
    Place("a fourth folder, 5 jobs side by side", "fourth", 5),
)


def without_times(value: Any) -> Any:
    """Return the JSON value without what differs from run to run by nature."""
    if isinstance(value, dict):
        return {
            name: without_times(entry)
            for name, entry in value.items()
            if name not in TIMES
        }
    return [without_times(item) for item in value] if isinstance(value, list) else value


def differing(base: Path, head: Path) -> Iterator[str]:
    """Yield the paths at which two JSON files differ, other than in times."""
    base_document, head_document = (
        without_times(json.loads(path.read_bytes())) for path in (base, head)
    )
    yield from _differing(base_document, head_document, base.name)


def _differing(base: Any, head: Any, path: str) -> Iterator[str]:
    if isinstance(base, dict) and isinstance(head, dict):
        for name in sorted({*base, *head}):
            yield from _differing(base.get(name), head.get(name), f"{path}.{name}")
    elif isinstance(base, list) and isinstance(head, list) and len(base) == len(head):
        for index, pair in enumerate(zip(base, head, strict=True)):
            yield from _differing(*pair, f"{path}[{index}]")
    elif base != head:
        yield f"{path}: {str(base)[:80]} | {str(head)[:80]}"


def same(work: Work) -> Section:
    """Make one comparison twice at the same time, with one job and with two.

    Both begin with an empty cache.
    """
    runs = []
    outs = []
    for jobs, folder in ((1, "one"), (2, "another/folder")):
        home = work.folder("same", folder)
        arguments = [
            "compare",
            "--base",
            PAIR[0],
            "--head",
            PAIR[1],
            "--jobs",
            str(jobs),
            "--out",
            str(home / "out"),
        ]
        runs.append(work.program(arguments, home, work.empty_cache(home)))
        outs.append(home / "out")
    work.say(f"{PAIR[0]} → {PAIR[1]} in two places at once")
    codes = [run.wait() for run in runs]
    differences = [] if len(set(codes)) == 1 else [f"exit codes {codes}"]
    for name in ("base.json", "head.json", "report.json"):
        differences += differing(outs[0] / name, outs[1] / name)
    about = (
        f"IREE {PAIR[0]} → {PAIR[1]}, suite {work.suite}. The comparison ran twice at"
        " the same time: from empty caches, in two folders, with 1 and 2 jobs. Apart"
        " from times and memory, `base.json`, `head.json` and "
    )
    conclusion = (
        f"`report.json` differ in {len(differences)} places:"
        if differences
        else "`report.json` are the same."
    )
    lines = ["## The same comparison gives the same report", "", about + conclusion]
    return Section(
        [*lines, *(f"- `{line}`" for line in differences[:SHOWN])], not differences
    )


# A compiler against itself.


@dataclass(frozen=True)
class Held:
    """A report of a compiler against itself."""

    words: str
    states: Mapping[str, int]
    differing: Mapping[str, str]  # `MODEL on TARGET` → what of the cell is not the same
    findings: Sequence[str]  # `MODEL on TARGET` of each alarm


def name_of(row: Mapping[str, Any]) -> str:
    """Return a cell's name on the page."""
    return f"{row['model']} on {row['target']}"


def difference(cell: Mapping[str, Any]) -> str:
    """Return what differs in a cell of a report; empty if nothing does."""
    if cell["state"] in ("same", "broken"):
        parts = [
            f"{cell[name]['base']} | {cell[name]['head']}"
            for name in ("status", "failure")
            if unlike(cell[name])
        ]
        parts += ["the artifacts are other bytes"] * (cell["identical"] is False)
        parts += [
            name
            for name, pair in cell["metrics"].items()
            if name in EXACT and unlike(pair)
        ]
        return ", ".join(parts)
    excused = cell["state"] == "unmeasured" and set(cell["status"].values()) == {
        "unsupported"
    }
    return "" if excused else cell["state"]


def unlike(pair: Mapping[str, Any]) -> bool:
    """Return whether the two sides of a pair differ."""
    return bool(pair["base"] != pair["head"])


def held(words: str, report: Mapping[str, Any]) -> Held:
    """Return what a report says of two sides that are one."""
    excused = [
        cell["state"] == "unmeasured" and not difference(cell)
        for cell in report["cells"]
    ]
    named = zip(report["cells"], excused, strict=True)
    states = Counter(
        "unsupported" if is_excused else cell["state"] for cell, is_excused in named
    )
    differences = {name_of(cell): difference(cell) for cell in report["cells"]}
    alarms = [
        name_of(finding)
        for finding in report["verdict"]["findings"]
        if not finding["known"]
    ]
    return Held(
        words,
        states,
        {name: text for name, text in differences.items() if text},
        alarms,
    )


def measured(work: Work) -> Snapshot:
    """Return the compiler's cells, measured with one job in a cache of their own."""
    home = work.folder("noise", BASE.folder)
    arguments = [
        "measure",
        "--compiler",
        PAIR[1],
        "--jobs",
        str(BASE.jobs),
        "--out",
        str(home / "base.json"),
    ]
    work.say(f"{PAIR[1]}: {BASE.words}")
    require(work.program(arguments, home, work.empty_cache(home)), arguments)
    return from_json((home / "base.json").read_text(encoding="utf-8"))


def against(work: Work, place: Place, base: str) -> tuple[Held, Snapshot]:
    """Measure the same compiler in another place.

    It is compared with the base side, as a pull request does it.
    """
    home = work.folder("noise", place.folder)
    arguments = [
        "compare",
        "--base",
        base,
        "--head",
        PAIR[1],
        "--jobs",
        str(place.jobs),
        "--out",
        str(home / "out"),
    ]
    work.say(f"{PAIR[1]} against itself: {place.words}")
    require(
        work.program(arguments, home, work.empty_cache(home), place.machine), arguments
    )
    report = json.loads((home / "out" / "report.json").read_text(encoding="utf-8"))
    return held(place.words, report), from_json(
        (home / "out" / "head.json").read_text(encoding="utf-8")
    )


def is_nondeterministic(cell: Cell, side: Side) -> bool:
    """Return whether the printed command, run several times, gives more than one result."""
    results = set()
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        for _ in range(RUNS):
            results.add(ran(cell, side, Path(name) / "a.vmfb"))
            if len(results) > 1:
                return True
    return False


def difference_lines(names: Iterable[str], noisy: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each cell that differed, or that gives several artifacts."""
    for name in sorted({*names, *noisy}):
        yield (
            f"- {'noise' if name in noisy else 'difference'}:"
            f" `{name}`{noisy.get(name, '')}"
        )


def noise_lines(
    found: Sequence[Held], noisy: Mapping[str, str]
) -> tuple[list[str], bool]:
    """Return the table and the cells by name.

    The second value says whether all that differed is the compiler's own noise.
    """
    rows = []
    for comparison in found:
        counts = [
            str(comparison.states.get(state, 0))
            for state in ("same", "broken", "unsupported")
        ]
        unsure = sum(name in noisy for name in comparison.differing)
        rows.append(
            [
                comparison.words,
                *counts,
                str(len(comparison.differing) - unsure),
                str(unsure),
                str(len(comparison.findings)),
            ]
        )
    head = [
        "head measured in",
        "same",
        "already failing",
        "unsupported",
        "differ, not noise",
        "noise",
        "findings",
    ]
    names = {
        name
        for comparison in found
        for name in (*comparison.differing, *comparison.findings)
    }
    return [*table(head, rows), "", *difference_lines(names, noisy)], names <= set(
        noisy
    )


def noise(work: Work) -> Section:
    """Compare a compiler with itself from all places.

    A cell that differs is checked with its printed command alone.
    """
    base = measured(work)
    path = str(work.folder("noise", BASE.folder) / "base.json")
    again = Place("the same place and cache, both sides", BASE.folder, BASE.jobs)
    runs = [
        against(work, again, PAIR[1]),
        *(against(work, place, path) for place in PLACES),
    ]
    side = Side("base", base, work.binary(PAIR[1]), work.config.parent)
    noisy = {
        str(cell.key): " (the build lists this result)"
        for _, snapshot in runs
        for cell in snapshot.cells
        if cell.others
    }
    names = {
        name
        for comparison, _ in runs
        for name in (*comparison.differing, *comparison.findings)
    } - set(noisy)
    for cell in base.cells:
        if str(cell.key) in names and cell.command:
            work.say(f"{cell.key} differs: its command is run up to {RUNS} times")
            home = home_of(cell.command, side.home)
            if is_nondeterministic(cell, Side(side.name, base, side.binary, home)):
                noisy[str(cell.key)] = " (its printed command gives several results)"
    lines, sound = noise_lines([comparison for comparison, _ in runs], noisy)
    about = (
        f"IREE {PAIR[1]}, suite {work.suite}. The compiler is measured with 1 job, and"
        " compared with itself under the conditions of each row. A difference is noise"
        " if the printed command of the build gives several artifacts."
    )
    return Section(
        ["## A compiler compared with itself shows no change", "", about, "", *lines],
        sound,
    )


if __name__ == "__main__":
    raise SystemExit(alone(noise, __doc__))
