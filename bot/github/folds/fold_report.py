"""The fold audit of a run that nobody waits for: by hand or on a schedule, never of a pull request."""

from __future__ import annotations

from dataclasses import replace

from bot.core.folds.fold_options import FoldOptions
from bot.errors import Interrupted, UsageError
from bot.github.delivering import as_bot_error
from bot.github.opening import Opened, named_from_top
from bot.github.services import Services
from bot.measurement.folds.asking import asked
from bot.measurement.folds.auditing import audited
from bot.publish.actions import write_summary
from bot.render.markdown.summary import SUMMARY_LIMIT_BYTES
from bot.show.fold import not_made, write_folds
from bot.system.files import write_atomically

FOLD_EVENTS = frozenset({"workflow_dispatch", "schedule"})


def tell_folds(services: Services, head: Opened) -> None:
    """Fold the head side where the input or its configuration asks for it; the section follows what was delivered.

    What breaks is told in the section's place, and takes nothing from the report.
    """
    wanted, options = services.inputs.fold, head.config.fold
    if wanted is not None:
        options = (options or FoldOptions()) if wanted else None
    if options is None or services.context.event not in FOLD_EVENTS or (head.wanted.snapshot and not wanted):
        return
    try:
        section = _section(services, head, options)
    except Interrupted:
        raise
    except Exception as error:
        line = as_bot_error(error).line
        services.show.say(f"no fold audit: {line}")
        section = not_made(line)
    _append(services, section)


def _section(services: Services, head: Opened, options: FoldOptions) -> str:
    if head.wanted.snapshot:
        raise UsageError("folding needs a compiler, and this is a snapshot", where="input head")
    with named_from_top(head.tree):
        request = replace(services.request, config=head.tree / head.config_name if head.config_name else None)
        request, config = asked(request, head.config, head.sought, services.show.say)
        audit = audited(request, config, options, services.show, services.cancel)
        written = write_folds(audit, config.templates, services.out)
    return written[-1].read_text(encoding="utf-8")


def _append(services: Services, section: str) -> None:
    """To the job summary, and to `summary.md` where there is one and it stays within GitHub's limit."""
    if services.summary:
        write_summary(services.summary, f"\n{section}")
    path = services.out / "summary.md"
    if path.exists():
        whole = f"{path.read_text(encoding='utf-8').rstrip()}\n\n{section}".encode()
        if len(whole) <= SUMMARY_LIMIT_BYTES:
            write_atomically(path, whole)
