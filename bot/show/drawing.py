"""How a terminal shows phrases and tables: harmless text, and colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table
from rich.text import Text

from bot.show.escape import clean
from bot.show.phrase import Phrase

LEVELS: Mapping[str, str] = {"fail": "bold red", "warn": "yellow"}
"""Colours of findings."""
_STYLES = {"text": "", "code": "cyan", "strong": "bold", "small": "dim", "number": "", **LEVELS}


def text_of(words: Phrase) -> Text:
    """A phrase; spans keep the blanks at their ends."""
    return Text.assemble(*((_clean_span(span.text), _STYLES[span.kind]) for span in words))


def _clean_span(text: str) -> str:
    left, right = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{left and ' '}{clean(text)}{right and ' '}" if text.strip() else text and " "


def table_of(title: str, *headers: str, numbers_from: int = 1) -> Table:
    """An empty table; columns from `numbers_from` on are numbers."""
    heading = Text(f"\n{title}", "bold") if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, header in enumerate(headers):
        table.add_column(header, overflow="fold", justify="right" if index >= numbers_from else "left")
    return table
