"""bot.core.planned: what selectors take, short names, and the names that are near."""

from __future__ import annotations

import pytest

from bot.core.planned import kept, matching, near_or_known, nearest, require_matches, short_names
from bot.errors import UsageError

BACKENDS = {
    "llvm-cpu-x86_64": "llvm-cpu",
    "llvm-cpu-aarch64": "llvm-cpu",
    "vmvx": "vmvx",
    "vulkan-spirv": "vulkan-spirv",
    "cuda": "cuda",
}
TARGETS = tuple(BACKENDS)
SHORT = short_names(TARGETS, BACKENDS)
MODELS = ("bert_l4_f32_dyn", "bert_l4_f32_s128", "gpt2_f32", "mobilenet_v1_f32_224")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("vmvx", ["vmvx"]),
        ("x86_64", ["llvm-cpu-x86_64"]),
        ("vulkan", ["vulkan-spirv"]),
        ("vul*", ["vulkan-spirv"]),
        ("*64", ["llvm-cpu-x86_64", "llvm-cpu-aarch64"]),
        ("[xa]*", ["llvm-cpu-x86_64", "llvm-cpu-aarch64"]),
        ("v*", ["vmvx", "vulkan-spirv"]),
        ("[!l]*", ["vmvx", "vulkan-spirv", "cuda"]),
        ("llvm-…64", ["llvm-cpu-x86_64", "llvm-cpu-aarch64"]),
        ("spirv", []),
        ("", []),
    ],
)
def test_a_selector_takes_full_names_and_short_ones_where_no_full_one_fits(selector: str, found: list[str]) -> None:
    assert matching(TARGETS, selector, SHORT) == found


def test_a_name_takes_itself_whatever_else_it_would_match() -> None:
    assert matching(["a*", "ab"], "a*") == ["a*"]
    assert matching(["x[1]", "x1"], "x[1]") == ["x[1]"]


def test_a_short_name_that_would_mean_two_targets_is_none() -> None:
    short = short_names(["llvm-cpu-x", "rocm-x"], {"llvm-cpu-x": "llvm-cpu", "rocm-x": "rocm"})
    assert matching(["llvm-cpu-x", "rocm-x"], "x", short) == []


def test_no_selector_keeps_all_and_several_keep_what_any_takes() -> None:
    assert kept(TARGETS, ()) == set(TARGETS)
    assert kept(TARGETS, ("x86_64", "cuda"), SHORT) == {"llvm-cpu-x86_64", "cuda"}


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("x86-64", ["llvm-cpu-x86_64"]),
        ("vulcan", ["vulkan-spirv"]),
        ("llvm-cpu-arm64", ["llvm-cpu-aarch64", "llvm-cpu-x86_64"]),
        ("CUDA", ["cuda"]),
        ("rocm", []),
        ("*", []),
    ],
)
def test_the_nearest_targets(wanted: str, near: list[str]) -> None:
    assert nearest(wanted, TARGETS, SHORT) == near


def test_a_name_is_near_that_begins_nearly_so() -> None:
    assert nearest("mobilnet*", MODELS) == ["mobilenet_v1_f32_224"]
    assert nearest("brt*", MODELS) == ["bert_l4_f32_dyn", "bert_l4_f32_s128"]


def test_what_matches_nothing_is_one_line_with_the_near_names_or_all() -> None:
    require_matches(TARGETS, ("x86_64", "v*"), "target", SHORT)
    with pytest.raises(UsageError) as caught:
        require_matches(TARGETS, ("vmvx", "x86-64"), "target", SHORT)
    assert caught.value.line == "--target x86-64: matches no target (did you mean 'llvm-cpu-x86_64'?)"
    assert near_or_known("resnet", MODELS[2:]) == "known: gpt2_f32, mobilenet_v1_f32_224"
    assert near_or_known("zzz", [f"m{n:02}" for n in range(20)]).endswith("m10, m11, and 8 more")
    assert near_or_known("zzz", []) == "there is none"
