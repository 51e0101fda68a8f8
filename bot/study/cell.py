"""One finished compile, or its failure, as a cell of the snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from msgspec import structs

from bot.compiler.cell_cache import TextStore
from bot.compiler.compiler import Compiled, Result
from bot.compiler.compiling import (
    ALLOCAS,
    ARTIFACT,
    PROGRAM,
    STACK_USAGE,
    STATIC_LIBRARY,
    STATISTICS,
    STRATEGIES,
)
from bot.compiler.ptxas import BACKEND, Assembler, assembler_of
from bot.core.planned import LIFTED, PlannedCell
from bot.core.policy import is_local
from bot.core.program import HASHED_PHASES, SOURCES, Program
from bot.core.reading import Measurement, Products, ProgramFacts
from bot.core.snapshot import NOT_SHIPPED, Cell, Failure, written
from bot.errors import InputError, MalformedBinary
from bot.explain.texts import describe, shown_texts
from bot.readers.ir_facts import alloca_bytes, program_facts, strategies

_Fact = TypeVar("_Fact")
NO_FUNCTION = Failure(
    NOT_SHIPPED,
    "the model has no public function, so the artifact is empty: write a public"
    " function that calls its code",
)
_NO_FAMILIES = "the program's executables were not compared with each other"


def _read(
    answer: str | None, reader: Callable[[str], _Fact]
) -> tuple[_Fact | None, str | None]:
    if answer is None:
        return None, "the compiler wrote no IR"
    try:
        return reader(answer), None
    except MalformedBinary as error:
        return None, str(error)


class ReadProgram(NamedTuple):
    """What the IR worker says of a program; `reason` where it says nothing."""

    facts: ProgramFacts | None = None
    program: Program | None = None
    reason: str | None = None


@lru_cache(maxsize=16)
def read_program(answer: str | None, texts: TextStore | None = None) -> ReadProgram:
    """The worker's answer, read once for all cells that give the same.

    Its IR is kept for those who want to see it.
    """
    facts, reason = _read(answer, program_facts)
    if facts is None:
        return ReadProgram(reason=reason)
    program = describe(facts)
    if texts is not None:
        for digest, text in shown_texts(facts, program).items():
            texts.keep(digest, text)
    return ReadProgram(facts, program)


def products_of(
    compiled: Compiled,
    backend: str,
    program: ReadProgram,
    assembler: Assembler | None = None,
) -> Products:
    """What a compile left behind, for the readers.

    PTX text as machine code, where there is an assembler.

    What that refuses is no failure of the cell.
    """
    files, assembled, not_assembled = compiled.files, None, ""
    if backend == BACKEND and assembler is not None:
        from bot.readers.artifact import ptx_modules  # as in `cell_of`

        try:
            result = assembler.assembled(ptx_modules(files[ARTIFACT]))
            assembled, not_assembled = (
                (None, result) if isinstance(result, str) else (result, "")
            )
        except MalformedBinary as error:
            not_assembled = error.line
    allocas, no_allocas = _read(_text(compiled, ALLOCAS), alloca_bytes)
    chosen, no_strategies = _read(_text(compiled, STRATEGIES), strategies)
    unread = {
        "program": program.reason,
        "allocas": no_allocas,
        "strategies": no_strategies,
        "assembled": not_assembled,
    }
    return Products(
        artifact=files[ARTIFACT],
        backend=backend,
        objects=tuple(data for name, data in files.items() if name.endswith(".o")),
        library=files.get(STATIC_LIBRARY),
        stack_usage=_text(compiled, STACK_USAGE),
        statistics=_text(compiled, STATISTICS),
        program=program.facts,
        allocas=allocas,
        strategies=chosen,
        assembled=assembled,
        compile_cpu_ms=compiled.cpu_ms,
        compile_peak_rss_kib=compiled.peak_rss_kib,
        reasons={
            **{name: reason for name, reason in unread.items() if reason},
            **compiled.reasons,
        },
    )


def _text(compiled: Compiled, name: str) -> str | None:
    return (
        compiled.files[name].decode("utf-8", "replace")
        if name in compiled.files
        else None
    )


def cell_of(
    planned: PlannedCell,
    result: Result,
    texts: TextStore | None = None,
    assembler: Assembler | None = None,
) -> Cell:
    """The row of one cell, whatever happened to it.

    `assembler`: what makes machine code of PTX text; without one, that is not measured.
    """
    cell = _measured(planned, result=result, texts=texts, assembler=assembler)
    return structs.replace(cell, inputs=planned.known_inputs)


def _measured(
    planned: PlannedCell,
    result: Result,
    texts: TextStore | None,
    assembler: Assembler | None,
) -> Cell:
    if isinstance(result, Failure):
        status = "timeout" if result.stage == "timeout" else "failed"
        command = planned.command(lifted=result.message.startswith(LIFTED))
        return Cell(planned.key, status, failure=result, command=command)
    if result.artifacts:
        return _of_files(planned, result)
    # The formats' libraries: a report of known snapshots needs none of them.
    from bot.readers.artifact import exported_functions
    from bot.readers.assemble import measure

    program = read_program(_text(result, PROGRAM), texts)
    products = products_of(
        result, backend=planned.target.backend, program=program, assembler=assembler
    )
    measurement = measure(products)
    families, no_families = (
        (program.facts.families if program.facts else None),
        program.reason or _NO_FAMILIES,
    )
    local = {
        name: reason for name, reason in products.reasons.items() if is_local(reason)
    }
    # Executables of an unknown format leave gaps in a good measurement; only what is no
    # module at all is a failure.
    if measurement.metrics["vm_bytes"] is None:
        failure = Failure("read", measurement.reasons["vm_bytes"])
        return Cell(planned.key, "failed", failure=failure, command=planned.command())
    if not exported_functions(result.files[ARTIFACT]):
        return Cell(
            planned.key, "failed", failure=NO_FUNCTION, command=planned.command()
        )
    if incomplete := _incomplete_library(products, measurement):
        return Cell(
            planned.key, "failed", failure=incomplete, command=planned.command()
        )
    return Cell(
        key=planned.key,
        status="over-stack-limit" if result.refusal else "ok",
        metrics=measurement.metrics,
        dispatches=measurement.dispatches,
        failure=result.refusal,
        command=planned.command(lifted=result.refusal is not None),
        artifact_digest=_digest(products),
        reasons={
            **measurement.reasons,
            **local,
            **({"families": no_families} if families is None else {}),
        },
        program=program.program,
        families=families or (),
        parts=measurement.parts,
        assembler=(
            assembler_of(planned.target.backend, assembler.ptxas) or None
            if assembler
            else None
        ),
    )


def _incomplete_library(products: Products, measurement: Measurement) -> Failure | None:
    """Return why a static library does not ship the whole program.

    None where it does, or there is none.
    """
    if products.library is None or "objects" in measurement.reasons:
        return None
    missing = [row.name for row in measurement.dispatches if row.code_bytes is None]
    if not missing:
        return None
    found_count = len(measurement.dispatches) - len(missing)
    problem = f"the static library has {found_count} of {len(measurement.dispatches)} entry points"
    return Failure(NOT_SHIPPED, f"{problem}: {missing[0]} is not in it")


def _digest(products: Products) -> str:
    """SHA-256 (hex) of all that ships."""
    digests = [
        hashlib.sha256(data).hexdigest()
        for data in (products.artifact, products.library)
        if data is not None
    ]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _of_files(planned: PlannedCell, compiled: Compiled) -> Cell:
    """The row of a cell whose files say themselves what they are."""
    from bot.readers.files import measure_files, stages_of

    try:
        costs = compiled.cpu_ms, compiled.peak_rss_kib
        measurement = measure_files(
            compiled.files,
            artifacts=compiled.artifacts,
            facts=compiled.facts,
            costs=costs,
        )
    except InputError as error:
        return Cell(
            planned.key,
            "failed",
            failure=Failure("read", error.what),
            command=planned.command(),
        )
    files = {
        name: hashlib.sha256(compiled.files[name]).hexdigest()
        for name in compiled.artifacts
    }
    trace = stages_of(compiled.files, compiled.stages)
    entry = (
        files.values()
        if len(files) == 1
        else [hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()]
    )
    return Cell(
        key=planned.key,
        status="ok",
        metrics=measurement.metrics,
        dispatches=measurement.dispatches,
        command=planned.command(),
        artifact_digest=next(iter(entry)),
        reasons=measurement.reasons,
        program=Program(_phases(planned, compiled)),
        parts=measurement.parts,
        traces=(
            {row.name: trace for row in measurement.dispatches}
            if trace and len(measurement.dispatches) == 1
            else {}
        ),
    )


def _phases(planned: PlannedCell, compiled: Compiled) -> dict[str, str]:
    """Return the digest of the model for the phases of a program that nobody reads, and that of all source files."""
    phases = dict.fromkeys(HASHED_PHASES, written(bytes.fromhex(planned.model.digest)))
    if compiled.sources_digest:
        phases[SOURCES] = written(bytes.fromhex(compiled.sources_digest))
    return phases
