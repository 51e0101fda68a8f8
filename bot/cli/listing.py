"""`models` and `targets`: what there is to measure in the configuration in force."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_config, add_format, add_globs

EXAMPLES = ("--model 'bert*' --target vulkan", "--format json")


def arguments(parser: Parser) -> None:
    parser.description = f"{parser.description}, as far as the configuration has them"
    add_config(parser)
    add_globs(parser)
    add_format(parser, "the same as JSON")


def run(arguments: Arguments) -> None:
    from collections import Counter
    from pathlib import Path

    from bot.cli.showing import for_log
    from bot.cli.work import work_of
    from bot.config.configuration import configs_dir
    from bot.core.json_text import canonical
    from bot.core.planned import short_names
    from bot.show.escape import clean
    from bot.show.filters import human

    work = work_of(arguments)
    chosen, file = work.planned(), work.request.config
    compiled = [cell.key for cell in chosen.cells if not cell.target.unsupported]
    rows, lines = list[dict[str, object]](), list[tuple[str, ...]]()
    if arguments.command == "models":
        packaged, cells = configs_dir().resolve(), Counter(key.model for key in compiled)
        lines = [("model", "builds", "size", "from")]
        for model in chosen.models:
            place = "the packaged suite" if Path(model.path).is_relative_to(packaged) else model.shown
            rows.append({"name": model.name, "file": place, "size_bytes": model.size_bytes, "cells": cells[model.name]})
            lines.append((model.name, f"{cells[model.name]:,}", human(model.size_bytes), place))
    else:
        named = {target.name: target.backend for target in (*work.config.targets, *chosen.targets)}
        short, cells = short_names(named, named), Counter(key.target for key in compiled)
        lines = [("target", "builds", "short name", "extends", "backend", "flags")]
        for t in chosen.targets:
            rows.append(
                {
                    "name": t.name,
                    "short": short[t.name],
                    "backend": t.backend,
                    "flags": t.flags,
                    "cells": cells[t.name],
                    "unsupported": t.unsupported or "",
                    "extends": t.extends or "",
                    "releases": dict(t.releases),
                }
            )
            names = t.name, f"{cells[t.name]:,}", short[t.name], t.extends or "", t.backend
            lines.append((*names, t.unsupported or " ".join(t.flags)))
            for where, instead in () if t.unsupported else t.releases:
                lines.append(("", "", "", "", "", f"{where}: {' '.join(instead) or '(none)'}"))
        if not any(target.extends for target in chosen.targets):
            lines = [(*line[:3], *line[4:]) for line in lines]
    if arguments.format == "json":
        configuration = file.as_posix() if file else None
        schema = f"code-size-{arguments.command}/1"
        text = canonical({"schema": schema, "configuration": configuration, arguments.command: rows}).decode()
    else:
        lines = [tuple(map(clean, line)) for line in lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        numbers = {at for at, header in enumerate(lines[0]) if header in ("builds", "size")}
        text = "\n".join(
            "  ".join(
                word.rjust(width) if at in numbers else word.ljust(width)
                for at, (word, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
    print(for_log(text))
