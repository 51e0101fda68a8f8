"""Flags that only one side has, tried on head one by one, with a real compiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prepared_program import bot
from real_compilers import own_cache
from reduction_models import SUMS

from bot.core.planned import Model, PlannedCell, Target
from bot.study.trying_flags import with_flag

RELEASE = "3.11.0"
REASSOCIATE = "--iree-llvmcpu-reassociate-fp-reductions"
DATA_TILING = "--iree-opt-data-tiling"


def compared(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """Compare two sides of one compiler; return `report.json` and what was printed.

    The cache has no builds of other tests: what is compiled is part of what is printed.
    """
    (folder / "m.mlir").write_text(SUMS, encoding="utf-8")
    config = (
        "schema: code-size-config/1\nmodels: [m.mlir]\n"
        "targets: [llvm-cpu-x86_64, vmvx]\n"
    )
    (folder / "c.yml").write_text(config, encoding="utf-8")
    ran = bot(
        "compare",
        "--compiler",
        RELEASE,
        "--config",
        "c.yml",
        "--cache",
        own_cache(folder / "cache", RELEASE),
        "--out",
        "out",
        *arguments,
        cwd=folder,
    )
    text = (folder / "out/report.json").read_text(encoding="utf-8")
    return json.loads(text), ran.stdout + ran.stderr


@pytest.mark.compiler
@pytest.mark.slow
def test_each_of_two_flags_is_tried_alone(tmp_path: Path) -> None:
    flags = (f"--flags={REASSOCIATE}=true", f"--flags={DATA_TILING}")
    report, printed = compared(tmp_path, *flags)
    assert "trying flags: 2 compiles" in printed
    by_flag = {row["added"]: row["tried"] for row in report["changed_flags"]}
    assert by_flag.keys() == {f"{REASSOCIATE}=true", DATA_TILING}
    did_it = by_flag[f"{REASSOCIATE}=true"]
    assert (did_it["status"], did_it["target"]) == ("proved", "llvm-cpu-x86_64")
    assert did_it["restored_bytes"] == did_it["moved_bytes"] != 0
    idle = by_flag[DATA_TILING]
    assert (idle["status"], idle["restored_bytes"]) == ("refuted", 0)
    comment = (tmp_path / "out/comment.md").read_text(encoding="utf-8")
    assert "**Tried on head, one flag at a time:**" in comment
    assert f"without `{REASSOCIATE}=true`, 100 % of the " in comment
    explained = bot(
        "explain", "out/report.json", "--model", "m", "--target", "vmvx", cwd=tmp_path
    ).stdout
    assert f"refuted: without {DATA_TILING}, none of the" in " ".join(explained.split())
    again, printed = compared(tmp_path, *flags)
    assert again["changed_flags"] == report["changed_flags"]
    assert "trying flags" not in printed, "the cache has both compiles"


@pytest.mark.compiler
@pytest.mark.slow
def test_the_only_flag_is_proved_without_a_compile(tmp_path: Path) -> None:
    report, printed = compared(tmp_path, f"--flags={REASSOCIATE}=true")
    (row,) = report["changed_flags"]
    assert (row["removed"], row["added"]) == ("", f"{REASSOCIATE}=true")
    assert (row["tried"]["status"], row["tried"]["only"]) == ("proved", True)
    assert "trying flags" not in printed
    comment = (tmp_path / "out/comment.md").read_text(encoding="utf-8")
    assert f"flag `{REASSOCIATE}=true` added, and nothing else" in comment


@pytest.mark.parametrize(
    ("removed", "added", "printed"),
    [
        ("", "--user", ("--cpu=v3", "--x", "--other")),
        ("--old", "--user", ("--cpu=v3", "--x", "--old", "--other")),
        ("--cpu=v2", "--cpu=v3", ("--cpu=v2", "--x", "--user", "--other")),
        ("", "--x", ("--cpu=v3", "--user", "--other")),
        ("--gone", "", ("--cpu=v3", "--x", "--user", "--other", "--gone")),
    ],
)
def test_a_flag_of_head_becomes_that_of_base(
    removed: str, added: str, printed: tuple[str, ...]
) -> None:
    model = Model(name="m", path="m", shown="m", digest="", size_bytes=1)
    target = Target(name="t", backend="vmvx", flags=("--cpu=v3", "--x"))
    cell = PlannedCell(model, target, user_flags=("--user", "--other"))
    changed = with_flag(cell, removed=removed, added=added)
    assert changed is not None
    assert (*changed.target.flags, *changed.user_flags) == printed
    assert (
        with_flag(cell, removed="", added="--iree-vm-emit-polyglot-zip=false") is None
    )
