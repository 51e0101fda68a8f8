"""Text that means nothing to Markdown and GitHub: what tests put into a report, and what they require of its comment."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
JOINER = "\u2060"
_MARKDOWN = (
    "\" ' `` ``` <!-- --> &amp; ]( 1. 1) === --- | \\ < > [ ) ! * _ ~ $ - + = # a"
)
_GITHUB = "@ #1 : :// www. http deadbeef 0123456 GH-1 o/r#2 :tada:"
_UNSEEN = (
    "\n,\r\n,\t, ,\x1b[31m,\x1b]8;;x\x07,\x9b1m,\u202e,\u200b,\u2028,\ud800,\x00,\x85"
)
_PIECES = [*_MARKDOWN.split(), *_GITHUB.split(), *_UNSEEN.split(",")]

nasty = st.lists(st.sampled_from(_PIECES) | st.characters(), max_size=12).map("".join)
"""Text with pieces that mean something to Markdown, GitHub, a terminal or a reader."""

# What GitHub finds in text that is not code: mentions, issues, commits, links.
LINKS = re.compile(
    r"@\w|#\d|(?i:\bgh-\d)|://\w|(?i:www\.)\w|(?<!\d\+)\b(?=\d*[a-f])[0-9a-f]{7,40}\b"
)
MARKER = "<!-- code-size-bot:default -->"
_OUR_TAGS = re.compile(r"</?(?:details|summary|sub|code|br)>")


def leaves_of(markdown: str) -> list[Token]:
    """Return all tokens of a text in Markdown."""
    tokens: list[Token] = []
    for token in PARSER.parse(markdown):
        tokens += [token, *(token.children or [])]
    return tokens


def assert_harmless(markdown: str) -> None:
    """Require that a comment has only our own tags, and no heading.

    It has no link, image, mention or reference either.
    """
    leaves = leaves_of(markdown)
    assert not {token.type for token in leaves} & {
        "link_open",
        "image",
        "s_open",
        "hr",
        "code_block",
    }
    markup = "".join(
        token.content for token in leaves if token.type in ("html_block", "html_inline")
    )
    ours = _OUR_TAGS.sub("", markup.replace(MARKER, "", 1))
    assert "<" not in ours
    assert ours.isprintable() or set(ours) - set("\n") <= set(
        filter(str.isprintable, ours)
    )
    assert (
        markup.count("<details>")
        == markup.count("</details>")
        == markup.count("<summary>")
    )
    text = "\n".join(token.content for token in leaves if token.type == "text")
    assert not LINKS.search(text)
    assert not {token.type for token in leaves} & {"heading_open"}, (
        "parts have bold titles"
    )
