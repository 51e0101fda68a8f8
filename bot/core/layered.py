"""A model's text with any number of layers, made of the text of one layer."""

from __future__ import annotations

import re

REPEAT = "// repeat"
END = "// end"
"""The lines around the text of one layer, without the spaces before them."""
MOST_LAYERS = 256
_PLACE = re.compile(r"\{(layer|previous|layers)\}")
NOT_LAYERED = f"the model has no lines between '{REPEAT}' and '{END}'"


class NotLayered(ValueError):
    """A text cannot be made for several layers; the argument is the reason."""


def with_layers(text: str, layers: int) -> str:
    """Return the text with its repeated lines written once for each layer.

    Repeated lines follow a line `// repeat`, up to a line `// end`. In them `{layer}`
    is the number of the layer, from 1 on, and `{previous}` is one less. `{layers}` is
    how many there are, in all lines. Raises NotLayered.
    """
    result = list[str]()
    repeated = list[str]()
    start = 0
    is_layered = False
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        mark = line.strip()
        if mark == REPEAT:
            if start:
                raise NotLayered(
                    f"line {number}: '{REPEAT}' inside the repeated lines that begin in"
                    f" line {start}"
                )
            start = number
        elif mark == END:
            if not start:
                raise NotLayered(f"line {number}: '{END}' without '{REPEAT}'")
            result += _written(repeated, layers)
            repeated = []
            start = 0
            is_layered = True
        elif start:
            repeated.append(line)
        else:
            result.append(_filled(line, {"layers": layers}))
    if start:
        raise NotLayered(f"line {start}: '{REPEAT}' without '{END}'")
    if not is_layered:
        raise NotLayered(NOT_LAYERED)
    return "".join(result)


def _written(lines: list[str], layers: int) -> list[str]:
    written = []
    for layer in range(1, layers + 1):
        numbers = {"layer": layer, "previous": layer - 1, "layers": layers}
        written += [_filled(line, numbers) for line in lines]
    return written


def _filled(line: str, numbers: dict[str, int]) -> str:
    return _PLACE.sub(lambda match: str(numbers.get(match[1], match[0])), line)
