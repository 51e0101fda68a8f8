"""Texts of executables to find families in: recorded ones, and as many variations of them as are asked for."""

from __future__ import annotations

import json
import re

from places import FIXTURES

from bot.core.reading import SourceText

HERE = FIXTURES / "families"
_CONSTANT = re.compile(r"(\"arith\.constant\"\(\) <\{value = )(-?[0-9]+)( : i(?:32|64)\})")
_DIMENSION = re.compile(r"\b(64|34|32|30|28)x")


def originals() -> list[SourceText]:
    """All recorded executables."""
    entries = (entry for path in sorted(HERE.glob("*.json")) for entry in json.loads(path.read_text("utf-8")))
    return [SourceText(entry["executable"], entry["generic"], "") for entry in entries]


def synthetic(count: int) -> list[SourceText]:
    """Real texts with other constants, other shapes, or other names of operations (so that many are in no family)."""
    texts = originals()
    return [_varied(texts[at % len(texts)], at) for at in range(count)]


def _varied(text: SourceText, at: int) -> SourceText:
    generic = _CONSTANT.sub(lambda match: f"{match[1]}{int(match[2]) + at}{match[3]}", text.generic)
    if at % 3 == 1:
        generic = _DIMENSION.sub(lambda match: f"{int(match[1]) + at}x", generic)
    if at % 3 == 2:
        generic = generic.replace("fastmath<none>", f"fastmath<flags{at}>").replace(
            "overflow<none>", f"overflow<o{at}>"
        )
    return SourceText(f"main_dispatch_{at}", generic, text.shown)
