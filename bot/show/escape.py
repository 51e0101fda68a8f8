"""Escapes: text of models, compilers and pull requests, made harmless for the place where it is shown.

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
    r"(?:https://[A-Za-z0-9.-]+|http://127\.0\.0\.1)(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/%?#=&+,:-]*)?",
    re.ASCII,
)
_LONGEST_URL = 2_000
_BACKSLASHES_BEFORE_PIPE = re.compile(r"\\+(?=\|)")
_REMEMBERED = 1 << 11  # names and labels come again and again


def visible(text: str) -> str:
    """The text with control, format and bidi characters replaced, so that all of it can be seen."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text
    )


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, the middle left out: names differ at both ends."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def clean(text: str, limit: int = 10_000) -> str:
    """One line without terminal sequences, control, format and bidi characters."""
    if text.isprintable() and len(text) <= limit and "  " not in text:
        return text.strip()
    return clip(" ".join(visible(_ANSI.sub("", text)).split()), limit)


def clean_block(text: str) -> str:
    """Several lines, each without terminal sequences, control, format and bidi characters."""
    plain = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return "\n".join(visible(line).rstrip() for line in plain.split("\n"))


def _unhide(text: str) -> str:
    return text.replace(
        "<!--", "<!- -"
    )  # or a name could pose as the hidden marker of a comment


def _backticks(text: str, least: int) -> str:
    return "`" * max(
        least, 1 + max((len(run) for run in re.findall("`+", text)), default=0)
    )


def md_code(text: str) -> str:
    """An inline code span, outside of tables; `(empty)` for nothing."""
    line = _unhide(clean(text)) or "(empty)"
    ticks = _backticks(line, 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


@lru_cache(maxsize=_REMEMBERED)
def md_cell(text: str) -> str:
    """An inline code span inside a table, where a pipe ends the cell even in code.

    Parsers disagree about a backslash before an escaped pipe, so that one becomes U+2216.
    """
    lookalike = _BACKSLASHES_BEFORE_PIPE.sub(
        lambda run: "\u2216" * len(run.group()), clean(text)
    )
    return md_code(lookalike).replace("|", "\\|")


def md_fence(text: str, language: str = "text") -> str:
    """A fenced code block whose fence no line of the text can close."""
    block = _unhide(clean_block(text)).strip("\n")
    ticks = _backticks(block, 3)
    return f"{ticks}{language}\n{block}\n{ticks}"


@lru_cache(maxsize=_REMEMBERED)
def md_text(text: str) -> str:
    """Running text on one line, without any meaning to Markdown or GitHub; also safe in a table."""
    line = _SPECIAL.sub(r"\\\1", clean(text))
    line = _LINKS.sub(rf"\1{_JOINER}", line)
    line = _HEX.sub(lambda run: _JOINER.join(re.findall(".{1,6}", run.group())), line)
    line = _GITHUB_ISSUE.sub(rf"\1{_JOINER}-", line)
    return _LINE_START.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", line)


def md_link(label: str, url: str) -> str:
    """A link to an https page (or to this machine, in tests).

    The label alone where the URL is anything else.
    """
    text = md_text(label)
    return f"[{text}](<{url}>)" if is_link(url) else text


def is_link(url: str) -> bool:
    """True for what is drawn as a link: an https page, or one of this machine."""
    return _URL.fullmatch(url) is not None and len(url) <= _LONGEST_URL


def html_text(text: str) -> str:
    """Text of an HTML element or attribute, on one line."""
    line = (
        _unhide(clean(text))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
    return line.replace('"', "&quot;").replace("'", "&#39;")
