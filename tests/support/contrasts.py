"""The colours of the pages, and how well people can tell them apart."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.show.renderers import templates_dir

_COLOUR = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6});")


def colours(theme: str) -> Mapping[str, str]:
    """Return the colours of page.css in a theme, `light` or `dark`, by name without the dashes."""
    css = (templates_dir() / "page" / "page.css").read_text(encoding="utf-8")
    light, dark = css.split("@media (prefers-color-scheme: dark)", 1)
    blocks = {"light": light, "dark": dark}
    colour_of = dict(_COLOUR.findall(blocks[theme]))
    assert colour_of, f"page.css has no colours for {theme}"
    return colour_of


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb``, from 0 to 1, as WCAG 2.2 defines it."""
    red, green, blue = (
        _linear(int(colour[start : start + 2], 16) / 255) for start in (1, 3, 5)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21, as WCAG 2.2 defines it."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _linear(channel: float) -> float:
    if channel <= 0.04045:
        return channel / 12.92
    return float(((channel + 0.055) / 1.055) ** 2.4)
