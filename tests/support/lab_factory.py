"""Made-up results of the lab for the tests of sums and of how they are shown: deterministic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace
from report_factory import COMMON, HOSTILE, MODELS, TARGETS, digest, metrics

from bot.core.lab import SAME, Experiment, Lab
from bot.core.runs import Price, Run
from bot.core.snapshot import (
    Cell,
    CompileOutcome,
    CompilerInfo,
    Failure,
    Metrics,
    Snapshot,
    SourceInfo,
)
from bot.core.study import Study, Variant

COMPILER = CompilerInfo("3.13.0rc20261016", "", digest("lab"), "3.13.0")
WRITABLE = tuple(
    text
    for text in HOSTILE
    if text and text == text.encode("utf-8", "ignore").decode("utf-8")
)
"""Names that a file can hold."""
COUNTS: Metrics = {
    "artifact_bytes": 1000,
    "executables": 10,
    "dispatch_regions": 40,
    "stack_max_bytes": 64,
}


class Measured(NamedTuple):
    """A variant's cell, and what running it gave."""

    variant: str
    cell: Cell
    run: Run = Run()


def cell(
    model: str,
    target: str,
    variant: str,
    values: Mapping[str, int | None] | None = None,
    *,
    status: str = "ok",
    failure: str = "",
    varies: bool = False,
    artifact_digest: str | None = None,
    **run: Any,
) -> Measured:
    """A measured cell; `values` in place of COUNTS."""
    all_values = {**COUNTS, **(values or {})}
    built = Cell(
        model,
        target,
        status,
        all_values,
        failure=Failure("stack-limit", failure) if failure else None,
        command=f"iree-compile - -o {model}.vmfb",
        artifact_digest=artifact_digest,
        others=(CompileOutcome(status, all_values, "other"),) if varies else (),
    )
    return Measured(variant, built, Run(**run))


def failed(
    model: str,
    target: str,
    variant: str,
    reason: str = "error: no",
    status: str = "failed",
) -> Measured:
    """A cell that was not measured."""
    return Measured(
        variant, Cell(model, target, status, failure=Failure("compile", reason))
    )


def variants(*names: str) -> tuple[Variant, ...]:
    """Variants, each of a flag of its own."""
    return tuple(Variant(name, flags=(f"--{name}",)) for name in names)


def lab(
    *cells: Measured,
    names: tuple[str, ...] = ("a", "b"),
    variants: tuple[Variant, ...] | None = None,
    machine: str = "",
    notes: tuple[str, ...] = (),
    **fields: Any,
) -> Lab:
    """A result of these cells; `fields`: of the experiment."""
    columns = ("artifact_bytes", "executables", "dispatch_regions")
    experiment = Experiment(
        **{
            "name": "sizes",
            "question": "Which of them is smaller?",
            "columns": columns,
            "variants": (),
            **fields,
        }
    )
    sides = []
    for variant in variants if variants is not None else _variants(*names):
        variant_cells = sorted(
            (cell.cell for cell in cells if cell.variant == variant.name),
            key=lambda row: row.key,
        )
        sides.append(
            replace(
                variant, snapshot=Snapshot(COMPILER, SourceInfo(), tuple(variant_cells))
            )
        )
    return Lab(
        experiment,
        Study(tuple(sides)),
        runs={(cell.variant, cell.cell.key): cell.run for cell in cells},
        machine=machine,
        flags=COMMON,
        notes=notes,
    )


_variants = variants


def price(ratio: float) -> Price:
    """A price around this ratio."""
    return Price(
        before_us=1000,
        after_us=round(1000 * ratio),
        pairs=12,
        ratio=ratio,
        low=ratio - 0.02,
        high=ratio + 0.02,
    )


def timed() -> Lab:
    """Two models on two targets, of which one was run: one variant slower, one the same artifact."""
    cells = []
    for model in ("m1", "m2"):
        cells += [cell(model, "cuda", name) for name in ("a", "b", "c")]
        cells.append(cell(model, "llvm-cpu-x86_64", "a", artifact_digest="d"))
        smaller = {"artifact_bytes": 900, "executables": 9}
        cells.append(
            cell(
                model,
                "llvm-cpu-x86_64",
                "b",
                smaller,
                equal=True,
                equal_note="on 3 random inputs",
                price=price(1.25),
            )
        )
        cells.append(
            cell(
                model,
                "llvm-cpu-x86_64",
                "c",
                artifact_digest="d",
                equal=True,
                equal_note=SAME,
                price_note=SAME,
            )
        )
    return lab(*cells, names=("a", "b", "c"), run=True, machine="a processor")


def many() -> Lab:
    """All models on all targets with many variants, hostile names among them."""
    names = ("base", *(f"variant-{number}" for number in range(11)))
    cells = []
    for model in (*MODELS, *WRITABLE):
        for target in TARGETS:
            for name in names:
                if hash_of(model, target, name) % 9 == 0:
                    cells.append(
                        failed(
                            model,
                            target,
                            name,
                            WRITABLE[hash_of(model) % len(WRITABLE)],
                        )
                    )
                else:
                    cells.append(
                        cell(
                            model,
                            target,
                            name,
                            metrics(f"{model}{target}{name}", target),
                        )
                    )
    return lab(*cells, names=names, question=WRITABLE[0], notes=WRITABLE)


def hash_of(*texts: str) -> int:
    """A number that is the same in every run."""
    return int(digest("".join(texts))[:8], 16)
