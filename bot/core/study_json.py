"""The JSON of an audit of folds, of a history and of an experiment."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bot.core.fold import FOLD_SCHEMA, FoldAudit
from bot.core.history import HISTORY_SCHEMA, History
from bot.core.json_text import decoded, require_schema
from bot.core.lab import LAB_SCHEMA, Lab
from bot.core.snapshot_json import lines
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


# How a history becomes `history.json`, and how that is read again.


MAKE_AGAIN = "make it again with this version of code-size-bot: code-size-bot history --releases A..B --out DIR"


def history_lines(history: History) -> Iterator[bytes]:
    """The text of `history.json`: canonical, in the order of releases, models and targets."""
    return lines(history)


def history_of(text: bytes | str, where: str = "history.json") -> History:
    """Read `history.json`; raises InputError for text that is torn, foreign, of another schema, or out of order."""
    require_schema(text, HISTORY_SCHEMA, "history", where, MAKE_AGAIN)
    history = decoded(text, History, where, MAKE_AGAIN, "history")
    order = {release.name: release.order for release in history.releases}
    if len(order) != len(history.releases) or list(order.values()) != list(range(len(order))):
        raise InputError("releases are not in order and unique", where=where, hint=MAKE_AGAIN)
    if unknown := {point.compiler for point in history.points} - order.keys():
        raise InputError(f"has points of {min(unknown)[:60]!r}, which is no release", where=where, hint=MAKE_AGAIN)
    keys = [(order[point.compiler], point.model, point.target) for point in history.points]
    if keys != sorted(set(keys)):
        raise InputError("points are not sorted and unique", where=where, hint=MAKE_AGAIN)
    return history


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
