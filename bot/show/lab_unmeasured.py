"""List the builds of an experiment that were not measured, by reason."""

from __future__ import annotations

from bot.core.lab import Lab
from bot.core.snapshot import Cell
from bot.show.blocks import Phrase, phrase
from bot.show.escape import clean, clip
from bot.show.filters import plural
from bot.show.lab_words import REASON_CHARS, build_names, some_names


def unmeasured(lab: Lab, names: int) -> list[Phrase]:
    """Return the builds that were not measured: a line for each reason.

    A build that no compiler can measure is not among them: `code-size-bot targets`
    shows its reason.
    """
    groups: dict[tuple[str, str], list[tuple[str, Cell]]] = {}
    for variant, cell in lab.cells:
        if not cell.measured and not cell.is_never_measured:
            groups.setdefault(_gap(cell), []).append((variant, cell))
    lines = []
    for (status, reason), cells in sorted(groups.items()):
        variants = dict[str, None]()
        keys = []
        for variant, cell in cells:
            variants[variant] = None
            keys.append(cell.key)
        count = plural(len(cells), "build")
        lines.append(
            phrase(
                some_names([*variants], names),
                f": {count} {status.replace('-', ' ')}: {reason}: ",
                build_names(keys, names),
            )
        )
    return lines


def _gap(cell: Cell) -> tuple[str, str]:
    """Return the status of a build that was not measured, and the reason."""
    return cell.status, clip(clean(cell.reason or cell.status), REASON_CHARS)
