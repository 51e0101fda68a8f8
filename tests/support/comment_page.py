"""A comment as a page with the rules of GitHub's style sheet that decide how wide a table is."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt

_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# From github-markdown-css 5, for a comment: its text has 14 pixels, its frame takes 33
# pixels of each side.
_STYLE = """
body { margin: 0 33px; font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-spacing: 0;
  border-collapse: collapse; }
th { font-weight: 600; }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0; }
code { padding: .2em .4em; white-space: break-spaces; font: 85% ui-monospace, Menlo, Consolas, monospace; }
code br { display: none; }
"""


def write_comment_page(folder: Path, comment: str) -> Path:
    """Write the page of a comment, with all folds open, and return its path."""
    path = folder / "comment.html"
    body = _PARSER.render(comment).replace("<details>", "<details open>")
    head = (
        '<!DOCTYPE html><html lang="en"><meta'
        f' charset="utf-8"><title>comment</title><style>{_STYLE}</style>'
    )
    path.write_text(f"{head}{body}", encoding="utf-8")
    return path
