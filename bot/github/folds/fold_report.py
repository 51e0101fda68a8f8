"""The fold audit of a run that nobody waits for: by hand or on a schedule, never of a pull request."""

from __future__ import annotations

from dataclasses import replace

from bot.core.folds.fold_options import FoldOptions
from bot.errors import Interrupted
from bot.github.delivering import as_bot_error
from bot.github.opening import Opened, named_from_top
from bot.github.services import Services
from bot.measurement.folds.asking import asked
from bot.measurement.folds.auditing import audited
from bot.publish.actions import write_summary
from bot.render.folds.fold_section import not_made
from bot.render.markdown.summary import SUMMARY_LIMIT_BYTES
from bot.reporting.writing import write_folds
from bot.system.files import write_atomically

_EVENTS = frozenset({"workflow_dispatch", "schedule"})


def tell_folds(services: Services, head: Opened) -> None:
    """Fold the head side where its configuration asks for it, and put the section behind what was delivered.

    What breaks is told in the section's place, and takes nothing from the report.
    """
    options = head.config.fold
    if options is None or services.context.event not in _EVENTS or head.wanted.snapshot:
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
    with named_from_top(head.tree):
        request = replace(services.request, config=head.tree / head.config_name)
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
