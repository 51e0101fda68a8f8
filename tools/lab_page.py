"""Write the measured tables of docs/lab.md, from one `lab.json` or several.

`make lab-tables` makes them. There may be several files of one experiment, such as of
many models and of many targets. Then the page has all, and its first table that of the
most models on its target.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from evidence_page import table, written
from lab_reading import read_lab
from places import ROOT

from bot.config.experiments import load_experiments
from bot.core.growth import growths
from bot.core.lab import Lab
from bot.core.lab_sums import Sums, sums
from bot.core.record import certain, difference, ends
from bot.show.blocks import Phrase, Table
from bot.show.escape import md_cell, md_code
from bot.show.filters import plural
from bot.show.growth import growth_answers, growth_tables
from bot.show.lab_answers import answers, differences
from bot.show.lab_remarks import remarks
from bot.show.lab_stack import beyond_stack
from bot.show.lab_tables import tables
from bot.show.lab_unmeasured import unmeasured
from bot.show.renderers import md_words
from bot.show.times import time_tables

PART = "lab"
SHOWN_FIRST = "llvm-cpu-x86_64"
MOST_VARIANTS = 4
_ROWS = 400
_NAMES = 16


def part_of(name: str) -> str:
    """Return the name of an experiment's part of docs/lab.md."""
    return f"{PART}-{name}"


def drawn(shown: Table) -> list[str]:
    """Return a table in Markdown, its caption before it."""
    rows = [[md_words(text, md_cell) for text in row] for row in shown.texts]
    return [
        md_words(shown.caption, md_code),
        "",
        *table(shown.headers, rows, shown.numbers_from),
        "",
    ]


def listed(lines: Iterable[Phrase]) -> list[str]:
    """Return a list in Markdown."""
    return [f"- {md_words(line, md_code)}" for line in lines]


def page_lines(lab: Lab) -> list[str]:
    """Return an experiment's part of docs/lab.md: its answer, and the first tables."""
    all_sums = sums(lab)
    leading = tables(lab, all_sums)[0]
    grown = growths(lab.study, lab.experiment.columns)
    answer_lines = [
        *growth_answers(grown),
        *answers(lab, all_sums),
        *beyond_stack(lab, all_sums, _NAMES),
    ]
    missing = [*unmeasured(lab, _NAMES), *remarks(lab)]
    compilers = dict.fromkeys(
        variant.compiler.version for variant in lab.study.variants if variant.compiler
    )
    models = plural(len({cell.key.model for _, cell in lab.cells}), "model")
    ran = f" Run on {lab.machine}." if lab.machine else ""
    opening = [
        f"IREE {', '.join(compilers)}, {models}.{ran}",
        "",
        *listed(answer_lines),
        "",
    ]
    blocks = (*growth_tables(grown), *leading, *time_tables(lab, _ROWS))
    measured = [block for block in blocks if isinstance(block, Table)]
    table_lines = [line for block in measured for line in drawn(block)]
    return [*opening, *table_lines, *listed(missing)]


def first_lines(labs: Sequence[Lab]) -> list[str]:
    """Return one line for each experiment: its question, and what was measured."""
    rows = [
        [
            f"[{lab.experiment.name}](#{lab.experiment.name})",
            lab.experiment.question,
            short_answer(lab),
        ]
        for lab in labs
    ]
    return table(
        ["experiment", "question", f"measured, on {SHOWN_FIRST}"], rows, left=3
    )


def short_answer(lab: Lab) -> str:
    """Return what differs most, or the exponents of growth, in a few words."""
    grown = growths(lab.study, lab.experiment.columns)
    if grown:
        return " ".join(md_words(line, md_code) for line in growth_answers(grown))
    sums_by_target = {
        sums_of_target.target: sums_of_target
        for sums_of_target in sums(lab)
        if sums_of_target.models
    }
    first_sums = sums_by_target.get(SHOWN_FIRST) or next(
        iter(sums_by_target.values()), None
    )
    return "nothing was measured" if first_sums is None else _against(lab, first_sums)


def _against(lab: Lab, shown: Sums) -> str:
    names = [
        variant.name for variant in shown.variants if variant.name != shown.reference
    ]
    changes = {name: differences(lab, shown, name) for name in names}
    moved = sorted(
        (name for name in names if changes[name]),
        key=lambda name: -_size(lab, shown, name),
    )
    phrases = [
        f"`{name}` {', '.join(_few(changes[name]))}" for name in moved[:MOST_VARIANTS]
    ]
    measured = [
        name for name in names if shown.value(name, "artifact_bytes") is not None
    ]
    still = len(set(measured).difference(moved))
    unknown = len(set(names).difference(measured, moved))
    unnamed = len(moved) - len(phrases)
    further = [f"{unnamed} more {'differs' if unnamed == 1 else 'differ'}"] * bool(
        unnamed
    ) + [f"nothing changes with {still} more" if phrases else "nothing changes"] * bool(
        still
    )
    further += [f"{unknown} not measured"] * bool(unknown)
    return (
        f"{plural(len(shown.models), 'model')}, against `{shown.reference}`:"
        f" {'; '.join([*phrases, *further])}"
    )


def _few(told: Sequence[str]) -> list[str]:
    """Return the first two differences, and the time, which comes last."""
    return [*told[:2], *told[2:][-1:]] if "CPU time" in told[-1] else list(told[:2])


def _size(lab: Lab, shown: Sums, name: str) -> float:
    """Return the part of the first change that is sure."""
    for column in lab.experiment.columns:
        before = shown.value(shown.variants[0].name, column)
        after = shown.value(name, column)
        if before and (sure := certain(difference(before, after))):
            return abs(sure) / ends(before)[1]
    return 0.0


def main(paths: Sequence[str]) -> None:
    """Write each experiment's part of docs/lab.md.

    The first table is written, too, if all experiments are given.
    """
    labs: dict[str, list[Lab]] = {name: [] for name in load_experiments()}
    for path in paths:
        lab = read_lab(Path(path))
        labs[lab.experiment.name].append(lab)
    page = ROOT / "docs" / "lab.md"
    text = page.read_text(encoding="utf-8")
    for name, labs_of_name in labs.items():
        if labs_of_name:
            text = written(
                text,
                part_of(name),
                [line for lab in labs_of_name for line in page_lines(lab)],
                [part_of(lab) for lab in labs],
            )
    if all(labs.values()):
        text = written(
            text,
            PART,
            first_lines([max(lab, key=_models) for lab in labs.values()]),
            (PART,),
        )
    page.write_text(text, encoding="utf-8")


def _models(lab: Lab) -> int:
    return max(
        (
            len(sums_of_target.models)
            for sums_of_target in sums(lab)
            if sums_of_target.target == SHOWN_FIRST
        ),
        default=0,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
