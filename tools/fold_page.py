"""Write the measured tables of docs/fold.md, from one `fold.json` or several.

`make fold-table` makes one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evidence_page import table, written
from json_rows import fold_of
from places import ROOT
from replacing import replace

from bot.fold.audit import FoldAudit, FoldCell, FoldModel
from bot.show.filters import plural

PART = "fold"
UNKNOWN = "n/a"
EQUAL = {True: "equal", False: "differ", None: "not known"}
_STEPS = ("regions", "today", "folded")


def count(number: int | None) -> str:
    """Return a number with separators, such as `1,024`."""
    return UNKNOWN if number is None else f"{number:,}"


def percent(part: int | None, whole: int | None) -> str:
    """Return how much less `part` is than `whole`."""
    return (
        UNKNOWN
        if part is None or not whole
        else f"{100 * (whole - part) / whole:.1f} %"
    )


def change(cell: FoldCell) -> str:
    """Return the change of the artifact."""
    before = cell.artifact_bytes.before
    after = cell.artifact_bytes.after
    return (
        UNKNOWN
        if after is None or not before
        else f"{100 * (after - before) / before:+.1f} %"
    )


def steps(models: Sequence[FoldModel]) -> list[str]:
    """Return the table of how far folding takes each model."""
    head = ["model", *_STEPS, "away today", "away folded"]
    rows = [
        [
            model.model,
            *(count(getattr(model, name)) for name in _STEPS),
            percent(model.today, model.regions),
            percent(model.folded, model.regions),
        ]
        for model in models
    ]
    return table(head, rows)


def cells(audit: FoldAudit) -> Iterator[list[str]]:
    """Yield a row for each cell that was folded."""
    for cell in audit.cells:
        if cell.state != "folded":
            continue
        executables = cell.executables
        sizes = cell.artifact_bytes
        price = cell.price
        yield [
            cell.model,
            cell.target,
            f"{count(executables.before)} → {count(executables.after)}",
            f"{count(sizes.before)} → {count(sizes.after)}",
            change(cell),
            EQUAL[cell.equal],
            (
                UNKNOWN
                if price is None
                else f"{price.ratio:.2f} [{price.low:.2f}, {price.high:.2f}]"
            ),
        ]


def others(audit: FoldAudit) -> Iterator[str]:
    """Yield what was not folded, by state."""
    for state in ("nothing-to-fold", "unsupported", "failed"):
        named = [
            f"{cell.model} on {cell.target}"
            for cell in audit.cells
            if cell.state == state
        ]
        if named:
            yield (
                f"- {state.replace('-', ' ')}: {plural(len(named), 'build')}:"
                f" {', '.join(named)}"
            )


def page_lines(audit: FoldAudit) -> list[str]:
    """Return the part of docs/fold.md."""
    head = [
        "model",
        "target",
        "executables",
        "artifact, bytes",
        "change",
        "outputs",
        "run time",
    ]
    names = ", ".join(sorted({cell.target for cell in audit.cells}))
    ran = f" Run on {audit.machine}." if audit.machine else " Nothing was run."
    about = (
        f"IREE {audit.compiler.version}, {len(audit.models)} models on {names}.{ran}"
    )
    totals_heading = (
        "On each target, over the models that compile there and have something to fold:"
    )
    totals = table(
        [
            "target",
            "models",
            "executables",
            "folded",
            "bytes",
            "change",
            "outputs equal",
        ],
        targets(audit),
    )
    builds = table(head, cells(audit), 2)
    return [
        about,
        "",
        *steps(audit.models),
        "",
        totals_heading,
        "",
        *totals,
        "",
        "Each build:",
        "",
        *builds,
        "",
        *others(audit),
    ]


def targets(audit: FoldAudit) -> Iterator[list[str]]:
    """Yield a row for each target: sums over its folded cells."""
    for target in sorted({cell.target for cell in audit.cells}):
        cells = [
            cell
            for cell in audit.cells
            if cell.target == target and cell.state == "folded"
        ]
        if not cells:
            continue
        numbers = {
            (name, side): sum(getattr(getattr(cell, name), side) or 0 for cell in cells)
            for name in ("executables", "artifact_bytes")
            for side in ("before", "after")
        }
        before = numbers["artifact_bytes", "before"]
        after = numbers["artifact_bytes", "after"]
        equal = sum(cell.equal is True for cell in cells)
        yield [
            target,
            count(len(cells)),
            count(numbers["executables", "before"]),
            count(numbers["executables", "after"]),
            f"{before:,} → {after:,}",
            f"{100 * (after - before) / before:+.1f} %",
            (
                f"{equal} of {len(cells)}"
                if any(cell.equal is not None for cell in cells)
                else "not known"
            ),
        ]


def together(audits: Sequence[FoldAudit]) -> FoldAudit:
    """Join audits of one compiler.

    If several have the same cell, the last one counts. Of a model's folds, the
    fewest executables count.
    """
    cells = {
        (cell.model, cell.target): cell for audit in audits for cell in audit.cells
    }
    if len({audit.compiler.digest for audit in audits}) != 1:
        raise ValueError("audits of several compilers")
    models = {model.model: model for audit in audits for model in audit.models}
    fewest = {name: _fewest(name, cells.values()) for name in models}
    return replace(
        audits[0],
        machine=next((audit.machine for audit in audits if audit.machine), ""),
        models=tuple(
            replace(models[name], folded=fewest[name]) for name in sorted(models)
        ),
        cells=tuple(cells[key] for key in sorted(cells)),
    )


def _fewest(model: str, cells: Iterable[FoldCell]) -> int | None:
    after = [
        cell.executables.after
        for cell in cells
        if cell.model == model and cell.equal is not False
    ]
    return min((number for number in after if number is not None), default=None)


def main(paths: Sequence[str]) -> None:
    """Write the tables."""
    audit = together([fold_of(Path(path).read_bytes()) for path in paths])
    page = ROOT / "docs" / "fold.md"
    page.write_text(
        written(page.read_text(encoding="utf-8"), PART, page_lines(audit), (PART,)),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
