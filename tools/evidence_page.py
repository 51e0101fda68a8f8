"""Write docs/evidence.md as parts between markers, each without touching the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def begin(part: str) -> str:
    """Return the line before a part."""
    return f"<!-- begin: {part} -->"


def end(part: str) -> str:
    """Return the line after a part."""
    return f"<!-- end: {part} -->"


def written(page: str, part: str, lines: Sequence[str], order: Sequence[str]) -> str:
    """Return the page with a new text of this part.

    The part stays where it was. A part that is new to the page goes before the
    first of the later ones, else to the end.

    Raises ValueError if a marker is there twice, or without the other one: nobody
    knows then what to replace.
    """
    block = "\n\n".join((begin(part), "\n".join(lines).strip(), end(part)))
    counts = page.count(begin(part)), page.count(end(part))
    if counts == (1, 1) and page.index(begin(part)) < page.index(end(part)):
        before, remainder = page.split(begin(part))
        return before + block + remainder.split(end(part))[1]
    if counts != (0, 0):
        raise ValueError(
            f"the markers of {part} are not one pair: mend the page by hand"
        )
    later = next(
        (begin(name) for name in order[order.index(part) + 1 :] if begin(name) in page),
        None,
    )
    if later is None:
        return f"{page.rstrip()}\n\n{block}\n"
    before, remainder = page.split(later, 1)
    return f"{before}{block}\n\n{later}{remainder}"


def parts(page: str) -> list[str]:
    """Return the parts of a page in their order."""
    return re.findall(r"^<!-- begin: (\w+) -->$", page, re.MULTILINE)


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1
) -> list[str]:
    """Return a Markdown table.

    Its first columns are aligned to the left, and the others to the right.
    """
    aligned = [":--"] * left + ["--:"] * (len(head) - left)
    return [
        f"| {' | '.join(row)} |" if row is not aligned else f"|{'|'.join(row)}|"
        for row in (head, aligned, *rows)
    ]
