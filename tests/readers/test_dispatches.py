"""Entry points merged by name from the program, the artifact and the CPU code generator's files."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.reading import EntryPoint, ExecutableFacts, ProgramFacts
from bot.core.snapshot import Dispatch
from bot.readers.assemble import merge_dispatches
from bot.readers.object_code import FunctionCode
from bot.readers.reports import Frame


def program(*names: str) -> ProgramFacts:
    rows = tuple(ExecutableFacts(f"exe_{name}", name, "conv", False, 2) for name in names)
    return ProgramFacts(len(names), len(names), len(names), rows)


def merged(program: ProgramFacts | None, *in_artifact: EntryPoint, **known: Any) -> tuple[Dispatch, ...]:
    nothing: dict[str, Any] = {"frames": {}, "allocas": None, "functions": {}, "strategies": {}, "machine": {}}
    return merge_dispatches(program, in_artifact, **{**nothing, **known})


def code_bytes(program_names: list[str], artifact_names: list[str]) -> list[int | None]:
    """What each name of the program finds, the artifact's entry points being numbered from one."""
    described = tuple(EntryPoint(name, code_bytes=number) for number, name in enumerate(artifact_names, 1))
    rows = merged(program(*program_names), *described)
    assert [dispatch.name for dispatch in rows] == program_names
    return [dispatch.code_bytes for dispatch in rows]


@pytest.mark.parametrize(
    ("in_program", "in_artifact", "found"),
    [
        (["main$async_0", "main$async_1"], ["main$async_1", "main$async_0"], [2, 1]),
        (["main$async_0"], ["main_async_0"], [1]),
        (["a:b.c$d_0"], ["a_b_c_d_0"], [1]),
        (["main$$x"], ["main_x"], [1]),
        (["main$x", "main_x"], ["main$x", "main_x"], [1, 2]),
        (["main$x", "main_x"], ["main_x", "main_x_1"], [None, 1]),
        (["main$x"], ["main_x", "main.x"], [None]),
        (["main_x"], ["main_x", "main_x"], [None]),
        (["main_x"], [], [None]),
        (["main_x"], ["other"], [None]),
        ([], ["other"], []),
    ],
)
def test_names_match_exactly_or_as_the_only_two_of_one_spelling(
    in_program: list[str], in_artifact: list[str], found: list[int | None]
) -> None:
    assert code_bytes(in_program, in_artifact) == found


def test_everything_the_artifact_says_is_kept() -> None:
    said = EntryPoint("f", 10, 20, "static", 30, vgprs=4, sgprs=5, vgpr_spills=6, sgpr_spills=7, code="abcd")
    assert merged(program("f"), said) == (
        Dispatch("exe_f", "f", "conv", 2, 10, 20, "static", None, 30, 4, 5, 6, 7, "abcd"),
    )


def test_the_cpu_code_generators_files_count_before_the_artifact() -> None:
    first, second = merged(
        program("f", "g"),
        EntryPoint("f", code_bytes=1, stack_bytes=2),
        EntryPoint("g", code_bytes=3, stack_bytes=4, code="wxyz"),
        frames={"f": Frame(64, "dynamic")},
        allocas={"f": 48, "helper": 9},
        functions={"f": FunctionCode(100, "abcd")},
    )
    assert (first.code_bytes, first.stack_bytes, first.stack_kind, first.alloca_bytes) == (100, 64, "dynamic", 48)
    assert (first.code, second.code) == ("abcd", "wxyz")
    # A function that the dump does not have is not known, though others allocate.
    assert (second.code_bytes, second.stack_bytes, second.alloca_bytes) == (3, 4, None)


@pytest.mark.parametrize(("allocas", "found"), [(None, None), ({}, 0), ({"f": 0}, 0), ({"g": 64}, None)])
def test_no_allocation_at_all_is_zero_but_a_missing_function_is_none(
    allocas: dict[str, int] | None, found: int | None
) -> None:
    (dispatch,) = merged(program("f"), allocas=allocas)
    assert dispatch.alloca_bytes == found


def test_without_the_programs_ir_the_artifact_alone_speaks() -> None:
    (dispatch,) = merged(None, EntryPoint("f", code_bytes=7))
    assert (dispatch.executable, dispatch.name, dispatch.kind, dispatch.sites) == ("", "f", "other", None)
    assert dispatch.code_bytes == 7
    assert dispatch.code is None


@pytest.mark.parametrize(
    ("strategies", "found"),
    [
        (None, None),
        ({}, None),
        ({"main$f": "tiles"}, "tiles"),
        ({"main_f": "tiles"}, "tiles"),
        ({"main_f": "spelled", "main$f": "exact"}, "exact"),
        ({"main_f": "one", "main.f": "other"}, None),
        ({"g": "tiles"}, None),
    ],
)
def test_strategies_are_found_by_name_or_spelling(strategies: dict[str, str] | None, found: str | None) -> None:
    (dispatch,) = merged(program("main$f"), strategies=strategies or {})
    assert dispatch.strategy == found
    (alone,) = merged(None, EntryPoint("main$f"), strategies=strategies or {})
    assert alone.strategy == found


def test_entry_points_of_one_name_stay_apart_without_the_programs_ir() -> None:
    entries = (EntryPoint("f", code="abcd"), EntryPoint("f", code="wxyz"))
    assert [dispatch.code for dispatch in merged(None, *entries)] == ["abcd", "wxyz"]
