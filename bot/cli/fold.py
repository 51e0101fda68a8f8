"""`fold`: make one of the executables that deduplication left apart, and tell what that saves and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bot.cli.compare import pinned
from bot.config.configuration import Config, load_config
from bot.core.fold import FoldAudit, FoldOptions
from bot.errors import NoVerdict, UsageError
from bot.show.fold import write_folds
from bot.study.fold_audit import audit_request, audited
from bot.study.prepare import Request, Show, require_writable
from bot.system.processes import Cancel


class FoldShow(Show, Protocol):
    """What the story tells, its outcome included."""

    def folded(self, audit: FoldAudit, files: Sequence[Path]) -> None:
        """What a fold audit found, and where it was written."""


def fold(request: Request, options: FoldOptions, show: FoldShow, cancel: Cancel) -> FoldAudit:
    """Fold what the request selects, and write `fold.json` and `fold.md` to `request.out`.

    What folding breaks is left unfolded and listed in the audit.

    Raises:
        UsageError: nobody names a compiler, or a price is set that nothing is timed for.
        NoVerdict: no cell could be measured; the files are written all the same.
    """
    if options.max_slowdown is not None and not options.run:
        what = "needs run times, and with --no-run there are none"
        raise UsageError(what, where="--max-slowdown", hint="leave out one of the two")
    config = load_config(request.config)
    require_writable(request.out)
    request, config = with_compiler(request, config, show)
    if options.run and options.max_slowdown is None and config.fold:
        options = config.fold
    audit = audited(request, config, options, show, cancel)
    show.folded(audit, write_folds(audit, config.templates, request.out))
    if all(cell.artifact_bytes.before is None for cell in audit.cells):
        first, count = audit.cells[0], len(audit.cells)
        what = f"{first.model} on {first.target} was not" if count == 1 else f"none of {count} cells was"
        reason = next((cell.note for cell in audit.cells if cell.note), "")
        where = str(request.out / "fold.json")
        raise NoVerdict(f"nothing to fold: {what} measured", where=where, hint=reason[:200])
    return audit


def with_compiler(request: Request, config: Config, show: Show) -> tuple[Request, Config]:
    """The request and the configuration, with the compiler that the latter names where the former does not."""
    if request.specs.get("head"):
        return request, config
    sought = pinned(config, request.config, "head")
    if not sought.spec:
        hint = "give --compiler SPEC, such as --compiler 3.13.0, or a --config that names compiler.head"
        raise UsageError("no compiler is named", hint=hint)
    return audit_request(request, config, sought, show.say)
