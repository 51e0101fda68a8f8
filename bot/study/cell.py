"""Turn one finished compile, or its failure, into a cell of the snapshot."""

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
from bot.core.digest import written
from bot.core.planned import LIFTED, PlannedCell
from bot.core.program import HASHED_PHASES, SOURCES, Program
from bot.core.reading import Measurement, Products, ProgramFacts
from bot.core.snapshot import NOT_SHIPPED, Cell, Failure
from bot.core.this_machine import is_local
from bot.errors import InputError, MalformedBinary
from bot.explain.fingerprints import describe
from bot.explain.texts import shown_texts
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
    """The facts that the IR worker reads in a program, or the reason for none."""

    facts: ProgramFacts | None = None
    program: Program | None = None
    reason: str | None = None


@lru_cache(maxsize=16)
def read_program(answer: str | None, texts: TextStore | None = None) -> ReadProgram:
    """Read the worker's answer, once for all cells that give the same.

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
    """Return the files of a compile, for the readers.

    With an assembler, PTX text comes as machine code, too. If the assembler refuses it,
    the cell has not failed.
    """
    files = compiled.files
    assembled = None
    not_assembled = ""
    if backend == BACKEND and assembler is not None:
        from bot.readers.artifact import ptx_modules  # as in `cell_of`

        try:
            result = assembler.assembled(ptx_modules(files[ARTIFACT]))
            if isinstance(result, str):
                not_assembled = result
            else:
                assembled = result
        except MalformedBinary as error:
            not_assembled = error.line
    allocas, no_allocas = _read(_text(compiled, ALLOCAS), alloca_bytes)
    chosen, no_strategies = _read(_text(compiled, STRATEGIES), strategies)
    reasons = {}
    for name, reason in (
        ("program", program.reason),
        ("allocas", no_allocas),
        ("strategies", no_strategies),
        ("assembled", not_assembled),
    ):
        if reason:
            reasons[name] = reason
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
        reasons={**reasons, **compiled.reasons},
    )


def _text(compiled: Compiled, name: str) -> str | None:
    if name not in compiled.files:
        return None
    return compiled.files[name].decode("utf-8", "replace")


def cell_of(
    planned: PlannedCell,
    result: Result,
    texts: TextStore | None = None,
    assembler: Assembler | None = None,
) -> Cell:
    """Return the row of one cell, also of one that failed.

    `assembler`: makes machine code of PTX text; without one, that code is not measured.
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
        if result.stage == "timeout":
            status = "timeout"
        else:
            status = "failed"
        command = planned.command(lifted=result.message.startswith(LIFTED))
        return Cell(
            planned.model.name,
            planned.target.name,
            status,
            failure=result,
            command=command,
        )
    if result.artifacts:
        return _of_files(planned, result)
    # The formats' libraries: a report of known snapshots needs none of them.
    from bot.readers.assemble import measure

    program = read_program(_text(result, PROGRAM), texts)
    products = products_of(
        result, backend=planned.target.backend, program=program, assembler=assembler
    )
    measurement = measure(products)
    unusable = _unusable(result, products, measurement)
    if unusable is not None:
        return _failed(planned, unusable, lifted=result.refusal is not None)
    reasons = dict(measurement.reasons)
    for name, reason in products.reasons.items():
        if is_local(reason):
            reasons[name] = reason
    families = program.facts.families if program.facts else None
    if families is None:
        reasons["families"] = program.reason or _NO_FAMILIES
    assembler_name = None
    if assembler:
        assembler_name = assembler_of(planned.target.backend, assembler.ptxas) or None
    return Cell(
        model=planned.model.name,
        target=planned.target.name,
        status="over-stack-limit" if result.refusal else "ok",
        metrics=measurement.metrics,
        dispatches=measurement.dispatches,
        failure=result.refusal,
        command=planned.command(lifted=result.refusal is not None),
        artifact_digest=_digest(products),
        reasons=reasons,
        program=program.program,
        families=families or (),
        parts=measurement.parts,
        assembler=assembler_name,
    )


def _failed(planned: PlannedCell, failure: Failure, *, lifted: bool = False) -> Cell:
    """Return the row of a cell whose artifact cannot be measured.

    `lifted`: the artifact was compiled with the stack limit lifted.
    """
    return Cell(
        planned.model.name,
        planned.target.name,
        "failed",
        failure=failure,
        command=planned.command(lifted=lifted),
    )


def _unusable(
    compiled: Compiled, products: Products, measurement: Measurement
) -> Failure | None:
    """Return why an artifact makes its cell fail; None if it does not.

    Executables of an unknown format leave gaps in a good measurement. The cell fails
    only if the artifact is no module at all.
    """
    from bot.readers.vm_module import exported_functions

    if measurement.metrics["vm_bytes"] is None:
        return Failure("read", measurement.reasons["vm_bytes"])
    if not exported_functions(compiled.files[ARTIFACT]):
        return NO_FUNCTION
    return _incomplete_library(products, measurement)


def _incomplete_library(products: Products, measurement: Measurement) -> Failure | None:
    """Return why a static library does not ship the whole program.

    Return None if it does, or if there is no library.
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
    """Return the SHA-256 (hex) of all that ships."""
    digest = hashlib.sha256(products.artifact).hexdigest()
    if products.library is None:
        return digest
    digest_of_library = hashlib.sha256(products.library).hexdigest()
    return hashlib.sha256(f"{digest} {digest_of_library}".encode()).hexdigest()


def _of_files(planned: PlannedCell, compiled: Compiled) -> Cell:
    """Return the row of a command compiler's cell, whose files name their formats."""
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
        return _failed(planned, Failure("read", error.what))
    digests = {}
    for name in compiled.artifacts:
        digests[name] = hashlib.sha256(compiled.files[name]).hexdigest()
    if len(digests) == 1:
        [digest] = digests.values()
    else:
        named_digests = repr(sorted(digests.items()))
        digest = hashlib.sha256(named_digests.encode()).hexdigest()
    traces = {}
    trace = stages_of(compiled.files, compiled.stages)
    if trace and len(measurement.dispatches) == 1:
        traces = {row.name: trace for row in measurement.dispatches}
    return Cell(
        model=planned.model.name,
        target=planned.target.name,
        status="ok",
        metrics=measurement.metrics,
        dispatches=measurement.dispatches,
        command=planned.command(),
        artifact_digest=digest,
        reasons=measurement.reasons,
        program=Program(_phases(planned, compiled)),
        parts=measurement.parts,
        traces=traces,
    )


def _phases(planned: PlannedCell, compiled: Compiled) -> dict[str, str]:
    """Return the digests of a cell whose program has no reader.

    Each hashed phase has the digest of the model. All source files together have one
    digest.
    """
    phases = dict.fromkeys(HASHED_PHASES, written(bytes.fromhex(planned.model.digest)))
    if compiled.sources_digest:
        phases[SOURCES] = written(bytes.fromhex(compiled.sources_digest))
    return phases
