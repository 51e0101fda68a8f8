"""The pictures of an experiment, as numbers: sizes and times of each target's variants, or lines along the axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.core.lab.lab_sums import Fit, Sums
from bot.core.lab.lab_values import Lab
from bot.core.spread import lowest
from bot.render.lab.lab_tables import picture_column
from bot.render.lab.lab_words import TIME, header
from bot.render.text.escape import clean, clip
from bot.render.view.facts import NAME_LIMIT


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture.

    Attributes:
        title: what it shows, in words.
        unit: of its values, as at a table's head: `artifact, B`.
        labels: along its one axis.
        series: name → a value for each label, None where it is not known.
        is_line: True where the labels are places on an axis.
    """

    title: str
    unit: str
    labels: tuple[str, ...]
    series: Mapping[str, tuple[float | None, ...]]
    is_line: bool = False

    @property
    def plain(self) -> dict[str, object]:
        """As a script reads it."""
        return {
            "title": self.title,
            "unit": self.unit,
            "labels": self.labels,
            "series": self.series,
            "line": self.is_line,
        }


def pictures(lab: Lab, every: Sequence[Sums], fits: Sequence[Fit]) -> Iterator[Picture]:
    """All of them, in the order of the tables."""
    column = picture_column(lab)
    if lab.axis:
        yield from _lines(lab, [fit for fit in fits if fit.column == column])
        return
    for sums in every:
        if not sums.models:
            continue
        names = tuple(_short(variant.name) for variant in sums.variants)
        sizes = tuple(lowest(sums.value(variant.name, column)) for variant in sums.variants)
        yield Picture(f"{_short(sums.target)}: {header(column)}", header(column), names, {header(column): sizes})
        means = [sums.time(variant.name) for variant in sums.variants]
        if any(means):
            ratios = tuple(
                1.0 if variant.name == sums.reference else mean.ratio if mean else None
                for variant, mean in zip(sums.variants, means, strict=True)
            )
            told = f"{TIME} against {_short(sums.reference)}"
            yield Picture(f"{_short(sums.target)}: {told}", told, names, {told: ratios})


def _lines(lab: Lab, fits: Sequence[Fit]) -> Iterator[Picture]:
    for target in dict.fromkeys(fit.target for fit in fits):
        mine = [fit for fit in fits if fit.target == target]
        places = sorted({at for fit in mine for at, _ in fit.points})
        series = {_short(fit.model): tuple(dict(fit.points).get(at) for at in places) for fit in mine}
        unit = header(mine[0].column)
        labels = tuple(map(str, places))
        yield Picture(f"{_short(target)}: {unit} by {lab.axis}s", unit, labels, series, is_line=True)


def _short(text: str) -> str:
    return clip(clean(text), NAME_LIMIT)
