"""`calibrate`: how much the same compile differs from itself on this machine.

A few cells are compiled several times over, each from its model as the printed command does, and nothing comes from the
cache. All are compiled once before any is compiled again, as many side by side as when measuring, so that the repeats
lie as far apart in time as the run allows. A cell's spread is (max − min) / min; the band is the largest spread of all
cells, rounded up to whole percent, and never less than 1 %: a few equal runs prove no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from statistics import median_low

from bot.compiler.compiler import Result
from bot.core.metrics import INEXACT
from bot.core.planned import PlannedCell
from bot.core.snapshot import Cell, CellKey, Failure
from bot.errors import InputError, UsageError
from bot.show.escape import clean
from bot.show.filters import plural
from bot.study.prepare import Work
from bot.study.run import Resources, SidePlan

FEW = 4  # So many cells are compiled where none were selected
LEAST_RUNS = 2
LEAST_PERCENT = 1

Runs = Mapping[CellKey, Sequence[Cell]]


def calibrate(work: Work, runs: int) -> list[str]:
    """Compile the selected cells (else the cheapest few) `runs` times; the lines to print.

    Raises UsageError for fewer than two runs, InputError where no cell could be compiled in every run.
    """
    if runs < LEAST_RUNS:
        raise UsageError(f"{runs} run shows no difference", where="--runs", hint=f"at least {LEAST_RUNS}")
    side = work.prepare("head", work.request.specs["head"])
    cells = chosen(side.cells, everything=bool(work.request.models or work.request.targets))
    work.show.say(f"{plural(len(cells), 'build')}, each compiled {runs} times")
    with work.resources() as resources:
        return list(spread_lines(repeated(side, cells, runs, resources), work.show.say))


def chosen(cells: Sequence[PlannedCell], *, everything: bool) -> tuple[PlannedCell, ...]:
    """All cells that can be compiled, or the cheapest few of them, of as many targets and models as there are."""
    rest = [cell for cell in cells if not cell.hindered]
    few: list[PlannedCell] = []
    while rest and len(few) < FEW and not everything:
        targets, models = {cell.key.target for cell in few}, {cell.key.model for cell in few}
        few.append(min(rest, key=lambda c: (c.key.target in targets, c.key.model in models, c.cost, c.key)))
        rest.remove(few[-1])
    return tuple(rest if everything else sorted(few, key=lambda cell: cell.key))


def repeated(side: SidePlan, cells: Sequence[PlannedCell], runs: int, resources: Resources) -> Runs:
    """Every cell, compiled plainly so many times; nothing is read from the cache or kept in it."""
    cells_by_key: dict[CellKey, list[Cell]] = {cell.key: [] for cell in cells}

    def finish(_: str, planned: PlannedCell, result: Result) -> None:
        if isinstance(result, Failure):
            cell = Cell(planned.key, "failed", failure=result)
        else:  # what the kernel counted, and nothing of what was made
            counted = {"compile_cpu_ms": result.cpu_ms, "compile_peak_rss_kib": result.peak_rss_kib}
            cell = Cell(planned.key, "ok", metrics=counted)
        cells_by_key[planned.key].append(cell)
        resources.progress.measured(side.label, cell, planned.cost)

    resources.progress.plan(len(cells) * runs, 0, sum(cell.cost for cell in cells) * runs)
    meter = resources.compile([(side, cells)], finish, times=runs)
    resources.progress.spent(meter.cpu_ms, resources.jobs)
    return cells_by_key


def spread_lines(runs: Runs, say: Callable[[str], None]) -> Iterator[str]:
    """The table and the configuration, of the cells in which every run knows the metric; `say` gets what is missing.

    Raises InputError where there is no such cell.
    """
    lines: list[tuple[str, ...]] = [("model", "target", "min ms", "median ms", "max ms", "spread")]
    bands = dict[str, int]()  # metric → its noise band in whole percent
    for key in sorted(runs):
        if (failure := next((cell.failure for cell in runs[key] if not cell.measured), None)) is not None:
            say(f"{clean(str(key))} could not be compiled: {clean(failure.message, 200)}")
        for id_ in INEXACT:
            values = [cell.value(id_) or 0 for cell in runs[key]]
            lowest, highest = min(values, default=0), max(values, default=0)
            if lowest <= 0:
                continue
            spread = Fraction(highest - lowest, lowest)
            bands[id_] = max(bands.get(id_, LEAST_PERCENT), ceil(100 * spread))
            if id_ == "compile_cpu_ms":
                amounts = (f"{value:,}" for value in (lowest, median_low(values), highest))
                lines.append((clean(key.model), clean(key.target), *amounts, f"{float(100 * spread):.1f} %"))
    if not bands:
        raise InputError("no cell could be compiled in every run", hint="choose others with --model and --target")
    for id_ in (id_ for id_ in INEXACT if id_ not in bands):
        say(f"{id_} is left out: the kernel did not report it for every run of any build")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        texts = zip(line, widths, strict=True)
        yield "  ".join(text.rjust(width) if at > 1 else text.ljust(width) for at, (text, width) in enumerate(texts))
    yield ""
    yield f"noise: {{{', '.join(f'{id_}: {bands[id_]}%' for id_ in INEXACT if id_ in bands)}}}"
