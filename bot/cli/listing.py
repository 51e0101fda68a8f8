"""`models` and `targets`: list what the configuration in force measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_config, add_globs

if TYPE_CHECKING:
    from bot.core.planned import PlannedCell
    from bot.study.prepare import Planned, Work

EXAMPLES = ("code-size-bot targets --config quick --target vulkan",)


def arguments(parser: Parser) -> None:
    add_config(parser)
    add_globs(parser)


def run(arguments: Arguments) -> None:
    from bot.cli.showing import for_log
    from bot.cli.work import work_of
    from bot.show.escape import clean

    work = work_of(arguments)
    chosen = work.planned()
    if arguments.command == "models":
        lines = _models(chosen)
    else:
        lines = _targets(work, chosen)
    lines = [tuple(map(clean, line)) for line in lines]
    headers = lines[0]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = []
        for header, text, width in zip(headers, line, widths, strict=True):
            if header in ("builds", "size"):
                cells.append(text.rjust(width))
            else:
                cells.append(text.ljust(width))
        print(for_log("  ".join(cells).rstrip()))


def _buildable(chosen: Planned) -> list[PlannedCell]:
    return [cell for cell in chosen.cells if not cell.target.unsupported]


def _models(chosen: Planned) -> list[tuple[str, ...]]:
    """Return a line for each model, below the headers."""
    from collections import Counter

    from bot.config.configuration import is_packaged
    from bot.show.filters import human

    counts = Counter(cell.key.model for cell in _buildable(chosen))
    lines: list[tuple[str, ...]] = [("model", "builds", "size", "from")]
    for model in chosen.models:
        place = model.shown
        if is_packaged(Path(model.path)):
            place = "the packaged suite"
        count = f"{counts[model.name]:,}"
        lines.append((model.name, count, human(model.size_bytes), place))
    return lines


def _targets(work: Work, chosen: Planned) -> list[tuple[str, ...]]:
    """Return a line for each target and for each release with other flags."""
    from collections import Counter

    from bot.core.planned import short_names

    targets = (*work.config.targets, *chosen.targets)
    backends = {target.name: target.backend for target in targets}
    short = short_names(backends, backends)
    counts = Counter(cell.key.target for cell in _buildable(chosen))
    lines: list[tuple[str, ...]] = [
        ("target", "builds", "short name", "backend", "flags")
    ]
    for target in chosen.targets:
        name = target.name
        flags = " ".join(target.flags)
        if target.unsupported:
            flags = f"never measured: {target.unsupported}"
        lines.append((name, f"{counts[name]:,}", short[name], target.backend, flags))
        if target.unsupported:
            continue
        for release, release_flags in target.releases:
            flags = " ".join(release_flags) or "(none)"
            lines.append(("", "", "", "", f"{release}: {flags}"))
    return lines
