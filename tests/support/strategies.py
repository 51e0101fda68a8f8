"""Random snapshots: models x targets with every status, missing metrics, dispatches and names in any script."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bot.core.metrics import ARTIFACT_PARTS, METRIC_IDS
from bot.core.planned import COMMON_FLAGS, Model, Target
from bot.core.program import FAMILY_KINDS, HASHED_PHASES, Family, Program, Site, Source
from bot.core.snapshot import (
    MEASURED,
    STATUSES,
    Cell,
    CellKey,
    CompileOutcome,
    CompilerInfo,
    Dispatch,
    Failure,
    Snapshot,
    SourceInfo,
)

LARGEST = 1 << 53
TARGETS = {
    "llvm-cpu-x86_64": "llvm-cpu",
    "llvm-cpu-aarch64": "llvm-cpu",
    "vmvx": "vmvx",
    "rocm": "rocm",
    "ñ-目標": "x",
}
MODELS = (
    "bert",
    "bert.dynamic",
    "mobilenet_v1",
    "модель",
    "模型 2",
    "a\nb",
    "\N{PILE OF POO}",
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from(MODELS) | text.filter(bool)
own_digests = st.sampled_from(["s" * 16, "S" * 16])  # of code and IR
digests = st.sampled_from(["a" * 64, "b" * 64, "c" * 64])
values = st.none() | st.integers(0, 3) | st.integers(0, LARGEST)


def possible(figures: dict[str, int | None]) -> dict[str, int | None]:
    """Return the metrics without an artifact that is smaller than the sum of its parts."""
    whole_bytes = figures.get("artifact_bytes")
    parts_bytes = sum(figures.get(part) or 0 for part in ARTIFACT_PARTS)
    if whole_bytes is None or whole_bytes >= parts_bytes:
        return figures
    return {name: value for name, value in figures.items() if name != "artifact_bytes"}


metrics = st.dictionaries(st.sampled_from(METRIC_IDS), values, max_size=6).map(possible)
reasons = st.dictionaries(st.sampled_from([*METRIC_IDS, "*"]), text, max_size=2)

_DISPATCH: dict[str, st.SearchStrategy[Any]] = {
    "executable": names,
    "name": names,
    "kind": st.sampled_from(["matmul", "conv", "other"]),
    "code": st.none() | own_digests,
    "strategy": st.none() | text,
}
dispatches = st.builds(
    Dispatch,
    **{name: _DISPATCH.get(name, values) for name in Dispatch.__struct_fields__},
)
failures = st.builds(
    Failure,
    stage=st.sampled_from(["compile", "read", "timeout", "target"]),
    message=text,
    exit_code=st.none() | st.integers(-9, 255),
    signal=st.none() | st.just("SIGSEGV"),
    figure_bytes=values,
)
compilers = st.builds(
    CompilerInfo, version=text, revision=text, digest=digests, spec=text
)
sources = st.builds(
    SourceInfo, sha=st.none() | digests, ref=st.none() | text, dirty=st.booleans()
)


places = st.none() | text
programs = st.builds(
    Program,
    phases=st.dictionaries(st.sampled_from(HASHED_PHASES), own_digests, max_size=2),
    sources=st.lists(
        st.builds(Source, names, own_digests, own_digests, st.none() | own_digests),
        max_size=2,
    ).map(tuple),
    sites=st.lists(st.builds(Site, names, places, st.booleans()), max_size=3).map(
        tuple
    ),
    operations=st.none()
    | st.sampled_from(["", "linalg.generic 2", "arith.addf 1 linalg.generic 3"]),
    places=st.dictionaries(text, st.integers(0, LARGEST), max_size=2),
)
families = st.builds(
    Family,
    kind=st.sampled_from(FAMILY_KINDS),
    members=st.lists(names, min_size=2, max_size=3).map(tuple),
    varying=st.lists(text, max_size=2).map(tuple),
)


outcomes = st.builds(CompileOutcome, st.just("ok"), metrics, digests) | st.just(
    CompileOutcome("failed")
)


@st.composite
def cells(draw: st.DrawFn, key: CellKey, has_others: bool = False) -> Cell:
    """A cell that holds what its status allows: numbers where it was measured, a failure where it was refused.

    `has_others`: whether its command may have given something else as well.
    """
    status = draw(st.sampled_from(STATUSES))
    measured = status in MEASURED
    metric_values = draw(metrics) if measured else {}
    rows = tuple(draw(st.lists(dispatches, max_size=1))) if measured else ()
    largest_bytes = max(
        (max(row.executable_bytes or 0, row.code_bytes or 0) for row in rows), default=0
    )
    whole_bytes = metric_values.get("artifact_bytes")
    if whole_bytes is not None and whole_bytes < largest_bytes:
        rows = ()  # no code is larger than the artifact that it is in
    whole_bytes = whole_bytes or 0
    parts = draw(
        st.sampled_from(
            [
                {},
                {"vm": whole_bytes},
                {"vm": whole_bytes // 2, "tables": -(-whole_bytes // 2)},
            ]
        )
    )
    return Cell(
        key.model,
        key.target,
        status,
        metrics=metric_values,
        dispatches=rows,
        failure=draw(failures) if status != "ok" else None,
        command=draw(text),
        artifact_digest=draw(st.none() | digests) if measured else None,
        reasons=draw(reasons) if measured else {},
        compiles=draw(st.integers(1, 3)),
        others=tuple(draw(st.lists(outcomes, max_size=2))) if has_others else (),
        program=draw(st.none() | programs) if measured else None,
        families=tuple(draw(st.lists(families, max_size=1))) if measured else (),
        parts=parts if metric_values.get("artifact_bytes") else {},
    )


@st.composite
def snapshots(draw: st.DrawFn, has_others: bool = False) -> Snapshot:
    """A snapshot of up to 3 models on up to 3 targets.

    Some of its planned cells may have been lost.
    """
    models = draw(st.dictionaries(names, digests, max_size=3))
    targets = {
        name: TARGETS[name]
        for name in draw(st.lists(st.sampled_from(sorted(TARGETS)), max_size=3))
    }
    keys = sorted(CellKey(model, target) for model in models for target in targets)
    drawn_keys = [key for key in keys if draw(st.integers(0, 5))]
    return Snapshot(
        compiler=draw(compilers),
        source=draw(sources),
        cells=tuple(draw(cells(key, has_others)) for key in drawn_keys),
        flags=tuple(draw(st.lists(text, max_size=2))),
        targets=targets,
        models=models,
        notes=tuple(sorted(draw(st.sets(text, max_size=2)))),
    )


@st.composite
def planned_models(draw: st.DrawFn) -> tuple[Model, ...]:
    """Up to 8 models with names of their own."""
    chosen = draw(st.lists(names, unique=True, max_size=8))
    sizes = [draw(st.integers(1, 5) | st.integers(1, LARGEST)) for _ in chosen]
    return tuple(
        Model(
            name=n,
            path=f"/x/{n}.mlir",
            shown=f"m/{n}.mlir",
            digest="a" * 64,
            size_bytes=s,
        )
        for n, s in zip(chosen, sizes, strict=True)
    )


planned_targets = st.lists(
    st.sampled_from(sorted(TARGETS)), unique=True, max_size=4
).map(lambda chosen: tuple(Target(name, TARGETS[name]) for name in chosen))


def plain_snapshot(*rows: tuple[str, str, str], **changes: Any) -> Snapshot:
    """A small snapshot by hand.

    A row is (model, target, status); a measured one has 1,000 bytes of artifact.
    """
    built = [
        Cell(
            model,
            target,
            status,
            metrics=(
                {"artifact_bytes": 1000, "executables": 2} if status in MEASURED else {}
            ),
            failure=(
                Failure("compile", f"{model} is refused", exit_code=1)
                if status != "ok"
                else None
            ),
            command=f"iree-compile - -o {model}.vmfb < m/{model}.mlir",
            artifact_digest="d" * 64 if status in MEASURED else None,
        )
        for model, target, status in sorted(rows)
    ]
    fields: dict[str, Any] = {
        "compiler": CompilerInfo("3.13.0", "r" * 8, "c" * 64, "3.13.0"),
        "source": SourceInfo("5" * 40, "main"),
        "cells": tuple(built),
        "flags": COMMON_FLAGS,
        "targets": {target: target for _, target, _ in rows},
        "models": {model: "m" * 64 for model, _, _ in rows},
    }
    return Snapshot(**{**fields, **changes})
