"""Each step between releases: how many cells it changed and broke, how many bytes moved, and for which root causes.

`python -m release_steps --releases 3.11.0,3.12.0,3.13.0` prints the section of docs/evidence.md. Each release is
compiled once; what a step says is that of `report.json`, the sums are made here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from evidence_page import table
from evidence_work import PAIR, Section, Work, alone, plain

TOP = 5
STATES = ("same", "changed", "newly-broken", "fixed", "broken")


@dataclass(frozen=True)
class Step:
    """One release against the next, or why there is no report of the two."""

    base: str
    head: str
    out: Path | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """As the page calls it."""
        return f"{self.base} → {self.head}"

    def report(self) -> Mapping[str, Any]:
        """Its `report.json`; raises ValueError where there is none."""
        if self.out is None:
            raise ValueError(self.problem)
        found: Mapping[str, Any] = json.loads((self.out / "report.json").read_text(encoding="utf-8"))
        return found


def pairs(releases: Sequence[str]) -> list[tuple[str, str]]:
    """The steps between neighbours; before them that of PAIR, where it is more than one step."""
    steps = list(pairwise(releases))
    whole = set(PAIR) <= set(releases) and PAIR not in steps
    return [PAIR, *steps] if whole else steps


def compared(work: Work, part: str) -> Iterator[Step]:
    """All steps. A release that cannot be had, or gives no verdict, leaves the other steps alone."""
    for base, head in pairs(work.releases):
        out = work.folder(part) / f"{base}-{head}"
        try:
            yield Step(base, head, work.compared(out, "--base", base, "--head", head))
        except ValueError as error:
            yield Step(base, head, problem=str(error))


def moved(report: Mapping[str, Any]) -> tuple[int, int, int]:
    """Bytes of all artifacts on the base side, the sum of their changes, and of the absolute changes."""
    sizes = [cell["metrics"].get("artifact_bytes") for cell in report["cells"]]
    both = [size for size in sizes if size and None not in (size["base"], size["head"])]
    changes = [size["head"] - size["base"] for size in both]
    return sum(size["base"] for size in both), sum(changes), sum(map(abs, changes))


def row(name: str, report: Mapping[str, Any]) -> list[str]:
    """A step's line of the table."""
    states = Counter(cell["state"] for cell in report["cells"])
    base, net, absolute = moved(report)
    share = f"{100 * net / base:+.1f} %" if base else "n/a"
    verdict = report["verdict"]["status"]
    return [name, *(str(states[state]) for state in STATES), f"{base:,}", f"{net:+,}", share, f"{absolute:,}", verdict]


def cause_rows(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """The root causes with the most bytes."""
    largest = sorted(report["root_causes"], key=lambda one: (-one["bytes"]["absolute"], one["what"]))
    for one in largest[:TOP]:
        share = "n/a" if one["share"] is None else f"{100 * one['share']:.1f} %"
        counts = [str(len(one[name])) for name in ("models", "targets", "cells")]
        sizes = [f"{one['bytes']['net']:+,}", f"{one['bytes']['absolute']:,}"]
        yield [plain(one["what"]), one["cause"] or "n/a", *counts, *sizes, share]


def lines(steps: Sequence[tuple[Step, Mapping[str, Any]]]) -> Iterator[str]:
    """The table of all steps, and the root causes of each."""
    head = ["step", *(state.replace("-", " ") for state in STATES)]
    head += ["bytes of base", "net", "net / base", "moved", "verdict"]
    yield from table(head, [row(step.name, report) for step, report in steps])
    for step, report in steps:
        known = sum(one["bytes"]["absolute"] for one in report["root_causes"])
        count = len(report["root_causes"])
        yield from ("", f"### {step.name}", "")
        yield f"{count} root causes, {known:,} bytes of changes added up; the largest {min(count, TOP)}:"
        columns = ["what", "cause", "models", "targets", "cells", "net", "moved", "share"]
        yield from ("", *table(columns, cause_rows(report), left=2))


def steps(work: Work) -> Section:
    """The section of the page."""
    found = list(compared(work, "steps"))
    told = [(step, step.report()) for step in found if not step.problem]
    broken = [f"- {step.name} was not compared: {step.problem}" for step in found if step.problem]
    about = (
        f"Suite {work.suite}. Bytes are those of artifacts that both sides have; what moved counts growth and "
        "shrinking alike. The share of a root cause is that of `report.json`: of all bytes that its causes moved."
    )
    return Section(["## Each step between releases", "", about, "", *lines(told), "", *broken], not broken)


if __name__ == "__main__":
    raise SystemExit(alone(steps, __doc__))
