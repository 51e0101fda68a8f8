"""The scripts that pages carry: the chart library as it was vendored, with its licence, and what allows them to run.

A page allows the scripts that it carries by their digests and no others (Content-Security-Policy), so that nothing that
came from a model or a compiler could run even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from markupsafe import Markup

from bot.render.text.environment import templates_dir

CHARTS = ("chart", "treemap")
"""Libraries below `templates/vendor`, in the order in which they need each other; `make vendor` fetches them."""


def vendored(name: str) -> str:
    """The library's text, led by its licence as a comment."""
    directory = templates_dir() / "vendor"
    licence = (directory / f"{name}.LICENSE.md").read_text(encoding="utf-8").strip()
    return f"/*!\n{licence}\n*/\n" + (directory / f"{name}.js").read_text(encoding="utf-8").strip()


def script_elements(scripts: Sequence[str]) -> Markup:
    """The scripts as elements of a page; raises ValueError for one that would end its element itself."""
    for text in scripts:
        if "</script" in text.lower() or "<!--" in text:
            raise ValueError("a script that cannot stand inside a page")
    elements = "\n".join(f"<script>{text}</script>" for text in scripts)
    return Markup(elements)  # noqa: S704 - text of ours and of the vendored library, and it cannot end its element


def script_sources(scripts: Sequence[str]) -> str:
    """The value of `script-src` that allows these scripts alone (CSP level 3, hash sources)."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
