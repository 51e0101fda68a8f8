"""What all pages have around their content: style, scripts, and the policy that allows these alone.

A page allows the scripts that it carries by their digests and no others (Content-Security-Policy), so that nothing that
came from a model or a compiler could run even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from bot.errors import TemplateError
from bot.show.environment import asset, templates_dir

CHARTS = ("chart",)
"""Libraries below `templates/vendor`, in the order in which they need each other; `make vendor` fetches them."""


def vendored(name: str) -> str:
    """The library's text, led by its licence as a comment."""
    directory = templates_dir() / "vendor"
    licence = (directory / f"{name}.LICENSE.md").read_text(encoding="utf-8").strip()
    return f"/*!\n{licence}\n*/\n" + (directory / f"{name}.js").read_text(encoding="utf-8").strip()


def script_elements(scripts: Sequence[str]) -> Markup:
    """The scripts as elements of a page; raises TemplateError for one that would end its element itself."""
    return _elements(scripts, "<script>", "</script>")


def library_elements(scripts: Sequence[str]) -> Markup:
    """The same as text that is not run: a script may do that when it needs it."""
    return _elements(scripts, '<script type="text/plain" class="library">', "</script>")


def data_element(name: str, json: str) -> Markup:
    """JSON for a script, as an element with this id; raises TemplateError for text that would end its element."""
    return _elements([json], f'<script type="application/json" id="{name}">', "</script>")


def style_element(style: str) -> Markup:
    """The style as an element of a page; raises TemplateError for one that would end its element itself."""
    return _elements([style], "<style>", "</style>")


def sources(texts: Sequence[str]) -> str:
    """The value of `script-src` or `style-src` that allows these texts alone (CSP level 3, hash sources)."""
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _elements(texts: Sequence[str], begin: str, end: str) -> Markup:
    for text in texts:
        if end[:-1] in text.lower() or "<!--" in text:
            raise TemplateError(f"holds {end!r} or the beginning of a comment: it cannot stand inside a page")
    elements = "\n".join(f"{begin}{text}{end}" for text in texts)
    return Markup(elements)  # noqa: S704 - text of ours, of the user's templates or of the vendored library


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
