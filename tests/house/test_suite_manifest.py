"""The model suite: every file has an entry on where it came from, and holds no weights or machine paths."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from places import ROOT

CONFIGS = ROOT / "configs"
MODELS = CONFIGS / "models"
EXPORT = CONFIGS / "export"
FILES = sorted(MODELS.glob("*.mlir"))
REQUIREMENTS = sorted(EXPORT.glob("requirements-*.txt"))
MANIFEST: dict[str, Any] = yaml.safe_load(
    (MODELS / "suite.yml").read_text(encoding="utf-8")
)
ENTRIES: dict[str, dict[str, Any]] = MANIFEST["models"]

FIELDS = {"kind", "source", "script", "made_with", "licence", "note"}
LICENCE = re.compile(r"(Apache-2\.0|BSD-3-Clause|MIT) \([\w ]+\); no weights")
PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(\[[a-z,]+\])?==(?P<version>\d[\w.]*)")

LONGEST_LINE_BYTES = 64 * 1024
LONGEST_HEX_CHARACTERS = 16 * 1024
"""Room for the 1,024 multipliers of a per-channel rescale, which are 8,192 hex digits."""
ABSOLUTE_PATH = re.compile(r'"(?:/|[A-Za-z]:\\)[^"]*":\d+')
MACHINE_FOLDER = re.compile(
    r'/(?:home|root|usr|tmp|opt|mnt|Users|site-packages|dist-packages)/[^"]*":\d+'
)


def text_of(name: str) -> str:
    """The text of one model of the suite."""
    return (MODELS / f"{name}.mlir").read_text(encoding="utf-8")


def pins(path: Path) -> dict[str, str]:
    """The version of each package in a requirements file.

    A line that is no exact pin fails the test.
    """
    versions = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        pin = PIN.fullmatch(line)
        assert pin, f"{path.name}: not pinned with '==': {line!r}"
        versions[pin["name"]] = pin["version"]
    return versions


def export_module(name: str) -> ModuleType:
    """A module of the export scripts, loaded from its file."""
    spec = importlib.util.spec_from_file_location(
        f"export_{name}", EXPORT / f"{name}.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_has_an_entry_and_every_entry_a_file() -> None:
    assert {path.stem for path in FILES} == set(ENTRIES)


def test_an_entry_is_complete_and_made_with_what_the_requirements_pin() -> None:
    assert REQUIREMENTS and all(map(pins, REQUIREMENTS))
    for name, entry in ENTRIES.items():
        assert set(entry) == FIELDS and LICENCE.fullmatch(entry["licence"]), name
        assert re.fullmatch(r"[^.\n]*(\.\d[^.\n]*)*\.", entry["note"]), (
            f"{name}: one sentence, on one line"
        )
        path = EXPORT / f"requirements-{entry['script'].partition('_')[0]}.txt"
        assert (
            entry["made_with"] and entry["made_with"].items() <= pins(path).items()
        ), name


def test_pairs_name_a_float_and_an_int8_form_of_one_model() -> None:
    for _kind, plain, small in map(dict.values, MANIFEST["pairs"]):
        assert (
            {plain, small} <= set(ENTRIES)
            and "i8" not in main_signature(plain)
            and "i8" in text_of(small)
        )


def main_signature(name: str) -> str:
    """The line that declares the entry function of a model."""
    return next(line for line in text_of(name).splitlines() if "func.func" in line)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_model_names_its_components_and_has_no_weights_and_nothing_of_a_machine(
    path: Path,
) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert not ABSOLUTE_PATH.search(text) and not MACHINE_FOLDER.search(text)
    assert (
        len(set(re.findall(r'^#loc\d+ = loc\("([^"]+)"\(', text, flags=re.MULTILINE)))
        > 20
    )
    declared = [
        line
        for line in lines
        if re.match(r'\s*("util\.global"\(|util\.global private)', line)
    ]
    assert all("#flow.parameter.named<" in line for line in declared)
    assert max(len(line.encode()) for line in lines) <= LONGEST_LINE_BYTES
    assert (
        max((len(digits) for digits in re.findall(r'"0x([0-9A-F]+)"', text)), default=0)
        <= LONGEST_HEX_CHARACTERS
    )


def test_export_keeps_no_directory_and_refuses_to_write_a_machine_path(
    tmp_path: Path,
) -> None:
    common = export_module("common")
    assert (
        common.package_path("/v/lib/site-packages/torch/nn/linear.py")
        == "torch/nn/linear.py"
    )
    assert common.package_path("/home/me/torch_models.py") == "torch_models.py"
    assert (
        common.package_path("torch/fx/passes/runtime_assert.py")
        == "torch/fx/passes/runtime_assert.py"
    )
    asm = (
        '#loc2 = loc("/home/me/linear.py":287:8 to 292:5)\n#loc3 ='
        ' loc("jit(f)/dot"(#loc2))\n'
    )
    assert common.strip_directories(asm) == asm.replace("/home/me/", "")
    with pytest.raises(SystemExit, match="absolute path"):
        common.write_model(
            tmp_path, "leaky", 'module {} loc("x"("/home/me/x.py":1:0))\n'
        )
    assert not list(tmp_path.iterdir())
