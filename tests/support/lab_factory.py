"""Made-up results of the lab for the tests of sums and of how they are shown: deterministic."""

from __future__ import annotations

from collections.abc import Mapping

from report_factory import COMMON, HOSTILE, MODELS, TARGETS, digest, metrics

from bot.core.fold import Price
from bot.core.lab import LAB_SCHEMA, SAME, Lab, LabCell, LabVariant
from bot.core.snapshot import CompilerInfo, Metrics

COMPILER = CompilerInfo("3.13.0rc20261016", "", digest("lab"), "3.13.0")
WRITABLE = tuple(text for text in HOSTILE if text and text == text.encode("utf-8", "ignore").decode("utf-8"))
"""Names that a file can hold."""
COUNTS: Metrics = {"artifact_bytes": 1000, "executables": 10, "dispatch_regions": 40, "stack_max_bytes": 64}


def cell(
    model: str, target: str, variant: str, values: Mapping[str, int | None] | None = None, **fields: object
) -> LabCell:
    """A measured cell; `values` in place of COUNTS."""
    told = {
        "status": "ok",
        "metrics": {**COUNTS, **(values or {})},
        "command": f"iree-compile - -o {model}.vmfb",
        **fields,
    }
    return LabCell(model, target, variant, **told)  # type: ignore[arg-type]


def failed(model: str, target: str, variant: str, why: str = "error: no", status: str = "failed") -> LabCell:
    """A cell that was not measured."""
    return LabCell(model, target, variant, status, failure=why)


def variants(*names: str) -> tuple[LabVariant, ...]:
    """Variants, each of a flag of its own."""
    return tuple(LabVariant(name, COMPILER, (f"--{name}",)) for name in names)


def lab(*cells: LabCell, names: tuple[str, ...] = ("a", "b"), **fields: object) -> Lab:
    """A result of these cells."""
    told: dict[str, object] = {
        "schema": LAB_SCHEMA,
        "experiment": "sizes",
        "question": "Which of them is smaller?",
        "columns": ("artifact_bytes", "executables", "folded_away"),
        "axis": "",
        "run": False,
        "machine": "",
        "flags": COMMON,
        "targets": {each.target: TARGETS.get(each.target, "vmvx") for each in cells},
        "variants": variants(*names),
        "cells": tuple(sorted(cells, key=lambda each: each.key)),
        "notes": (),
        **fields,
    }
    return Lab(**told)  # type: ignore[arg-type]


def price(ratio: float) -> Price:
    """A price around this ratio."""
    return Price(1000, round(1000 * ratio), 12, ratio, ratio - 0.02, ratio + 0.02)


def timed() -> Lab:
    """Two models on two targets, of which one was run: one variant slower, one the same artifact."""
    cells = []
    for model in ("m1", "m2"):
        cells += [cell(model, "cuda", name) for name in ("a", "b", "c")]
        cells.append(cell(model, "llvm-cpu-x86_64", "a", artifact_digest="d", instructions=1000))
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
                instructions=1500,
            )
        )
        cells.append(
            cell(model, "llvm-cpu-x86_64", "c", artifact_digest="d", equal=True, equal_note=SAME, price_note=SAME)
        )
    return lab(*cells, names=("a", "b", "c"), run=True, machine="a processor")


def along() -> Lab:
    """Layers on an axis: executables hold still, bytes grow by 100 each, stack bends."""
    places = {"one": 1, "two": 2, "four": 4}
    stack = {"one": 10, "two": 10, "four": 40}
    cells = [
        cell("net", "vmvx", name, {"artifact_bytes": 1000 + 100 * at, "stack_max_bytes": stack[name]})
        for name, at in places.items()
    ]
    columns = ("artifact_bytes", "executables", "stack_max_bytes")
    told = tuple(LabVariant(name, COMPILER, at=at) for name, at in places.items())
    return lab(*cells, names=tuple(places), axis="layer", columns=columns, variants=told)


def many() -> Lab:
    """All models on all targets with many variants, hostile names among them."""
    names = ("base", *(f"variant-{number}" for number in range(11)))
    cells = []
    for model in (*MODELS, *WRITABLE):
        for target in TARGETS:
            for name in names:
                if hash_of(model, target, name) % 9 == 0:
                    cells.append(failed(model, target, name, WRITABLE[hash_of(model) % len(WRITABLE)]))
                else:
                    cells.append(LabCell(model, target, name, "ok", metrics(f"{model}{target}{name}", target)))
    return lab(*cells, names=names, question=WRITABLE[0], notes=WRITABLE)


def hash_of(*words: str) -> int:
    """A number that is the same in every run."""
    return int(digest("".join(words))[:8], 16)
