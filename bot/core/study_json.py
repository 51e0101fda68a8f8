"""The JSON of an audit of folds, of a history and of an experiment."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bot.core.delta import seen_values, sizes_of
from bot.core.fold import FOLD_SCHEMA, FoldAudit
from bot.core.history import HISTORY_SCHEMA, History
from bot.core.json_text import decoded, require_schema
from bot.core.lab import LAB_SCHEMA, Lab
from bot.core.snapshot_json import lines
from bot.core.study import Variant
from bot.errors import InputError

AUDIT_AGAIN = "make it again with this version of code-size-bot: code-size-bot fold --out DIR"


def fold_lines(audit: FoldAudit) -> Iterator[bytes]:
    """The text of `fold.json`: canonical, sorted by name, each cell on a line of its own."""
    cells = sorted(audit.cells, key=lambda cell: (cell.model, cell.target))
    return lines(replace(audit, cells=tuple(cells), models=tuple(sorted(audit.models, key=lambda model: model.model))))


def fold_of(text: bytes | str, where: str = "fold.json") -> FoldAudit:
    """Read `fold.json`; raises InputError for text that is torn, foreign, of another schema, or out of order."""
    require_schema(text, FOLD_SCHEMA, "fold audit", where, AUDIT_AGAIN)
    audit = decoded(text, FoldAudit, where, AUDIT_AGAIN, "fold audit")
    cells, models = [(cell.model, cell.target) for cell in audit.cells], [(model.model, "") for model in audit.models]
    for what, keys in (("cells", cells), ("models", models)):
        if keys != sorted(set(keys)):
            raise InputError(f"{what} are not sorted and unique", where=where, hint=AUDIT_AGAIN)
    return audit


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
    fields = {
        "schema": HISTORY_SCHEMA,
        "targets": history.study.targets,
        "releases": [_release(order, one) for order, one in enumerate(variants)],
        "points": (),
        "steps": history.steps,
        "totals": history.totals,
        "planned": len(history.rows),
        "notes": history.notes,
    }
    return lines(fields, points)


def _release(order: int, one: Variant) -> dict[str, object]:
    own = {"name": one.name, "order": order, "spec": one.spec}
    if (side := one.snapshot) is None:
        return own | _set(repeats=one.repeats, notes=one.notes, reason=one.reason)
    known = {name: getattr(side.compiler, name) for name in ("version", "revision", "digest")}
    return own | _set(**known, sha=side.source.sha, repeats=one.repeats, notes=one.remarks)


def _set(**fields: object) -> dict[str, object]:
    """Those that say something."""
    return {name: value for name, value in fields.items() if value or (value == 0 and value is not False)}


# How an experiment's result becomes `lab.json`, and how that is read again.


MEASURE_AGAIN = "make it again with this version of code-size-bot: code-size-bot lab EXPERIMENT --out DIR"


def lab_lines(lab: Lab) -> Iterator[bytes]:
    """The text of `lab.json`: canonical, cells sorted, each on a line of its own."""
    return lines(replace(lab, cells=tuple(sorted(lab.cells, key=lambda cell: cell.key))))


def lab_of(text: bytes | str, where: str = "lab.json") -> Lab:
    """Read `lab.json`; raises InputError for text that is torn, foreign, of another schema, or out of order."""
    require_schema(text, LAB_SCHEMA, "lab result", where, MEASURE_AGAIN)
    lab = decoded(text, Lab, where, MEASURE_AGAIN, "lab result")
    keys = [cell.key for cell in lab.cells]
    if keys != sorted(set(keys)):
        raise InputError("cells are not sorted and unique", where=where, hint=MEASURE_AGAIN)
    names = [variant.name for variant in lab.variants]
    if len(set(names)) != len(names) or not {cell.variant for cell in lab.cells} <= set(names):
        raise InputError("a variant is there twice, or not at all", where=where, hint=MEASURE_AGAIN)
    return lab
