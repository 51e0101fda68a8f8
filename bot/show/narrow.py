"""Fit tables to a narrow screen.

Several columns share one cell, and long names are broken into lines. GitHub's tables
scroll sideways if the longest unbreakable words of the columns are wider than the
screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from bot.show.blocks import (
    ABSENT,
    BREAK,
    Phrase,
    Row,
    Span,
    Stacked,
    Table,
    Words,
    phrase,
    plain,
)
from bot.show.escape import clean

# Pixels of a comment on a screen of 375 pixels, with a wide font. The names are of
# GitHub's style sheet.
_COMMENT_WIDTH = 309
_CELL_PADDING = 28  # with the border
_TEXT_CHARACTER = 9.0
_THIN_CHARACTER = 5.5
_THIN_CHARACTERS = ",.:;()ijl \N{NO-BREAK SPACE}"
_CODE_CHARACTER = 7.3
_CODE_PADDING = 10.0
_SEPARATORS = "_-./:$,=@"
_LEAST_CHARACTERS = 4


class NarrowTable(NamedTuple):
    """A table as Markdown draws it."""

    headers: Row
    texts: tuple[Row, ...]
    marks: tuple[str, ...]


def narrowed(table: Table) -> NarrowTable:
    """Return the table with its stacked columns in one cell.

    A table without stacks stays as it is.
    """
    if not table.stacks:
        return NarrowTable(tuple(table.headers), table.texts, table.marks)
    stacks = []
    headers = []
    for stack in table.stacks:
        parts = [part for part in stack if part.column < len(table.headers)]
        stacks.append(parts)
        names = [table.headers[part.column] for part in parts]
        headers.append(phrase(" · ".join(names)))
    rows = [[_stacked_cell(row, stack) for stack in stacks] for row in table.texts]
    limits = _column_limits([headers, *rows])
    broken_rows = [_broken_row(row, limits) for row in rows]
    return NarrowTable(
        _broken_row(headers, limits), tuple(broken_rows), (":--",) * len(stacks)
    )


def _stacked_cell(row: Row, stack: Sequence[Stacked]) -> Phrase:
    """Return the cells of the stack in one, without the absent ones."""
    parts = list[Span]()
    for part in stack:
        cell = row[part.column]
        if plain(cell) == ABSENT:
            continue
        if parts:
            parts += phrase(part.joint)
        parts += [*phrase(part.lead), *phrase(cell)]
    return tuple(parts) or phrase(ABSENT)


def _column_limits(rows: Sequence[Sequence[Words]]) -> list[float]:
    """Return the pixels that an unbreakable word of each column may take.

    With these limits all columns fit.
    """
    columns = list(zip(*rows, strict=True))
    room = _COMMENT_WIDTH - _CELL_PADDING * len(columns)
    limits = [max(_word_widths(cell) for cell in column) for column in columns]
    if sum(limits) <= room:
        return limits
    share = room / len(limits)
    spare = room - sum(min(limit, share) for limit in limits)
    return [limit if limit <= share else share + spare for limit in limits]


def _word_widths(cell: Words) -> float:
    """Return the pixels of the widest run of characters in which no line ends."""
    widest = width = 0.0
    for span in phrase(cell):
        if span == BREAK:
            width = 0.0
            continue
        is_code = span.kind == "code"
        width += _CODE_PADDING if is_code else 0.0
        for number, run in enumerate(_runs(span)):
            if number:
                if is_code:
                    width = _CODE_PADDING
                else:
                    width = 0.0
            width += cell_len(run) * _CODE_CHARACTER if is_code else _text_width(run)
            widest = max(widest, width)
    return widest


def _text_width(text: str) -> float:
    thin = sum(character in _THIN_CHARACTERS for character in text)
    return (cell_len(text) - thin) * _TEXT_CHARACTER + thin * _THIN_CHARACTER


def _runs(span: Span) -> list[str]:
    """Return the parts of a span between which a line may end."""
    if span.kind == "code":
        text = clean(span.text)
    else:
        text = span.text
    if span.kind in ("number", "up", "down"):
        return [text]
    return re.split(r" |(?<=-)(?=[^\d\s-])", text)


def _broken_row(row: Sequence[Words], limits: Sequence[float]) -> Row:
    return tuple(_broken(cell, limit) for cell, limit in zip(row, limits, strict=True))


def _broken(cell: Words, limit: float) -> Phrase:
    """Return the phrase with a line break in each run that is wider than the limit."""
    if _word_widths(cell) <= limit:
        return phrase(cell)
    parts = list[Span]()
    for span in phrase(cell):
        for number, line in enumerate(_lines(span, limit)):
            if number:
                parts.append(BREAK)
            parts.append(line)
    return tuple(parts)


def _lines(span: Span, limit: float) -> Iterator[Span]:
    """Yield the span, or its lines if a run of it is too wide.

    One character is left for the text that follows.
    """
    if span == BREAK or span.kind in ("number", "up", "down"):
        yield span
        return
    room = limit - _TEXT_CHARACTER
    width = _TEXT_CHARACTER
    if span.kind == "code":
        room -= _CODE_PADDING
        width = _CODE_CHARACTER
    limit_columns = max(int(room / width), _LEAST_CHARACTERS)
    words = [_cut(word, limit_columns) for word in _runs(span)]
    if all(len(pieces) == 1 for pieces in words):
        yield span
        return
    if span.kind == "code":
        text = clean(span.text)
    else:
        text = span.text
    for line in _joined_lines(text, words):
        yield Span(line, span.kind, span.to)


def _joined_lines(text: str, cut_words: Sequence[Sequence[str]]) -> list[str]:
    """Return the text with a new line where a word was cut."""
    lines = [""]
    remainder = text
    for pieces in cut_words:
        for number, piece in enumerate(pieces):
            before, _, remainder = (
                remainder.partition(piece) if piece else ("", "", remainder)
            )
            if number:
                lines.append("")
            lines[-1] += before + piece
    lines[-1] += remainder
    return lines


def _cut(word: str, limit: int) -> list[str]:
    """Return the word in pieces of at most so many columns.

    A piece ends behind a separator if it has one.
    """
    pieces = list[str]()
    while cell_len(word) > limit:
        fitting = next(
            count
            for count in range(len(word), 0, -1)
            if cell_len(word[:count]) <= limit or count == 1
        )
        separators = []
        for place in range(fitting):
            if word[place] in _SEPARATORS:
                separators.append(place + 1)
        end = fitting
        if separators and separators[-1] > fitting // 3:
            end = separators[-1]
        pieces.append(word[:end])
        word = word[end:]
    if word or not pieces:
        return [*pieces, word]
    return pieces
