"""Time an experiment's compiles by phase and by pass.

Each build is compiled once more. No other compile runs at that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.compiler.compiling import CompileInput, CompileSetup, timed
from bot.compiler.importing import Importer
from bot.compiler.iree import open_setup
from bot.core.planned import PlannedCell
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.core.times import CompileTimes, longest, phases_us
from bot.readers.pass_times import pass_times_us
from bot.study.lab_plans import VariantPlan
from bot.study.prepare import Work
from bot.system.files import temporary_directory

NO_REPORT = "this compiler prints no times of its passes"
_MOST_PASSES = 8  # of each variant
_DUMPING = "DumpModulePass"  # writes the files by which the phases are timed

Times = dict[tuple[str, CellKey], CompileTimes]
"""Variant and build → where its compile spends its time."""


def times_of_variants(
    plans: Sequence[VariantPlan], sides: Mapping[str, Snapshot], work: Work
) -> Times:
    """Return where each measured build's compile spends its time.

    The compiles run one after the other, as these are wall times.
    """
    times = Times()
    with temporary_directory("lab-") as scratch:
        for plan in plans:
            work.show.say(f"times of the passes with variant {plan.name}")
            session = work.session(scratch)
            with open_setup(plan.side.toolchain, session) as (setup, importer):
                for cell in sides[plan.name].cells:
                    if cell.measured:
                        planned = plan.side.planned(cell.key)
                        times[plan.name, cell.key] = _compile_times(
                            setup, importer=importer, planned=planned, cell=cell
                        )
    for key in {key for _, key in times}:
        pairs = [pair for pair in times if pair[1] == key]
        shortened = longest([times[pair] for pair in pairs], _MOST_PASSES)
        times |= zip(pairs, shortened, strict=True)
    return times


def _compile_times(
    setup: CompileSetup, importer: Importer, planned: PlannedCell, cell: Cell
) -> CompileTimes:
    """Compile a measured build with the compiler's report of times.

    The stack limit is lifted if the build needs it.
    """
    source = importer.source(planned.model)
    if isinstance(source, Failure):
        return CompileTimes(reason=source.first_line)
    result = timed(
        setup,
        planned.argv_for(cell.status),
        CompileInput(planned.model.name, source),
    )
    if isinstance(result, Failure):
        return CompileTimes(reason=result.first_line)
    passes = dict(pass_times_us(result.output))
    passes.pop(_DUMPING, None)
    phases = phases_us(result.started_ns, result.ended_ns)
    reason = ""
    if not passes:
        reason = NO_REPORT
    return CompileTimes(phases, passes, reason)
