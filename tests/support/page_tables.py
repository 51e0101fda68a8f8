"""Tables of a Markdown file as rows, for tests that compare what they show."""

from __future__ import annotations

from pathlib import Path

_SMALL = ("<sub>", "</sub>", "`")


def rows_below(path: Path, title: str) -> list[dict[str, str]]:
    """The rows of the first table below a title, each by its headers, without marks."""
    below = path.read_text(encoding="utf-8").partition(title)[2].splitlines()
    start = next(number for number, line in enumerate(below) if line.startswith("|"))
    lines = []
    for line in below[start:]:
        if not line.startswith("|"):
            break
        lines.append(_cells(line))
    headers, _, *rows = lines
    return [dict(zip(headers, row, strict=True)) for row in rows]


def _cells(line: str) -> list[str]:
    for mark in _SMALL:
        line = line.replace(mark, "")
    return [
        cell.strip().replace("\\", "") for cell in line.strip().strip("|").split("|")
    ]
