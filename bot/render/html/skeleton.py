"""What all pages have around their content: style and scripts, and the policy that allows these alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from bot.render.html.scripts import CHARTS, library_elements, script_elements, sources, style_element, vendored
from bot.render.text.environment import asset

STYLE = "page/page.css"
ADDRESSES, TABLES, DRAWING = "page/addresses.js", "page/tables.js", "page/charts.js"
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}; script-src {}"


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What `page/skeleton.html.j2` draws.

    Attributes:
        policy: the Content-Security-Policy: everything that the page carries, by its digest, and nothing else.
        style, scripts: as elements.
    """

    policy: str
    style: Markup
    scripts: Markup


def skeleton(
    templates_dir: Path | None = None, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), charts: bool = False
) -> Skeleton:
    """The frame of a page with the shared style, addresses and sortable tables, and what it has of its own.

    Args:
        templates_dir: the user's templates, whose files are searched before the default ones.
        styles, scripts: names of files below the templates, added after the shared ones.
        charts: True where a script draws charts: the library is carried as text, which `page/charts.js` runs when it
            is needed.

    Raises:
        TemplateError: a file is not there, or cannot stand inside a page.
    """
    style = "\n".join(asset(name, templates_dir) for name in (STYLE, *styles))
    shared = (ADDRESSES, TABLES, *((DRAWING,) if charts else ()))
    own = [asset(name, templates_dir) for name in (*shared, *scripts)]
    library = [vendored(name) for name in CHARTS] if charts else []
    elements = Markup("\n").join([*filter(None, [library_elements(library)]), script_elements(own)])
    return Skeleton(_POLICY.format(sources([style]), sources([*library, *own])), style_element(style), elements)
