"""Compile measured builds again, so that their artifacts can run on this machine."""

from __future__ import annotations

from pathlib import Path

from bot.compiler.compiling import artifact_of
from bot.core.snapshot import CompilerInfo
from bot.core.spec import release_in
from bot.errors import CompilerUnavailable
from bot.readers.ir_facts import Interface
from bot.running.runner import Runtime, of_release
from bot.study.flow_program import flow_of, interface_of
from bot.study.prepare import Work
from bot.study.program_side import ProgramSide


def runtime_of(compiler: CompilerInfo, installed: Runtime, work: Work) -> Runtime:
    """Return the runtime of the compiler's own release, else the installed one."""
    release = release_in(compiler.spec)
    if release is None:
        return installed
    try:
        return of_release(
            release,
            cache=work.request.cache,
            cancel=work.cancel,
            say=work.show.say,
            places=work.places,
        )
    except CompilerUnavailable as error:
        with_name = f"running artifacts of {release} with {installed.name}"
        work.show.say(f"{with_name}: {error.line}")
        return installed


def program_interface(program: ProgramSide, folder: Path) -> Interface | str:
    """Return how a program is called, or why that is not known."""
    flow = folder / "flow.mlir"
    failed = flow_of(program.setup, argv=program.argv, source=program.source, out=flow)
    if failed is not None:
        return failed.first_line
    try:
        return interface_of(program.setup.bindings, flow)
    finally:
        flow.unlink(missing_ok=True)


def write_artifact(program: ProgramSide, path: Path) -> str:
    """Write the artifact of a program; return why that failed, or an empty text."""
    failed = artifact_of(
        program.setup, argv=program.argv, source=program.source, out=path
    )
    if failed is not None:
        return failed.first_line
    return ""
