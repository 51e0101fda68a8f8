"""Show the times of compiles, by phase and by pass.

A table has a column for each variant, and the growth with the layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bot.core.growth import series
from bot.core.lab import Lab
from bot.core.snapshot import CellKey
from bot.core.study import Variant
from bot.core.times import CompileTimes, growth_of
from bot.show.blocks import (
    Block,
    Phrase,
    Row,
    Table,
    by,
    joined,
    listed,
    listing,
    more_of,
    phrase,
)
from bot.show.escape import clean, clip
from bot.show.filters import UNKNOWN
from bot.show.growth import exponent_text
from bot.show.lab_words import name

_ABOUT = (
    "Wall times of one compile on one thread, in ms. They vary, and other load on the"
    " machine adds to them."
)
_PASSES = 8
_WHY_LIMIT = 300
Times = Mapping[str, CompileTimes]  # variant → times of one build


def time_tables(lab: Lab, limit: int) -> list[Block]:
    """Yield two tables for each timed build: its phases, and its longest passes.

    There are as many builds as there is room for, and then how many are left out.
    """
    builds = listed(_by_build(lab).items(), "build").first(limit)
    tables = list[Block]()
    is_layered = len(lab.study.variants) in map(len, series(lab.study))
    for key, times in builds:
        variants = [variant for variant in lab.study.variants if variant.name in times]
        phases = dict[str, None]()
        for profile in times.values():
            phases.update(dict.fromkeys(profile.phases))
        passes = _longest_passes(variants, times)
        for noun, names in (("phase", list(phases)), ("pass", passes)):
            if names:
                tables.append(
                    _table(
                        key,
                        noun=noun,
                        names=names,
                        variants=variants,
                        times=times,
                        is_layered=is_layered,
                    )
                )
    return [*tables, more_of(builds)]


def _longest_passes(variants: Sequence[Variant], times: Times) -> list[str]:
    """Return the longest passes of the last variant that has any."""
    profiles = []
    for variant in variants:
        if times[variant.name].passes:
            profiles.append(times[variant.name].passes)
    if profiles:
        return list(profiles[-1])[:_PASSES]
    return []


def _by_build(lab: Lab) -> dict[CellKey, Times]:
    builds = by(lab.times, lambda pair: pair[1])
    times = dict[CellKey, Times]()
    for key in sorted(builds):
        times[key] = {variant: lab.times[variant, key] for variant, _ in builds[key]}
    return times


def _table(
    key: CellKey,
    noun: str,
    names: Sequence[str],
    variants: Sequence[Variant],
    times: Times,
    *,
    is_layered: bool,
) -> Table:
    grown: tuple[str, ...] = ()
    if is_layered:
        grown = ("exponent", "last step")
    rows = []
    for row_name in names:
        rows.append(
            _row(
                noun,
                row_name=row_name,
                variants=variants,
                times=times,
                is_layered=is_layered,
            )
        )
    order = ""
    if noun == "pass":
        order = ", the longest first"
    title = f": wall time of each {noun}, in ms (varies){order}"
    caption = phrase("Compile of ", name(key.model), " on ", name(key.target), title)
    headers = (noun, *(clip(variant.name, 20) for variant in variants), *grown)
    return Table(headers, listing(rows, len(rows), noun), caption=caption, about=_ABOUT)


def _row(
    noun: str,
    row_name: str,
    variants: Sequence[Variant],
    times: Times,
    is_layered: bool,
) -> Row:
    row_times = [_time(times[variant.name], noun, row_name) for variant in variants]
    texts = [_milliseconds(time) for time in row_times]
    if is_layered:
        points = []
        for variant, time in zip(variants, row_times, strict=True):
            points.append((variant.layers or 0, time))
        growth = growth_of(points)
        fit = [UNKNOWN] * 2
        if growth is not None:
            fit = [exponent_text(growth.exponent), exponent_text(growth.last_step)]
        texts += fit
    return (name(row_name), *map(phrase, texts))


def _milliseconds(time_us: int | None) -> str:
    if time_us is None:
        return UNKNOWN
    if time_us >= 1000:
        return f"{time_us / 1000:,.0f}"
    return "<1"


def _time(times: CompileTimes, noun: str, row_name: str) -> int | None:
    if noun == "pass":
        rows = times.passes
    else:
        rows = times.phases
    return rows.get(row_name)


def time_notes(lab: Lab) -> Iterator[Phrase]:
    """Yield why times are missing: a line for each reason."""
    missing = []
    for pair, times in lab.times.items():
        if times.reason:
            missing.append((pair, times.reason))
    for reason, rows in by(missing, lambda row: row[1]).items():
        build_names = []
        for (variant, key), _ in rows:
            build_names.append(phrase(name(str(key)), " with ", name(variant)))
        builds = joined(build_names, ", ")
        yield phrase(
            f"Compile times n/a: {clip(clean(reason), _WHY_LIMIT)}: ", builds, "."
        )
