"""The JSON of an audit of folds, of a history and of an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from msgspec.structs import replace

from bot.core.delta import seen_values, sizes_of
from bot.core.fold import FoldAudit
from bot.core.history import HISTORY_SCHEMA, History
from bot.core.lab import LAB_SCHEMA, Lab
from bot.core.snapshot import Cell
from bot.core.snapshot_json import lines
from bot.core.study import Variant


def fold_lines(audit: FoldAudit) -> Iterator[bytes]:
    """The text of `fold.json`: canonical, sorted by name, each cell on a line of its own."""
    cells = sorted(audit.cells, key=lambda cell: (cell.model, cell.target))
    return lines(replace(audit, cells=tuple(cells), models=tuple(sorted(audit.models, key=lambda model: model.model))))


# How a history becomes `history.json`.


def history_lines(history: History) -> Iterator[bytes]:
    """The text of `history.json`: canonical, in the order of releases, models and targets."""
    variants, rows = history.study.variants, history.study.rows
    points = (
        {
            "compiler": one.name,
            "model": key.model,
            "target": key.target,
            "status": row[at].status,
            "metrics": row[at].metrics if row[at].measured else {},
        }
        | _set(
            reason=row[at].reason,
            sizes=sizes_of(row[at]),
            move=history.moves.get((one.name, key)),
            command=row[at].command,
            digest=row[at].artifact_digest,
            seen=seen_values(row[at]) if row[at].measured else {},
        )
        for at, one in enumerate(variants)
        for key, row in rows.items()
    )
    record = {
        "schema": HISTORY_SCHEMA,
        "targets": history.study.targets,
        "releases": [_release(order, one) for order, one in enumerate(variants)],
        "points": (),
        "steps": history.steps,
        "totals": history.totals,
        "planned": len(history.rows),
        "notes": history.notes,
    }
    return lines(record, points)


def _release(order: int, one: Variant) -> dict[str, object]:
    own = {"name": one.name, "order": order, "spec": one.spec}
    if (side := one.snapshot) is None:
        return own | _set(repeats=one.repeats, notes=one.notes, reason=one.reason)
    known = {name: getattr(side.compiler, name) for name in ("version", "revision", "digest")}
    return own | _set(**known, sha=side.source.sha, repeats=one.repeats, notes=one.remarks)


def _set(**values: object) -> dict[str, object]:
    """Those that say something."""
    return {name: value for name, value in values.items() if value or isinstance(value, int)}


# How an experiment's result becomes `lab.json`.


_FAILURE_CHARACTERS = 500


def lab_lines(lab: Lab) -> Iterator[bytes]:
    """The text of `lab.json`: canonical, cells by model, target and variant, each on a line of its own."""
    asked = lab.experiment
    variants = (
        {"name": one.name, "compiler": one.compiler, "flags": one.flags}
        | _set(targets=one.targets, files=one.files, shapes=one.shapes, folded=one.folded or None)
        | _set(at=one.at, reason=one.reason)
        for one in lab.study.variants
    )
    record = {
        "schema": LAB_SCHEMA,
        "experiment": asked.name,
        **{name: getattr(asked, name) for name in ("question", "columns", "axis", "run")},
        **{name: getattr(lab, name) for name in ("machine", "flags", "targets", "notes")},
        "variants": tuple(variants),
        "cells": (),
    }
    return lines(record, (_lab_cell(lab, *pair) for pair in lab.cells))


def _lab_cell(lab: Lab, variant: str, cell: Cell) -> dict[str, object]:
    own = {"model": cell.key.model, "target": cell.key.target, "variant": variant}
    run = lab.run(variant, cell)
    return (
        own
        | {"status": cell.status, "metrics": cell.metrics}
        | _set(reasons=cell.reasons, failure=cell.reason[:_FAILURE_CHARACTERS], command=cell.command)
        | _set(artifact_digest=cell.artifact_digest, varies=bool(cell.others) or None, seen=seen_values(cell))
        | _set(**{each.name: getattr(run, each.name) for each in fields(run)})
        | _set(module=lab.modules.get((variant, cell.key)))
    )
