"""The IR around a pass, on both sides, as titles and texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.trace import SHOWN_LINES, IrAround, IrLines
from bot.show.escape import clean, clean_block, clip

_COLUMNS, _NAMES = 200, 120


def around_texts(around: Sequence[IrAround]) -> Iterator[tuple[str, str]]:
    """Before it on base and head, then after it: a title each, and numbered lines or why there are none."""
    for when in ("before", "after") if around else ():
        for side, one in zip(("base", "head"), around, strict=True):
            lines = one.before if when == "before" else one.after
            idle = ", which changes no operation there" if one.idle and lines and when == "after" else ""
            title = f"{side}, {when} {clip(clean(one.name), _COLUMNS)}{idle}"
            yield (
                (f"{title}: {_held(lines)}", _numbered(lines)) if lines else (title, f"n/a: {clean(one.why, _COLUMNS)}")
            )


def _held(one: IrLines) -> str:
    if not one.holding:
        return f"the first of {one.total:,} lines; none has these operations"
    names = clip(clean(", ".join(one.operations)), _NAMES)
    return f"{one.holding:,} of {one.total:,} lines have {names}"


def _numbered(one: IrLines) -> str:
    """A gap in the numbers is a line of its own."""
    texts, last = list[str](), 0
    width = len(str(max((number for number, _ in one.lines), default=0)))
    for number, line in one.lines[: SHOWN_LINES + 1]:
        texts += ["…"] * (number > last + 1)
        texts.append(f"{number:>{width}}  {clip(clean_block(line).replace(chr(10), ' '), _COLUMNS)}")
        last = number
    return "\n".join([*texts, *(["…"] * (last < one.total))])
