"""Flags of a target in ranges of releases: which are taken for which compiler, what is inherited, and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.compiler.cell_cache import cell_key
from bot.compiler.release_flags import for_release
from bot.config.configuration import load_config
from bot.core.planned import Model, PlannedCell, Target
from bot.core.snapshot import CompilerInfo
from bot.errors import ConfigError

HEADER = "schema: code-size-config/1\ntargets:\n"
MODEL = Model(name="m", path="m.mlir", shown="m.mlir", digest="a" * 64, size_bytes=1)
RANGES = (("<3.11", ("--old",)), (">=3.11,<3.12", ()), ("==3.12.*", ("--odd",)))
TARGET = Target("t", "vmvx", ("--new",), releases=RANGES)


def targets(tmp_path: Path, text: str) -> dict[str, Target]:
    (tmp_path / "c.yml").write_text(HEADER + text, encoding="utf-8")
    return {
        target.name: target
        for target in load_config(tmp_path / "c.yml", models=False).targets
    }


def used(version: str, spec: str = "iree-compile") -> tuple[str, ...]:
    (cell,) = for_release(
        CompilerInfo(version, "", "", spec), [PlannedCell(MODEL, TARGET)]
    )
    assert not cell.target.releases
    return cell.target.flags


@pytest.mark.parametrize(
    ("version", "spec", "flags"),
    [
        ("3.10.0rc20260107", "iree-base-compiler==3.10.0", ("--old",)),
        ("3.11.0rc20260316", "iree-base-compiler==3.11.0", ()),
        ("3.11.0rc20260316", "iree_base_compiler-3.11.0-cp311.whl", ()),
        ("3.12.0rc20260917", "build", ("--odd",)),
        ("3.12.0.dev+0123abc", "build", ("--odd",)),
        ("3.13.0rc20261016", "latest = iree-base-compiler==3.13.0", ("--new",)),
        ("3.14.0rc20261101", "iree-base-compiler==3.14.0rc20261101", ("--new",)),
        ("mine", "build", ("--new",)),
    ],
)
def test_the_first_range_that_has_the_release_counts(
    version: str, spec: str, flags: tuple[str, ...]
) -> None:
    assert used(version, spec) == flags


def test_a_target_without_ranges_is_left_alone_and_keys_are_those_of_the_flags() -> (
    None
):
    plain = PlannedCell(MODEL, Target("t", "vmvx", ("--old",)))
    info = CompilerInfo("3.10.0", "", "")
    assert for_release(info, [plain]) == (plain,)
    (ranged,) = for_release(info, [PlannedCell(MODEL, TARGET)])
    assert cell_key("d", ranged) == cell_key("d", plain)


def test_ranges_are_merged_with_what_is_inherited(tmp_path: Path) -> None:
    by_name = targets(
        tmp_path,
        "  base: {backend: vmvx, flags: [--a=1, --b], releases: {'<3.9': [--a=0]}}\n"
        "  derived: {extends: base, flags: [--a=2], releases: {'<3.11': [--c]}}\n",
    )
    assert by_name["base"].releases == (("<3.9", ("--a=0",)),)
    assert by_name["derived"].flags == ("--a=2", "--b")
    assert by_name["derived"].releases == (
        ("<3.11", ("--a=1", "--b", "--c")),
        ("<3.9", ("--a=2",)),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "  t: {backend: vmvx, releases: {'3.11': [--a]}}\n",
            "'3.11' is not a range of releases (write it as pip does",
        ),
        (
            "  t: {backend: vmvx, releases: {'<=>3': [--a]}}\n",
            "is not a range of releases",
        ),
        ("  t: {backend: vmvx, releases: {}}\n", "releases"),
        ("  t: {backend: vmvx, releases: {'<3.11': --a}}\n", "<3.11"),
        ("  t: {backend: vmvx, releases: {'<3.11': [a]}}\n", "a flag begins with -"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        targets(tmp_path, text)
    assert message in refused.value.line and "c.yml:3" in refused.value.line
