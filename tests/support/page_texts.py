"""A page without what all pages carry: goldens and words are of what it says."""

from __future__ import annotations

import re

_CARRIED = re.compile(r"<(style|script|nav)\b.*?</\1>\n?", re.DOTALL)


def content(html: str) -> str:
    """The body without scripts and the list of its sections."""
    return _CARRIED.sub("", html.partition("<body>")[2].partition("</body>")[0])
