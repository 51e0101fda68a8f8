"""The project's documents as Markdown: their links, anchors, inline code and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from places import ROOT

PAGES = (
    *(
        ROOT / f"{name}.md"
        for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG")
    ),
    *sorted((ROOT / "docs").glob("*.md")),
)


@dataclass(frozen=True)
class Block:
    """A fenced code block.

    `page` is relative to the repository, `line` the first line of its content.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, without their comments."""
        lines = (
            re.sub(r"(^|\s+)#.*", "", line).strip()
            for line in self.text.replace("\\\n", " ").splitlines()
        )
        return [line for line in lines if line]


def name_of(page: Path) -> str:
    """A page as tests name it."""
    return page.relative_to(ROOT).as_posix()


@cache
def _tokens(page: Path) -> list[Token]:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(
        page.read_text(encoding="utf-8")
    )


def _spans(page: Path) -> Iterator[Token]:
    for token in _tokens(page):
        yield from token.children or ()


def blocks(page: Path) -> list[Block]:
    """Every fenced block, those inside lists too."""
    fences = (token for token in _tokens(page) if token.type == "fence")
    return [
        Block(name_of(page), (token.map or [0])[0] + 2, token.info, token.content)
        for token in fences
    ]


def links(page: Path) -> list[str]:
    """Where links and pictures lead, those in HTML too."""
    places = (span.attrGet("href") or span.attrGet("src") for span in _spans(page))
    html = "".join(
        token.content for token in _tokens(page) if token.type == "html_block"
    )
    return [
        *(str(place) for place in places if place),
        *re.findall(r'(?:href|src)="([^"]*)"', html),
    ]


def words(page: Path) -> list[str]:
    """The text outside of code; a reference that leads nowhere is still in it."""
    return [span.content for span in _spans(page) if span.type == "text"]


def code(page: Path) -> list[str]:
    """Inline code."""
    return [span.content for span in _spans(page) if span.type == "code_inline"]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to headings: of equal ones the later have a number."""
    tokens = _tokens(page)
    identifiers = set[str]()
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(span.content for span in inline.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            names = (slug, *(f"{slug}-{number}" for number in range(1, 99)))
            identifiers.add(next(name for name in names if name not in identifiers))
    return identifiers
