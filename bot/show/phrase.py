"""Sentences as values: spans of text, so that every place can draw them with its own escapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "code", "strong", "small", "number", "fail", "warn"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text; `code` is for everything that came from a model, a compiler or a pull request.

    What is `small` is said beside the rest, a `number` is not broken into lines, and `fail` and `warn` have colours.

    Attributes:
        to: the address on the page (`bot.show.page_addresses`) of what the text names, or an https one of
            another page; empty for none.
    """

    text: str
    kind: Kind = "text"
    to: str = ""


Phrase = tuple[Span, ...]


def code(text: str, to: str = "") -> Span:
    """A name or value that is not ours."""
    return Span(text, "code", to)


def strong(text: str) -> Span:
    """Words that stand out."""
    return Span(text, "strong")


def phrase(*parts: str | Span | Iterable[Span]) -> Phrase:
    """Join words, spans and phrases."""
    spans: list[Span] = []
    for part in parts:
        if isinstance(part, str):
            spans.append(Span(part))
        elif isinstance(part, Span):
            spans.append(part)
        else:
            spans.extend(part)
    return tuple(span for span in spans if span.text or span.kind == "code")


def joined(phrases: Iterable[Phrase], separator: str) -> Phrase:
    """The phrases with a separator between them."""
    spans: list[Span] = []
    for part in phrases:
        if spans:
            spans.append(Span(separator))
        spans.extend(part)
    return tuple(spans)


def plain(spans: Phrase) -> str:
    """The words alone, unescaped: for lengths and tests."""
    return "".join(span.text for span in spans)
