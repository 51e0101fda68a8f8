"""Make text of models, compilers and pull requests harmless where it is shown.

Untrusted text is shown as code wherever that is possible: GitHub makes no mentions,
issue links, commit links, URLs, emoji or formulas out of code. All functions take any
string, lone surrogates included.
"""

from __future__ import annotations

import re
from functools import lru_cache

# ECMA-48: CSI sequences, terminated OSC strings, then two-character escapes.
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
)
_JOINER = "\u2060"  # invisible: keeps `@name` and `https://` from being seen as such
_SPECIAL = re.compile(r"([\\`*_\[\]<>&#|~$!])")
_LINKS = re.compile(r"(@|#(?=\w)|:(?=[\w/+-])|(?i:www)(?=\.))")
# GitHub links a commit's id where it stands as a word. The date in `3.13.0rc20261127`
# does not stand as a word, a number is no id, and the local part of a version
# (`3.13.0.dev0+1a2b3c4d`) may be a link.
_HEX = re.compile(
    r"(?<![0-9A-Za-z_])(?<!\d\+)(?=\d*[a-fA-F])[0-9a-fA-F]{7,}(?![0-9A-Za-z_])"
)
_GITHUB_ISSUE = re.compile(r"(?i)\b(gh)-(?=\d)")
_LINE_START = re.compile(r"^(\d+)([.)])|^([-+=])(?=[-=\s]|$)")
_URL = re.compile(
    r"(?:https://[A-Za-z0-9.-]+|http://127\.0\.0\.1)(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~/%?#=&+,:-]*)?",
    re.ASCII,
)
_LONGEST_URL = 2_000
_BACKSLASHES_BEFORE_PIPE = re.compile(r"\\+(?=\|)")
_REMEMBERED = 1 << 11  # names and labels come again and again


def visible(text: str) -> str:
    """Replace control, format and bidi characters by visible ones."""
    if text.isprintable():
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable():
        return character
    if character.isspace():
        return " "
    return "\ufffd"


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters, without the middle.

    Names differ at both ends.
    """
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def clean(text: str, limit: int = 10_000) -> str:
    """Return one line without terminal sequences and invisible characters."""
    if text.isprintable() and len(text) <= limit and "  " not in text:
        return text.strip()
    return clip(" ".join(visible(_ANSI.sub("", text)).split()), limit)


def clean_block(text: str) -> str:
    """Return several lines without terminal sequences and invisible characters."""
    plain = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return "\n".join(visible(line).rstrip() for line in plain.split("\n"))


def _unhide(text: str) -> str:
    """Return the text without the start of an HTML comment.

    Otherwise a name could pose as the hidden marker of a comment.
    """
    return text.replace("<!--", "<!- -")


def _backticks(text: str, minimum: int) -> str:
    """Return more backticks than there are in any row in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(minimum, 1 + longest)


def md_code(text: str) -> str:
    """Return an inline code span for outside of tables; `(empty)` for nothing."""
    line = _unhide(clean(text)) or "(empty)"
    ticks = _backticks(line, 1)
    if line.startswith("`") or line.endswith("`"):
        pad = " "
    else:
        pad = ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


@lru_cache(maxsize=_REMEMBERED)
def md_cell(text: str) -> str:
    """Return an inline code span for a table, where a pipe ends the cell even in code.

    Parsers disagree about a backslash before an escaped pipe, so that one becomes
    U+2216.
    """
    lookalike = _BACKSLASHES_BEFORE_PIPE.sub(
        lambda run: "\u2216" * len(run.group()), clean(text)
    )
    return md_code(lookalike).replace("|", "\\|")


def md_fence(text: str, language: str = "text") -> str:
    """Return a fenced code block whose fence no line of the text can close."""
    block = _unhide(clean_block(text)).strip("\n")
    ticks = _backticks(block, 3)
    return f"{ticks}{language}\n{block}\n{ticks}"


@lru_cache(maxsize=_REMEMBERED)
def md_text(text: str) -> str:
    """Return one line of text without any meaning to Markdown or GitHub.

    It is also safe in a table.
    """
    line = _SPECIAL.sub(r"\\\1", clean(text))
    line = _LINKS.sub(rf"\1{_JOINER}", line)
    line = _HEX.sub(lambda run: _JOINER.join(re.findall(".{1,6}", run.group())), line)
    line = _GITHUB_ISSUE.sub(rf"\1{_JOINER}-", line)
    return _LINE_START.sub(_escaped_line_start, line)


def _escaped_line_start(match: re.Match[str]) -> str:
    """Return the start of a numbered item, a list item or an underline, escaped."""
    if match[1]:
        return f"{match[1]}\\{match[2]}"
    return f"\\{match[3]}"


def md_link(label: str, url: str) -> str:
    """Return a link to an https page (or to this machine, in tests).

    For any other URL, return the label alone.
    """
    text = md_text(label)
    if is_link(url):
        return f"[{text}](<{url}>)"
    return text


def is_link(url: str) -> bool:
    """Return whether a link is drawn: it is an https page, or one of this machine."""
    return _URL.fullmatch(url) is not None and len(url) <= _LONGEST_URL


def html_text(text: str) -> str:
    """Return text for an HTML element or attribute, on one line."""
    line = _unhide(clean(text)).replace("&", "&amp;")
    line = line.replace("<", "&lt;").replace(">", "&gt;")
    return line.replace('"', "&quot;").replace("'", "&#39;")
