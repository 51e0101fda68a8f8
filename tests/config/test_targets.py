"""Targets that are derived from others: what they inherit, what they replace, and one line for each mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config.configuration import load_config
from bot.config.targets import merged
from bot.core.planned import Target

HEADER = "schema: code-size-config/1\ntargets:\n"
PACKAGED = {target.name: target for target in load_config(models=False).targets}

Load = Callable[[str], dict[str, Target]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(targets: str) -> dict[str, Target]:
        (tmp_path / "c.yml").write_text(HEADER + targets, encoding="utf-8")
        return {
            target.name: target
            for target in load_config(tmp_path / "c.yml", models=False).targets
        }

    return load


def test_backend_and_flags_are_inherited_and_an_option_is_replaced_in_its_place(
    load: Load,
) -> None:
    features = "--iree-llvmcpu-target-cpu-features=+m,+a,+f,+d,+v"
    targets = load(
        "  x86_64-O3: {extends: llvm-cpu-x86_64, flags: [--iree-opt-level=O3]}\n "
        " small: {extends: llvm-cpu-riscv64, flags: [--iree-opt-level=O2,"
        f" '{features}']}}\n  a: {{extends: vmvx-inline}}\n  b: {{extends: vmvx-inline,"
        " unsupported: not here}\n"
    )
    flags = (*PACKAGED["llvm-cpu-x86_64"].flags, "--iree-opt-level=O3")
    assert targets["x86_64-O3"] == Target("x86_64-O3", "llvm-cpu", flags)
    inherited = PACKAGED["llvm-cpu-riscv64"].flags
    assert inherited[-1].startswith("--iree-llvmcpu-target-cpu-features=")
    assert targets["small"].flags == (*inherited[:-1], features, "--iree-opt-level=O2")
    assert targets["a"].unsupported == PACKAGED["vmvx-inline"].unsupported != ""
    assert targets["b"].unsupported == "not here"


@pytest.mark.parametrize(
    ("inherited", "added", "expected"),
    [
        ((), (), ()),
        (("--a=1", "--b"), (), ("--a=1", "--b")),
        (("--a=1", "--b"), ("--a=2",), ("--a=2", "--b")),
        (("--a", "--b"), ("--a=false",), ("--a=false", "--b")),
        (("--a=1",), ("--ab=2",), ("--a=1", "--ab=2")),
        (("--a=1", "--b", "--a=2"), ("--a=3",), ("--a=3", "--b")),
        (("--a=1", "--b"), ("--c", "--a=2", "--a=3"), ("--a=2", "--a=3", "--b", "--c")),
    ],
)
def test_flags(
    inherited: tuple[str, ...], added: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert merged(inherited, added) == expected


FLAGS = st.lists(
    st.builds("--{}={}".format, st.sampled_from("abcd"), st.integers(0, 3)), max_size=8
)


@given(FLAGS, FLAGS)
def test_every_option_is_there_as_often_as_one_of_the_two_has_it(
    inherited: list[str], added: list[str]
) -> None:
    merged_flags = merged(inherited, added)
    for option in ("--a", "--b", "--c", "--d"):
        own_flags = [flag for flag in added if flag.startswith(option)]
        inherited_flags = [flag for flag in inherited if flag.startswith(option)]
        assert [flag for flag in merged_flags if flag.startswith(option)] == (
            own_flags or inherited_flags
        )
    assert set(merged_flags) <= {*inherited, *added}


def test_a_target_extends_one_above_it_its_own_name_means_the_packaged_one(
    load: Load,
) -> None:
    targets = load(
        "  a: {backend: llvm-cpu, flags: [--iree-opt-level=O1]}\n"
        "  b: {extends: a, flags: [--iree-opt-level=O2]}\n"
        "  c: {extends: b, flags: [--iree-opt-data-tiling]}\n"
        "  vmvx: {extends: vmvx}\n"
        "  cuda: {extends: cuda, flags: [--iree-cuda-target=sm_86]}\n"
        "  new: {extends: cuda}\n"
    )
    assert targets == {
        "a": Target("a", "llvm-cpu", ("--iree-opt-level=O1",)),
        "b": Target("b", "llvm-cpu", ("--iree-opt-level=O2",)),
        "c": Target("c", "llvm-cpu", ("--iree-opt-level=O2", "--iree-opt-data-tiling")),
        "vmvx": PACKAGED["vmvx"],
        "cuda": Target("cuda", "cuda", ("--iree-cuda-target=sm_86",)),
        "new": Target("new", "cuda", ("--iree-cuda-target=sm_86",)),
    }
