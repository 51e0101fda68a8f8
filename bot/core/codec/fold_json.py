"""How a fold audit becomes `fold.json`, and how that is read again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bot.core.codec.json_text import decoded, require_schema
from bot.core.codec.snapshot_json import lines
from bot.core.folds.fold_values import FOLD_SCHEMA, FoldAudit
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
