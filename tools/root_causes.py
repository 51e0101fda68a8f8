"""What root causes say of what moved: each step between releases, and flags, and whether it is true.

`python -m root_causes --releases 3.12.0,3.13.0` prints the section of docs/evidence.md.
All of it is read from the files that `compare --out` writes; members of causes are held
against their words by `cause_members`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from alarm_sources import Comparison, of_flags, of_steps
from cause_members import SIDES, Checked, Compilers, Member, check, named
from evidence_page import table
from evidence_work import SUITES, Section, Work, alone

ENOUGH = 0.9
MOST_ANEW = 12
"""Members of passes, and of knobs, that are compiled anew for each comparison: the largest of each cause first."""
REASONS = 3
FORMED, NOT_TRACED = ("input", "fusion"), "not traced"
"""What earlier passes than those of code generation made another dispatch."""


@dataclass
class Moved:
    """One target of a comparison.

    Attributes:
        bytes: the sum of the absolute changes of its dispatches.
        named: root cause with a knob or a pass, another fusion, or an edited model → those of its dispatches.
        unnamed: why there is none → those of the others.
        compile_ms, trace_ms: CPU time of both sides' compiles, and of the traced compiles.
    """

    bytes: int = 0
    named: Counter[str] = field(default_factory=Counter)
    unnamed: Counter[str] = field(default_factory=Counter)
    compile_ms: int = 0
    trace_ms: int = 0

    @property
    def share(self) -> float | None:
        """Of the bytes, those with a name; None where nothing moved."""
        return self.named.total() / self.bytes if self.bytes else None

    @property
    def causes(self) -> int | None:
        """How many of the named causes hold 90 % of the bytes; None where all of them do not."""
        count, held = 0, 0
        for size in sorted(self.named.values(), reverse=True):
            if held >= ENOUGH * self.bytes:
                break
            count, held = count + 1, held + size
        return count if held >= ENOUGH * self.bytes else None


def moved_of(comparison: Comparison) -> dict[str, Moved]:
    """Target → what moved there, by the written files alone.

    Raises ValueError where they contradict each other.
    """
    targets = defaultdict[str, Moved](Moved)
    report = comparison.report()
    _formed(report, targets)
    for root in report["root_causes"]:
        for name, tally in (
            root["by_target"].items()
            if root["cause"] in ("strategy", "codegen")
            else ()
        ):
            sums = targets[name].named if named(root) else targets[name].unnamed
            sums[root["what"]] += tally["absolute"]
    for side in SIDES:
        for cell in json.loads(
            (comparison.out / f"{side}.json").read_text(encoding="utf-8")
        )["cells"]:
            targets[cell["target"]].compile_ms += (
                cell["metrics"].get("compile_cpu_ms") or 0
            )
            traces = cell.get("traces", {}).values()
            targets[cell["target"]].trace_ms += sum(
                trace.get("cpu_ms", 0) for trace in traces
            )
    for name, target in targets.items():
        if (known := target.named.total() + target.unnamed.total()) != target.bytes:
            raise ValueError(
                f"{comparison.name}, {name}: causes have {known:,} of"
                f" {target.bytes:,} B"
            )
    return {
        name: target
        for name, target in sorted(targets.items())
        if target.bytes or target.compile_ms
    }


def _formed(report: Mapping[str, Any], targets: Mapping[str, Moved]) -> None:
    """All dispatches that moved, and those that the model or fusion made others."""
    edited = {edit["model"] for edit in report["edits"]}
    for cell in report["cells"]:
        target = targets[cell["target"]]
        for row in cell.get("dispatches", ()):
            size, cause = abs(Member(cell, row).change_bytes), row["cause"]
            target.bytes += size
            if cause == "input" and cell["model"] in edited:
                target.named[f"{cell['model']} was edited"] += size
            elif cause in FORMED and row.get("pass"):
                operation, count = next(iter(row["operations"].items()))
                target.named[
                    f"{row['pass']}: {operation} {'more' if count > 0 else 'fewer'}"
                ] += size
            elif cause in FORMED:
                target.unnamed[f"{cause}; {row.get('untraced', NOT_TRACED)}"] += size
            elif cause not in ("strategy", "codegen"):
                target.unnamed[cause or row["note"]] += size


def share_words(moved: Moved) -> str:
    """`97 % · 3`: what has a name, and how many causes hold 90 %.

    That alone is left out where they do not.
    """
    if moved.share is None:
        return "–"
    return f"{100 * moved.share:.0f} %" + (
        f" · {moved.causes}" if moved.causes is not None else ""
    )


def whole(targets: Mapping[str, Moved]) -> Moved:
    """All targets together."""
    total = Moved()
    for target in targets.values():
        total.bytes += target.bytes
        total.named.update(target.named)
        total.unnamed.update(target.unnamed)
        total.compile_ms += target.compile_ms
        total.trace_ms += target.trace_ms
    return total


def lines(
    found: Sequence[tuple[str, Mapping[str, Moved], Sequence[Checked]]],
) -> Iterator[str]:
    """The table of all comparisons, and the reasons of what has no name."""
    names = sorted({name for _, targets, _ in found for name in targets})
    head = [
        "comparison",
        "changed B",
        *(name.removeprefix("llvm-cpu-") for name in names),
        "all",
    ]
    head += ["members true", "compiled again", "false", "compiles s", "traces s"]
    rows = []
    for name, targets, checked in found:
        total = whole(targets)
        members = (
            f"{sum(one.true for one in checked)} of"
            f" {sum(one.root['bytes']['deltas'] for one in checked)}"
        )
        anew, false = (
            sum(one.compiled for one in checked),
            sum(len(one.false) for one in checked),
        )
        seconds = (f"{ms / 1000:,.0f}" for ms in (total.compile_ms, total.trace_ms))
        shares = (
            share_words(targets[target]) if target in targets else "–"
            for target in names
        )
        rows.append(
            [
                name,
                f"{total.bytes:,}",
                *shares,
                share_words(total),
                members,
                str(anew),
                str(false),
                *seconds,
            ]
        )
    yield from table(head, rows)
    yield from ("", "The largest changes without a name:", "")
    for name, targets, checked in found:
        reasons = Counter(
            {
                (why, target): size
                for target, one in targets.items()
                for why, size in one.unnamed.items()
            }
        )
        told = [
            f"{why} {size:,} B on {target}"
            for (why, target), size in reasons.most_common(REASONS)
        ]
        rest = reasons.total() - sum(size for _, size in reasons.most_common(REASONS))
        yield f"- {name}: " + "; ".join(
            [*told, *([f"others {rest:,} B"] if rest else [])] or ["nothing"]
        )
        yield from (f"    - not true: {line}" for one in checked for line in one.false)
        yield from (
            f"    - not compiled again: {line}" for one in checked for line in one.open
        )


ABOUT = (
    "The columns show:\n\n- *changed B*: the sum of the absolute changes of all"
    " dispatches.\n- targets and *all*: the share of these bytes with a named knob,"
    " pass or edit. A number after the dot is the number of root causes that hold 90 %"
    " of the bytes.\n- *members true*: a member is a dispatch of a cause with a knob or"
    " a pass. `tools/cause_members.py`, which shares no code with the bot, checks"
    " whether the cause is true of the member.\n- *compiled again*: members that were"
    " also checked with a new compile by both compilers. A knob is compared with the"
    " configuration, a pass with the operations before and after it.\n- *false*:"
    " members of which the cause is not true.\n- seconds: CPU time. The time of traces"
    " does not include the writing of their sources."
)


def causes(work: Work) -> Section:
    """The section of the page: steps over the suite, flags over the quick one."""
    flags = (
        replace(work, suite="quick", config=SUITES["quick"])
        if work.suite == "full"
        else work
    )
    comparisons = [
        *of_steps(work, "causes", (work.releases[0], work.releases[-1])),
        *of_flags(flags, "causes"),
    ]
    found = []
    for comparison in comparisons:
        binaries = {
            side: work.binary(release) for side, release in comparison.compilers.items()
        }
        compilers = Compilers(
            binaries, comparison.homes, work.folder("causes", "dumps")
        )
        found.append(
            (
                comparison.name,
                moved_of(comparison),
                check(comparison.out, compilers, MOST_ANEW, work.jobs),
            )
        )
        work.say(f"{comparison.name}: checked")
    sound = not any(cause.false for *_, checked in found for cause in checked)
    release = comparisons[-1].compilers["head"]
    about = (
        f"Releases: suite {work.suite}. Flags: suite {flags.suite}, IREE {release}."
        f" {ABOUT}"
    )
    return Section(
        ["## The named cause is the cause of the change", "", about, "", *lines(found)],
        sound,
    )


if __name__ == "__main__":
    raise SystemExit(alone(causes, __doc__))
