"""The colours of growth and shrinkage: readable, and different in lightness."""

from __future__ import annotations

import pytest
from contrasts import colours, contrast

READABLE = 4.5  # WCAG 2.2, AA, for text
AREAS_APART = 3.0  # WCAG 2.2, AA, for graphics
TEXTS_APART = 1.9  # both have to be readable on the same paper, too


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_growth_and_shrinkage_differ_in_lightness(theme: str) -> None:
    colour = colours(theme)
    assert contrast(colour["fill-up"], colour["fill-down"]) >= AREAS_APART
    assert contrast(colour["up"], colour["down"]) >= TEXTS_APART


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_is_readable_on_its_background(theme: str) -> None:
    colour = colours(theme)
    for ink in ("ink", "dim", "link", "up", "down", "warn"):
        for paper in ("paper", "soft"):
            assert contrast(colour[ink], colour[paper]) >= READABLE, (ink, paper)
    for direction in ("up", "down"):
        assert (
            contrast(colour[f"on-fill-{direction}"], colour[f"fill-{direction}"])
            >= READABLE
        )
