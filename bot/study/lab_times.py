"""Time an experiment's compiles by phase and by pass.

Each build is compiled once more, alone.
"""

from __future__ import annotations

from bot.compiler.compiling import CompileInput, CompileSetup, timed
from bot.compiler.importing import Importer
from bot.core.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.snapshot import Cell, Failure
from bot.core.times import CompileTimes, phases_us
from bot.readers.pass_times import pass_times_us

NO_REPORT = "this compiler prints no times of its passes"
_DUMPING = "DumpModulePass"  # writes the files by which the phases are timed


def compile_times(
    setup: CompileSetup, importer: Importer, planned: PlannedCell, cell: Cell
) -> CompileTimes:
    """Compile a measured build with the compiler's report of times.

    The stack limit is lifted where needed.
    """
    source = importer.source(planned.model)
    if isinstance(source, Failure):
        return CompileTimes(reason=source.first_line)
    lifted = list[str]()
    if cell.status == "over-stack-limit":
        lifted.append(LIFTED_LIMIT_FLAG)
    result = timed(
        setup, (*planned.argv, *lifted), CompileInput(planned.model.name, source)
    )
    if isinstance(result, Failure):
        return CompileTimes(reason=result.first_line)
    passes = {
        name: time
        for name, time in pass_times_us(result.output).items()
        if name != _DUMPING
    }
    phases = phases_us(result.started_ns, result.ended_ns)
    return CompileTimes(phases, passes, "" if passes else NO_REPORT)
