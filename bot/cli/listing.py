"""`models` and `targets`: what there is to measure in the configuration in force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bot.config.configuration import configs_dir, load_config
from bot.core.planned import short_names
from bot.core.record import Count, Record
from bot.render.text.escape import clean
from bot.render.text.filters import human
from bot.study.prepare import Request, planned, repository_at
from bot.system.processes import Cancel

MODELS_SCHEMA = "code-size-models/1"
TARGETS_SCHEMA = "code-size-targets/1"
PACKAGED = "the packaged suite"


class ModelRow(Record, frozen=True):
    """One model.

    Attributes:
        file: as reports name it; PACKAGED for a model that comes with the program.
        size_bytes: of the file; None for one that is fetched when it is measured.
        cells: how many targets it is compiled for.
    """

    name: str
    file: str
    size_bytes: Count | None
    cells: Count


class TargetRow(Record, frozen=True):
    """One target.

    Attributes:
        short: what reports call it, and selectors may.
        flags: all of them, with those that were inherited.
        cells: how many models are compiled for it.
        unsupported: why none is; empty where it is supported.
        extends: the target that it was derived from; empty where it was not.
        releases: range of releases → what stands there in place of `flags`; the first that has a release counts.
    """

    name: str
    short: str
    backend: str
    flags: tuple[str, ...]
    cells: Count
    unsupported: str = ""
    extends: str = ""
    releases: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Models(Record, frozen=True):
    """The models, by name; `configuration` is None for the packaged one."""

    configuration: str | None
    models: tuple[ModelRow, ...]
    schema: str = MODELS_SCHEMA


class Targets(Record, frozen=True):
    """The targets, in the order of the configuration, which is None for the packaged one."""

    configuration: str | None
    targets: tuple[TargetRow, ...]
    schema: str = TARGETS_SCHEMA


@dataclass(frozen=True, slots=True)
class Listing:
    """Both lists."""

    models: Models
    targets: Targets


def listed(request: Request, cancel: Cancel) -> Listing:
    """What the request's selectors leave of the configuration."""
    config = load_config(request.config)
    chosen = planned(request, config, repository_at(request.config, cancel))
    compiled = [cell.key for cell in chosen.cells if not cell.target.unsupported]
    by_model, by_target = Counter(key.model for key in compiled), Counter(key.target for key in compiled)
    named = {target.name: target.backend for target in (*config.targets, *chosen.targets)}
    short = short_names(named, named)
    packaged = configs_dir().resolve()
    files = {m.name: PACKAGED if Path(m.path).is_relative_to(packaged) else m.shown for m in chosen.models}
    sizes = {m.name: m.size_bytes if m.digest else None for m in chosen.models}
    models = (ModelRow(m.name, files[m.name], sizes[m.name], by_model[m.name]) for m in chosen.models)
    targets = (
        TargetRow(
            name=t.name,
            short=short[t.name],
            backend=t.backend,
            flags=t.flags,
            cells=by_target[t.name],
            unsupported=t.unsupported or "",
            extends=t.extends or "",
            releases=dict(t.releases),
        )
        for t in chosen.targets
    )
    name = request.config.as_posix() if request.config else None
    return Listing(Models(name, tuple(models)), Targets(name, tuple(targets)))


def table(given: Models | Targets) -> str:
    """The list in columns; of a target's flags and why it is unsupported, what there is."""
    lines: Sequence[tuple[str, ...]]
    if isinstance(given, Models):
        sizes = ["not fetched" if m.size_bytes is None else human(m.size_bytes) for m in given.models]
        rows = [(m.name, f"{m.cells:,}", size, m.file) for m, size in zip(given.models, sizes, strict=True)]
        lines = [("model", "cells", "size", "from"), *rows]
    else:
        lines = _target_lines(given.targets)
    return "\n".join(_aligned([tuple(map(clean, line)) for line in lines]))


def _target_lines(targets: Sequence[TargetRow]) -> Sequence[tuple[str, ...]]:
    """A header, a line for each and one for each of its ranges; what they were derived from is told where any was."""
    rows = []
    for t in targets:
        rows.append((t.name, f"{t.cells:,}", t.short, t.extends, t.backend, t.unsupported or " ".join(t.flags)))
        if not t.unsupported:
            rows += [
                ("", "", "", "", "", f"{where}: {' '.join(flags) or '(none)'}") for where, flags in t.releases.items()
            ]
    lines = [("target", "cells", "short name", "extends", "backend", "flags"), *rows]
    return lines if any(target.extends for target in targets) else [(*line[:3], *line[4:]) for line in lines]


def _aligned(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numbers = {at for at, header in enumerate(lines[0]) if header in ("cells", "size")}
    for line in lines:
        columns = enumerate(zip(line, widths, strict=True))
        yield "  ".join(t.rjust(w) if at in numbers else t.ljust(w) for at, (t, w) in columns).rstrip()
