"""What the tables of metrics, backends and default targets say elsewhere: `python -m generated` writes it anew."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bot.config.configuration import configuration_schema
from bot.config.experiments import experiments_schema
from bot.core.backends import BACKENDS
from bot.core.metrics import METRICS


def json_schema(schema: Any) -> Callable[[str], str]:
    """What makes the file of a JSON Schema anew, whatever it was."""
    return lambda _text: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def metrics_page(text: str) -> str:
    """`docs/metrics.md` with a row for each metric and each backend."""
    metrics = (f"| `{one.id}` | {one.about} | {one.source or 'n/a'} | {one.rule} |" for one in METRICS)
    text = _table(text, "metrics", ("metric", "what it is", "where it comes from", "judged by"), metrics)
    backends = (
        f"| `{one.name}` | {one.text_form or 'machine code' if one.runs_on != 'any processor' else 'bytecode'} | "
        f"{f'n/a: {one.no_frames}' if one.no_frames else 'yes'} | "
        f"{f'n/a: {one.no_workgroup_memory}' if one.no_workgroup_memory else 'yes'} | {one.runs_on} |"
        for one in BACKENDS
    )
    headers = ("backend", "what its artifacts hold", "stack frames", "workgroup memory", "runs on")
    return _table(text, "backends", headers, backends)


FILES: dict[str, Callable[[str], str]] = {
    "configs/schema.json": json_schema(configuration_schema()),
    "configs/experiments-schema.json": json_schema(experiments_schema()),
    "docs/metrics.md": metrics_page,
}
"""File, from the top of the repository → what makes its text anew."""


def _table(text: str, name: str, headers: Iterable[str], rows: Iterable[str]) -> str:
    titles = list(headers)
    table = "\n".join((f"| {' | '.join(titles)} |", f"|{':--|' * len(titles)}", *rows))
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    assert len(pattern.findall(text)) == 1
    return pattern.sub(lambda match: f"{match[1]}{table}{match[2]}", text)


if __name__ == "__main__":
    for name, made in FILES.items():
        Path(name).write_text(made(Path(name).read_text(encoding="utf-8")), encoding="utf-8")
