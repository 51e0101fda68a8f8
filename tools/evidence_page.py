"""docs/evidence.md as parts between markers, each written without touching the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def begin(part: str) -> str:
    """The line before a part."""
    return f"<!-- begin: {part} -->"


def end(part: str) -> str:
    """The line behind a part."""
    return f"<!-- end: {part} -->"


def written(page: str, part: str, lines: Sequence[str], order: Sequence[str]) -> str:
    """The page with this part anew: where it was, else before the first of the later ones, else at the end.

    Raises:
        ValueError: a marker stands there twice, or without the other, so that nobody knows what is to be replaced.
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
    """The parts of a page in their order."""
    return re.findall(r"^<!-- begin: (\w+) -->$", page, re.MULTILINE)


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1
) -> list[str]:
    """A Markdown table, its first columns aligned to the left and the others to the right."""
    aligned = [":--"] * left + ["--:"] * (len(head) - left)
    return [
        f"| {' | '.join(row)} |" if row is not aligned else f"|{'|'.join(row)}|"
        for row in (head, aligned, *rows)
    ]
