"""`models` and `targets`: what there is to measure in the configuration in force."""

from __future__ import annotations

from pathlib import Path

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_config, add_globs

EXAMPLES = ("code-size-bot targets --config quick --target vulkan",)


def arguments(parser: Parser) -> None:
    add_config(parser)
    add_globs(parser)


def run(arguments: Arguments) -> None:
    from collections import Counter

    from bot.cli.showing import for_log
    from bot.cli.work import work_of
    from bot.config.configuration import is_packaged
    from bot.core.planned import short_names
    from bot.show.escape import clean
    from bot.show.filters import human

    work = work_of(arguments)
    chosen = work.planned()
    compiled = [cell.key for cell in chosen.cells if not cell.target.unsupported]
    if arguments.command == "models":
        cells = Counter(key.model for key in compiled)
        lines: list[tuple[str, ...]] = [("model", "builds", "size", "from")]
        for model in chosen.models:
            place = (
                "the packaged suite" if is_packaged(Path(model.path)) else model.shown
            )
            lines.append(
                (model.name, f"{cells[model.name]:,}", human(model.size_bytes), place)
            )
    else:
        named = {
            target.name: target.backend
            for target in (*work.config.targets, *chosen.targets)
        }
        short, cells = (
            short_names(named, named),
            Counter(key.target for key in compiled),
        )
        lines = [("target", "builds", "short name", "backend", "flags")]
        for t in chosen.targets:
            flags = (
                f"never measured: {t.unsupported}"
                if t.unsupported
                else " ".join(t.flags)
            )
            lines.append(
                (t.name, f"{cells[t.name]:,}", short[t.name], t.backend, flags)
            )
            for where, instead in () if t.unsupported else t.releases:
                lines.append(
                    ("", "", "", "", f"{where}: {' '.join(instead) or '(none)'}")
                )
    lines = [tuple(map(clean, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numbers = {
        column for column, header in enumerate(lines[0]) if header in ("builds", "size")
    }
    for line in lines:
        words = (
            word.rjust(width) if column in numbers else word.ljust(width)
            for column, (word, width) in enumerate(zip(line, widths, strict=True))
        )
        print(for_log("  ".join(words).rstrip()))
