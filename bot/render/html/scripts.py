"""The scripts that pages carry: the chart library as it was vendored, with its licence, and what allows them to run.

A page allows the scripts that it carries by their digests and no others (Content-Security-Policy), so that nothing that
came from a model or a compiler could run even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from markupsafe import Markup

from bot.errors import TemplateError
from bot.render.text.environment import templates_dir

CHARTS = ("chart", "treemap")
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
