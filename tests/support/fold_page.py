"""The measured tables of docs/fold.md and README.md, of a `fold.json` or several: `make fold-table` makes one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evidence_page import table, written
from places import ROOT
from replacing import replace

from bot.core.codec.fold_json import fold_of
from bot.core.folds.fold_values import FoldAudit, FoldCell, FoldModel

PART = "fold"
UNKNOWN = "n/a"
SHOWN_IN_README = "llvm-cpu-x86_64"
_STEPS = ("regions", "today", "not_inlined", "shapes_erased", "constants_erased", "both_erased", "folded")


def count(number: int | None) -> str:
    """`1,024`."""
    return UNKNOWN if number is None else f"{number:,}"


def percent(part: int | None, whole: int | None) -> str:
    """How much less `part` is than `whole`."""
    return UNKNOWN if part is None or not whole else f"{100 * (whole - part) / whole:.1f} %"


def change(cell: FoldCell) -> str:
    """Of the artifact."""
    before, after = cell.artifact_bytes.before, cell.artifact_bytes.after
    return UNKNOWN if after is None or not before else f"{100 * (after - before) / before:+.1f} %"


def steps(models: Sequence[FoldModel]) -> list[str]:
    """How far each step takes each model."""
    head = ["model", *(name.replace("_", " ") for name in _STEPS), "away today", "away folded"]
    rows = [
        [
            one.model,
            *(count(getattr(one, name)) for name in _STEPS),
            percent(one.today, one.regions),
            percent(one.folded, one.regions),
        ]
        for one in models
    ]
    return table(head, rows)


def cells(audit: FoldAudit) -> Iterator[list[str]]:
    """A row for each cell that was folded."""
    for cell in audit.cells:
        if cell.state != "folded":
            continue
        executables, sizes, price = cell.executables, cell.artifact_bytes, cell.price
        yield [
            cell.model,
            cell.target,
            f"{count(executables.before)} → {count(executables.after)}",
            f"{count(sizes.before)} → {count(sizes.after)}",
            change(cell),
            {True: "equal", False: "differ", None: "not run"}[cell.equal],
            UNKNOWN if price is None else f"{price.ratio:.2f} [{price.low:.2f}, {price.high:.2f}]",
        ]


def others(audit: FoldAudit) -> Iterator[str]:
    """What was not folded, by state."""
    for state in ("nothing-to-fold", "unsupported", "failed"):
        named = [f"{cell.model} on {cell.target}" for cell in audit.cells if cell.state == state]
        if named:
            yield f"- {state.replace('-', ' ')}: {len(named)} cells: {', '.join(named)}"


def page_lines(audit: FoldAudit) -> list[str]:
    """The part of docs/fold.md."""
    head = ["model", "target", "executables", "artifact, bytes", "change", "outputs", "run time"]
    targets = ", ".join(sorted({cell.target for cell in audit.cells}))
    ran = f" Run on {audit.machine}." if audit.machine else " Nothing was run."
    about = f"IREE {audit.compiler.version}, {len(audit.models)} models on {targets}.{ran}"
    return [about, "", *steps(audit.models), "", *table(head, cells(audit), 2), "", *others(audit)]


def readme_lines(audit: FoldAudit) -> list[str]:
    """The table of README.md: regions and executables of each model, and its artifact on one target."""
    found = {cell.model: cell for cell in audit.cells if cell.target == SHOWN_IN_README}
    head = ["model", "regions", "executables", "folded", f"bytes on {SHOWN_IN_README}", "change", "outputs"]
    rows = []
    for one in audit.models:
        cell = found.get(one.model)
        sizes = cell.artifact_bytes if cell else None
        rows.append(
            [
                one.model,
                count(one.regions),
                f"{count(one.today)} ({percent(one.today, one.regions)} away)",
                f"{count(one.folded)} ({percent(one.folded, one.regions)} away)",
                f"{count(sizes.before)} → {count(sizes.after)}" if sizes else UNKNOWN,
                change(cell) if cell else UNKNOWN,
                {True: "equal", False: "differ", None: "not run"}[cell.equal] if cell else UNKNOWN,
            ]
        )
    return table(head, rows)


def together(audits: Sequence[FoldAudit]) -> FoldAudit:
    """Audits of one compiler as one: of a cell that several have, the last counts; of a model's folds the fewest."""
    cells = {(cell.model, cell.target): cell for audit in audits for cell in audit.cells}
    if len({audit.compiler.digest for audit in audits}) != 1:
        raise ValueError("audits of several compilers")
    models = {one.model: one for audit in audits for one in audit.models}
    fewest = {name: _fewest(name, cells.values()) for name in models}
    return replace(
        audits[0],
        machine=next((audit.machine for audit in audits if audit.machine), ""),
        models=tuple(replace(models[name], folded=fewest[name]) for name in sorted(models)),
        cells=tuple(cells[key] for key in sorted(cells)),
    )


def _fewest(model: str, cells: Iterable[FoldCell]) -> int | None:
    after = [cell.executables.after for cell in cells if cell.model == model and cell.equal is not False]
    return min((number for number in after if number is not None), default=None)


def main(paths: Sequence[str]) -> None:
    """Write both tables."""
    audit = together([fold_of(Path(path).read_text(encoding="utf-8"), path) for path in paths])
    for name, lines in (("docs/fold.md", page_lines(audit)), ("README.md", readme_lines(audit))):
        file = ROOT / name
        file.write_text(written(file.read_text(encoding="utf-8"), PART, lines, (PART,)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
