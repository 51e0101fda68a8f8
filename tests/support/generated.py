"""What the tables of metrics, backends and default targets say elsewhere: `python -m generated` writes it anew."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from bot.config.configuration import Configuration, configs_dir
from bot.config.experiments import ExperimentsFile
from bot.config.yaml_file import read_yaml
from bot.config.yaml_types import json_schema
from bot.core.backends import BACKENDS
from bot.core.metrics import METRIC_IDS, METRICS


def configuration_schema() -> dict[str, Any]:
    """The JSON Schema of configurations, with the names of metrics and of the default targets."""
    schema = msgspec.json.decode(msgspec.json.encode(json_schema(Configuration)))
    names = read_yaml(configs_dir() / "default.yml").data["targets"]
    schema["properties"]["targets"]["anyOf"][0]["items"]["enum"] = list(names)
    metrics = {"items": {"anyOf": [{"enum": list(METRIC_IDS)}, {"pattern": "[*?\\[]"}]}}
    declares = {
        "required": ["compiler"],
        "properties": {"compiler": {"required": ["metrics"]}},
    }
    strict = {"items": {"properties": {"metrics": metrics}}}
    schema |= {"if": declares, "else": {"properties": {"thresholds": strict}}}
    return {"title": "Configuration of the code size review bot", **schema}


SCHEMAS = {
    "configs/schema.json": configuration_schema(),
    "configs/experiments-schema.json": {
        "title": "Experiments of the lab",
        **json_schema(ExperimentsFile),
    },
}


def written(schema: Any) -> Callable[[str], str]:
    """What makes the file of a JSON Schema anew, whatever it was."""
    return lambda _text: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def metrics_page(text: str) -> str:
    """`docs/metrics.md` with a row for each metric and each backend."""
    metrics = (
        f"| `{metric.id}` | {metric.about} | {metric.source or 'n/a'} | {metric.rule} |"
        for metric in METRICS
    )
    text = _table(
        text,
        "metrics",
        ("metric", "what it is", "where it comes from", "judged by"),
        metrics,
    )
    backends = (
        f"| `{backend.name}` |"
        f" {backend.text_form or 'machine code' if backend.runs_on != 'any processor' else 'bytecode'}"
        f" | {f'n/a: {backend.no_frames}' if backend.no_frames else 'yes'} |"
        f" {f'n/a: {backend.no_workgroup_memory}' if backend.no_workgroup_memory else 'yes'} |"
        f" {backend.runs_on} |"
        for backend in BACKENDS
    )
    headers = (
        "backend",
        "what its artifacts hold",
        "stack frames",
        "workgroup memory",
        "runs on",
    )
    return _table(text, "backends", headers, backends)


FILES: dict[str, Callable[[str], str]] = {
    **{name: written(schema) for name, schema in SCHEMAS.items()},
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
    for name, update in FILES.items():
        Path(name).write_text(
            update(Path(name).read_text(encoding="utf-8")), encoding="utf-8"
        )
