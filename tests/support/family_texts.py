"""Executables in generic form: recorded ones, and ones of a few operations."""

from __future__ import annotations

import json

from places import FIXTURES

from bot.core.reading import SourceText

HERE = FIXTURES / "families"
MODELS = (
    "constants",
    "static_shapes",
    "offsets",
    "operand_order",
    "extra_operation",
    "different_fusion",
)
_SCALAR = """"func.func"() <{{function_type = ({types}) -> (), sym_name = "@"}}> ({{
^bb0({arguments}):
{body}
  "func.return"() : () -> ()
}}) : () -> ()"""


def recorded(name: str) -> list[SourceText]:
    """The executables of one small model."""
    entries = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return [
        SourceText(entry["executable"], entry["generic"], entry["shown"])
        for entry in entries
    ]


def function(name: str, body: list[str], arguments: int = 4) -> SourceText:
    """An executable of f32 operations on its arguments."""
    names = ", ".join(f"%arg{index}: f32" for index in range(arguments))
    text = _SCALAR.format(
        types=", ".join(["f32"] * arguments), arguments=names, body="\n".join(body)
    )
    return SourceText(name, text, "")


def binary(result: int, operation: str, first: str, second: str) -> str:
    """One line of the generic form."""
    return f'  %{result} = "{operation}"({first}, {second}) : (f32, f32) -> f32'
