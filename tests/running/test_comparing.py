"""bot.running.runner and its script: files of values, compared by a real child process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bot.running.feeding import compare, fill
from bot.running.runner import Equality, judged
from bot.system.processes import Cancel

NAN, INF = float("nan"), float("inf")
KINDS = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8, "i32": np.int32, "": np.uint8}

ALLOWED, ONE_OF_TWO = "of the largest magnitude where", "differs in 1 of 2 values"
NO_PART = f"{ONE_OF_TWO}, and not by a finite part of its largest magnitude"


def verdict(home: Path, element: str, *draws: tuple[Sequence[float], Sequence[float]]) -> Equality:
    """Of one output on some inputs."""
    paths = []
    for number, pair in enumerate(draws):
        paths.append([str(home / f"{number}{side}") for side in ("before", "after")])
        for path, values in zip(paths[-1], pair, strict=True):
            np.array(values, KINDS[element]).tofile(path)
    compared = compare([{"element": element, "draws": paths}], home, Cancel())
    assert not isinstance(compared, str), compared
    return judged(compared, [element], "on these")


@pytest.mark.parametrize(
    ("element", "before", "after", "note"),
    [
        ("i32", (1, 2), (1, 2), "bit-equal"),
        ("f32", (1, 2), (1, 2), "bit-equal"),
        ("f32", (1, 2, NAN, INF), (1, 2, NAN, INF), "bit-equal"),
        ("", (1, 2), (1, 2), "bit-equal"),
        ("f32", (1, -8), (1.0004, -8), f"largest difference 5e-05 {ALLOWED} 0.0001 is allowed,"),
        ("f16", (1, 8), (1.0625, 8), f"largest difference 0.0078 {ALLOWED} 0.01 is allowed,"),
        ("f32", (0.0, 8), (-0.0, 8), f"largest difference 0 {ALLOWED} 0.0001 is allowed,"),
        ("f64", (0, 8), (8e-300, 8), f"largest difference 1e-300 {ALLOWED} 0.0001 is allowed,"),
    ],
)
def test_equal(tmp_path: Path, element: str, before: Sequence[float], after: Sequence[float], note: str) -> None:
    assert verdict(tmp_path, element, (before, after)) == (True, f"{note} on these")


@pytest.mark.parametrize(
    ("element", "before", "after", "note"),
    [
        ("i32", (1, 2), (1, 3), ONE_OF_TWO),
        ("i8", (1, 2), (2, 3), "differs in 2 of 2 values"),
        ("f32", (1, 2), (1, 2.01), f"{ONE_OF_TWO}, by up to 0.005 of its largest magnitude where 0.0001 is allowed"),
        ("f32", (1, NAN), (1, 2), NO_PART),
        ("f32", (1, 2), (1, INF), NO_PART),
        ("f32", (INF, 2), (-INF, 2), NO_PART),
        ("f32", (0, 0), (0, 1), NO_PART),
        ("f64", (1e308, 1), (-1e308, 1), NO_PART),
        ("f32", (1, 2), (1,), "has 4 bytes instead of 8"),
        ("", (1, 2), (1, 3), ONE_OF_TWO),
    ],
)
def test_not_equal(tmp_path: Path, element: str, before: Sequence[float], after: Sequence[float], note: str) -> None:
    assert verdict(tmp_path, element, (before, after)) == (False, f"output 0 {note}, on these")


@pytest.mark.parametrize(
    ("element", "values", "why"),
    [
        ("f32", (NAN, INF), "no value is finite"),
        ("f32", (7, 7), "all values are one constant"),
        ("f32", (7, NAN), "all values are one constant"),
        ("i32", (), "there are no values"),
        ("i8", (-128, -128), "all values are one constant"),
    ],
)
def test_what_proves_nothing(tmp_path: Path, element: str, values: Sequence[float], why: str) -> None:
    assert verdict(tmp_path, element, (values, values)) == (None, f"nothing to compare: {why}, on these")


def test_one_value_that_follows_the_input_is_no_constant(tmp_path: Path) -> None:
    assert verdict(tmp_path, "f32", ((7,), (7,)), ((8,), (8,))) == (True, "bit-equal on these")


def test_a_difference_on_any_input_counts(tmp_path: Path) -> None:
    assert verdict(tmp_path, "i8", ((7, 1), (7, 1)), ((8, 1), (8, 2))).equal is False


def test_one_output_that_tells_is_enough(tmp_path: Path) -> None:
    for name, values in {"dead": (3, 3), "alive": (3, 4)}.items():
        np.array(values, np.int8).tofile(tmp_path / name)
    asked = [{"element": "i8", "draws": [[str(tmp_path / name)] * 2]} for name in ("dead", "alive")]
    compared = compare(asked, tmp_path, Cancel())
    assert not isinstance(compared, str)
    said = "bit-equal on these; 1 of 2 outputs proved nothing: all values are one constant"
    assert judged(compared, ["i8", "i8"], "on these") == (True, said)


def test_no_output_at_all_proves_nothing() -> None:
    assert judged([], [], "on these") == (None, "nothing to compare: the program has no output, on these")


def test_brain_floats_are_read_as_such(tmp_path: Path) -> None:
    def written(name: str, values: Sequence[float]) -> str:
        (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).tofile(tmp_path / name)
        return str(tmp_path / name)

    draws = [[written("before", (1, 2)), written("after", (1.0078125, 2))]]
    compared = compare([{"element": "bf16", "draws": draws}], tmp_path, Cancel())
    assert not isinstance(compared, str)
    equal, note = judged(compared, ["bf16"], "on these")
    assert equal is True and note.startswith("largest difference 0.0039 ")


def test_files_that_are_not_there_are_a_reason(tmp_path: Path) -> None:
    said = compare([{"element": "f32", "draws": [["none", "none"]]}], tmp_path, Cancel())
    assert isinstance(said, str) and "FileNotFoundError" in said and "\n" not in said
    refused = fill([{"path": "none/none", "head": "", "tensors": []}], tmp_path, Cancel())
    assert isinstance(refused, str) and "FileNotFoundError" in refused
