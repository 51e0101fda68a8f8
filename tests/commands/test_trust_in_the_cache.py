"""What a user sees of two promises: a damaged cache changes no figure, and rechecks cost a tenth at most."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, FakeCompiler, install, install_native
from prepared_program import bot

CONFIG = (
    "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [llvm-cpu-x86_64, vmvx]\n"
)
MODELS = 12


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for number in range(MODELS):
        (tmp_path / f"m{number}.mlir").write_text(f"// model m{number}\n")
    (tmp_path / "code-size.yml").write_text(CONFIG)
    return tmp_path


def compiler(home: Path, name: str, rule: dict[str, str] | None = None) -> FakeCompiler:
    fake = install(home / f"fake-{name}", [rule] if rule else [], templates=TEMPLATES)
    install_native(home / name / "iree-compile", fake)
    return fake


@pytest.mark.parametrize("count", [1, 2])
def test_a_figure_that_was_changed_in_the_cache_is_measured_again(
    home: Path, count: int
) -> None:
    fake = compiler(home, "base")
    arguments = (
        "measure",
        "--compiler",
        "base",
        "--model",
        "m0",
        "--model",
        "m1",
        "--cache",
        "cache",
        "--out",
    )
    bot(*arguments, "first.json", cwd=home, codes=(0,))
    before = fake.compiles
    figure = re.compile(rb'("dispatch_sites":)(\d+)')
    paths = sorted((home / "cache" / "cells").rglob("*.json"))
    assert len(paths) == 4
    for path in paths[:count]:
        changed, times = figure.subn(
            lambda match: match[1] + b"%d" % (int(match[2]) + 1), path.read_bytes()
        )
        assert times > 0
        path.write_bytes(changed)
    printed = bot(*arguments, "second.json", cwd=home, codes=(0,)).stderr
    assert f"{4 - count} from the cache" in printed and fake.compiles == before + count
    first, second = (
        json.loads((home / f"{name}.json").read_text())["cells"]
        for name in ("first", "second")
    )
    sites = [
        [cell["metrics"]["dispatch_sites"] for cell in cells]
        for cells in (first, second)
    ]
    assert sites[0] == sites[1], (
        "no sum depends on this figure: only the digest tells that it was changed"
    )


def test_when_everything_changed_only_a_tenth_is_compiled_again(home: Path) -> None:
    base = compiler(home, "base")
    head = compiler(home, "head", {"do": "grow", "kind": "direct"})
    arguments = (
        "compare",
        "--base",
        "base",
        "--head",
        "head",
        "--cache",
        "cache",
        "--out",
        "out",
        "--jobs",
        "2",
    )
    bot(*arguments, cwd=home)
    cells = json.loads((home / "out" / "report.json").read_text())["cells"]
    assert [cell["state"] for cell in cells] == ["changed"] * 2 * MODELS
    once = 2 * 2 * MODELS  # models on two targets and two sides
    again = base.compiles + head.compiles - once
    assert 0 < again <= once // 3, (
        "a tenth, or four builds of a small suite, each on both sides and up to two"
        " times"
    )
